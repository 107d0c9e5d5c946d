"""Checks of the tensors that losses take.

TensorFlow broadcasts tensors of different shapes where it can, so the loss of
the wrong tensors would still be a number.
"""

from typing import Any

import tensorflow as tf


def check_vectors(
  name: str, value: Any, like: tf.Tensor | None = None
) -> tf.Tensor:
  """`value` as a tensor `[..., p]`, of the length and type of `like`."""
  hint = None if like is None else like.dtype
  tensor = tf.convert_to_tensor(value, dtype_hint=hint)
  if not tensor.dtype.is_floating or hint not in (None, tensor.dtype):
    required = 'of a float type' if hint is None else hint.name
    raise TypeError(f'{name} must be {required}, found {tensor.dtype.name}.')
  size = None if like is None else like.shape[-1]
  if tensor.shape.rank == 0 or not tensor.shape[-1:].is_compatible_with([size]):
    size = 'p' if size is None else size
    raise ValueError(
      f'{name} must be vectors of the shape [..., {size}], found'
      f' {tensor.shape}.'
    )
  return tensor


def check_same_shape(**values: Any) -> list[tf.Tensor]:
  """The values as tensors `[..., p]`, all of one shape and type."""
  tensors: list[tf.Tensor] = []
  for name, value in values.items():
    tensors.append(check_vectors(name, value, *tensors[:1]))
  shapes = [tensor.shape for tensor in tensors]
  if not all(shape.is_compatible_with(shapes[0]) for shape in shapes):
    raise ValueError(
      f'{", ".join(values)} must have the same shape, found'
      f' {", ".join(map(str, shapes))}.'
    )
  return tensors


def check_labels(labels: Any, outputs: Any) -> tuple[tf.Tensor, tf.Tensor]:
  """Labels `[n]`, one for each row of a matrix, and the matrix, as tensors."""
  labels = tf.convert_to_tensor(labels)
  outputs = check_vectors('logits or embeddings', outputs)
  if not labels.dtype.is_integer:
    raise TypeError(f'labels must be integers, found {labels.dtype.name}.')
  required = labels.shape.concatenate([None])
  if labels.shape.rank not in (None, 1) or not required.is_compatible_with(
    outputs.shape
  ):
    raise ValueError(
      'labels must have an entry for each row of [?, p], found shapes'
      f' {labels.shape} and {outputs.shape}.'
    )
  return labels, outputs
