import functools

import numpy as np
import pytest

from tests.algorithms import linear_task
from tests.algorithms import reward_reference
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

# Losses are measured over minibatches of 64: here 2, 3, 1 and 3 of them.
_SIZES = (70, 150, 40, 130)
_RATE = 0.3
_NETWORK = reward_reference.Network(
  (linear_task.NUM_FEATURES, linear_task.NUM_CLASSES)
)
_COHORTS = ([0, 1, 2, 3], [3, 1], [2, 0, 1, 3])
_VARIANTS = pytest.mark.parametrize(
  'variant', ['original', pytest.param('fedakd', marks=pytest.mark.full)]
)
_close = functools.partial(linear_task.assert_close, rtol=1e-4)


@functools.cache
def _validation():
  (data,) = linear_task.make_clients((150,), holdout=0, seed=5)
  return data.x, data.y


_build = functools.partial(
  linear_task.build_process,
  algorithms.build_fed_ave,
  learning_rate=_RATE,
  num_clients=len(_SIZES),
  batch_size=200,
  validation=_validation(),
)


_process = functools.cache(_build)


def _clients(sizes=_SIZES):
  return dict(enumerate(linear_task.make_clients(sizes)))


def _reference(epochs=1, num_clients=4, **options):
  return reward_reference.FedAve(
    reward_reference.Training(_NETWORK, _RATE, epochs),
    linear_task.initial_model().vector,
    num_clients,
    _validation(),
    **options,
  )


def _assert_rounds(process, expected, rounds):
  """Runs both, and compares them after every round; returns the outputs."""
  state, outputs = process.initialize(), []
  for clients in rounds:
    outputs.append(linear_task.next_round(process, state, clients))
    state = outputs[-1].state
    report = expected.next(clients)
    # Divergences are squares of the rounding errors of float32 losses.
    _close(state.aggregator['reputation'], expected.reputations)
    _close(state.aggregator['share'], expected.shares)
    models = linear_task.client_weights(process, state)
    linear_task.assert_close(models, expected.models)
    found = linear_task.weights(process, state)
    linear_task.assert_close(found, expected.weights)
    found = outputs[-1].metrics['aggregator']['clients']
    np.testing.assert_array_equal(found['client_id'], report['client_id'])
    linear_task.assert_close(
      found['validation_accuracy'], report['validation_accuracy']
    )
    known = [d for d in report['divergence'] if d is not None]
    divergences = [max(known) if d is None else d for d in report['divergence']]
    _close(found['divergence'], np.array(divergences))
  return outputs


@_VARIANTS
def test_three_rounds_against_numpy(variant):
  process, expected = _process(variant=variant), _reference(variant=variant)
  outputs = _assert_rounds(
    process, expected, [linear_task.pick(_clients(), ids) for ids in _COHORTS]
  )
  start, first, second = (
    linear_task.client_weights(process, state)
    for state in (process.initialize(), outputs[0].state, outputs[1].state)
  )
  np.testing.assert_array_equal(first[[0, 2]], second[[0, 2]])
  found = outputs[-1].metrics['aggregator']['clients']
  assert np.ptp(found['validation_accuracy']) > 0
  shares = outputs[-1].state.aggregator['share']
  assert 0 < shares.min() < 0.9
  if variant == 'original':  # No client is rewarded in the first round.
    share = outputs[0].state.aggregator['share']
    np.testing.assert_array_equal(share, np.zeros(4))
    np.testing.assert_array_equal(first, start)


@pytest.mark.full
@pytest.mark.parametrize(
  'options',
  [
    {'update_length': 0.2, 'history_weight': 0.3, 'altruism': 5.0},
    {
      'upload_fraction': 0.3,
      'download_base': 0.1,
      'history_weight': 0.5,
      'altruism': 4.0,
      'variant': 'fedakd',
    },
  ],
  ids=str,
)
def test_options_against_numpy(options):
  _assert_rounds(
    _build(local_epochs=2, **options),
    _reference(epochs=2, **options),
    [_clients()] * 2,
  )


@pytest.mark.full
@_VARIANTS
def test_clients_without_data_or_with_nan(variant):
  process = _process(variant=variant)
  outputs = _assert_rounds(
    process, _reference(variant=variant), [_clients((70, 0, 40, 130))] * 2
  )
  assert outputs[0].metrics['client_work']['num_empty_clients'] == 1
  clients = _clients()
  clients[1].x[0, 0] = np.nan
  outputs = _assert_rounds(process, _reference(variant=variant), [clients] * 2)
  assert outputs[0].metrics['client_work']['num_rejected_clients'] == 1
  found = outputs[0].metrics['aggregator']['clients']
  assert found['validation_accuracy'][1] == 0


@pytest.mark.full
def test_one_client_alone_gets_its_whole_update():
  outputs = _assert_rounds(
    _build(num_clients=1), _reference(num_clients=1), [_clients((70,))] * 2
  )
  for share, output in enumerate(outputs):
    np.testing.assert_array_equal(output.state.aggregator['share'], [share])


def test_bad_arguments():
  linear_task.assert_refused(
    _build,
    ('validation', None, 'a pair of inputs an', TypeError),
  )
