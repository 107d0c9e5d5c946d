"""The size of values, from their types."""

import math

import numpy as np
import tensorflow_federated as tff


def num_bytes(value_type: tff.Type) -> int | None:
  """The size of a value."""
  match value_type:
    case tff.FederatedType():
      return num_bytes(value_type.member)
    case tff.StructType():
      sizes = [num_bytes(part) for part in value_type]
      return None if None in sizes else sum(sizes)
    case tff.TensorType(shape=shape) if shape is not None and None not in shape:
      return math.prod(shape) * np.dtype(value_type.dtype).itemsize
  return None
