import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import models

_layers = tf.keras.layers


def _chain(input_shape, *layers):
  """A `StatelessModel` of one layer after the other."""

  def model_fn():
    x = tf.keras.Input(input_shape)
    h = x
    for layer in layers:
      h = layer(h)
    return tf.keras.Model(x, h)

  return models.StatelessModel(model_fn)


def _mlp():
  return _chain([2], _layers.Dense(3), _layers.ReLU(), _layers.Dense(2))


def _with_batch_norm():
  """After the input, after a convolution without bias, and before the end."""
  return _chain(
    [4, 4, 3],
    _layers.BatchNormalization(),
    _layers.Conv2D(3, 3, use_bias=False),
    _layers.BatchNormalization(),
    _layers.ReLU(),
    _layers.Flatten(),
    _layers.Dense(2),
    _layers.BatchNormalization(),
    _layers.Dense(5),
  )


def _masks(model, mask):
  masks = models.Neurons(model).masks(tf.constant(mask, tf.float32))
  return [m.numpy() for m in masks]


def test_number_of_neurons():
  for build, number in (
    (lambda: models.mlp_fedaboost((6, 6, 1), 4), 128),
    (lambda: models.cnn_fedakd((8, 8, 3), 4), 32 + 64),
    (lambda: models.cnn_fedakd_deep((8, 8, 3), 4), 32 + 64 + 64),
    (lambda: models.cnn_corefed((16, 16, 3), 4), 64 + 64 + 384 + 192),
  ):
    assert models.Neurons(models.StatelessModel(build)).number == number
  assert models.Neurons(_mlp()).number == 3
  assert models.Neurons(_with_batch_norm()).number == 5


def test_masks_of_dense_layers():
  kernel, bias, *output = _masks(_mlp(), [1, 0, 1])
  np.testing.assert_array_equal(kernel, [[1, 0, 1]] * 2)
  np.testing.assert_array_equal(bias, [1, 0, 1])
  for mask, shape in zip(output, [(3, 2), (2,)], strict=True):
    np.testing.assert_array_equal(mask, np.ones(shape))


def test_masks_with_batch_norm():
  of_input, more, kernel, scale, offset, *rest = _masks(
    _with_batch_norm(), [0, 1, 1, 1, 0]
  )
  # As wide as the convolution, but belongs to no neuron.
  np.testing.assert_array_equal([of_input, more], np.ones((2, 3)))
  np.testing.assert_array_equal(
    kernel, np.broadcast_to([0, 1, 1], [3, 3, 3, 3])
  )
  np.testing.assert_array_equal([scale, offset], [[0, 1, 1]] * 2)
  dense, bias, scale, offset, *output = rest
  np.testing.assert_array_equal(dense, [[1, 0]] * 12)
  np.testing.assert_array_equal([bias, scale, offset], [[1, 0]] * 3)
  assert [m.shape for m in output] == [(2, 5), (5,)]
  assert all(np.all(m == 1) for m in output)


def test_batch_norm_of_flattened_channels_belongs_to_no_neuron():
  layers = _layers.Flatten(), _layers.BatchNormalization(), _layers.Dense(2)
  model = _chain([4, 4, 1], _layers.Conv2D(3, 3), *layers)
  _, bias, scale, offset, *_ = _masks(model, [1, 0, 1])
  np.testing.assert_array_equal(bias, [1, 0, 1])
  np.testing.assert_array_equal([scale, offset], np.ones((2, 12)))


def test_a_masked_channel_is_0_after_batch_norm():
  model = _with_batch_norm()
  rng = np.random.default_rng(0)
  weights = tff.learning.models.ModelWeights(
    [
      tf.constant(rng.normal(size=w.shape), tf.float32)
      for w in model.initial_weights.trainable
    ],
    [tf.constant(w) for w in model.initial_weights.non_trainable],
  )
  neurons = models.Neurons(model)
  masked = neurons.masked(weights, tf.constant([1, 1, 1, 0, 0], tf.float32))
  for one, other in zip(
    masked.non_trainable, weights.non_trainable, strict=True
  ):
    np.testing.assert_array_equal(one, other)
  x = tf.constant(rng.normal(size=[2, 4, 4, 3]), tf.float32)
  outputs, _ = model(masked, x, training=False)
  bias = weights.trainable[-1]
  np.testing.assert_allclose(outputs['logits'], [bias] * 2, atol=1e-6)


def test_refusals():
  for layers in (
    [_layers.Dense(2)],
    [_layers.BatchNormalization(), _layers.Dense(2)],
  ):
    with pytest.raises(ValueError, match='must build a model with a hidden'):
      models.Neurons(_chain([2], *layers))
  for size in (2, 4):
    with pytest.raises(ValueError, match=r'mask must have the shape \[3\], fo'):
      models.Neurons(_mlp()).masks(np.ones(size))
