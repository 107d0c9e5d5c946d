"""The private mean against NumPy, and its noise against its deviation."""

import math

import numpy as np
import pytest
import tensorflow_federated as tff

from tff_fair import aggregators

# Of norms 5, 0 and 1, with enough entries to measure the noise.
_SIZE = 40_000
_ENTRIES = ((3.0, 4.0), (0.0, 0.0), (0.0, -1.0))
_Z, _CLIP = 0.5, 2.0


def _value(entries):
  return [np.float32(entries), np.zeros(_SIZE, np.float32)]


_VALUES = [_value(entries) for entries in _ENTRIES]


def _create(seed=0, clip=_CLIP, noise=_Z, clients=3):
  factory = aggregators.private_mean_factory(noise, clients, clip, seed)
  types = [tff.TensorType(v.dtype, v.shape) for v in _VALUES[0]]
  return factory.create(tff.to_type(types), tff.TensorType(np.float32))


def _rounds(process, number=2):
  state, outputs = process.initialize(), []
  for _ in range(number):
    # Weights do not count.
    output = process.next(state, _VALUES, [np.float32(w) for w in (1, 9, 100)])
    state = output.state
    outputs.append(output)
  return outputs


def test_a_mean_of_clipped_updates_with_noise():
  first, second = _rounds(_create())
  assert first.measurements == {'clipping_norm': _CLIP}
  # The first is clipped to 2/5 of itself: (1.2, 1.6) + (0, -1), by 3.
  mean, noise = first.result
  # Sums have noise of z times the clip.
  deviation = _Z * _CLIP / 3
  np.testing.assert_allclose(mean, [0.4, 0.2], atol=5 * deviation)
  assert np.std(noise) == pytest.approx(deviation, rel=0.03)
  assert abs(np.mean(noise)) < 5 * deviation / math.sqrt(_SIZE)
  again = second.result[1]
  assert abs(np.corrcoef(noise, again)[0, 1]) < 5 / math.sqrt(_SIZE)
  # Without the noise, which does not depend on the values, the mean is exact.
  zeros = _create(noise=1e-6)
  np.testing.assert_allclose(
    _rounds(zeros, 1)[0].result[0], [0.4, 0.2], atol=1e-5
  )


def test_the_noise_has_a_seed():
  first, same, other = (
    _rounds(_create(seed))[1].result[1] for seed in (3, 3, 4)
  )
  np.testing.assert_array_equal(first, same)
  assert abs(np.corrcoef(first, other)[0, 1]) < 5 / math.sqrt(_SIZE)
  # A state is all that a resumed run needs.
  process = _create(3)
  state = _rounds(process, 1)[0].state
  resumed = process.next(state, _VALUES, [np.float32(1)] * 3)
  np.testing.assert_array_equal(resumed.result[1], first)


def test_adaptive_clipping_as_tff_without_noise():
  noise = 0.01
  outputs = _rounds(_create(noise=noise, clip=None), 6)
  tffs = tff.aggregators.DifferentiallyPrivateFactory.gaussian_adaptive(0.0, 3)
  process = tffs.create(
    tff.to_type([tff.TensorType(v.dtype, v.shape) for v in _VALUES[0]])
  )
  state, clip = process.initialize(), 0.1
  for output in outputs:
    assert output.measurements['clipping_norm'] == pytest.approx(clip, rel=0.2)
    deviation = noise * output.measurements['clipping_norm'] / 3
    # That of the updates is a little more than that of the round.
    of_updates = deviation / math.sqrt(1 - (noise / 0.3) ** 2)
    assert np.std(output.result[1]) == pytest.approx(of_updates, rel=0.03)
    found = process.next(state, _VALUES)
    state, clip = found.state, found.measurements['dp_query_metrics']['clip']
  # The clip grows towards the median, 1, with a noisy count.
  clips = [output.measurements['clipping_norm'] for output in outputs]
  assert clips[0] == pytest.approx(0.1) and clips[-1] > 0.1


def test_refusals():
  for arguments, message in (
    ((0.0, 3), 'noise_multiplier must be above 0'),
    ((1.0, 0), 'clients_per_round must be'),
    ((1.0, 3, 0.0), 'clip must be above 0'),
    ((1.0, 3), 'noise_multiplier must be below 0.3, a tenth of the 3'),
  ):
    with pytest.raises(ValueError, match=message):
      aggregators.private_mean_factory(*arguments)
