"""Models as pure functions, against Keras itself."""

import functools

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest
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


class TestNeurons:
  @given(_weights(), strategies.arrays([_HIDDEN], st.sampled_from([0.0, 1.0])))
  def test_a_masked_neuron_is_silent(self, weights, mask):
    neurons = models.Neurons(_model())
    assert neurons.number == _HIDDEN
    masks = neurons.masks(mask)
    # Kernel, bias, scale and offset; nothing of the last layer.
    hidden = sum(m.numpy().size for m in masks[:4])
    kept = sum(np.sum(m) for m in masks[:4])
    assert kept == pytest.approx(hidden * mask.mean())
    assert all(np.all(m == 1) for m in masks[4:])
    masked = neurons.masked(weights, mask)
    for found, w, m in zip(
      masked.trainable, weights.trainable, masks, strict=True
    ):
      np.testing.assert_array_equal(found, w * m)
    assert masked.non_trainable is weights.non_trainable
    x = np.ones([1, _FEATURES], np.float32)
    outputs, _ = _model()(masked, x, training=False)
    assert not np.any(outputs['embedding'][0][mask == 0])

  def test_refusals(self):
    neurons = models.Neurons(_model())
    for bad in (np.ones(_HIDDEN - 1), np.ones(_HIDDEN + 1), np.ones([1, 3]), 1):
      print(bad)
      with refused():
        neurons.masks(bad)
      with refused():
        neurons.masked(_model().initial_weights, bad)

    def linear():
      x = tf.keras.Input([_FEATURES])
      return tf.keras.Model(x, _layers.Dense(_C)(x))

    with refused():
      models.Neurons(models.StatelessModel(linear))


class TestPairedModel:
  @strategies.costly
  @given(_weights(), _weights(), _INPUTS, st.booleans())
  def test_is_two_models(self, first, second, x, training):
    paired = models.PairedModel(_model())
    joined = paired.joined(first, second)
    for part, weights in zip(
      paired.parted(joined), (first, second), strict=True
    ):
      for found, w in zip(
        tf.nest.flatten(part), tf.nest.flatten(weights), strict=True
      ):
        assert found is w
    outputs, statistics = paired(joined, x, training=training)
    for name, weights in (('first', first), ('second', second)):
      alone, own = _model()(weights, x, training=training)
      np.testing.assert_array_equal(outputs[name]['logits'], alone['logits'])
      for value in own:
        np.testing.assert_array_equal(statistics.pop(0), value)
