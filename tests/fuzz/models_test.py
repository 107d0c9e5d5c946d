"""Models as pure functions, against Keras itself."""

import functools

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.fuzz import strategies
from tests.fuzz.strategies import refused
from tff_fair import models

ModelWeights = tff.learning.models.ModelWeights

_layers = tf.keras.layers
_FEATURES, _HIDDEN, _C = 2, 3, 2


def _model_fn():
  x = tf.keras.Input([_FEATURES])
  h = _layers.Dense(_HIDDEN)(x)
  h = _layers.ReLU()(_layers.BatchNormalization(momentum=0.5)(h))
  logits = _layers.Dense(_C)(h)
  return tf.keras.Model(x, {'logits': logits, 'embedding': h})


@functools.cache
def _keras():
  return _model_fn()


@functools.cache
def _model():
  return models.StatelessModel(_model_fn)


@st.composite
def _weights(draw):
  """Weights of the model; variances are positive."""
  initial = _model().initial_weights
  trainable = [draw(strategies.arrays(w.shape)) for w in initial.trainable]
  mean, variance = (w.shape for w in initial.non_trainable)
  statistics = [
    draw(strategies.arrays(mean)),
    draw(strategies.arrays(variance, strategies.POSITIVE)),
  ]
  return ModelWeights(trainable, statistics)


_INPUTS = st.integers(1, 4).flatmap(
  lambda size: strategies.arrays([size, _FEATURES])
)


def _close(found, expected):
  np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


class TestStatelessModel:
  @strategies.costly
  @given(_weights(), _INPUTS, st.booleans())
  def test_is_the_keras_model(self, weights, x, training):
    keras = _keras()
    weights.assign_weights_to(keras)
    before = [w.copy() for w in weights.non_trainable]
    outputs, statistics = _model()(weights, x, training=training)
    expected = keras(x, training=training)
    for name in ('logits', 'embedding'):
      _close(outputs[name], expected[name])
    for found, variable, old in zip(
      statistics, keras.non_trainable_variables, before, strict=True
    ):
      _close(found, variable)
      if not training:
        np.testing.assert_array_equal(found, old)

  def test_refusals(self):
    for part in ('trainable', 'non_trainable'):
      for change in (
        lambda values: values[:-1],
        lambda values: [*values, values[-1]],
        lambda values: [*values[:-1], values[-1][:1]],
      ):
        initial = _model().initial_weights
        values = change(list(getattr(initial, part)))
        print(part, [v.shape for v in values])
        with refused():
          _model()(
            initial._replace(**{part: values}),
            np.ones([1, _FEATURES], np.float32),
            training=False,
          )
    for bad in (None, 1, 'model', lambda: None, lambda: 3):
      print(bad)
      with refused():
        models.StatelessModel(bad)
