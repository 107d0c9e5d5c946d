import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import corefed_reference
from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

# The last client never takes part.
_SIZES = (5, 9, 12, 7, 4, 8, 6)
_DEFAULTS = {'learning_rate': 0.5, 'decay': 0.5}
# Alignment by the clients takes a constant learning rate.
_ALIGNED = {'alignment': 'client', 'decay': 1.0}


def _model_fn(activation='relu'):
  return linear_task.embedding_model_fn(activation)


def _network(activation):
  function = {'relu': tf.nn.relu, 'linear': tf.identity}[activation]
  return reference.Network((4, 3, 3), function)


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


def _build(build=algorithms.build_corefed, *, activation='relu', **options):
  return linear_task.build_process(
    build,
    functools.partial(_model_fn, activation),
    num_clients=len(_SIZES),
    **{**_DEFAULTS, **options},
  )


def _embedding(network, w, x):
  """The mean direction of the embeddings; a zero vector still counts."""
  phi, _ = network.outputs(w, x)
  lengths = tf.maximum(tf.norm(phi, axis=1, keepdims=True), 1e-12)
  return tf.reduce_mean(tf.math.divide_no_nan(phi, lengths), axis=0)


def _local_loss(v, network, data, received, options):
  """The cross-entropy and, with what a client received, its alignment."""
  loss = network.loss(v, data)
  if received is None:
    return loss
  z, (z_g, others) = _embedding(network, v, data.x), received
  target = corefed_reference.refined(z, z_g, options.distillation_rate)
  contrast = corefed_reference.contrastive_loss(z, z_g, others, options)
  loss += options.contrastive_weight * contrast
  distance = tf.reduce_sum((z - tf.stop_gradient(target)) ** 2)
  return loss + options.distillation_weight * distance


def _corefed(rounds, **options):
  """Yields the server after each round, and what it measured."""
  options = corefed_reference.Options(**{**_DEFAULTS, **options})
  network = _network(options.activation)
  server = corefed_reference.Server(linear_task.start(_model_fn), options)
  for number, clients in enumerate(rounds):
    rate, w = options.learning_rate * options.decay**number, server.weights
    uploads, sizes = {}, None
    for i, data in clients.items():
      received = None
      if options.alignment != 'server' and server.global_embedding is not None:
        others = [z for j, z in server.embeddings.items() if j != i]
        received = server.global_embedding, others
      model, _, _ = reference.descend(
        functools.partial(
          _local_loss,
          network=network,
          data=data,
          received=received,
          options=options,
        ),
        *(w, rate, options.local_epochs),
      )
      of = model if options.embedding_of == 'local' else w
      uploads[i] = model, _embedding(network, of, data.x).numpy()
    if options.variant == 'refed':
      sizes = {i: len(data.y) for i, data in clients.items()}
    yield server, server.next(uploads, rate, sizes)


def _expected(rounds, **options):
  """The aggregator's state is the server's memory, with 0 elsewhere."""
  n, rates = len(_SIZES), {**_DEFAULTS, **options}
  updates, embeddings, seen = np.zeros([n, 27]), np.zeros([n, 3]), np.zeros(n)
  for number, (server, report) in enumerate(_corefed(rounds, **options)):
    values = {'weights': server.weights}
    if options.get('variant') != 'refed':
      for i in server.cohorts[-1]:
        # Stored as sent.
        rate = rates['learning_rate'] * rates['decay'] ** number
        updates[i] = rate * server.updates[i]
        embeddings[i], seen[i] = server.embeddings[i], number + 1
      values |= {
        'server/round': number + 1,
        'server/updates': updates,
        'server/embeddings': embeddings,
        'server/last_round': seen,
      }
      report = report or {'num_stale': 0, 'client_id': []}
      values |= {
        f'aggregator/{"all/" * (np.ndim(value) > 0)}{name}': value
        for name, value in report.items()
      }
    yield values


def _run(rounds, **options):
  """Compares with the reference in every round; returns the outputs."""
  return linear_task.assert_rounds(
    _build(**options),
    functools.partial(_expected, **options),
    rounds,
    loose=['aggregator/contrastive_loss', 'server/embeddings'],
  )


def test_changing_cohorts():
  outputs = _run(_trace())
  found = [output.metrics['aggregator'] for output in outputs]
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
  # A round that nobody takes part in moves nothing.
  before, after = (o.state.global_model_weights for o in outputs[2:4])
  linear_task.assert_equal(before, after)


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
    pytest.param(
      {'gradient_reuse': False, 'activation': 'linear'}, marks=pytest.mark.full
    ),
    pytest.param({'variant': 'cofed'}, marks=pytest.mark.full),
    # As options can have it of the authors' code, which is more than this.
    {
      'gradient_reuse': False,
      'global_embedding': 'first',
      'embedding_of': 'global_batch',
    },
  ],
  ids=str,
)
def test_an_option(options):
  _run(_trace(), **options)
  # These do not change weights here.
  for name in set(options) - {
    *('temperature', 'include_positive', 'activation', 'decay')
  }:
    usual = getattr(corefed_reference.Options, name)
    _assert_matters(_trace(), options, **{name: usual})


def _assert_matters(rounds, options, **usual):
  """The weights of the reference differ from those with other options."""
  one, other = (
    linear_task.last(functools.partial(_corefed, **o), rounds)[0].weights
    for o in (options, {**options, **usual})
  )
  assert np.abs(one - other).max() > 1e-4, usual


@pytest.mark.parametrize(
  'options',
  [
    {},
    pytest.param({'variant': 'refed'}, marks=pytest.mark.full),
    pytest.param(
      {'activation': 'linear', 'global_embedding': 'first'},
      marks=pytest.mark.full,
    ),
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
def test_alignment_in_local_training(options):
  # In the third round one client is new, one returns, and two are absent.
  rounds = _some([0, 1, 2], [0, 1], [2, 5])
  options = {**_ALIGNED, **options}
  _run(rounds, **options)
  _assert_matters(rounds, options, alignment='server')


@pytest.mark.full
def test_an_embedding_of_one_batch_by_the_received_model():
  process = _build(embedding_of='global_batch', batch_size=4)
  (clients,) = _some([1, 2])
  output = linear_task.next_round(process, process.initialize(), clients)
  w = linear_task.start(_model_fn)
  for i, data in clients.items():
    expected, whole = (
      _embedding(_network('relu'), w, x).numpy() for x in (data.x[:4], data.x)
    )
    assert np.abs(expected - whole).max() > 1e-3
    found = output.state.aggregator['embeddings'][i]
    linear_task.assert_close(found, expected)


@pytest.mark.full
def test_statistics_are_those_of_the_fresh_clients():
  """A stale client's update has no part in the moving averages."""
  clients = _clients()

  def model_fn():
    inner = linear_task.batch_norm_model_fn()
    x = inner.input
    return tf.keras.Model(x, {'logits': inner(x), 'embedding': x})

  process = linear_task.build_process(
    algorithms.build_corefed, model_fn, num_clients=2
  )
  output = linear_task.run(process, clients, [[0], [1]])
  assert output.metrics['aggregator']['num_stale'] == 1
  first, second = (clients[i].x.mean(axis=0) for i in (0, 1))
  found, _ = process.get_model_weights(output.state).non_trainable
  linear_task.assert_close(found, (first / 2 + second) / 2, rtol=1e-4)


def test_divergence_trains_as_the_round_did():
  """The paper's two distances, of parameters and of features."""
  rounds = _some([0, 1, 2], [3], [2, 0])
  process = _build(**_ALIGNED)
  *_, before, last = linear_task.assert_rounds(
    process, functools.partial(_expected, **_ALIGNED), rounds
  )
  # A client without data has no local model, and does not count.
  (idle,) = linear_task.make_clients((0,))
  data = [
    linear_task.client_data(i, client)
    for i, client in [*rounds[-1].items(), (1, idle)]
  ]
  found = process.divergence(before.state, last.state, data)
  *_, (server, _) = _corefed(rounds, **_ALIGNED)
  start = linear_task.weights(process, before.state)
  network = _network('relu')
  pairs = {'parameters': [], 'embedding': []}
  for i, data in rounds[-1].items():
    models = start - 0.5 * server.updates[i], server.weights
    pairs['parameters'].append(models)
    pairs['embedding'].append(
      [network.outputs(w, data.x)[0].numpy().mean(axis=0) for w in models]
    )
  for space, vectors in pairs.items():
    angles = [np.arccos(reference.cosine(*pair)) for pair in vectors]
    lengths = [np.abs(u - v).sum() for u, v in vectors]
    for name, values in (('cosine', angles), ('manhattan', lengths)):
      np.testing.assert_allclose(
        found[f'{space}_d_{name}'], np.mean(values), rtol=1e-4
      )


def test_without_distillation_clients_align_nothing():
  linear_task.assert_refused(
    _build, ('alignment', 'client', "'server'.*cofed"), variant='cofed'
  )


_WITH_EMBEDDING = (
  *('corefed', 'fedquad', 'triplet_fl', 'quadruplet_fl', 'supcon_fl'),
  *('moon', 'fed_as', 'pfed_ck'),
)


@pytest.mark.parametrize('name', _WITH_EMBEDDING)
def test_methods_that_need_an_embedding(name):
  linear_task.assert_refused(
    functools.partial(
      getattr(algorithms, f'build_{name}'),
      num_clients=3,
      client_optimizer=linear_task.sgd(0.1),
    ),
    ('model_fn', linear_task.model_fn, "output 'embedding'.*found"),
  )
