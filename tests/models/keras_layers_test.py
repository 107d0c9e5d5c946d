"""Keras layers that people use work, with random numbers from our seeds."""

import collections
import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tff_fair import algorithms
from tff_fair import models
from tff_fair import runtime

_layers = tf.keras.layers
_NUMBERS, _SERIES, _IMAGES = (4,), (6, 4), (8, 8, 3)


def _model(shape, *layers):
  """The layers in a row, and a classifier."""
  x = tf.keras.Input(shape)
  h = x
  for layer in layers:
    h = layer(h)
  if h.shape.rank > 2:
    # RandomHeight's images have no known size.
    h = _layers.Reshape([-1, h.shape[-1]])(h)
    h = _layers.GlobalAveragePooling1D()(h)
  return tf.keras.Model(x, _layers.Dense(3)(h))


def _adapted():
  layer = _layers.Normalization()
  layer.adapt(np.arange(40, dtype=np.float32).reshape(10, 4))
  return layer


def _attention(layer):
  return _layers.Lambda(lambda x: layer([x, x]))


class _Subclassed(tf.keras.Model):
  def __init__(self):
    super().__init__()
    self.dense = _layers.Dense(5)
    self.dropout = _layers.Dropout(0.5)

  def call(self, x, training=False):
    return self.dropout(self.dense(x), training=training)


# What is random in training mode.
_RANDOM = {
  'flip': (_IMAGES, lambda: [_layers.RandomFlip()]),
  'rotation': (_IMAGES, lambda: [_layers.RandomRotation(0.2)]),
  'contrast': (_IMAGES, lambda: [_layers.RandomContrast(0.2)]),
  'brightness': (_IMAGES, lambda: [_layers.RandomBrightness(0.2, (0, 1))]),
  'crop': (_IMAGES, lambda: [_layers.RandomCrop(6, 6)]),
  'width': (_IMAGES, lambda: [_layers.RandomWidth(0.4)]),
  'gaussian_noise': (_NUMBERS, lambda: [_layers.GaussianNoise(0.2)]),
  'alpha_dropout': (_NUMBERS, lambda: [_layers.AlphaDropout(0.4)]),
  'own_seed': (_NUMBERS, lambda: [_layers.Dropout(0.5, seed=1)]),
  'noise_shape': (
    _SERIES,
    lambda: [_layers.Dropout(0.5, noise_shape=(None, 1, None))],
  ),
  'lstm_dropout': (
    _SERIES,
    lambda: [_layers.LSTM(5, dropout=0.2, recurrent_dropout=0.2)],
  ),
  'gru_dropout': (
    _SERIES,
    lambda: [_layers.RNN(_layers.GRUCell(5, recurrent_dropout=0.4))],
  ),
  'subclassed': (_NUMBERS, lambda: [_Subclassed()]),
  'nested': (
    _NUMBERS,
    lambda: [tf.keras.Sequential([_layers.Dense(9), _layers.Dropout(0.5)])],
  ),
}
# What is the same in training and evaluation.
_STEADY = {
  'normalization': (
    _NUMBERS,
    lambda: [_layers.Normalization(mean=[1.0, 2, 3, 4], variance=2.0)],
  ),
  'adapted': (_NUMBERS, lambda: [_adapted()]),
  'discretization': (
    (1,),
    lambda: [_layers.Discretization([0.2, 0.5], output_mode='one_hot')],
  ),
  'category_encoding': ((1,), lambda: [_layers.CategoryEncoding(3, 'one_hot')]),
  'rescaling': (_IMAGES, lambda: [_layers.Rescaling(tf.constant([1.0, 2, 3]))]),
  'constants': (
    _NUMBERS,
    lambda: [lambda x: 1 - tf.math.log(x + 1.0) * np.ones(4, np.float32)],
  ),
  'slices': (
    _NUMBERS,
    lambda: [
      lambda x: _layers.Concatenate()(
        [_layers.Dense(2)(x[:, :1]), _layers.Dense(2)(x[:, 1:])]
      )
    ],
  ),
  'embedding': (_NUMBERS, lambda: [_layers.Embedding(3, 5)]),
  'masked': (
    _NUMBERS,
    lambda: [_layers.Embedding(3, 5, mask_zero=True), _layers.SimpleRNN(4)],
  ),
  'bidirectional': (
    _SERIES,
    lambda: [_layers.Bidirectional(_layers.SimpleRNN(5))],
  ),
  'conv_lstm': ((3, 6, 6, 1), lambda: [_layers.ConvLSTM2D(2, 3)]),
  'time_distributed': (
    _SERIES,
    lambda: [_layers.TimeDistributed(_layers.Dense(2))],
  ),
  'frozen': (
    _NUMBERS,
    lambda: [_layers.BatchNormalization(trainable=False)],
  ),
  'prelu': (_NUMBERS, lambda: [_layers.PReLU()]),
}


def _computation(model, training):
  """As in the computations of a process."""

  @tff.tensorflow.computation(
    model.weights_type,
    tff.types.tensorflow_to_type((tf.float32, model.input_spec.shape)),
    tff.TensorType(np.int32, [2]),
  )
  @tf.function(autograph=False)
  def work(weights, x, seed):
    seed = seed if training else None
    outputs, statistics = model(weights, x, training=training, seed=seed)
    return outputs['logits'], statistics

  return work


@pytest.mark.full
@pytest.mark.usefixtures('default_runtime')
@pytest.mark.parametrize('name', [*_RANDOM, *_STEADY])
def test_layer(name):
  shape, build = {**_RANDOM, **_STEADY}[name]
  keras_model = _model(shape, *build())
  model = models.StatelessModel(lambda: keras_model)
  weights = model.initial_weights
  x = np.random.default_rng(1).uniform(size=[5, *shape]).astype(np.float32)
  train, evaluate = (
    _computation(model, training) for training in (True, False)
  )
  first, statistics = train(weights, x, [1, 2])
  np.testing.assert_array_equal(first, train(weights, x, [1, 2])[0])
  evaluated, _ = evaluate(weights, x, [1, 2])
  np.testing.assert_allclose(
    evaluated, keras_model(x, training=False), rtol=1e-4, atol=1e-5
  )
  is_random = name in _RANDOM
  assert np.any(first != train(weights, x, [1, 3])[0]) == is_random
  assert np.any(first != evaluated) == is_random
  for found, before in zip(statistics, weights.non_trainable, strict=True):
    np.testing.assert_array_equal(found, before)


def test_an_adapted_normalization_is_no_weight():
  keras_model = _model(_NUMBERS, _adapted())
  model = models.StatelessModel(lambda: keras_model)
  assert not model.initial_weights.non_trainable
  assert len(keras_model.non_trainable_variables) == 3
  ones = tf.nest.map_structure(np.ones_like, model.initial_weights)
  models.assign_weights(ones, keras_model)
  x = np.array([[18.0, 19, 20, 21]], np.float32)  # The mean of the data.
  logits = np.ones([1, 3])  # The bias.
  np.testing.assert_allclose(keras_model(x), logits, atol=1e-6)
  outputs, _ = model(ones, x, training=False)
  np.testing.assert_allclose(outputs['logits'], logits, atol=1e-6)


def test_each_image_is_flipped_by_its_own_draw():
  x = tf.keras.Input([2, 2, 1])
  flipped = _layers.Flatten()(_layers.RandomFlip('horizontal')(x))
  model = models.StatelessModel(lambda: tf.keras.Model(x, flipped))
  images = np.tile([[0.0, 1.0], [2.0, 3.0]], [400, 1, 1])[..., np.newaxis]
  outputs, _ = model(
    model.initial_weights, images.astype('f'), training=True, seed=[1, 2]
  )
  rows = collections.Counter(map(tuple, outputs['logits'].numpy().tolist()))
  assert set(rows) == {(0.0, 1.0, 2.0, 3.0), (1.0, 0.0, 3.0, 2.0)}
  assert 150 < rows[0.0, 1.0, 2.0, 3.0] < 250


@pytest.mark.full
@pytest.mark.usefixtures('runtime_as_before')
def test_augmentations_are_the_same_on_all_runtimes():
  def model_fn():
    tf.keras.utils.set_random_seed(0)
    layers = [build()[0] for _, build in list(_RANDOM.values())[:4]]
    return _model(_IMAGES, *layers, _layers.Conv2D(2, 3))

  process = algorithms.build_fed_avg(
    model_fn,
    client_optimizer=tff.learning.optimizers.build_sgdm(0.1),
    batch_size=3,
  )
  rng = np.random.default_rng(0)
  data = [
    tf.data.Dataset.from_tensors(
      collections.OrderedDict(
        x=rng.uniform(size=[7, *_IMAGES]).astype(np.float32),
        y=rng.integers(0, 3, 7).astype(np.int32),
      )
    )
    for _ in range(3)
  ]
  found = []
  for kind, options in (
    ('device', {'client_threads': 3}),
    ('native', {}),
  ):
    runtime.set_execution_context(kind, **options)
    state = process.next(process.initialize(), data).state
    found.append(process.get_model_weights(state))
  # In TFF's worker, the last bit of some operations differs; with a layer that
  # draws nothing, such as Resizing, as well.
  linear_task.assert_close(*found, atol=1e-6)
  initial = process.get_model_weights(process.initialize())
  assert np.any(initial.trainable[0] != found[0].trainable[0])


@pytest.mark.full
def test_applications():
  """A model with hundreds of layers is traced."""
  build = functools.partial(
    tf.keras.applications.MobileNetV2,
    (32, 32, 3),
    alpha=0.35,
    weights=None,
    classes=10,
    classifier_activation=None,
  )
  model = models.StatelessModel(build)
  logits, statistics = _computation(model, training=True).type_signature.result
  assert logits.shape == (None, 10)
  assert model.has_batch_norm and len(statistics) == 104


@pytest.mark.full
def test_a_frozen_base_does_not_change():
  def model_fn():
    base = tf.keras.Sequential(
      [
        tf.keras.Input(_NUMBERS),
        _layers.Dense(5),
        _layers.BatchNormalization(),
      ]
    )
    base.trainable = False
    x = tf.keras.Input(_NUMBERS)
    return tf.keras.Model(x, _layers.Dense(3)(base(x)))

  model = models.StatelessModel(model_fn)
  assert len(model.initial_weights.trainable) == 2
  _, statistics = model(
    model.initial_weights, np.ones([5, 4], 'f'), training=True, seed=[1, 2]
  )
  for found, before in zip(
    statistics, model.initial_weights.non_trainable, strict=True
  ):
    np.testing.assert_array_equal(found, before)
