import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tests.algorithms import reward_reference
from tff_fair import algorithms

_SIZES = (5, 9, 12, 7)
_RATE = 0.3
_NETWORK = reward_reference.Network(
  (linear_task.NUM_FEATURES, linear_task.NUM_CLASSES)
)
_COHORTS = ([0, 1, 2, 3], [3, 1], [2, 0, 1, 3])


def _build(model_fn=linear_task.model_fn, **options):
  options = {
    'num_clients': len(_SIZES),
    'client_optimizer': linear_task.sgd(_RATE),
    'batch_size': 50,
    **options,
  }
  return algorithms.build_cgsv(model_fn, **options)


_process = functools.cache(_build)


def _reference(epochs=1, num_clients=4, **options):
  return reward_reference.Cgsv(
    reward_reference.Training(_NETWORK, _RATE, epochs),
    reward_reference.vector(linear_task.model_fn().get_weights()),
    num_clients,
    **options,
  )


def _some(clients, ids):
  return {i: clients[i] for i in ids}


def _next(process, state, clients):
  # The order in which clients come must not matter.
  data = [linear_task.client_data(i, clients[i]) for i in reversed(clients)]
  return process.next(state, data)


def _models(process, state):
  return reward_reference.rows(process.client_model_table(state).trainable)


def _weights(process, state):
  return reward_reference.vector(process.get_model_weights(state).trainable)


def _close(found, expected):
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def _assert_rounds(process, expected, rounds):
  """Runs both, and compares them after every round; returns the outputs."""
  state, outputs = process.initialize(), []
  for clients in rounds:
    outputs.append(_next(process, state, clients))
    state = outputs[-1].state
    report = expected.next(clients)
    _close(_models(process, state), expected.models)
    _close(_weights(process, state), expected.weights)
    _close(state.aggregator['reputation'], expected.reputations)
    _close(state.aggregator['share'], expected.shares)
    found = outputs[-1].metrics['aggregator']['clients']
    np.testing.assert_array_equal(found['client_id'], report['client_id'])
    _close(found['contribution'], report['contribution'])
    ids = report['client_id']
    _close(found['reputation'], expected.reputations[ids])
    _close(found['share'], expected.shares[ids])
  return outputs


def test_the_reference_on_the_example():
  updates = np.array([[0.3, 0.1], [0.1, 0.2], [-0.1, 0.05]])
  uploads = reward_reference.bounded_updates(updates, 0.5)
  aggregate = np.array([3, 2, 1]) / 6 @ uploads
  np.testing.assert_allclose(aggregate, [0.237171, 0.265396], atol=1e-6)
  cosines = [reward_reference.cosine(u, aggregate) for u in uploads]
  np.testing.assert_allclose(
    cosines, [0.867943, 0.964923, -0.262534], atol=1e-6
  )
  shares = reward_reference.tanh_shares(
    np.array([0.468433, 0.520773, 0.010794]), 1.0
  )
  np.testing.assert_allclose(shares, [0.913517, 1, 0.022567], atol=2e-6)


@pytest.mark.usefixtures('default_runtime')
class TestAgainstNumpy:
  _CLIENTS = linear_task.make_clients(_SIZES)

  @pytest.mark.parametrize('variant', ['original', 'fedakd'])
  def test_three_rounds(self, variant):
    process = _process(variant=variant)
    expected = _reference(variant=variant)
    outputs = _assert_rounds(
      process, expected, [_some(self._CLIENTS, ids) for ids in _COHORTS]
    )
    first, second = (_models(process, o.state) for o in outputs[:2])
    np.testing.assert_array_equal(first[[0, 2]], second[[0, 2]])
    assert np.all(np.abs(first - second)[[1, 3]].max(axis=1) > 1e-3)
    shares = outputs[-1].state.aggregator['share']
    assert shares.max() == 1 and shares.min() < 0.95

  def test_options(self):
    options = {'update_length': 0.2, 'history_weight': 0.3, 'altruism': 9.0}
    _assert_rounds(
      _build(local_epochs=2, **options),
      _reference(epochs=2, **options),
      [dict(enumerate(self._CLIENTS))] * 2,
    )

  def test_a_rate_that_decays(self):
    process = _build(
      client_learning_rate_fn=lambda r: 0.5 ** (1 + tf.cast(r, tf.float32)),
      variant='fedakd',
    )
    clients = dict(enumerate(self._CLIENTS))
    state = process.initialize()
    for number in range(2):
      before, state = state, _next(process, state, clients).state
      training = reward_reference.Training(_NETWORK, 0.5 ** (1 + number))
      starts = np.tile(_weights(process, before), (len(clients), 1))
      updates, _ = training.updates(starts, self._CLIENTS)
      moved = _weights(process, state) - starts[0]
      _close(moved, updates.mean(axis=0))

  @pytest.mark.parametrize('variant', ['original', 'fedakd'])
  def test_a_client_without_data(self, variant):
    clients = dict(enumerate(linear_task.make_clients((5, 0, 12, 7))))
    process = _process(variant=variant)
    outputs = _assert_rounds(
      process, _reference(variant=variant), [clients] * 2
    )
    assert outputs[0].metrics['client_work']['num_empty_clients'] == 1
    found = outputs[0].metrics['aggregator']['clients']
    assert found['contribution'][1] == 0

  @pytest.mark.parametrize('variant', ['original', 'fedakd'])
  def test_a_client_with_infinite_data_harms_nobody(self, variant):
    clients = dict(enumerate(linear_task.make_clients(_SIZES)))
    clients[1].x[0, 0] = np.nan
    process = _process(variant=variant)
    outputs = _assert_rounds(
      process, _reference(variant=variant), [clients] * 2
    )
    assert outputs[0].metrics['client_work']['num_rejected_clients'] == 1
    # All that its model has are rewards.
    start = _reference().models[1]
    changes = _models(process, outputs[0].state)[1] - start
    aggregate = _weights(process, outputs[0].state) - start
    part = np.abs(changes) > 1e-6
    _close(changes[part], aggregate[part])
    assert np.all(np.isfinite(changes))

  def test_the_gifts_of_the_first_round_are_exactly_so_many_entries(self):
    process = _process(variant='original')
    clients = dict(enumerate(self._CLIENTS))
    state = _next(process, process.initialize(), clients).state
    changes = _models(process, state) - _reference().models
    share = state.aggregator['share']
    for rows, size in ((changes[:, :12], 12), (changes[:, 12:], 3)):
      np.testing.assert_array_equal(
        np.count_nonzero(rows, axis=1), np.ceil(share * size)
      )


@pytest.mark.usefixtures('default_runtime')
class TestLimits:
  def test_a_large_altruism_gives_everybody_everything(self):
    clients = dict(enumerate(linear_task.make_clients(_SIZES)))
    process = _build(altruism=1e7)
    state = process.initialize()
    for _ in range(2):
      state = _next(process, state, clients).state
    np.testing.assert_array_equal(state.aggregator['share'], np.ones(4))
    models = _models(process, state)
    _close(models, np.tile(_weights(process, state), (4, 1)))

  def test_one_client_alone_walks_steps_of_one_length(self):
    clients = dict(enumerate(linear_task.make_clients((9,))))
    process = _build(num_clients=1)
    _assert_rounds(process, _reference(num_clients=1), [clients] * 2)
    state = process.initialize()
    before = _models(process, state)
    after = _models(process, _next(process, state, clients).state)
    assert np.linalg.norm(after - before) == pytest.approx(0.5, rel=1e-5)

  def test_statistics_are_the_client_s_own(self):
    process = _build(linear_task.batch_norm_model_fn)
    clients = linear_task.make_clients(_SIZES)
    data = [linear_task.client_data(i, clients[i]) for i in (0, 1, 2)]
    state = process.next(process.initialize(), data).state
    mean, variance = process.client_model_table(state).non_trainable
    # Momentum .5, from 0 and 1, and one minibatch.
    for i in (0, 1, 2):
      _close(mean[i], 0.5 * clients[i].x.mean(axis=0))
      _close(variance[i], 0.5 + 0.5 * clients[i].x.var(axis=0))
    np.testing.assert_array_equal(mean[3], np.zeros(4))
    everyone = process.get_model_weights(state).non_trainable[0]
    _close(everyone, np.average(mean[:3], axis=0, weights=_SIZES[:3]))


@pytest.mark.parametrize(
  ('options', 'error', 'message'),
  [
    ({'update_length': 0.0}, ValueError, 'update_length must be positive, fou'),
    ({'history_weight': 2.0}, ValueError, 'history_weight must be at most 1.0'),
    ({'altruism': -1.0}, ValueError, 'altruism must be positive, found -1.0'),
    ({'variant': 'x'}, ValueError, "variant must be one of 'original', 'feda"),
  ],
)
def test_bad_arguments(options, error, message):
  with pytest.raises(error, match=message):
    _build(**options)
