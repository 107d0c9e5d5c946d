import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import models

ModelWeights = tff.learning.models.ModelWeights

_MODELS = {
  'mlp_fedaboost': functools.partial(models.mlp_fedaboost, (6, 6, 1), 4),
  'cnn_femnist': functools.partial(models.cnn_femnist, (6, 6, 1), 4),
  'cnn_cifar_gn': functools.partial(models.cnn_cifar_gn, (8, 8, 3), 4),
  'mlp_corefed': functools.partial(models.mlp_corefed, (6, 6, 1), 4),
  'cnn_corefed': functools.partial(models.cnn_corefed, (16, 16, 3), 4),
}


def _dense_model(*layers, features=2):
  x = tf.keras.Input([features])
  h = x
  for layer in layers:
    h = layer(h)
  return tf.keras.Model(x, tf.keras.layers.Dense(2)(h))


def _keras_model(model_fn, stateless):
  """The stateful model with the same weights."""
  keras_model = model_fn()
  stateless.initial_weights.assign_weights_to(keras_model)
  return keras_model


def _inputs(model, size=5):
  shape = [size, *model.input_spec.shape[1:]]
  return tf.random.stateless_normal(shape, [3, 4])


@pytest.mark.parametrize('name', _MODELS)
def test_a_model_of_the_papers(name):
  stateless = models.StatelessModel(_MODELS[name])
  weights, x = stateless.initial_weights, _inputs(stateless)
  keras_model = _keras_model(_MODELS[name], stateless)
  outputs, _ = stateless(weights, x, training=False)
  expected = keras_model(x, training=False)
  for key in ('logits', 'embedding'):
    np.testing.assert_allclose(outputs[key], expected[key], atol=1e-6)
  assert stateless.has_batch_norm == (name == 'cnn_femnist')
  assert stateless.num_classes == 4
  assert stateless.embedding_size == expected['embedding'].shape[1]
  assert bool(weights.non_trainable) == stateless.has_batch_norm
  # As in a TFF computation.
  with tf.Graph().as_default():
    outputs, _ = stateless(
      weights, _inputs(stateless), training=True, seed=[1, 2]
    )
  assert outputs['logits'].shape == (5, 4)

  def call(seed):
    outputs, _ = stateless(weights, x, training=True, seed=seed)
    return outputs['logits'].numpy()

  # Dropout is a function of the seed.
  np.testing.assert_array_equal(call([1, 2]), call([1, 2]))
  assert np.any(call([1, 2]) != call([1, 3])) == (not name.startswith('mlp'))


@pytest.mark.parametrize('kind', ['batch_norm', 'bidirectional_gru'])
def test_training_call_gives_outputs_and_statistics(kind):
  layers = tf.keras.layers

  def model_fn():
    if kind == 'batch_norm':
      return _dense_model(layers.BatchNormalization())
    gru = layers.Bidirectional(layers.GRU(3))
    return _dense_model(layers.Reshape([2, 1]), gru)

  stateless = models.StatelessModel(model_fn)
  keras_model = _keras_model(model_fn, stateless)
  x = _inputs(stateless)
  weights = stateless.initial_weights
  outputs, statistics = stateless(weights, x, training=True, seed=[1, 2])
  expected = keras_model(x, training=True)
  np.testing.assert_allclose(outputs['logits'], expected, atol=1e-6)
  assert len(statistics) == len(keras_model.non_trainable_variables)
  for found, variable in zip(
    statistics, keras_model.non_trainable_variables, strict=True
  ):
    np.testing.assert_allclose(found, variable, atol=1e-6)


def test_batch_norm_statistics_by_hand():
  stateless = models.StatelessModel(
    lambda: _dense_model(tf.keras.layers.BatchNormalization(momentum=0.9))
  )
  x = tf.constant([[0.0, 2.0], [2.0, 6.0]])
  _, (mean, variance) = stateless(
    stateless.initial_weights, x, training=True, seed=[0, 0]
  )
  np.testing.assert_allclose(mean, [0.1, 0.4], rtol=1e-5)  # .1 * (1, 4)
  np.testing.assert_allclose(variance, [1.0, 1.3], rtol=1e-5)  # .9 + .1*(1,4)


def test_calls_leave_the_model_as_it_was():
  stateless = models.StatelessModel(_MODELS['cnn_femnist'])
  x = _inputs(stateless)
  before, _ = stateless(stateless.initial_weights, x, training=False)
  zeros = tf.nest.map_structure(np.zeros_like, stateless.initial_weights)
  stateless(zeros, x, training=True, seed=[0, 0])
  after, _ = stateless(stateless.initial_weights, x, training=False)
  np.testing.assert_array_equal(before['logits'], after['logits'])


def test_dropout_layers_do_not_share_a_mask():
  layer = tf.keras.layers.Dropout
  x = tf.keras.Input([1000])
  both = tf.stack([layer(0.5)(x), layer(0.5)(x)], axis=1)
  logits = tf.reshape(both, [-1, 2000])
  stateless = models.StatelessModel(lambda: tf.keras.Model(x, logits))
  output, _ = stateless(
    ModelWeights([], []), tf.ones([1, 1000]), training=True, seed=[1, 2]
  )
  first, second = np.split(output['logits'].numpy()[0] > 0, 2)
  assert 0.4 < np.mean(first) < 0.6
  assert 0.4 < np.mean(first == second) < 0.6


def test_dropout_without_a_seed_is_refused():
  stateless = models.StatelessModel(
    lambda: _dense_model(tf.keras.layers.Dropout(0.5))
  )
  with pytest.raises(ValueError, match=r'requires a\s+stateless seed'):
    stateless(stateless.initial_weights, tf.ones([1, 2]), training=True)


def test_a_bias_of_length_1_is_not_broadcast():
  model = models.StatelessModel(lambda: _dense_model(tf.keras.layers.Dense(3)))
  kernel, bias, *others = model.initial_weights.trainable
  weights = tff.learning.models.ModelWeights([kernel, bias[:1], *others], [])
  with pytest.raises(
    ValueError, match='trainable weights must have the shapes'
  ):
    model(weights, np.ones([1, 2], np.float32), training=False)
