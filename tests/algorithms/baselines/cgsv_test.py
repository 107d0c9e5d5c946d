import functools

import numpy as np
import pytest

from tests.algorithms import linear_task
from tests.algorithms import reward_reference
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_RATE = 0.3
_NETWORK = reward_reference.Network(
  (linear_task.NUM_FEATURES, linear_task.NUM_CLASSES)
)
_COHORTS = ([0, 1, 2, 3], [3, 1], [2, 0, 1, 3])
_VARIANTS = pytest.mark.parametrize(
  'variant', ['original', pytest.param('fedakd', marks=pytest.mark.full)]
)


_build = functools.partial(
  linear_task.build_process,
  algorithms.build_cgsv,
  learning_rate=_RATE,
  num_clients=4,
)


_process = functools.cache(_build)


def _clients(sizes=(5, 9, 12, 7)):
  return dict(enumerate(linear_task.make_clients(sizes)))


def _reference(epochs=1, **options):
  training = reward_reference.Training(_NETWORK, _RATE, epochs)
  start = linear_task.initial_model().vector
  return reward_reference.Cgsv(training, start, 4, **options)


def _assert_rounds(process, expected, rounds):
  """Runs both, and compares them after every round; returns the outputs."""
  state, outputs = process.initialize(), []
  for clients in rounds:
    outputs.append(linear_task.next_round(process, state, clients))
    state = outputs[-1].state
    report = expected.next(clients)
    ids = report['client_id']
    found = outputs[-1].metrics['aggregator']['clients']
    np.testing.assert_array_equal(found['client_id'], ids)
    linear_task.assert_close(
      [
        linear_task.client_weights(process, state),
        linear_task.weights(process, state),
        state.aggregator['reputation'],
        state.aggregator['share'],
        found['contribution'],
        found['reputation'],
        found['share'],
      ],
      [
        expected.models,
        expected.weights,
        expected.reputations,
        expected.shares,
        report['contribution'],
        expected.reputations[ids],
        expected.shares[ids],
      ],
    )
  return outputs


@_VARIANTS
def test_three_rounds_against_numpy(variant):
  process, expected = _process(variant=variant), _reference(variant=variant)
  outputs = _assert_rounds(
    process, expected, [linear_task.pick(_clients(), ids) for ids in _COHORTS]
  )
  first, second = (
    linear_task.client_weights(process, o.state) for o in outputs[:2]
  )
  np.testing.assert_array_equal(first[[0, 2]], second[[0, 2]])
  assert np.all(np.abs(first - second)[[1, 3]].max(axis=1) > 1e-3)
  shares = outputs[-1].state.aggregator['share']
  assert shares.max() == 1 and shares.min() < 0.95
  if variant == 'fedakd':
    return
  # In the first round, exactly this many entries of each variable are gifts.
  changes = first - linear_task.initial_model().vector
  share = outputs[0].state.aggregator['share']
  for rows, size in ((changes[:, :12], 12), (changes[:, 12:], 3)):
    np.testing.assert_array_equal(
      np.count_nonzero(rows, axis=1), np.ceil(share * size)
    )


@pytest.mark.full
def test_options_against_numpy():
  options = {'update_length': 0.2, 'history_weight': 0.3, 'altruism': 9.0}
  _assert_rounds(
    _build(local_epochs=2, **options),
    _reference(epochs=2, **options),
    [_clients()] * 2,
  )


@pytest.mark.full
@_VARIANTS
def test_clients_without_data_or_with_nan(variant):
  process, start = _process(variant=variant), linear_task.initial_model().vector
  outputs = _assert_rounds(
    process, _reference(variant=variant), [_clients((5, 0, 12, 7))] * 2
  )
  assert outputs[0].metrics['client_work']['num_empty_clients'] == 1
  found = outputs[0].metrics['aggregator']['clients']
  assert found['contribution'][1] == 0
  clients = _clients()
  clients[1].x[0, 0] = np.nan
  outputs = _assert_rounds(process, _reference(variant=variant), [clients] * 2)
  assert outputs[0].metrics['client_work']['num_rejected_clients'] == 1
  # All changes of its model are rewards.
  changes = linear_task.client_weights(process, outputs[0].state)[1] - start
  aggregate = linear_task.weights(process, outputs[0].state) - start
  assert np.all(np.isfinite(changes))
  part = np.abs(changes) > 1e-6
  linear_task.assert_close(changes[part], aggregate[part])


@pytest.mark.full
def test_statistics_are_the_client_s():
  process, clients = (
    _build(model_fn=linear_task.batch_norm_model_fn),
    _clients(),
  )
  state = linear_task.run(process, clients, [[0, 1, 2]]).state
  mean, variance = process.client_model_table(state).non_trainable
  # Momentum .5, from 0 and 1, and one minibatch.
  for i in (0, 1, 2):
    x = clients[i].x
    linear_task.assert_close(mean[i], 0.5 * x.mean(axis=0))
    linear_task.assert_close(variance[i], 0.5 + 0.5 * x.var(axis=0))
  np.testing.assert_array_equal(mean[3], np.zeros(4))
  found = process.get_model_weights(state).non_trainable[0]
  expected = np.average(mean[:3], axis=0, weights=(5, 9, 12))
  linear_task.assert_close(found, expected)
