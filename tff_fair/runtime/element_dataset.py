"""Data sets of one element that stay arrays until TensorFlow reads them."""

import collections
from collections.abc import Mapping
import functools
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import internals


class ElementDataset(internals.LazyDataset):
  """A `tf.data.Dataset` of one element, whose arrays remain at hand.

  To make a data set of TensorFlow takes longer than to train a small client on
  it. So the runtime `device` takes the arrays; for everybody else the data set
  is made at its first use.

  Attributes:
    leaves: The arrays of the element, read-only.
  """

  def __init__(self, element: Any) -> None:
    """Copies the element, an array or a mapping of arrays."""
    super().__init__()
    is_mapping = isinstance(element, Mapping)
    self._names = tuple(element) if is_mapping else None
    parts = element.values() if is_mapping else [element]
    self.leaves = tuple([_read_only(part) for part in parts])

  @property
  def element_spec(self) -> Any:
    """See `tf.data.Dataset`."""
    specs = [tf.TensorSpec(a.shape, a.dtype) for a in self.leaves]
    return _pack(self._names, specs)

  @property
  def nbytes(self) -> int:
    """The bytes of the arrays."""
    return sum([array.nbytes for array in self.leaves])

  def __reduce__(self) -> Any:
    return ElementDataset, (_pack(self._names, self.leaves),)

  def is_of_type(self, sequence_type: tff.SequenceType) -> bool:
    """Returns whether it is a data set of the type."""
    leaves = [(array.dtype, array.shape) for array in self.leaves]
    return _are_of_type(sequence_type, self._names, tuple(leaves))

  def _build(self) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensors(_pack(self._names, self.leaves))


def _read_only(value) -> np.ndarray:
  array = np.array(value)
  array.setflags(write=False)
  return array


def _pack(names, leaves):
  """Leaves in the structure of an element."""
  if names is None:
    return leaves[0]
  return collections.OrderedDict(zip(names, leaves, strict=True))


@functools.lru_cache(10_000)  # Clients share few sizes; to compare takes long.
def _are_of_type(sequence_type, names, leaves) -> bool:
  element = _pack(names, [tff.TensorType(*leaf) for leaf in leaves])
  return sequence_type.is_assignable_from(tff.SequenceType(element))
