import functools

import numpy as np
import pytest
import tensorflow_federated as tff

from tff_fair import aggregators

ModelWeights = tff.learning.models.ModelWeights

_TRIPLE = tff.TensorType(np.float32, [3])


@functools.cache
def _process(value_type=_TRIPLE):
  return aggregators.EntrywiseMeanFactory().create(value_type, value_type)


def _run(values, weights, value_type=_TRIPLE):
  process = _process(value_type)
  return process.next(process.initialize(), values, weights).result


@pytest.mark.usefixtures('default_runtime')
class TestEntrywiseMean:
  def test_by_hand(self):
    for values, weights, expected in (
      # A client without an entry is excluded from its mean: 2, not 2 / 2; and
      # 0 where nobody has it.
      ([[2, 1, 5], [7, 3, 6]], [[1, 1, 0], [0, 1, 0]], [2, 2, 0]),
      # Weights need not be masks.
      ([[1, 1, 1], [5, 5, 5]], [[1, 3, 0.5], [1, 1, 0]], [3, 2, 1]),
      # What a mask hides may be anything.
      ([[np.nan, np.inf, 1], [2, 3, 3]], [[0, 0, 1], [1, 1, 1]], [2, 3, 2]),
      ([], [], [0, 0, 0]),
    ):
      found = _run([*np.float32(values)], [*np.float32(weights)])
      np.testing.assert_array_equal(found, expected)

  def test_weights_of_a_model_with_statistics(self):
    value_type = tff.types.to_type(
      ModelWeights([_TRIPLE], [tff.TensorType(np.float32)])
    )
    found = _run(
      [
        ModelWeights([np.float32([1, 2, 3])], [np.float32(4)]),
        ModelWeights([np.float32([3, 4, 5])], [np.float32(8)]),
      ],
      [
        ModelWeights([np.float32([1, 0, 1])], [np.float32(1)]),
        ModelWeights([np.float32([1, 1, 0])], [np.float32(1)]),
      ],
      value_type,
    )
    np.testing.assert_array_equal(found.trainable[0], [2, 4, 3])
    assert found.non_trainable[0] == 6
