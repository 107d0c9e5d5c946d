"""Keras client models of the papers, and a small net for images.

Every function builds a fresh, uncompiled model whose output is
`OrderedDict(logits=float32[?, num_classes], embedding=float32[?, p])`; the
embedding is the output of the last hidden layer, after its activation, if any.
Inputs are float32 `[?, *input_shape]`; convolutions take images, `(height,
width, channels)`, in [0, 1], those of FedQuad and FedAKD of at least 4 x 4
pixels, `cnn_lenet` and those of CoRe-Fed of at least 16 x 16, the latter with
three channels. Dense models flatten their inputs first. `num_classes` is the
number of logits.
"""

import collections
from collections.abc import Sequence
import functools

import numpy as np
import tensorflow as tf

_layers = tf.keras.layers

# Per channel, of CIFAR-10's training images with pixels in [0, 1].
_CIFAR10_MEANS = (0.4914, 0.4822, 0.4465)
_CIFAR10_DEVIATIONS = (0.2470, 0.2435, 0.2616)
# Of MNIST's training images with pixels in [0, 1], padded to 32 x 32.
_PADDED_MNIST_MEAN, _PADDED_MNIST_DEVIATION = 0.10004, 0.27522


def mlp_fedaboost(
  input_shape: Sequence[int] = (28, 28, 1), num_classes: int = 10
) -> tf.keras.Model:
  """FeDABoost's MNIST model: one hidden layer of 128 units, ReLU.

  The paper specifies one hidden layer but no width; 128 is our choice.
  """
  return _mlp(input_shape, num_classes, 128)


def mlp_cffl_mnist(
  input_shape: Sequence[int] = (28, 28, 1), num_classes: int = 10
) -> tf.keras.Model:
  """CFFL's MNIST model: hidden layers of 128 and 64 units, ReLU."""
  return _mlp(input_shape, num_classes, 128, 64)


def mlp_cffl_mnist_padded(
  input_shape: Sequence[int] = (28, 28, 1), num_classes: int = 10
) -> tf.keras.Model:
  """`mlp_cffl_mnist` with the inputs and initial weights of its authors' code.

  Images get two zeros at each side and are standardised with mean and deviation
  of MNIST's padded training images. The initial weights and biases are
  PyTorch's, uniform within `1 / sqrt(n)` for n inputs of a layer. There a file
  has the weights, and test images are standardised by their own moments.
  """
  x = tf.keras.Input(input_shape)
  h = _layers.ZeroPadding2D(2)(x)
  h = _layers.Rescaling(
    1 / _PADDED_MNIST_DEVIATION,
    offset=-_PADDED_MNIST_MEAN / _PADDED_MNIST_DEVIATION,
  )(h)
  h = _layers.Flatten()(h)
  for width in (128, 64):
    h = _pytorch_dense(h, width, activation='relu')
  logits = _pytorch_dense(h, num_classes)
  return tf.keras.Model(x, collections.OrderedDict(logits=logits, embedding=h))


def mlp_cffl_adult(
  input_shape: Sequence[int], num_classes: int = 2
) -> tf.keras.Model:
  """CFFL's Adult model: one hidden layer of 32 units, ReLU."""
  return _mlp(input_shape, num_classes, 32)


def mlp_corefed(
  input_shape: Sequence[int] = (28, 28, 1), num_classes: int = 10
) -> tf.keras.Model:
  """CoRe-Fed's Fashion-MNIST model: two hidden layers of 200 units, ReLU."""
  return _mlp(input_shape, num_classes, 200, 200)


def mlp_corefed_standardised(
  input_shape: Sequence[int] = (28, 28, 1), num_classes: int = 10
) -> tf.keras.Model:
  """`mlp_corefed` behind a standardisation by .1307 and .3081.

  These are mean and deviation of the pixels of MNIST's training images. The
  paper has no such model: it tells what the scale of the inputs does, which of
  its methods FedRDN alone changes.
  """
  x = tf.keras.Input(input_shape)
  h = _layers.Rescaling(1 / 0.3081, offset=-0.1307 / 0.3081)(x)
  return _dense(x, h, num_classes, 200, 200)


def cnn_femnist(
  input_shape: Sequence[int] = (28, 28, 1), num_classes: int = 62
) -> tf.keras.Model:
  """FeDABoost's FEMNIST model: one convolution with batch normalisation.

  Convolution 3x3x32 SAME, batch norm, ReLU, max-pool 2, dropout .25, logits.
  The paper names the layers without sizes; the sizes are our choice.
  """
  x = tf.keras.Input(input_shape)
  h = _layers.Conv2D(32, 3, padding='same')(x)
  h = _layers.ReLU()(_layers.BatchNormalization()(h))
  h = _layers.Dropout(0.25)(_layers.MaxPool2D(2)(h))
  return _with_logits(x, _layers.Flatten()(h), num_classes)


def cnn_cifar_gn(
  input_shape: Sequence[int] = (32, 32, 3), num_classes: int = 10
) -> tf.keras.Model:
  """FeDABoost's CIFAR-10 model: two convolutions with group normalisation.

  Twice [convolution 3x3 SAME, group norm (8 groups), ReLU, max-pool 2] with 32
  and 64 filters, dropout .25, dense 128 with ReLU, logits. The paper names the
  layers without sizes; the sizes are our choice.
  """
  x = tf.keras.Input(input_shape)
  h = x
  for filters in (32, 64):
    h = _layers.Conv2D(filters, 3, padding='same')(h)
    h = _layers.ReLU()(_layers.GroupNormalization(groups=8)(h))
    h = _layers.MaxPool2D(2)(h)
  h = _layers.Flatten()(_layers.Dropout(0.25)(h))
  embedding = _layers.Dense(128, activation='relu')(h)
  return _with_logits(x, embedding, num_classes)


def cnn_corefed(
  input_shape: Sequence[int] = (32, 32, 3), num_classes: int = 10
) -> tf.keras.Model:
  """CoRe-Fed's CIFAR-10 model: two convolutions, two hidden layers.

  Standardisation with mean and deviation of CIFAR-10's channels, twice
  [convolution 5x5x64 VALID, ReLU, max-pool 2], dense 384, dropout .2, ReLU,
  dense 192, dropout .5, ReLU, logits.

  Raises:
    ValueError: If the images are too small or do not have three channels.
  """
  # One channel would be broadcast to three by the standardisation.
  _check_images(tuple(input_shape), 3)
  x = tf.keras.Input(input_shape)
  return _cnn_corefed(x, _standardised(x), num_classes)


def cnn_corefed_plain(
  input_shape: Sequence[int] = (32, 32, 3), num_classes: int = 10
) -> tf.keras.Model:
  """`cnn_corefed` for images that are already normalised, as in FedRDN.

  A second standardisation would make their deviation four times as large, too
  large for the learning rate of CoRe-Fed's experiments.

  Raises:
    ValueError: If the images are too small or do not have three channels.
  """
  _check_images(tuple(input_shape), 3)
  x = tf.keras.Input(input_shape)
  return _cnn_corefed(x, x, num_classes)


def cnn_fedquad(
  input_shape: Sequence[int] = (32, 32, 3), num_classes: int = 10
) -> tf.keras.Model:
  """FedQuad's model: three convolutions with batch normalisation.

  Three times [convolution 3x3 SAME, batch norm, ReLU] with 64, 128 and 256
  filters, max-pool 2 after the first two, global average pool, dense 128
  (linear), logits. The paper does not say the first two numbers of filters, nor
  the momentum of the moving averages, .5 here. With .9 the averages do not
  follow the weights in the few steps of a small client, and FedQuad gains
  because it calls the model most often in a step.
  """
  return _cnn_fedquad(input_shape, num_classes, _batch_norm(0.5))


def cnn_fedquad_momentum_09(
  input_shape: Sequence[int] = (32, 32, 3), num_classes: int = 10
) -> tf.keras.Model:
  """`cnn_fedquad` whose moving averages have momentum .9.

  This is PyTorch's default, which it calls .1.
  """
  return _cnn_fedquad(input_shape, num_classes, _batch_norm(0.9))


def cnn_fedquad_group_norm(
  input_shape: Sequence[int] = (32, 32, 3), num_classes: int = 10
) -> tf.keras.Model:
  """`cnn_fedquad` with group normalisation (32 groups) for batch normalisation.

  The paper has no such model: it tells what the statistics of batches do, as
  this one has none.
  """
  return _cnn_fedquad(
    input_shape, num_classes, functools.partial(_layers.GroupNormalization, 32)
  )


def cnn_fedakd(
  input_shape: Sequence[int] = (32, 32, 3), num_classes: int = 10
) -> tf.keras.Model:
  """FedAKD's model: two convolutions with batch normalisation.

  Twice [convolution 3x3 SAME, batch norm, ReLU, max-pool 2] with 32 and 64
  filters, flatten, logits. The paper gives no numbers of filters; they and the
  momentum .9 of the moving averages are those of the public code. The epsilon
  of batch norm, 1e-3, and the initial weights, Glorot's, are Keras's defaults,
  not PyTorch's.
  """
  return _cnn_fedakd(input_shape, num_classes, third_convolution=False)


def cnn_fedakd_deep(
  input_shape: Sequence[int] = (32, 32, 3), num_classes: int = 10
) -> tf.keras.Model:
  """`cnn_fedakd` with a third convolution (FedAKD, table 5, CIFAR-10).

  The paper specifies a "3-layer CNN"; a third block of 64 filters, without
  pooling, is our choice. An older state of the public code has convolutions of
  32, 64 and 128 filters without batch normalisation and pooling.
  """
  return _cnn_fedakd(input_shape, num_classes, third_convolution=True)


def cnn_lenet(
  input_shape: Sequence[int] = (32, 32, 3), num_classes: int = 10
) -> tf.keras.Model:
  """LeNet-5 with ReLU and max-pooling: a small net for comparisons.

  Pixels scaled to [-1, 1], twice [convolution 5x5 VALID, ReLU, max-pool 2] with
  6 and 16 filters, dense 120 and 84 with ReLU, logits. No paper of this library
  has it. On CIFAR-10 a step takes about a quarter of the time of `cnn_fedakd`,
  which has nearly as many weights.

  Raises:
    ValueError: If the images are too small.
  """
  _check_images(tuple(input_shape))
  x = tf.keras.Input(input_shape)
  h = _layers.Rescaling(2, offset=-1)(x)
  for filters in (6, 16):
    h = _layers.Conv2D(filters, 5, activation='relu')(h)
    h = _layers.MaxPool2D(2)(h)
  return _dense(x, h, num_classes, 120, 84)


def _mlp(input_shape, num_classes, *widths) -> tf.keras.Model:
  """Hidden layers with ReLU on flattened inputs; the last is the embedding."""
  x = tf.keras.Input(input_shape)
  return _dense(x, x, num_classes, *widths)


def _dense(x, h, num_classes, *widths) -> tf.keras.Model:
  h = _layers.Flatten()(h)
  for width in widths:
    h = _layers.Dense(width, activation='relu')(h)
  return _with_logits(x, h, num_classes)


def _batch_norm(momentum):
  return functools.partial(_layers.BatchNormalization, momentum=momentum)


def _pytorch_dense(h, width, activation=None) -> tf.Tensor:
  """A dense layer with PyTorch's initial weights."""
  bound = h.shape[-1] ** -0.5
  initial = tf.keras.initializers.RandomUniform(-bound, bound)
  return _layers.Dense(
    width,
    activation,
    kernel_initializer=initial,
    bias_initializer=tf.keras.initializers.RandomUniform(-bound, bound),
  )(h)


def _cnn_fedquad(input_shape, num_classes, build_norm) -> tf.keras.Model:
  x = tf.keras.Input(input_shape)
  h = x
  for filters in (64, 128, 256):
    h = _layers.Conv2D(filters, 3, padding='same')(h)
    h = _layers.ReLU()(build_norm()(h))
    if filters < 256:
      h = _layers.MaxPool2D(2)(h)
  embedding = _layers.Dense(128)(_layers.GlobalAveragePooling2D()(h))
  return _with_logits(x, embedding, num_classes)


def _cnn_corefed(x, h, num_classes) -> tf.keras.Model:
  for _ in range(2):
    h = _layers.Conv2D(64, 5, activation='relu')(h)
    h = _layers.MaxPool2D(2)(h)
  h = _layers.Flatten()(h)
  for width, rate in ((384, 0.2), (192, 0.5)):
    h = _layers.Dropout(rate)(_layers.Dense(width)(h))
    h = _layers.ReLU()(h)
  return _with_logits(x, h, num_classes)


def _check_images(input_shape, channels=None) -> None:
  # Two convolutions of 5 x 5 and their pooling leave nothing of smaller images.
  is_image = len(input_shape) == 3 and channels in (None, input_shape[2])
  if not is_image or min(input_shape[:2]) < 16:
    raise ValueError(
      f'input_shape must be (height, width, {channels or "channels"}) with at '
      f'least 16 x 16 pixels, found {input_shape}.'
    )


def _standardised(x) -> tf.Tensor:
  # Keras's Normalization would divide, and so round otherwise.
  means, deviations = np.array([_CIFAR10_MEANS, _CIFAR10_DEVIATIONS])
  # Lists, as Keras loads no saved model whose layers hold arrays.
  scale, offset = (1 / deviations).tolist(), (-means / deviations).tolist()
  return _layers.Rescaling(scale, offset=offset)(x)


def _cnn_fedakd(input_shape, num_classes, third_convolution) -> tf.keras.Model:
  x = tf.keras.Input(input_shape)
  h = x
  for filters in (32, 64):
    h = _layers.MaxPool2D(2)(_normalized_convolution(h, filters))
  if third_convolution:
    h = _normalized_convolution(h, 64)
  return _with_logits(x, _layers.Flatten()(h), num_classes)


def _normalized_convolution(h, filters) -> tf.Tensor:
  h = _layers.Conv2D(filters, 3, padding='same')(h)
  return _layers.ReLU()(_layers.BatchNormalization(momentum=0.9)(h))


def _with_logits(x, embedding, num_classes) -> tf.keras.Model:
  """Adds a linear classifier to `embedding`."""
  logits = _layers.Dense(num_classes)(embedding)
  return tf.keras.Model(
    x, collections.OrderedDict(logits=logits, embedding=embedding)
  )
