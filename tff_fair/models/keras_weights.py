"""The variables of a Keras model that are weights in a federation.

These are all but the statistics of preprocessing layers, such as an adapted
`Normalization`, which are computed before the training and do not change.
"""

from typing import TypeAlias

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import internals

ModelWeights: TypeAlias = tff.learning.models.ModelWeights

_Preprocessing = tf.keras.layers.experimental.preprocessing.PreprocessingLayer


def variables(model: tf.keras.Model) -> ModelWeights:
  """The variables that are weights."""
  statistics = {
    id(variable)
    for layer in internals.layers_of(model)
    if isinstance(layer, _Preprocessing)
    for variable in layer.variables
  }
  return ModelWeights(
    model.trainable_variables,
    [v for v in model.non_trainable_variables if id(v) not in statistics],
  )


def assign(weights: ModelWeights, model: tf.keras.Model) -> None:
  """Writes weights into a Keras model.

  Args:
    weights: `ModelWeights` of arrays, as `variables` orders them.
    model: The Keras model; its other variables keep their values.
  """
  write(weights, variables(model))


def write(weights: ModelWeights, found: ModelWeights) -> None:
  """Writes weights into variables, for a caller that looks them up once."""
  for part, values in zip(found, weights, strict=True):
    for variable, value in zip(part, values, strict=True):
      variable.assign(value, read_value=False)
