import numpy as np
import pytest
import tensorflow_federated as tff

from tff_fair import aggregators

ModelWeights = tff.learning.models.ModelWeights
_FLOAT = tff.TensorType(np.float32)
_BOTH = tff.types.to_type(ModelWeights([_FLOAT], [_FLOAT]))
_TRAINABLE = tff.types.to_type(ModelWeights([_FLOAT], []))


def _factory():
  """The rule for trainable weights cannot be mistaken for a mean."""
  return aggregators.ModelWeightsFactory(
    tff.aggregators.as_weighted_aggregator(tff.aggregators.SumFactory()),
    tff.aggregators.MeanFactory(),
  )


@pytest.mark.usefixtures('default_runtime')
@pytest.mark.parametrize('statistics', [True, False])
def test_each_part_by_its_rule(statistics):
  value_type = _BOTH if statistics else _TRAINABLE
  process = _factory().create(value_type, _FLOAT)
  tff.test.assert_types_identical(
    process.next.type_signature.result.result.member, value_type
  )

  def part(x):
    return [np.float32(x)] if statistics else []

  values = [
    ModelWeights([np.float32(1)], part(10)),
    ModelWeights([np.float32(2)], part(20)),
  ]
  weights = [np.float32(1), np.float32(3)]
  output = process.next(process.initialize(), values, weights)
  assert output.result.trainable == [3]  # 1 + 2
  assert output.result.non_trainable == part(17.5)  # (10 + 3 * 20) / 4
