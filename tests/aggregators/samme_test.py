import collections
import functools
import math

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators

_VALUE = tff.types.to_type([tff.TensorType(np.float32, [2]), np.float32])
_ALPHA = tff.TensorType(np.float32)
_BOTH = tff.types.to_type(
  collections.OrderedDict(alpha=np.float32, num_examples=np.float32)
)


class TestSammeAlpha:
  def test_by_hand(self):
    for error, num_classes, expected in (
      (0.6, 10, 1.791759),  # ln(.4 / .6) + ln 9
      (0.95, 4, -1.845827),  # ln(.05 / .95) + ln 3
      (0.4, 10, 2.602690),
      (0.5, 2, 0.0),  # Chance, of two classes.
      (0.0, 2, 13.815510),  # ln(1e6), the clip.
      (1.0, 2, -13.815510),
      (0.0, 10, 16.012735),  # 13.8155 + ln 9
      (0.3, 1, 0.0),  # One class: nothing is better than chance.
      (0.3, 0, 0.0),
    ):
      alpha = aggregators.samme_alpha(error, num_classes)
      assert alpha.dtype == tf.float32
      np.testing.assert_allclose(alpha, expected, rtol=1e-6, atol=1e-7)
    alpha = aggregators.samme_alpha(0.0, 2, error_clip=0.1)
    np.testing.assert_allclose(alpha, math.log(9), rtol=1e-6)

  def test_exact_near_one(self):
    error = np.float32(1 - 2e-5)
    exact = math.log((1 - float(error)) / float(error)) + math.log(2)
    np.testing.assert_allclose(
      aggregators.samme_alpha(error, 3), exact, rtol=1e-6
    )


def _values(*numbers):
  """A value for each number x: [[x, 10 x], -x]."""
  return [[np.array([x, 10 * x], np.float32), np.float32(-x)] for x in numbers]


@functools.cache
def _process(fallback='keep'):
  factory = aggregators.SammeAlphaFactory(fallback=fallback)
  return factory.create(_VALUE, _ALPHA if fallback == 'keep' else _BOTH)


def _aggregate(values, weights):
  """Pairs of alpha and a number of examples are for `fallback='fed_avg'`."""
  process = _process()
  if isinstance(weights[0], tuple):
    process = _process('fed_avg')
    weights = [
      collections.OrderedDict(alpha=np.float32(a), num_examples=np.float32(n))
      for a, n in weights
    ]
  else:
    weights = [np.float32(w) for w in weights]
  return process.next(process.initialize(), values, weights)


def _check(output, expected, **measurements):
  np.testing.assert_allclose(output.result[0], [expected, 10 * expected], 1e-6)
  np.testing.assert_allclose(output.result[1], -expected, 1e-6)
  found = {name: output.measurements[name] for name in measurements}
  assert found == pytest.approx(measurements)


@pytest.mark.usefixtures('default_runtime')
class TestExecution:
  def test_mean_over_positive_alphas(self):
    # (1 * 2 + 3 * 6) / 4
    output = _aggregate(_values(2, 6, 100), [1, 3, -5])
    _check(output, 5, num_aggregated=2, num_excluded=1, alpha_sum=4, fallback=0)
    output = _aggregate(_values(2, 100), [1, 0])
    _check(output, 2, num_aggregated=1, num_excluded=1)

  def test_without_a_positive_alpha(self):
    output = _aggregate(_values(2, 6, math.nan), [-1, 0, 5])
    _check(output, 0, num_aggregated=0, num_excluded=2, fallback=1)
    # (1 * 2 + 3 * 6) / 4; the non-finite value is excluded.
    output = _aggregate(_values(2, 6, math.nan), [(-1, 1), (-2, 3), (-3, 50)])
    _check(output, 5, num_aggregated=2, num_excluded=0, fallback=1)
    output = _aggregate(_values(2), [(-1, 0)])
    _check(output, 0, num_aggregated=0, num_excluded=1, fallback=1)

  def test_no_fallback_if_one_alpha_is_positive(self):
    output = _aggregate(_values(2, 6), [(-1, 1), (2, 3)])
    _check(output, 6, num_aggregated=1, num_excluded=1, fallback=0)

  def test_state_passes_through_the_rounds(self):
    quantile = tff.aggregators.PrivateQuantileEstimationProcess.no_noise(
      initial_estimate=1.0, target_quantile=1.0, learning_rate=1.0
    )
    inner = tff.aggregators.clipping_factory(
      quantile, tff.aggregators.MeanFactory()
    )
    process = aggregators.SammeAlphaFactory(inner).create(_VALUE, _ALPHA)
    state, norms = process.initialize(), []
    for _ in range(3):
      output = process.next(state, _values(2.0), [np.float32(1)])
      state = output.state
      norms.append(float(np.linalg.norm([*output.result[0], output.result[1]])))
    # The bound follows the clients' norm upwards by a factor e each round.
    np.testing.assert_allclose(norms, np.exp([0, 1, 2]), rtol=1e-4)
