import asyncio
import collections
import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import corefed_reference
from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tff_fair import algorithms

# The last client never takes part.
_SIZES = (5, 9, 12, 7, 4, 8, 6)
_WIDTH = 3
_DEFAULTS = {'learning_rate': 0.5, 'decay': 0.5}


def _model_fn(activation='relu'):
  """Two layers with fixed first weights; the first gives the embedding."""
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


def _broken(data):
  return dataclasses.replace(data, x=np.full_like(data.x, np.nan))


def _trace():
  """Some go, stay in use, fall out of use and return; some are rejected."""
  clients = _clients()
  bad = {i: _broken(clients[i]) for i in (1, 2, 4)}
  return [
    _some(clients, [0, 1, 2]),
    _some(clients, [3]),
    # Client 1 counts as absent.
    {**_some(clients, [0, 3]), **_some(bad, [1, 4])},
    _some(bad, [2, 4]),
    _some(clients, [2, 5]),
  ]


def _some(clients, ids):
  return {i: clients[i] for i in ids}


def _process(**options):
  """The process for the reference's options, built once.

  What has the default value is left out, for the builder to fill in.
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


@functools.cache
def _cached(**options):
  return _build(**options)


def _build(
  build=algorithms.build_corefed,
  *,
  learning_rate=0.1,
  decay=1.0,
  activation='relu',
  **options,
):
  def learning_rate_fn(round_number):
    return learning_rate * decay ** tf.cast(round_number, tf.float32)

  options = {
    'num_clients': len(_SIZES),
    'client_optimizer': linear_task.sgd(learning_rate),
    'client_learning_rate_fn': None if decay == 1.0 else learning_rate_fn,
    'batch_size': 50,
    **options,
  }
  return build(functools.partial(_model_fn, activation), **options)


def _reference(**options):
  return corefed_reference.CoreFed(
    _initial_weights(), **{**_DEFAULTS, **options}
  )


def _next(process, state, clients):
  # The order in which clients come must not matter.
  data = [linear_task.client_data(i, clients[i]) for i in reversed(clients)]
  return process.next(state, data)


def _flat(process, state):
  return corefed_reference.flatten(process.get_model_weights(state).trainable)


def _assert_close(found, expected):
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def _assert_memory(found, server):
  """The aggregator's state holds what the server remembers, and 0 elsewhere."""
  assert found['round'] == len(server.cohorts)
  # Updates are those that were sent: the rate of their round times `g_i`.
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
  """Runs both, and compares them after every round.

  Args:
    rounds: The clients of each round.
    **options: Of either.

  Returns:
    The outputs, and the reference's reports.
  """
  expected, process = _reference(**options), _process(**options)
  state, outputs, reports = process.initialize(), [], []
  for clients in rounds:
    before = _flat(process, state)
    outputs.append(_next(process, state, clients))
    state, metrics = outputs[-1].state, outputs[-1].metrics
    reports.append(expected.next(clients))
    rejected = len(clients) - len(expected.server.cohorts[-1])
    assert metrics['client_work']['num_rejected_clients'] == rejected
    _assert_close(_flat(process, state), expected.server.weights)
    if reports[-1] is None:
      np.testing.assert_array_equal(_flat(process, state), before)
    if expected.options.variant != 'refed':
      _assert_memory(state.aggregator, expected.server)
      _assert_metrics(metrics['aggregator'], reports[-1])
  return outputs, reports


def _last_weights(rounds, **options):
  """Of the reference alone."""
  reference = _reference(**options)
  for clients in rounds:
    reference.next(clients)
  return reference.server.weights


class TestReference:
  """The reference itself, on numbers worked by hand."""

  _OPTIONS = corefed_reference.Options(temperature=0.5)
  _Z = (np.array([1.0, 0.0]), np.array([0.6, 0.8]))

  def test_worked_example(self):
    z_0, z_1 = self._Z
    z_g = np.array([0.8, 0.4])
    for z, other in ((z_0, z_1), (z_1, z_0)):
      # -(.894427 - .6) / .5: one negative alone is the whole denominator.
      loss = corefed_reference.contrastive_loss(z, z_g, [other], self._OPTIONS)
      np.testing.assert_allclose(loss, -0.588854, atol=1e-6)
      r = corefed_reference.refined(z, z_g, 0.5)
      rho = corefed_reference.cosine(r, z_g)
      np.testing.assert_allclose(rho, 0.966890, atol=1e-6)
    r_0 = corefed_reference.refined(z_0, z_g, 0.5)
    np.testing.assert_allclose(r_0, [0.857771, 0.178885], atol=1e-6)

  def test_the_positive_may_be_in_the_denominator(self):
    z_0, z_1 = self._Z
    options = dataclasses.replace(self._OPTIONS, include_positive=True)
    loss = corefed_reference.contrastive_loss(
      z_0, np.array([0.8, 0.4]), [z_1], options
    )
    # ln((e^(.894427 / .5) + e^(.6 / .5)) / e^(.894427 / .5))
    np.testing.assert_allclose(loss, np.log1p(np.exp(-0.588854)), atol=1e-6)

  def test_worked_example_of_reuse(self):
    server = corefed_reference.Server(np.zeros(2), self._OPTIONS)
    z_0, z_1 = self._Z
    first = server.next({0: (np.array([1.0, 0.0]), z_0)}, learning_rate=0.1)
    assert first['contrastive_loss'] == 0 and first['alignment'] == [1.0]
    np.testing.assert_allclose(server.weights, [1.0, 0.0])
    second = server.next({1: (np.array([1.0, 1.0]), z_1)}, learning_rate=0.1)
    assert second['tau'] == 2
    np.testing.assert_array_equal(second['frequency'], [0.5, 0.5])
    np.testing.assert_allclose(second['alignment'], [0.832050, 1], atol=1e-6)
    np.testing.assert_allclose(
      second['weight'], [0.488380, 0.511620], atol=1e-6
    )
    np.testing.assert_allclose(server.weights, [1.488380, 0.511620], atol=1e-6)

  @pytest.mark.parametrize('activation', ['relu', 'linear'])
  @pytest.mark.parametrize('include_positive', [False, True])
  def test_gradient_by_differences(self, activation, include_positive):
    options = corefed_reference.Options(
      activation=activation,
      include_positive=include_positive,
      temperature=0.5,
      contrastive_weight=0.7,
      distillation_weight=0.9,
    )
    weights, data = _initial_weights(), _clients()[1]
    vector = corefed_reference.flatten(weights)
    z_g, *others = np.random.default_rng(0).normal(size=[3, _WIDTH])
    z = corefed_reference.embedding(weights, data.x, activation)
    target = corefed_reference.refined(z, z_g, options.distillation_rate)

    def loss(vector):
      weights_now = corefed_reference.unflatten(vector, weights)
      z_now = corefed_reference.embedding(weights_now, data.x, activation)
      return corefed_reference.cross_entropy(
        weights_now, data.x, data.y, activation
      ) + corefed_reference.aligning_loss(z_now, target, z_g, others, options)

    expected = [
      (loss(vector + step) - loss(vector - step)) / 2e-6
      for step in 1e-6 * np.eye(len(vector))
    ]
    found = corefed_reference.gradient(
      weights, data.x, data.y, (z_g, others), options
    )
    np.testing.assert_allclose(
      corefed_reference.flatten(found), expected, atol=1e-7
    )


@pytest.mark.usefixtures('default_runtime')
class TestRoundsAgainstNumpy:
  def test_changing_cohorts(self):
    outputs, _ = _run(_trace())
    found = [output.metrics['aggregator'] for output in outputs]
    # |S_t| = 3, 1, 2, 0, 2 of 3, 4, 4, 4, 5 distinct ones so far.
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
    ],
    ids=str,
  )
  def test_an_option(self, options):
    _run(_trace(), **options)
    kept = {k: options[k] for k in ('activation', 'decay') if k in options}
    usual = _last_weights(_trace(), **kept)
    assert np.abs(_last_weights(_trace(), **options) - usual).max() > 1e-3

  @pytest.mark.parametrize(
    'options',
    [
      {'variant': 'corefed'},
      {'variant': 'refed', 'activation': 'linear'},
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
  def test_alignment_in_local_training(self, options):
    clients = _clients()
    # In round 3 somebody new, somebody who returns, and two absent ones.
    rounds = [_some(clients, ids) for ids in ([0, 1, 2], [0, 1], [2, 5])]
    options = {'alignment': 'client', 'decay': 1.0, **options}
    _run(rounds, **options)
    usual = _last_weights(rounds, **{**options, 'alignment': 'server'})
    assert np.abs(_last_weights(rounds, **options) - usual).max() > 1e-3

  def test_alignment_without_others_is_towards_the_global_embedding_alone(self):
    rounds = [_some(_clients(), [1])] * 2
    # Its own embedding is the global one, until it has taken a step.
    options = {
      'alignment': 'client',
      'activation': 'linear',
      'decay': 1.0,
      'local_epochs': 3,
      'distillation_weight': 5.0,
    }
    _run(rounds, **options)
    usual = _last_weights(rounds, **{**options, 'distillation_weight': 0.0})
    assert np.abs(_last_weights(rounds, **options) - usual).max() > 1e-3

  def test_a_lost_round_leaves_the_alignment_as_it_was(self):
    clients = _clients()
    lost = {0: _broken(clients[0]), 1: _broken(clients[1])}
    some = _some(clients, [0, 1])
    # Also before there is anything to align to.
    _run([lost, some, lost, some], alignment='client', decay=1.0)


def _identity_model_fn():
  """Inputs are embeddings, so a client's embedding is what its data say."""
  x = tf.keras.Input([2])
  logits = tf.keras.layers.Dense(2, kernel_initializer='zeros')(x)
  return tf.keras.Model(x, collections.OrderedDict(logits=logits, embedding=x))


@pytest.mark.usefixtures('default_runtime')
class TestWorkedExamples:
  """On embeddings (1, 0) and (.6, .8); other clients only pass the time."""

  _EMBEDDINGS = ((1.0, 0.0), (0.6, 0.8), (0.0, 1.0), (0.0, 1.0))

  def _run(self, cohorts, **options):
    process = algorithms.build_corefed(
      _identity_model_fn,
      num_clients=4,
      client_optimizer=linear_task.sgd(0.1),
      temperature=0.5,
      **options,
    )
    state = process.initialize()
    for cohort in cohorts:
      clients = {i: self._client(i) for i in cohort}
      output = _next(process, state, clients)
      state = output.state
    return output.metrics['aggregator']

  def _client(self, i):
    x = np.float32([self._EMBEDDINGS[i]])
    return numpy_reference.Client(3 * x, [0], x, [0])

  def test_fresh_clients(self):
    # 4 distinct ones and 2 present: a window of 2, with client 0 in both.
    found = self._run([[0, 2, 3], [0, 1]], gradient_reuse=False)
    assert found['window'] == 2 and found['num_stale'] == 0
    close = {'atol': 1e-6}
    np.testing.assert_allclose(found['contrastive_loss'], -0.588854, **close)
    clients = found['clients']
    np.testing.assert_array_equal(clients['frequency'], [1, 0.5])
    np.testing.assert_allclose(clients['alignment'], [0.966890] * 2, **close)
    np.testing.assert_allclose(clients['weight'], [0.414214, 0.585786], **close)

  def test_a_stale_client(self):
    found = self._run([[0], [1]])
    assert found['window'] == 2 and found['num_stale'] == 1
    assert found['contrastive_loss'] == 0
    clients = found['clients']
    np.testing.assert_array_equal(clients['stale'], [1, 0])
    np.testing.assert_array_equal(clients['frequency'], [0.5, 0.5])
    close = {'atol': 1e-6}
    np.testing.assert_allclose(clients['alignment'], [0.832050, 1], **close)
    np.testing.assert_allclose(clients['weight'], [0.488380, 0.511620], **close)


@pytest.mark.usefixtures('default_runtime')
class TestLimits:
  def _rounds(self, process):
    """Three rounds; the weights after each."""
    clients, state = _clients(), process.initialize()
    for ids in ([0, 1, 2], [3], [2, 0]):
      state = _next(process, state, _some(clients, ids)).state
      yield process.get_model_weights(state)

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
  def test_federated_averaging(self, options, fed_avg_options, rtol):
    common = {'batch_size': 4, 'local_epochs': 2, 'decay': 0.5, 'seed': 7}
    ours = _build(**options, **common)
    theirs = _build(algorithms.build_fed_avg, **fed_avg_options, **common)
    for one, other in zip(
      self._rounds(ours), self._rounds(theirs), strict=True
    ):
      tf.nest.map_structure(
        functools.partial(np.testing.assert_allclose, rtol=rtol, atol=rtol),
        one,
        other,
      )

  def test_one_participant_alone_is_plain_training(self):
    outputs, _ = _run([_some(_clients(), [1])] * 2)
    for output in outputs:
      found = output.metrics['aggregator']
      assert found['window'] == 1 and found['contrastive_loss'] == 0
      np.testing.assert_allclose(found['clients']['alignment'], [1], rtol=1e-6)
      np.testing.assert_array_equal(found['clients']['weight'], [1])


@pytest.mark.usefixtures('default_runtime')
class TestEdgeCases:
  @pytest.mark.parametrize('silent', [[1], [0, 1, 2]])
  def test_zero_embeddings(self, silent):
    """Without inputs and biases, all features and so all cosines are 0."""
    clients = _clients()
    for i in silent:
      clients[i] = dataclasses.replace(
        clients[i], x=np.zeros_like(clients[i].x)
      )
    outputs, _ = _run([_some(clients, [0, 1, 2])])
    found = outputs[0].metrics['aggregator']['clients']
    np.testing.assert_array_equal(found['alignment'][silent], 0)
    if len(silent) == 3:
      np.testing.assert_allclose(found['weight'], 1 / 3)

  @pytest.mark.parametrize('alignment', ['server', 'client'])
  def test_a_zero_feature_vector_counts_and_turns_nothing(self, alignment):
    clients = _clients()
    hidden_kernel = _initial_weights()[0]
    dead, *_ = np.linalg.lstsq(hidden_kernel.T, np.full(_WIDTH, -50.0), None)
    clients[1].x[0] = dead
    options = {'alignment': alignment}
    if alignment == 'client':
      options['decay'] = 1.0
    _run([_some(clients, ids) for ids in ([0, 1], [1, 2])], **options)
    weights = _initial_weights()
    phi = corefed_reference.features(weights, clients[1].x, 'relu')
    np.testing.assert_array_equal(phi[0], 0)

  def test_a_client_without_data_takes_no_part(self):
    clients = _clients()
    nothing = dataclasses.replace(clients[4], x=clients[4].x[:0], y=[])
    process, expected = _process(), _reference()
    output = _next(
      process, process.initialize(), {4: nothing, **_some(clients, [0, 1])}
    )
    assert output.metrics['client_work']['num_empty_clients'] == 1
    report = expected.next(_some(clients, [0, 1]))
    _assert_metrics(output.metrics['aggregator'], report)
    _assert_memory(output.state.aggregator, expected.server)
    _assert_close(_flat(process, output.state), expected.server.weights)

  def test_statistics_are_those_of_the_fresh(self):
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
    state, mean = process.initialize(), 0.0
    for i in (0, 1):
      output = _next(process, state, _some(clients, [i]))
      state, mean = output.state, (mean + clients[i].x.mean(axis=0)) / 2
    assert output.metrics['aggregator']['num_stale'] == 1
    found, _ = process.get_model_weights(state).non_trainable
    np.testing.assert_allclose(found, mean, rtol=1e-4, atol=1e-6)


@pytest.mark.usefixtures('default_runtime')
class TestAlignedState:
  """What clients are sent is part of the state."""

  _OPTIONS = {'alignment': 'client', 'decay': 1.0}
  _COHORTS = ([0, 1, 2], [3], [2, 0])

  def _run(self, state, cohorts):
    process, clients = _process(**self._OPTIONS), _clients()
    outputs = []
    for ids in cohorts:
      outputs.append(_next(process, state, _some(clients, ids)))
      state = outputs[-1].state
    return outputs

  def test_repeats_and_goes_on_from_a_saved_state(self, tmp_path):
    first = _process(**self._OPTIONS).initialize()
    whole = self._run(first, self._COHORTS)
    manager = tff.program.FileProgramStateManager(tmp_path)

    async def save_and_load():
      await manager.save(whole[0].state, 1)
      return await manager.load(1, first)

    loaded = self._run(asyncio.run(save_and_load()), self._COHORTS[1:])
    for again in (self._run(first, self._COHORTS), [whole[0], *loaded]):
      tf.nest.map_structure(np.testing.assert_array_equal, whole, again)

  def test_divergence_trains_as_the_round_did(self):
    """The paper's two distances, of parameters and of features."""
    process, clients = _process(**self._OPTIONS), _clients()
    expected, state = _reference(**self._OPTIONS), process.initialize()
    for ids in self._COHORTS:
      present = _some(clients, ids)
      before, weights_before = state, expected.server.weights
      state = _next(process, before, present).state
      expected.next(present)
    found = process.divergence(
      before, state, [linear_task.client_data(i, clients[i]) for i in ids]
    )
    pairs = {'parameters': [], 'embedding': []}
    for i in ids:
      step = _DEFAULTS['learning_rate'] * expected.server.updates[i]
      models = (weights_before - step, expected.server.weights)
      pairs['parameters'].append(models)
      pairs['embedding'].append(
        [self._mean_features(model, clients[i].x) for model in models]
      )
    for space, vectors in pairs.items():
      angles = [np.arccos(corefed_reference.cosine(*pair)) for pair in vectors]
      lengths = [np.abs(u - v).sum() for u, v in vectors]
      for name, values in (('cosine', angles), ('manhattan', lengths)):
        np.testing.assert_allclose(
          found[f'{space}_d_{name}'], np.mean(values), rtol=1e-4
        )

  def _mean_features(self, vector, x):
    weights = corefed_reference.unflatten(vector, _initial_weights())
    return corefed_reference.features(weights, x, 'relu').mean(axis=0)


@pytest.mark.parametrize(
  ('options', 'error', 'message'),
  [
    ({'variant': 'x'}, ValueError, "variant must be one of .*found 'x'"),
    ({'alignment': 'x'}, ValueError, "alignment must be one of .*found 'x'"),
    (
      {'variant': 'cofed', 'alignment': 'client'},
      ValueError,
      "alignment must be .*'server'.*cofed.*found 'client'",
    ),
    (
      {'fairness_exponent': -0.5},
      ValueError,
      'exponent must be at least 0.* found -0.5',
    ),
    (
      {'fairness_exponent': 'high'},
      TypeError,
      "exponent must be a real .*found 'high'",
    ),
    ({'sharpness': -1}, ValueError, 'sharpness must be at least 0.*found -1'),
    ({'distillation_rate': -0.1}, ValueError, 'rate must be .*found -0.1'),
    ({'distillation_rate': 1.1}, ValueError, 'rate must be .*found 1.1'),
    ({'temperature': 0}, ValueError, 'temperature must be positive, found 0'),
    (
      {'contrastive_weight': -1},
      ValueError,
      'contrastive_weight must be at least 0.* found -1',
    ),
    (
      {'distillation_weight': -1},
      ValueError,
      'distillation_weight must be at least 0.* found -1',
    ),
    (
      {'client_optimizer': 1},
      TypeError,
      'client_optimizer must be a tff.* found int',
    ),
    (
      {'server_optimizer': 1},
      TypeError,
      'server_optimizer must be a tff.* found int',
    ),
  ],
  ids=str,
)
def test_bad_arguments(options, error, message):
  with pytest.raises(error, match=message):
    _build(**options)


def test_a_model_without_embedding_is_refused():
  with pytest.raises(ValueError, match='must build a model with an output'):
    algorithms.build_corefed(
      linear_task.model_fn,
      num_clients=3,
      client_optimizer=linear_task.sgd(0.1),
    )
