"""Keras models that cannot be trained are refused by name."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests import refusals
from tff_fair import metrics
from tff_fair import models

_layers = tf.keras.layers


def _model(*layers, inputs=None):
  """The layers in a row."""
  x = tf.keras.Input([4]) if inputs is None else inputs
  h = x
  for layer in layers:
    h = layer(h)
  return tf.keras.Model(x, h)


def _hidden(layer):
  return _model(layer, _layers.Dense(3))


class _Subclassed(tf.keras.Model):
  def __init__(self):
    super().__init__()
    self.dense = _layers.Dense(3)

  def call(self, x):
    return self.dense(x)


class _WithLoss(_layers.Layer):
  def call(self, x):
    self.add_loss(tf.reduce_mean(x))
    return x


class _HiddenVariable(_layers.Layer):
  def build(self, shape):
    self.hidden = {'kernel': self.add_weight('kernel', [1])}

  def call(self, x):
    return x * self.hidden['kernel']


class _WithCondition(_layers.Layer):
  def call(self, x):
    return x if tf.reduce_sum(x) > 0 else -x


def _random_in_evaluation():
  x = tf.keras.Input([4])
  dropped = _layers.Dropout(0.5)(x, training=True)
  return tf.keras.Model(x, _layers.Dense(3)(dropped))


def _built_subclassed():
  model = _Subclassed()
  model(tf.ones([1, 4]))
  return model


def _of_any_length():
  inputs = tf.keras.Input([None, 4])
  return _model(_layers.GRU(3), _layers.Dense(3), inputs=inputs)


def _two():
  a, b = tf.keras.Input([2]), tf.keras.Input([2])
  joined = _layers.Dense(3)(_layers.Concatenate()([a, b]))
  return tf.keras.Model([a, b], joined)


def _two_outputs():
  x = tf.keras.Input([4])
  return tf.keras.Model(x, [_layers.Dense(3)(x), x])


def _unnamed():
  x = tf.keras.Input([4])
  return tf.keras.Model(x, collections.OrderedDict(output=x))


def test_models():
  strings = tf.keras.Input([1], dtype='string')
  ragged = tf.keras.Input([None], ragged=True)
  batch = tf.keras.Input(batch_shape=[2, 4])
  rows = (
    (lambda: 3, 'must build a tf.keras.Model.*, found int'),
    (
      lambda: tf.keras.Sequential([_layers.Dense(3)]),
      r'Sequential model without an input \(add tf.keras.Input\(shape\)',
    ),
    (_built_subclassed, r'subclassed model _Subclassed .*Model\(x, _Sub'),
    (_two, r'found 2 inputs \(join them'),
    (
      lambda: _model(_layers.StringLookup(vocabulary=['a']), inputs=strings),
      'found an input of type .*string',
    ),
    (
      lambda: _model(_layers.Lambda(lambda x: x.to_tensor()), inputs=ragged),
      'found an input of type Ragged',
    ),
    (lambda: _model(_layers.Dense(3), inputs=batch), 'without a batch size'),
    (
      _of_any_length,
      r'of shape \(None, None, 4\) .*pad examples of different sizes',
    ),
    (_unnamed, r"found outputs named \['output'\]"),
    (_two_outputs, 'found 2 outputs'),
    (lambda: _model(_layers.Reshape([2, 2])), 'found output <KerasTensor'),
    (
      lambda: _hidden(_layers.Dense(2, dtype='float64')),
      'Every weight of the model must be float32, found .* of float64',
    ),
    (
      lambda: _hidden(_layers.Lambda(lambda x: x, dtype='float64')),
      "found Lambda 'lambda.*', which computes in float64",
    ),
    (
      lambda: _hidden(_layers.Dense(3, dtype='mixed_float16')),
      "found Dense 'dense.*', which computes in float16",
    ),
    (
      lambda: _hidden(_layers.IntegerLookup(vocabulary=[1])),
      "found IntegerLookup 'integer_lookup.*', whose table",
    ),
    (
      lambda: _hidden(_layers.SpectralNormalization(_layers.Dense(3))),
      'found SpectralNormalization',
    ),
    (
      lambda: _model(
        _layers.Reshape([2, 2]), _layers.GRU(3, stateful=True),
        inputs=tf.keras.Input(batch_shape=[2, 4]),
      ),
      'without a batch size',
    ),
    (
      _random_in_evaluation,
      "found Dropout 'dropout.*', which draws random numbers in evaluation",
    ),
    (
      lambda: _hidden(_layers.Dense(3, kernel_regularizer='l2')),
      'whose regularizer would have no effect',
    ),
    (
      lambda: _hidden(_layers.Dense(3, activity_regularizer='l2')),
      'whose regularizer would have no effect',
    ),
    (
      lambda: _hidden(_layers.Dense(3, bias_constraint='non_neg')),
      'whose constraint would have no effect',
    ),
  )  # fmt: skip
  refusals.check(
    models.StatelessModel,
    [({'model_fn': build}, TypeError, message) for build, message in rows],
  )
  refusals.check(
    models.StatelessModel,
    [
      ({'model_fn': _unnamed()}, TypeError, 'must be a function that builds'),
      (
        {'model_fn': lambda: _hidden(_HiddenVariable())},
        ValueError,
        'must be an attribute of one of its layers',
      ),
    ],
  )


def test_a_normalization_without_statistics_is_named():
  with pytest.warns(UserWarning, match="Normalization 'norm.*adapt before"):
    models.StatelessModel(lambda: _hidden(_layers.Normalization()))


def _trace(model_fn):
  """As in the computations of a process."""
  model = models.StatelessModel(model_fn)

  @tff.tensorflow.computation(model.weights_type)
  @tf.function(autograph=False)
  def work(weights):
    outputs, _ = model(weights, tf.ones([2, 4]), training=True, seed=[1, 2])
    return outputs['logits']

  return work


def _in_python(x):
  return tf.ensure_shape(tf.py_function(tf.abs, [x], tf.float32), x.shape)


def test_calls():
  """Models whose faults can be seen only in the graph."""
  added = _model(_layers.Dense(3))
  added.add_loss(tf.reduce_mean(added.output))
  constant = tf.constant([1.0, 2.0, 3.0, 4.0])
  softmax = r'must return logits, found Softmax in .*: remove the activation'
  rows = [
    (lambda: _model(_layers.Dense(3, activation='softmax')), softmax),
    (lambda: _model(_layers.Dense(3), _layers.Softmax()), softmax),
    (lambda: _model(_layers.Dense(1, activation='softmax')), softmax),
    (
      lambda: _model(
        tf.keras.Sequential([_layers.Dense(3), _layers.Activation('softmax')])
      ),
      softmax,
    ),
    (
      lambda: _model(_layers.Lambda(tf.nn.softmax), _layers.Reshape([4])),
      softmax,
    ),
    (
      lambda: _model(_layers.Dense(3, activation='sigmoid')),
      'found Sigmoid in',
    ),
    (lambda: added, 'adds by add_loss'),
    (
      lambda: _hidden(_WithCondition()),
      'found a Python condition .*type _WithCondition',
    ),
    (lambda: _hidden(_WithLoss()), 'adds by add_loss .*with_loss'),
    (
      lambda: _hidden(_layers.Lambda(lambda x: tf.nn.dropout(x, 0.5))),
      'random numbers by layers of Keras alone, .* found RandomUniform in',
    ),
    (
      lambda: _hidden(_layers.Lambda(_in_python)),
      "of TensorFlow's operations, .* found a Python function in .*lambda",
    ),
    (
      lambda: _hidden(_layers.Lambda(lambda x: x * constant)),
      'must not read eager tensors, .* found one in .*lambda',
    ),
  ]
  refusals.check(
    _trace,
    [({'model_fn': build}, ValueError, message) for build, message in rows],
  )


@pytest.mark.parametrize('activation', ['softmax', 'sigmoid'])
def test_evaluation_of_probabilities(activation):
  model = _model(_layers.Dense(3, activation=activation))
  weights = tff.learning.models.ModelWeights.from_model(model)
  examples = np.ones([2, 4], np.float32), np.zeros([2], np.int32)
  evaluator = metrics.Evaluator(model, [examples])
  with pytest.raises(ValueError, match='must return logits, found'):
    evaluator.evaluate_global(weights)
  eager = models.StatelessModel(lambda: model)
  with pytest.raises(ValueError, match='must return logits, found'):
    eager(eager.initial_weights, examples[0], training=False)
