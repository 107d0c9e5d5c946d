"""The outputs of a Keras model: the logits of its classes, and an embedding.

A model for two classes may have a single logit z, that of class 1. Its logits
are then `[0, z]`, whose softmax is `[1 - sigmoid(z), sigmoid(z)]`.
"""

import collections
from typing import Any

import tensorflow as tf

from tff_fair import internals


def named(output: Any) -> collections.OrderedDict:
  """A model's `OrderedDict(logits[, embedding])`, without other outputs."""
  if not isinstance(output, dict):
    return collections.OrderedDict(logits=output)
  return collections.OrderedDict(
    (k, output[k]) for k in ('logits', 'embedding') if k in output
  )


def num_classes(model: tf.keras.Model) -> int:
  """The number of classes; 2 for a model with a single logit."""
  return max(2, named(model.output)['logits'].shape[-1])


def of_call(output: Any) -> collections.OrderedDict:
  """The outputs of a call of a model, with a logit for each class.

  Args:
    output: What the model returned.

  Returns:
    `OrderedDict(logits=float32[?, C][, embedding])`, C at least 2. A sigmoid of
    a single logit is removed.
  """
  outputs = named(output)
  if 'logits' in outputs:
    logits = _without_sigmoid(outputs['logits'])
    if logits.shape[-1] == 1:
      logits = tf.concat([tf.zeros_like(logits), logits], axis=-1)
    outputs['logits'] = logits
  return outputs


def _without_sigmoid(logits) -> tf.Tensor:
  """Logits before the sigmoid of a binary classifier."""
  if tf.executing_eagerly():
    # Keras notes the input of a layer's softmax or sigmoid.
    kind, name = 'a softmax or sigmoid', 'the last layer'
    before = internals.noted_logits(logits)
    activated = before is not None
  else:
    kind, name, before = internals.made_by(logits)
    activated = kind in ('Softmax', 'Sigmoid')
  if not activated:
    return logits
  if logits.shape[-1] == 1 and kind != 'Softmax' and before is not None:
    return before
  raise ValueError(
    f'The model must return logits, found {kind} in {name}: remove the'
    ' activation of the last layer (of tf.keras.applications:'
    ' classifier_activation=None).'
  )
