import numpy as np
import pytest

from tests.aggregators import rounds
from tff_fair import aggregators

pytestmark = pytest.mark.usefixtures('default_runtime')

# The example of three clients, which all started from the same weights.
_CHANGES = np.float32([[1, 0], [0.9, 0.1], [-1, 0.2]])


def _weight(client_id, count, change):
  return rounds.weight(client_id, num_examples=count, change=change)


def _process(num_clusters=2):
  factory = aggregators.ClusteredMeanFactory(3, num_clusters)
  return rounds.create(factory, _CHANGES[0], _weight(0, 1, _CHANGES[0]))


def _next(process, ids, counts=(1, 1, 1), changes=_CHANGES, state=None):
  # TFF's sign: an update is old weights minus new.
  weights = [_weight(i, counts[i], changes[i]) for i in ids]
  return rounds.run(process, [-changes[i] for i in ids], weights, state)


def _moved(output, client_id):
  """How far the model of a client's cluster is from the old reference."""
  offset = output.state['offset'][output.state['cluster'][client_id]]
  return -(output.result + offset)


def _close(found, expected):
  np.testing.assert_allclose(found, expected, atol=1e-6)


def test_by_hand():
  process = _process()
  np.testing.assert_array_equal(process.initialize()['cluster'], [-1] * 3)
  output = _next(process, [2, 0, 1], (3, 1, 4))
  np.testing.assert_array_equal(output.state['cluster'], [0, 0, 2])
  for i, expected in enumerate(([0.975, 0.025], [0.975, 0.025], [-1, 0.2])):
    _close(_moved(output, i), expected)
  _close(-output.result, [-0.1 / 8, 0.9 / 8])
  np.testing.assert_array_equal(output.state['offset'][1], [0, 0])
  measured = output.measurements
  assert measured['num_clusters'] == 2
  np.testing.assert_array_equal(measured['clients']['client_id'], [0, 1, 2])
  np.testing.assert_array_equal(measured['clients']['cluster'], [0, 0, 2])


def test_clusters_are_by_change_and_not_by_place():
  # The last two have come to the same place, in opposite directions.
  changes = np.float32([[1, 0], [2, 0], [-2, 0]])
  values = np.float32([[4, 0], [1, 1], [1, 1]])
  weights = [_weight(i, 1, change) for i, change in enumerate(changes)]
  output = rounds.run(_process(), values, weights)
  np.testing.assert_array_equal(output.state['cluster'], [0, 0, 2])
  _close(_moved(output, 0), [-2.5, -0.5])
  _close(_moved(output, 2), [-1, -1])


def test_a_client_without_change_is_in_no_cluster():
  changes = _CHANGES.copy()
  changes[0] = 0
  output = _next(_process(), [0, 1, 2], (0, 2, 1), changes)
  np.testing.assert_array_equal(output.state['cluster'], [-1, 1, 2])
  assert output.measurements['num_clusters'] == 2
  _close(_moved(output, 1), [0.9, 0.1])
  _close(-output.result, [0.8 / 3, 0.4 / 3])


def test_the_absent_are_in_no_cluster():
  process = _process(num_clusters=1)
  first = _next(process, [0, 1, 2])
  # With one cluster all have the mean.
  np.testing.assert_array_equal(first.state['cluster'], [0, 0, 0])
  np.testing.assert_allclose(first.state['offset'], 0, atol=1e-7)
  output = _next(process, [2, 1], state=first.state)
  np.testing.assert_array_equal(output.state['cluster'], [-1, 1, 1])
  np.testing.assert_array_equal(output.state['offset'][0], [0, 0])
  _close(-output.result, [-0.05, 0.15])
