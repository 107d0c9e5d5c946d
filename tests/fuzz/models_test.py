"""Weights that do not fit a model are refused, in our words."""

import numpy as np
import tensorflow as tf

from tests.fuzz.strategies import refused
from tff_fair import models


def _model_fn():
  x = tf.keras.Input([2])
  h = tf.keras.layers.BatchNormalization()(x)
  return tf.keras.Model(x, tf.keras.layers.Dense(2)(h))


def test_weights_that_do_not_fit():
  model = models.StatelessModel(_model_fn)
  for part in ('trainable', 'non_trainable'):
    for change in (
      lambda values: values[:-1],
      lambda values: [*values, values[-1]],
      lambda values: [*values[:-1], values[-1][:1]],
    ):
      initial = model.initial_weights
      values = change(list(getattr(initial, part)))
      print(part, [v.shape for v in values])
      with refused():
        model(
          initial._replace(**{part: values}),
          np.ones([1, 2], np.float32),
          training=False,
        )


def test_what_is_no_model():
  for bad in (None, 1, 'model', lambda: None, lambda: 3):
    print(bad)
    with refused():
      models.StatelessModel(bad)
