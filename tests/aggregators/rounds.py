"""Rounds of aggregation factories: create, next, numbers."""

import collections

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

ModelWeights = tff.learning.models.ModelWeights


def type_of(structure):
  return tff.to_type(
    tf.nest.map_structure(lambda t: tff.TensorType(t.dtype, t.shape), structure)
  )


def weight(client_id, **numbers):
  """A weight with an id; numbers become float32, but for NumPy's integers."""
  return collections.OrderedDict(
    client_id=np.int32(client_id),
    **{
      name: value if isinstance(value, np.int32) else np.float32(value)
      for name, value in numbers.items()
    },
  )


def create(factory, value, weight):
  """The process for uploads like this one."""
  return factory.create(type_of(value), type_of(weight))


def run(process, values, weights, state=None):
  """A round, the first without a state."""
  state = process.initialize() if state is None else state
  return process.next(state, list(values), list(weights))
