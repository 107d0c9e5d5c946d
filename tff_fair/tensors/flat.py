"""Structures of tensors as flat vectors.

A vector concatenates the variables in their order, each row-major. Ties between
equal entries are broken by this order.
"""

from typing import Any

import tensorflow as tf


def flatten(structure: Any) -> tf.Tensor:
  """One vector `[d]` of all entries of a structure of tensors of one dtype."""
  return tf.concat([tf.reshape(t, [-1]) for t in tf.nest.flatten(structure)], 0)


def flatten_rows(structure: Any) -> tf.Tensor:
  """One matrix `[m, d]` of a structure of tensors `[m, ...]` of known shape."""
  return tf.concat(
    [
      tf.reshape(t, [-1, t.shape[1:].num_elements()])
      for t in tf.nest.flatten(structure)
    ],
    axis=1,
  )


def unflatten(flat: Any, like: Any) -> Any:
  """The structure of a vector `[d]`, or of the rows of a matrix `[m, d]`."""
  specs = tf.nest.flatten(like)
  sizes = [spec.shape.num_elements() for spec in specs]
  parts = tf.split(flat, sizes, axis=-1)
  rows = tf.shape(flat)[:-1]
  return tf.nest.pack_sequence_as(
    like,
    [
      tf.reshape(part, tf.concat([rows, spec.shape], 0))
      for part, spec in zip(parts, specs, strict=True)
    ],
  )
