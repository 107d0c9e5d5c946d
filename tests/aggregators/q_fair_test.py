import collections
import functools
import math

import numpy as np
import pytest
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair.aggregators import q_fair

ModelWeights = tff.learning.models.ModelWeights

_FLOAT = tff.TensorType(np.float32)
_PAIR = tff.TensorType(np.float32, [2])
# w = 0, w_1 = (-.1, 0) and w_2 = (0, -.2): updates w - w_i.
_UPDATES = ([0.1, 0.0], [0.0, 0.2])
_LOSSES = (1.0, 2.0)


class TestWeight:
  def test_by_hand(self):
    for q, expected in (
      # h_1 = 1 + 10 and h_2 = 2^2 + 10 * 2.
      (1.0, [11, 24]),
      (0.1, [10.1, 10.932089]),
      (0.0, [10, 10]),
    ):
      _, weight = q_fair.q_fair_weight(
        np.array([0.01, 0.04]), np.array(_LOSSES), 0.1, q
      )
      np.testing.assert_allclose(weight, expected, rtol=1e-6)

  def test_the_scaled_update_is_delta_by_h(self):
    squared_norm, loss, rate, q = 0.3, 1.7, 0.02, 2.5
    scale, weight = q_fair.q_fair_weight(squared_norm, loss, rate, q)
    h = q * loss ** (q - 1) * squared_norm / rate**2 + loss**q / rate
    np.testing.assert_allclose(weight, h, rtol=1e-6)
    np.testing.assert_allclose(scale, loss**q / rate / h, rtol=1e-6)

  def test_no_loss_left_is_finite(self):
    scale, weight = q_fair.q_fair_weight(0.01, 0.0, 0.1, 0.1)
    # F = 1e-10: s = 1 + .1 * 1e9, h = s * .1 / .1
    np.testing.assert_allclose(scale, 1e-8, rtol=1e-6)
    np.testing.assert_allclose(weight, 1e8, rtol=1e-6)

  def test_no_weight_for_a_negative_loss_or_rate(self):
    # By the formula h = q |u|^2 / eta^2 + F / eta = 20 and 40.
    for loss, rate in ((0.0, 0.0), (-1.0, 0.1), (1.0, -0.1)):
      scale, weight = q_fair.q_fair_weight(0.3, loss, rate, 1.0)
      assert (scale, weight) == (1, 0)


def _weights(losses, rate=0.1):
  return [
    collections.OrderedDict(loss=np.float32(f), learning_rate=np.float32(rate))
    for f in losses
  ]


@functools.cache
def _process(q):
  return aggregators.QFairFactory(q).create(_PAIR, q_fair.WEIGHT_TYPE)


def _aggregate(q, updates, weights):
  process = _process(q)
  updates = [np.array(u, np.float32) for u in updates]
  return process.next(process.initialize(), updates, weights)


@pytest.mark.usefixtures('default_runtime')
class TestExecution:
  def test_worked_example(self):
    for q, expected in ((1.0, [0.028571, 0.114286]), (0.0, [0.05, 0.1])):
      output = _aggregate(q, _UPDATES, _weights(_LOSSES))
      np.testing.assert_allclose(output.result, expected, atol=1e-6)
      assert output.measurements['num_aggregated'] == 2

  def test_excluded_clients_do_not_matter(self):
    alone = _aggregate(1.0, _UPDATES, _weights(_LOSSES))
    together = _aggregate(
      1.0,
      [*_UPDATES, [9, 9], [math.nan, 0], [1, 1], [1, 1]],
      [
        *_weights(_LOSSES),
        *_weights([5], rate=0.0),
        *_weights([5, math.nan, 3e38]),
      ],
    )
    np.testing.assert_array_equal(together.result, alone.result)
    assert together.measurements['num_aggregated'] == 2
    assert together.measurements['weight_sum'] == 35

  def test_inner_factory_and_statistics(self):
    inner = tff.aggregators.add_measurements(
      tff.aggregators.MeanFactory(),
      client_measurement_fn=lambda value, weight: collections.OrderedDict(
        sum_of_h=tff.federated_sum(weight)
      ),
    )
    value_type = tff.types.to_type(ModelWeights([_PAIR], [_FLOAT]))
    process = aggregators.QFairFactory(1.0, inner).create(
      value_type, q_fair.WEIGHT_TYPE
    )
    values = [
      ModelWeights([np.array(u, np.float32)], [np.float32(s)])
      for u, s in zip(_UPDATES, (35, 70), strict=True)
    ]
    output = process.next(process.initialize(), values, _weights(_LOSSES))
    np.testing.assert_allclose(
      output.result.trainable[0], [0.028571, 0.114286], atol=1e-6
    )
    # Statistics are only averaged.
    assert output.result.non_trainable[0] == pytest.approx(11 + 2 * 24)
    assert output.measurements['mean']['sum_of_h'] == 35
