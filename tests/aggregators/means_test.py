"""The rules that are sums over clients, by hand."""

import collections
import math

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.aggregators import rounds
from tff_fair import aggregators
from tff_fair.aggregators import q_fair

pytestmark = pytest.mark.usefixtures('default_runtime')

_STRUCT = collections.OrderedDict
_close = np.testing.assert_allclose
_PAIR = np.float32([0, 0])


def _run(process, values, weights, state=None):
  if not isinstance(next(iter(weights), None), dict):
    weights = map(np.float32, weights)
  return rounds.run(process, map(np.float32, values), weights, state)


def _measured(output, **expected):
  found = {name: output.measurements[name] for name in expected}
  assert found == pytest.approx(expected)


class TestSamme:
  def test_alpha(self):
    for error, num_classes, expected in (
      (0.6, 10, 1.791759),  # ln(.4 / .6) + ln 9
      (0.95, 4, -1.845827),  # ln(.05 / .95) + ln 3
      (0.5, 2, 0.0),  # Chance, of two classes.
      (0.0, 2, 13.815510),  # ln(1e6), the clip.
      (1.0, 2, -13.815510),
      (0.3, 1, 0.0),  # One class: nothing is better than chance.
      (0.3, 0, 0.0),
    ):
      alpha = aggregators.samme_alpha(error, num_classes)
      assert alpha.dtype == tf.float32
      _close(alpha, expected, rtol=1e-6, atol=1e-7)
    alpha = aggregators.samme_alpha([0.0, 0.0], 2, error_clip=0.1)
    _close(alpha, [math.log(9)] * 2, rtol=1e-6)
    near_one = np.float32(1 - 2e-5)
    exact = math.log((1 - float(near_one)) / float(near_one)) + math.log(2)
    _close(aggregators.samme_alpha(near_one, 3), exact, rtol=1e-6)

  def test_mean_over_positive_alphas(self):
    process = rounds.create(aggregators.SammeAlphaFactory(), _PAIR, _PAIR[0])
    # (1 * 2 + 3 * 6) / 4
    output = _run(process, [[2, -2], [6, -6], [100, 0]], [1, 3, -5])
    _close(output.result, [5, -5])
    _measured(output, num_aggregated=2, num_excluded=1, alpha_sum=4, fallback=0)
    output = _run(process, [[2, 0], [6, 0], [math.nan, 0]], [-1, 0, 5])
    _close(output.result, [0, 0])
    _measured(output, num_aggregated=0, num_excluded=2, fallback=1)

  def test_fallback(self):
    def weights(*pairs):
      return [
        _STRUCT(alpha=np.float32(a), num_examples=np.float32(n))
        for a, n in pairs
      ]

    factory = aggregators.SammeAlphaFactory(fallback='fed_avg')
    process = rounds.create(factory, _PAIR, weights((1, 1))[0])
    values = [2, 2], [6, 6], [math.nan, 0]
    # (1 * 2 + 3 * 6) / 4; the non-finite value is excluded.
    output = _run(process, values, weights((-1, 1), (-2, 3), (-3, 50)))
    _close(output.result, [5, 5])
    _measured(output, num_aggregated=2, num_excluded=0, fallback=1)
    output = _run(process, values[:1], weights((-1, 0)))
    _close(output.result, [0, 0])
    _measured(output, num_aggregated=0, num_excluded=1, fallback=1)
    # Not if one alpha is positive.
    output = _run(process, values[:2], weights((-1, 1), (2, 3)))
    _close(output.result, [6, 6])
    _measured(output, num_aggregated=1, num_excluded=1, fallback=0)

  def test_the_state_of_the_inner_process_passes_through_the_rounds(self):
    quantile = tff.aggregators.PrivateQuantileEstimationProcess.no_noise(
      initial_estimate=1.0, target_quantile=1.0, learning_rate=1.0
    )
    inner = tff.aggregators.clipping_factory(
      quantile, tff.aggregators.MeanFactory()
    )
    process = rounds.create(
      aggregators.SammeAlphaFactory(inner), _PAIR, _PAIR[0]
    )
    state, norms = None, []
    for _ in range(3):
      output = _run(process, [[20, 20]], [1], state)
      state = output.state
      norms.append(np.linalg.norm(output.result))
    # The bound follows the clients' norm upwards by a factor e each round.
    _close(norms, np.exp([0, 1, 2]), rtol=1e-4)


# w = 0, w_1 = (-.1, 0) and w_2 = (0, -.2): updates w - w_i.
_UPDATES = ([0.1, 0.0], [0.0, 0.2])


def _loss(loss, rate=0.1):
  return _STRUCT(loss=np.float32(loss), learning_rate=np.float32(rate))


class TestQFair:
  def test_weight(self):
    for q, expected in (
      # h_1 = 1 + 10 and h_2 = 2^2 + 10 * 2.
      (1.0, [11, 24]),
      (0.1, [10.1, 10.932089]),
      (0.0, [10, 10]),
    ):
      _, weight = q_fair.q_fair_weight(
        np.array([0.01, 0.04]), np.array([1.0, 2.0]), 0.1, q
      )
      _close(weight, expected, rtol=1e-6)
    squared_norm, loss, rate, q = 0.3, 1.7, 0.02, 2.5
    scale, weight = q_fair.q_fair_weight(squared_norm, loss, rate, q)
    h = q * loss ** (q - 1) * squared_norm / rate**2 + loss**q / rate
    _close(weight, h, rtol=1e-6)
    _close(scale, loss**q / rate / h, rtol=1e-6)
    # F = 1e-10: s = 1 + .1 * 1e9, h = s * .1 / .1
    found = q_fair.q_fair_weight(0.01, 0.0, 0.1, 0.1)
    _close(found, [1e-8, 1e8], rtol=1e-6)
    # No weight for a negative loss or rate; by the formula 20 and 40.
    for loss, rate in ((0.0, 0.0), (-1.0, 0.1), (1.0, -0.1)):
      assert q_fair.q_fair_weight(0.3, loss, rate, 1.0) == (1, 0)

  def test_by_hand(self):
    for q, expected in ((1.0, [0.028571, 0.114286]), (0.0, [0.05, 0.1])):
      process = rounds.create(aggregators.QFairFactory(q), _PAIR, _loss(1))
      output = _run(process, _UPDATES, [_loss(1), _loss(2)])
      _close(output.result, expected, atol=1e-6)
    together = _run(
      process,
      [*_UPDATES, [9, 9], [math.nan, 0], [1, 1], [1, 1]],
      [*map(_loss, (1, 2)), _loss(5, 0), *map(_loss, (5, math.nan, 3e38))],
    )
    np.testing.assert_array_equal(together.result, output.result)
    _measured(together, num_aggregated=2, weight_sum=20)

  def test_inner_factory_and_statistics(self):
    inner = tff.aggregators.add_measurements(
      tff.aggregators.MeanFactory(),
      client_measurement_fn=lambda value, weight: _STRUCT(
        sum_of_h=tff.federated_sum(weight)
      ),
    )
    values = [
      rounds.ModelWeights([np.float32(u)], [np.float32(s)])
      for u, s in zip(_UPDATES, (35, 70), strict=True)
    ]
    process = rounds.create(
      aggregators.QFairFactory(1.0, inner), values[0], _loss(1)
    )
    output = rounds.run(process, values, [_loss(1), _loss(2)])
    _close(output.result.trainable[0], [0.028571, 0.114286], atol=1e-6)
    # Statistics are only averaged.
    _close(output.result.non_trainable[0], 11 + 2 * 24, rtol=1e-6)
    assert output.measurements['mean']['sum_of_h'] == 35


def test_tilted_mean():
  def weights(*pairs):
    return [
      _STRUCT(loss=np.float32(loss), num_examples=np.float32(n))
      for loss, n in pairs
    ]

  process = rounds.create(
    aggregators.TiltedMeanFactory(2.0), _PAIR, weights((1, 1))[0]
  )
  # exp(2 (F - 1)): 1 and 4, so that both have the weight 4.
  pair = weights((1, 4), (1 + math.log(4) / 2, 1))
  output = _run(process, _UPDATES, pair)
  _close(output.result, [0.05, 0.1], rtol=1e-6)
  _measured(output, num_aggregated=2, largest_loss=1 + math.log(4) / 2)
  # Who does not count does not set the largest loss.
  together = _run(
    process,
    [*_UPDATES, [9, 9], [math.nan, 0], [1e30, 0], [1, 1]],
    [*pair, *weights((50, 0), (50, 1), (50, 100), (math.inf, 1))],
  )
  np.testing.assert_array_equal(together.result, output.result)
  # e^2000 is no float.
  output = _run(process, _UPDATES, weights((1000, 1), (0, 9)))
  _close(output.result, _UPDATES[0])


def test_mean_drift():
  process = rounds.create(aggregators.MeanDriftFactory(4), _PAIR, _PAIR[0])
  first = _run(process, [[1, 0], [3, 2]], [1, 1])
  # h = -(4, 2) / 4, though only two of four were there; the mean is (2, 1).
  _close(first.state['drift'], [-1, -0.5], rtol=1e-6)
  _close(first.result, [3, 1.5], rtol=1e-6)
  second = _run(process, [[2, -4]], [1], first.state)
  # h = (-1, -.5) - (2, -4) / 4.
  _close(second.state['drift'], [-1.5, 0.5], rtol=1e-6)
  _close(second.result, [3.5, -4.5], rtol=1e-6)
  nan = math.nan
  for values, weights in (
    # Only the sign of a weight is used.
    ([[1, 0], [3, 2]], [1e-3, 50]),
    ([[9, 9], [1, 0], [nan, 0], [3, 2]], [0, 1, 0, 1]),
    ([[1, 0], [9, 9], [8, 8], [3, 2]], [1, -1, nan, 1]),
  ):
    found = _run(process, values, weights)
    np.testing.assert_array_equal(found.result, first.result)
    np.testing.assert_array_equal(found.state['drift'], first.state['drift'])


class TestEntrywise:
  def test_by_hand(self):
    process = rounds.create(
      aggregators.EntrywiseMeanFactory(), *[np.zeros(3, np.float32)] * 2
    )
    for values, weights, expected in (
      # A client without an entry is excluded from its mean: 2, not 2 / 2; and
      # 0 where nobody has it.
      ([[2, 1, 5], [7, 3, 6]], [[1, 1, 0], [0, 1, 0]], [2, 2, 0]),
      # Weights need not be masks.
      ([[1, 1, 1], [5, 5, 5]], [[1, 3, 0.5], [1, 1, 0]], [3, 2, 1]),
      # What a mask hides may be anything.
      ([[np.nan, np.inf, 1], [2, 3, 3]], [[0, 0, 1], [1, 1, 1]], [2, 3, 2]),
    ):
      found = _run(process, values, weights).result
      np.testing.assert_array_equal(found, expected)

  def test_a_model_with_statistics(self):
    def model(weights, statistic):
      return rounds.ModelWeights([np.float32(weights)], [np.float32(statistic)])

    values = [model([1, 2], 4), model([3, 4], 8)]
    weights = [model([1, 0], 1), model([1, 1], 1)]
    process = rounds.create(
      aggregators.EntrywiseMeanFactory(), values[0], weights[0]
    )
    found = rounds.run(process, values, weights).result
    np.testing.assert_array_equal(found.trainable[0], [2, 4])
    assert found.non_trainable[0] == 6


@pytest.mark.parametrize('statistics', [True, False])
def test_model_weights_are_aggregated_each_by_its_rule(statistics):
  # The rule for trainable weights cannot be mistaken for a mean.
  sums = tff.aggregators.as_weighted_aggregator(tff.aggregators.SumFactory())
  factory = aggregators.ModelWeightsFactory(sums, tff.aggregators.MeanFactory())

  def part(x):
    return [np.float32(x)] if statistics else []

  values = [rounds.ModelWeights([np.float32(x)], part(10 * x)) for x in (1, 2)]
  process = rounds.create(factory, values[0], np.float32(1))
  output = rounds.run(process, values, map(np.float32, (1, 3)))
  assert output.result.trainable == [3]  # 1 + 2
  assert output.result.non_trainable == part(17.5)  # (10 + 3 * 20) / 4
