import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client

_LIKE = [np.zeros([40, 50], np.float32), np.zeros(30, np.float32)]
_SEED = np.array([1, 2], np.int32)


def _noise(kind='uniform', bound=0.01, seed=_SEED):
  riders = client.FreeRiders(client_ids=(3,), kind=kind, bound=bound)
  return [t.numpy() for t in riders.noise(_LIKE, seed)]


def test_uniform_noise_fills_the_bound():
  kernel, bias = _noise()
  assert kernel.shape == (40, 50) and bias.shape == (30,)
  assert np.abs(kernel).max() <= 0.01
  # Of uniform values in [-b, b] the standard deviation is b / sqrt(3).
  assert kernel.std() == pytest.approx(0.01 / np.sqrt(3), rel=0.05)
  assert abs(kernel.mean()) < 0.001
  assert not np.array_equal(kernel.ravel()[:30], bias)


def test_gaussian_noise_is_clipped():
  kernel, _ = _noise('gaussian', bound=0.5)
  at_bound = (np.abs(kernel) == 0.5).mean()
  assert np.abs(kernel).max() == 0.5
  assert at_bound == pytest.approx(0.317, abs=0.04)  # Beyond one deviation.


def test_noise_is_a_function_of_the_seed_or_zero():
  assert not any(t.any() for t in _noise('zero'))
  again = _noise()
  np.testing.assert_array_equal(_noise()[0], again[0])
  assert not np.array_equal(_noise(seed=_SEED + 1)[0], again[0])


@pytest.mark.parametrize('without_data', [True, False])
def test_wraps_any_client_update(without_data):
  weights = tff.learning.models.ModelWeights

  def client_update(model, row, examples, seed, learning_rate):
    del model, seed, learning_rate
    return client.ClientOutput(
      update=weights([tf.ones([3])], [tf.ones([1])]),
      update_weight=7.0,
      row=row + 1,
      metrics=collections.OrderedDict(),
      report=collections.OrderedDict(),
    )

  wrapped = client.with_free_riders(
    client_update,
    client.FreeRiders(client_ids=(1,)),
    compress=lambda update: [10 * u for u in update],
  )
  labels = np.zeros(0 if without_data else 5, np.int32)
  for client_id in (0, 1):
    examples = collections.OrderedDict(
      key=tf.constant(client_id), train=collections.OrderedDict(y=labels)
    )
    output = wrapped((), tf.constant(4), examples, _SEED, None)
    is_free_rider = client_id == 1
    assert bool(output.active) == (is_free_rider or not without_data)
    assert output.row == (4 if is_free_rider else 5)
    assert output.update_weight == 7
    assert output.report['free_rider'] == is_free_rider
    (update,), (statistics,) = output.update.trainable, output.update[1]
    if is_free_rider:
      assert 0.01 < np.abs(update).max() <= 0.1
      np.testing.assert_array_equal(statistics, [0])
    else:
      np.testing.assert_array_equal(update, [1, 1, 1])
      np.testing.assert_array_equal(statistics, [1])
