import collections
import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import corefed_reference
from tests.algorithms import linear_task
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

# The last client never takes part.
_SIZES = (5, 9, 12, 7, 4, 8, 6)
_WIDTH = 3
_DEFAULTS = {'learning_rate': 0.5, 'decay': 0.5}
# Alignment by the clients takes a constant learning rate.
_ALIGNED = {'alignment': 'client', 'decay': 1.0}


def _model_fn(activation='relu'):
  """Two layers with fixed initial weights; the first gives the embedding."""
  rng = np.random.default_rng(3)

  def dense(shape, activation=None):
    kernel = tf.constant_initializer(rng.normal(size=shape))
    return tf.keras.layers.Dense(
      shape[1], activation=activation, kernel_initializer=kernel
    )

  x = tf.keras.Input([linear_task.NUM_FEATURES])
  embedding = dense([linear_task.NUM_FEATURES, _WIDTH], activation)(x)
  logits = dense([_WIDTH, linear_task.NUM_CLASSES])(embedding)
  return tf.keras.Model(
    x, collections.OrderedDict(logits=logits, embedding=embedding)
  )


def _initial_weights():
  return [w.astype(np.float64) for w in _model_fn().get_weights()]


def _clients():
  return dict(enumerate(linear_task.make_clients(_SIZES)))


def _some(*cohorts):
  return [linear_task.pick(_clients(), ids) for ids in cohorts]


def _broken(*ids):
  """Clients whose data are not finite."""
  clients = linear_task.pick(_clients(), ids)
  for data in clients.values():
    data.x[:] = np.nan
  return clients


def _trace():
  """Clients leave, stay in use, fall out of use, return and are rejected."""
  first, second, third, last = _some([0, 1, 2], [3], [0, 3], [2, 5])
  # Client 1 counts as absent in the third round.
  return [first, second, {**third, **_broken(1, 4)}, _broken(2, 4), last]


def _process(**options):
  """The process for the reference's options, built once.

  Options equal to the reference's default are left to the builder.
  """
  options = {**_DEFAULTS, **options}
  defaults = corefed_reference.Options
  return _cached(
    **{
      name: value
      for name, value in options.items()
      if value != getattr(defaults, name, None)
    }
  )


def _build(build=algorithms.build_corefed, *, activation='relu', **options):
  return linear_task.build_process(
    build,
    functools.partial(_model_fn, activation),
    num_clients=len(_SIZES),
    **options,
  )


_cached = functools.cache(_build)


def _reference(**options):
  return corefed_reference.CoreFed(
    _initial_weights(), **{**_DEFAULTS, **options}
  )


def _assert_close(found, expected):
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def _assert_memory(found, server):
  """The aggregator's state is the server's memory, with 0 elsewhere."""
  assert found['round'] == len(server.cohorts)
  # Stored as sent: `g_i` times the learning rate of its round.
  updates = found['updates'] / found['learning_rate'][:, np.newaxis]
  for rows, memory in (
    (updates, server.updates),
    (found['embeddings'], server.embeddings),
    (found['last_round'], server.last_round),
  ):
    for i, row in enumerate(rows):
      if i in memory:
        _assert_close(row, memory[i])
      else:
        np.testing.assert_array_equal(row, np.zeros_like(row))


def _assert_metrics(found, report):
  if report is None:
    assert found['num_stale'] == 0 and np.isnan(found['contrastive_loss'])
    assert not len(found['clients']['client_id'])
    return
  assert found['window'] == report['tau']
  assert found['num_stale'] == report['num_stale']
  _assert_close(found['contrastive_loss'], report['contrastive_loss'])
  clients = found['clients']
  for name in ('client_id', 'stale'):
    np.testing.assert_array_equal(clients[name], report[name])
  for name in ('frequency', 'alignment', 'weight'):
    _assert_close(clients[name], report[name])


def _run(rounds, **options):
  """Runs the process and the reference, and compares them after every round.

  Args:
    rounds: The clients of each round.
    **options: Of both.

  Returns:
    The metrics of the aggregators.
  """
  expected, process = _reference(**options), _process(**options)
  state, outputs = process.initialize(), []
  for clients in rounds:
    before = linear_task.weights(process, state)
    outputs.append(linear_task.next_round(process, state, clients))
    state, metrics = outputs[-1].state, outputs[-1].metrics
    report = expected.next(clients)
    rejected = len(clients) - len(expected.server.cohorts[-1])
    assert metrics['client_work']['num_rejected_clients'] == rejected
    found = linear_task.weights(process, state)
    _assert_close(found, expected.server.weights)
    if report is None:
      np.testing.assert_array_equal(found, before)
    if expected.options.variant != 'refed':
      _assert_memory(state.aggregator, expected.server)
      _assert_metrics(metrics['aggregator'], report)
  return [output.metrics['aggregator'] for output in outputs]


def _last_weights(rounds, **options):
  """Of the reference alone."""
  reference = _reference(**options)
  for clients in rounds:
    reference.next(clients)
  return reference.server.weights


def _assert_matters(rounds, options, **usual):
  """The weights differ from those with other options."""
  difference = _last_weights(rounds, **options) - _last_weights(
    rounds, **{**options, **usual}
  )
  assert np.abs(difference).max() > 1e-4, usual


def test_changing_cohorts_against_numpy():
  found = _run(_trace())
  # |S_t| = 3, 1, 2, 0, 2 of 3, 4, 4, 4, 5 distinct clients so far.
  assert [found[t]['window'] for t in (0, 1, 2, 4)] == [1, 4, 2, 2]
  clients = [measured['clients'] for measured in found]
  # Last in round 1, clients 1 and 2 are at the very end of a window of 2.
  np.testing.assert_array_equal(clients[2]['client_id'], [0, 1, 2, 3])
  np.testing.assert_array_equal(clients[2]['stale'], [0, 1, 1, 0])
  np.testing.assert_allclose(clients[2]['frequency'], [0.5, 0.5, 0.5, 1])
  # Client 1 is outside, client 2 is back.
  np.testing.assert_array_equal(clients[4]['client_id'], [0, 2, 3, 5])
  np.testing.assert_array_equal(clients[4]['stale'], [1, 0, 1, 0])


@pytest.mark.parametrize(
  'options',
  [
    {
      'fairness_exponent': 2.0,
      'sharpness': 0.5,
      'distillation_rate': 0.25,
      'temperature': 0.5,
      'include_positive': True,
      'local_epochs': 2,
      'decay': 1.0,
    },
    {'gradient_reuse': False, 'activation': 'linear'},
    {'variant': 'cofed'},
    # As options can have it of the authors' code, which is more than this.
    {
      'gradient_reuse': False,
      'global_embedding': 'first',
      'embedding_of': 'global_batch',
    },
  ],
  ids=str,
)
def test_an_option_against_numpy(options):
  rounds = _trace()
  _run(rounds, **options)
  # These do not change weights here.
  for name in set(options) - {
    'temperature',
    'include_positive',
    'activation',
    'decay',
  }:
    _assert_matters(
      rounds, options, **{name: getattr(corefed_reference.Options, name)}
    )


@pytest.mark.parametrize(
  'options',
  [
    {'variant': 'corefed'},
    {'variant': 'refed', 'activation': 'linear'},
    {'global_embedding': 'first'},
    {
      'include_positive': True,
      'temperature': 0.5,
      'contrastive_weight': 0.7,
      'distillation_weight': 0.4,
      'local_epochs': 2,
    },
  ],
  ids=str,
)
def test_alignment_in_local_training_against_numpy(options):
  # In the third round one client is new, one returns, and two are absent.
  rounds = _some([0, 1, 2], [0, 1], [2, 5])
  options = {**_ALIGNED, **options}
  _run(rounds, **options)
  _assert_matters(rounds, options, alignment='server')


@pytest.mark.full
def test_an_embedding_of_one_batch_by_the_received_model():
  process = _build(embedding_of='global_batch', batch_size=4, **_DEFAULTS)
  (clients,) = _some([1, 2])
  output = linear_task.next_round(process, process.initialize(), clients)
  for i, data in clients.items():
    expected = corefed_reference.embedding(
      _initial_weights(), data.x[:4], 'relu'
    )
    whole = corefed_reference.embedding(_initial_weights(), data.x, 'relu')
    assert np.abs(expected - whole).max() > 1e-3
    _assert_close(output.state.aggregator['embeddings'][i], expected)


@pytest.mark.full
@pytest.mark.parametrize(
  ('options', 'fed_avg_options', 'rtol'),
  [
    ({'variant': 'refed', 'alignment': 'server'}, {}, 0),
    # (1 / f)^0 sigma(0) is the same for all.
    (
      {'fairness_exponent': 0.0, 'sharpness': 0.0, 'gradient_reuse': False},
      {'uniform': True},
      1e-5,
    ),
  ],
  ids=['refed', 'no_fairness'],
)
def test_limit_of_fed_avg(options, fed_avg_options, rtol):
  common = {'batch_size': 4, 'local_epochs': 2, 'decay': 0.5, 'seed': 7}
  found = []
  for process in (
    _build(**options, **common),
    _build(algorithms.build_fed_avg, **fed_avg_options, **common),
  ):
    state, weights = process.initialize(), []
    for clients in _some([0, 1, 2], [3], [2, 0]):
      state = linear_task.next_round(process, state, clients).state
      weights.append(process.get_model_weights(state))
    found.append(weights)
  linear_task.assert_close(*found, rtol=rtol, atol=rtol)


@pytest.mark.full
def test_statistics_are_those_of_the_fresh_clients():
  """A stale client's update has no part in the moving averages."""
  clients = _clients()

  def model_fn():
    inner = linear_task.batch_norm_model_fn()
    x = inner.input
    return tf.keras.Model(
      x, collections.OrderedDict(logits=inner(x), embedding=x)
    )

  process = algorithms.build_corefed(
    model_fn,
    num_clients=2,
    client_optimizer=linear_task.sgd(0.1),
    batch_size=50,
  )
  output = linear_task.run(process, clients, [[0], [1]])
  assert output.metrics['aggregator']['num_stale'] == 1
  first, second = (clients[i].x.mean(axis=0) for i in (0, 1))
  found, _ = process.get_model_weights(output.state).non_trainable
  linear_task.assert_close(found, (first / 2 + second) / 2, rtol=1e-4)


def test_divergence_trains_as_the_round_did():
  """The paper's two distances, of parameters and of features."""
  process, expected = _process(**_ALIGNED), _reference(**_ALIGNED)
  state = process.initialize()
  for present in _some([0, 1, 2], [3], [2, 0]):
    before, weights_before = state, expected.server.weights
    state = linear_task.next_round(process, before, present).state
    expected.next(present)
  # A client without data has no local model, and does not count.
  (idle,) = linear_task.make_clients((0,))
  data = [
    linear_task.client_data(i, client)
    for i, client in [*present.items(), (1, idle)]
  ]
  found = process.divergence(before, state, data)

  def features(vector, x):
    weights = corefed_reference.unflatten(vector, _initial_weights())
    return corefed_reference.features(weights, x, 'relu').mean(axis=0)

  pairs = {'parameters': [], 'embedding': []}
  for i, data in present.items():
    step = _DEFAULTS['learning_rate'] * expected.server.updates[i]
    models = (weights_before - step, expected.server.weights)
    pairs['parameters'].append(models)
    pairs['embedding'].append([features(model, data.x) for model in models])
  for space, vectors in pairs.items():
    angles = [np.arccos(corefed_reference.cosine(*pair)) for pair in vectors]
    lengths = [np.abs(u - v).sum() for u, v in vectors]
    for name, values in (('cosine', angles), ('manhattan', lengths)):
      np.testing.assert_allclose(
        found[f'{space}_d_{name}'], np.mean(values), rtol=1e-4
      )


def test_bad_arguments():
  linear_task.assert_refused(
    _build, ('alignment', 'client', "'server'.*cofed"), variant='cofed'
  )
  with pytest.raises(ValueError, match='must build a model with an output'):
    algorithms.build_corefed(
      linear_task.model_fn,
      num_clients=3,
      client_optimizer=linear_task.sgd(0.1),
    )
