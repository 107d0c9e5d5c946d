import collections
import functools

import numpy as np
import pytest
import tensorflow_federated as tff

from tff_fair import aggregators

ModelWeights = tff.learning.models.ModelWeights

_PAIR = tff.TensorType(np.float32, [2])
# The example of three clients, which all started from the same weights.
_CHANGES = np.float32([[1, 0], [0.9, 0.1], [-1, 0.2]])


def _weight_type(change=_PAIR, client_id=np.int32):
  return tff.types.to_type(
    collections.OrderedDict(
      client_id=client_id, num_examples=np.float32, change=change
    )
  )


def _weight(client_id, count, change):
  return collections.OrderedDict(
    client_id=np.int32(client_id),
    num_examples=np.float32(count),
    change=change,
  )


@functools.cache
def _process(num_clusters=2, num_clients=3):
  factory = aggregators.ClusteredMeanFactory(num_clients, num_clusters)
  return factory.create(_PAIR, _weight_type())


def _next(process, ids, counts=(1, 1, 1), changes=_CHANGES, state=None):
  state = process.initialize() if state is None else state
  # TFF's sign: an update is old weights minus new.
  return process.next(
    state,
    [-changes[i] for i in ids],
    [_weight(i, counts[i], changes[i]) for i in ids],
  )


def _moved(output, client_id):
  """How far the model of a client's cluster is from the old reference."""
  offset = output.state['offset'][output.state['cluster'][client_id]]
  return -(output.result + offset)


def _close(found, expected):
  np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.usefixtures('default_runtime')
class TestFactory:
  def test_by_hand(self):
    process = _process()
    np.testing.assert_array_equal(process.initialize()['cluster'], [-1] * 3)
    output = _next(process, [2, 0, 1])
    np.testing.assert_array_equal(output.state['cluster'], [0, 0, 2])
    for i, expected in enumerate(([0.95, 0.05], [0.95, 0.05], [-1, 0.2])):
      _close(_moved(output, i), expected)
    _close(-output.result, [0.3, 0.1])
    np.testing.assert_array_equal(output.state['offset'][1], [0, 0])
    measured = output.measurements
    assert measured['num_clusters'] == 2
    np.testing.assert_array_equal(measured['clients']['client_id'], [0, 1, 2])
    np.testing.assert_array_equal(measured['clients']['cluster'], [0, 0, 2])

  def test_means_are_weighted_by_examples(self):
    output = _next(_process(), [0, 1, 2], (3, 1, 4))
    _close(_moved(output, 0), [0.975, 0.025])
    _close(_moved(output, 1), [0.975, 0.025])
    _close(_moved(output, 2), [-1, 0.2])
    _close(-output.result, [-0.1 / 8, 0.9 / 8])

  def test_clusters_are_by_change_and_not_by_place(self):
    # The last two have come to the same place, in opposite directions.
    changes = np.float32([[1, 0], [2, 0], [-2, 0]])
    values = np.float32([[4, 0], [1, 1], [1, 1]])
    weights = [_weight(i, 1, change) for i, change in enumerate(changes)]
    process = _process()
    output = process.next(process.initialize(), [*values], weights)
    np.testing.assert_array_equal(output.state['cluster'], [0, 0, 2])
    _close(_moved(output, 0), [-2.5, -0.5])
    _close(_moved(output, 2), [-1, -1])

  def test_a_client_without_change_is_in_no_cluster(self):
    changes = _CHANGES.copy()
    changes[0] = 0
    output = _next(_process(), [0, 1, 2], (0, 2, 1), changes)
    np.testing.assert_array_equal(output.state['cluster'], [-1, 1, 2])
    assert output.measurements['num_clusters'] == 2
    _close(_moved(output, 1), [0.9, 0.1])
    _close(_moved(output, 2), [-1, 0.2])
    _close(-output.result, [0.8 / 3, 0.4 / 3])

  def test_the_absent_are_in_no_cluster(self):
    process = _process(num_clusters=1)
    first = _next(process, [0, 1, 2])
    # With one cluster all have the mean.
    np.testing.assert_array_equal(first.state['cluster'], [0, 0, 0])
    np.testing.assert_allclose(first.state['offset'], 0, atol=1e-7)
    output = _next(process, [2, 1], state=first.state)
    np.testing.assert_array_equal(output.state['cluster'], [-1, 1, 1])
    np.testing.assert_array_equal(output.state['offset'][0], [0, 0])
    _close(-output.result, [-0.05, 0.15])

  def test_statistics_are_averaged_over_all(self):
    value_type = tff.types.to_type(
      ModelWeights([_PAIR], [tff.TensorType(np.float32)])
    )
    change_type = tff.types.to_type([_PAIR])
    factory = aggregators.ClusteredMeanFactory(3, 2)
    process = factory.create(value_type, _weight_type(change_type))
    values = [
      ModelWeights([-c], [np.float32(i)]) for i, c in enumerate(_CHANGES)
    ]
    weights = [_weight(i, i + 1, [c]) for i, c in enumerate(_CHANGES)]
    output = process.next(process.initialize(), values, weights)
    np.testing.assert_allclose(output.result.non_trainable[0], 8 / 6)
    assert len(output.state['offset']) == 1
    np.testing.assert_array_equal(output.state['cluster'], [0, 0, 2])
