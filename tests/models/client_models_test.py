import re

import numpy as np
import pytest
import tensorflow as tf

from tff_fair import models

# Name, shape of an input, classes, size of the embedding, number of weights.
_SIZES = [
  # 784 * 128 + 128 and 128 * 10 + 10.
  ('mlp_fedaboost', (28, 28, 1), 10, 128, 101770),
  # 784 * 128 + 128, 128 * 64 + 64 and 64 * 10 + 10.
  ('mlp_cffl_mnist', (28, 28, 1), 10, 64, 109386),
  # 1024 * 128 + 128, 128 * 64 + 64 and 64 * 10 + 10.
  ('mlp_cffl_mnist_padded', (28, 28, 1), 10, 64, 140106),
  # 108 * 32 + 32 and 32 * 2 + 2.
  ('mlp_cffl_adult', (108,), 2, 32, 3554),
  # 784 * 200 + 200, 200 * 200 + 200 and 200 * 10 + 10.
  ('mlp_corefed', (28, 28, 1), 10, 200, 199210),
  ('mlp_corefed_standardised', (28, 28, 1), 10, 200, 199210),
  # 3 * 3 * 32 + 32, 4 * 32 of the batch norm, 14 * 14 * 32 * 62 + 62.
  ('cnn_femnist', (28, 28, 1), 62, 6272, 389374),
  # 896 and 18496, 2 * (32 + 64) of the group norms, 4096 * 128 + 128 and
  # 128 * 10 + 10.
  ('cnn_cifar_gn', (32, 32, 3), 10, 128, 545290),
  # 5 * 5 * 3 * 64 + 64, 5 * 5 * 64 * 64 + 64, 1600 * 384 + 384 of the 5 x 5
  # x 64 features that are left, 384 * 192 + 192 and 192 * 10 + 10.
  ('cnn_corefed', (32, 32, 3), 10, 192, 797962),
  ('cnn_corefed_plain', (32, 32, 3), 10, 192, 797962),
  # 3 * 3 * 3 * 64 + 64, 3 * 3 * 64 * 128 + 128, 3 * 3 * 128 * 256 + 256, the
  # batch norms' 4 * (64 + 128 + 256), 256 * 128 + 128 behind the average over
  # pixels and 128 * 10 + 10.
  ('cnn_fedquad', (32, 32, 3), 10, 128, 406794),
  ('cnn_fedquad_momentum_09', (32, 32, 3), 10, 128, 406794),
  # Two weights less of each channel.
  ('cnn_fedquad_group_norm', (32, 32, 3), 10, 128, 405898),
  # 128 * 90 + 90 more weights; the size of the images does not matter.
  ('cnn_fedquad', (4, 5, 3), 100, 128, 418404),
  # 5 * 5 * 3 * 6 + 6, 5 * 5 * 6 * 16 + 16, 400 * 120 + 120 of the 5 x 5 x 16
  # features that are left, 120 * 84 + 84 and 84 * 10 + 10.
  ('cnn_lenet', (32, 32, 3), 10, 84, 62006),
  ('cnn_lenet', (16, 16, 1), 10, 84, 15626),
]


def test_shapes_and_sizes():
  for name, input_shape, num_classes, embedding, num_weights in _SIZES:
    model = getattr(models, name)(input_shape, num_classes)
    outputs = model(np.zeros((2, *input_shape), np.float32))
    assert {key: value.shape[1] for key, value in outputs.items()} == {
      'logits': num_classes,
      'embedding': embedding,
    }, name
    assert model.count_params() == num_weights, name


def test_the_embedding_comes_after_its_activation():
  for name, input_shape in (
    ('mlp_fedaboost', (5,)),
    ('mlp_cffl_mnist', (4, 4, 3)),
    ('mlp_cffl_adult', (5,)),
    ('mlp_corefed', (5,)),
    ('cnn_corefed', (16, 16, 3)),
  ):
    model = getattr(models, name)(input_shape, 3)
    x = np.random.default_rng(0).normal(size=(50, *input_shape))
    outputs = model(x.astype(np.float32))
    embedding = outputs['embedding'].numpy()
    assert embedding.min() == 0, name
    kernel, bias = model.layers[-1].get_weights()
    np.testing.assert_allclose(
      outputs['logits'], embedding @ kernel + bias, rtol=1e-4, atol=1e-5
    )


def test_mlp_cffl_mnist_padded_has_padding_and_pytorch_s_weights():
  model = models.mlp_cffl_mnist_padded()
  padded = tf.keras.Model(model.input, model.layers[2].output)
  (found,) = padded(np.full([1, 28, 28, 1], 0.37526, np.float32)).numpy()
  assert found.shape == (32, 32, 1)
  np.testing.assert_allclose(found[2:30, 2:30], 1, rtol=1e-4)
  np.testing.assert_allclose(found[[0, 1, 30, 31]], -0.36349, rtol=1e-4)
  for weights in model.get_weights():
    inputs = {128: 1024, 64: 128, 10: 64}[weights.shape[-1]]
    # The largest of ten biases is often below .8 of the bound.
    least = 0.8 if weights.ndim == 2 else 0.2
    assert least * inputs**-0.5 < abs(weights).max() <= inputs**-0.5


def test_cnn_corefed_standardises_its_inputs():
  model = models.cnn_corefed()
  standardised = tf.keras.Model(model.input, model.layers[1].output)
  means = np.array([0.4914, 0.4822, 0.4465])
  deviations = np.array([0.2470, 0.2435, 0.2616])
  for x, expected in [
    (means, [0, 0, 0]),
    (means + deviations, [1, 1, 1]),
    (means * [1, 0, 1], [0, -0.4822 / 0.2435, 0]),
  ]:
    images = np.broadcast_to(x, (1, 32, 32, 3))
    np.testing.assert_allclose(
      standardised(images), np.broadcast_to(expected, images.shape), atol=1e-5
    )


def test_cnn_corefed_plain_is_the_same_for_standardised_images():
  tf.keras.utils.set_random_seed(0)
  model = models.cnn_corefed((16, 16, 3), 4)
  tf.keras.utils.set_random_seed(0)
  plain = models.cnn_corefed_plain((16, 16, 3), 4)
  images = np.random.default_rng(0).random((2, 16, 16, 3)).astype(np.float32)
  standardised = tf.keras.Model(model.input, model.layers[1].output)(images)
  np.testing.assert_array_equal(
    plain(standardised)['logits'], model(images)['logits']
  )


def test_mlp_corefed_standardised_is_the_same_for_standardised_images():
  tf.keras.utils.set_random_seed(0)
  plain = models.mlp_corefed()
  tf.keras.utils.set_random_seed(0)
  model = models.mlp_corefed_standardised()
  images = np.random.default_rng(0).random((2, 28, 28, 1)).astype(np.float32)
  np.testing.assert_allclose(
    model(images)['logits'], plain((images - 0.1307) / 0.3081)['logits'], 1e-4
  )


def test_group_norm_has_no_statistics_of_batches():
  model = models.cnn_fedquad_group_norm((4, 4, 3), 4)
  assert not model.non_trainable_variables
  images = np.random.default_rng(0).random((3, 4, 4, 3)).astype(np.float32)
  np.testing.assert_allclose(
    model(images, training=True)['logits'][:1],
    model(images[:1], training=True)['logits'],
    1e-4,
    1e-6,
  )


def _of_kind(model, kind):
  return [layer for layer in model.layers if isinstance(layer, kind)]


def test_dropout_and_pooling():
  for model, rates in (
    (models.cnn_corefed(), [0.2, 0.5]),
    (models.cnn_femnist(), [0.25]),
    (models.cnn_cifar_gn(), [0.25]),
    (models.cnn_fedquad(), []),
  ):
    found = _of_kind(model, tf.keras.layers.Dropout)
    assert [layer.rate for layer in found] == rates
  convolutions = _of_kind(models.cnn_fedquad(), tf.keras.layers.Conv2D)
  sizes = [layer.output_shape[1:] for layer in convolutions]
  assert sizes == [(32, 32, 64), (16, 16, 128), (8, 8, 256)]


def test_cnn_corefed_refuses_other_inputs():
  for shape in ((28, 28, 1), (15, 16, 3), (16, 15, 3), (768,)):
    with pytest.raises(
      ValueError,
      match=f'^input_shape must be .*, found {re.escape(str(shape))}',
    ):
      models.cnn_corefed(shape, 10)


def test_the_embedding_of_cnn_fedquad_is_linear():
  """It follows the average over pixels and has no activation."""
  model = models.cnn_fedquad((8, 8, 3), 4)
  x = np.random.default_rng(0).random((20, 8, 8, 3)).astype(np.float32)
  outputs = model(x)
  *_, features, dense, classifier = model.layers
  assert isinstance(features, tf.keras.layers.GlobalAveragePooling2D)
  features = tf.keras.Model(model.input, features.output)(x)
  for layer, found, expected in [
    (dense, features, outputs['embedding']),
    (classifier, outputs['embedding'], outputs['logits']),
  ]:
    kernel, bias = layer.get_weights()
    np.testing.assert_allclose(
      expected, found.numpy() @ kernel + bias, rtol=1e-4, atol=1e-5
    )
  assert outputs['embedding'].numpy().min() < 0


def test_the_moving_averages_of_cnn_fedquad_keep_half():
  model = models.cnn_fedquad((4, 4, 3), 4)
  x = np.random.default_rng(0).random((8, 4, 4, 3)).astype(np.float32)
  first = tf.keras.Model(model.input, model.layers[1].output)(x).numpy()
  model(x, training=True)
  _, _, mean, variance = model.layers[2].get_weights()
  expected = first.mean(axis=(0, 1, 2)) / 2  # From 0,
  np.testing.assert_allclose(mean, expected, rtol=1e-4, atol=1e-6)
  assert np.all(variance < 0.9)  # and from 1.
  for build, momentum in (
    (models.cnn_fedquad, 0.5),
    (models.cnn_fedquad_momentum_09, 0.9),
    (models.cnn_fedakd, 0.9),
  ):
    norms = [
      layer.momentum
      for layer in build((4, 4, 3), 4).layers
      if isinstance(layer, tf.keras.layers.BatchNormalization)
    ]
    assert {*norms} == {momentum}
