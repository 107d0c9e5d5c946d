"""Runs a process in several contexts and compares all that it returns."""

import collections
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task

_ROUNDS = 2
CLIENTS = linear_task.make_clients([7, 5, 12], holdout=4)


def plain(batch_size: int = 4) -> list[tf.data.Dataset]:
  """Batches of (x, y), a data set for each client."""
  return [
    tf.data.Dataset.from_tensor_slices(
      collections.OrderedDict(x=data.x, y=data.y.astype(np.int32))
    ).batch(batch_size)
    for data in CLIENTS
  ]


def run(process: Any, data: Any, context: Any) -> list[Any]:
  """Everything that the process returns in a few rounds."""
  with tff.framework.get_context_stack().install(context):
    state = process.initialize()
    results = [state]
    for _ in range(_ROUNDS):
      output = process.next(state, data)
      results.append(output)
      if isinstance(output, tuple):  # <state, something>
        state = output[0]
      else:
        state = getattr(output, 'state', output)
    if hasattr(process, 'get_model_weights'):
      results.append(process.get_model_weights(state))
  return results


def assert_equal(a: Any, b: Any, tolerance: float = 1e-5) -> None:
  """Same Python types all the way down, and values equal within a tolerance."""
  assert type(a) is type(b)
  if isinstance(a, (list, tuple)):
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
      assert_equal(x, y, tolerance)
  elif isinstance(a, dict):
    assert list(a) == list(b)
    assert_equal(list(a.values()), list(b.values()), tolerance)
  elif attrs.has(type(a)):
    fields = [field.name for field in attrs.fields(type(a))]
    assert_equal(
      [getattr(a, f) for f in fields],
      [getattr(b, f) for f in fields],
      tolerance,
    )
  elif isinstance(a, bytes):
    assert a == b
  else:
    assert isinstance(a, (np.ndarray, np.generic))
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    if a.dtype == object:  # Strings.
      assert a.tolist() == b.tolist()
    else:
      np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def assert_same_rounds(
  process: Any, data: Any, contexts: Sequence[Any], tolerance: float = 1e-5
) -> None:
  """The process returns the same types and values in both contexts."""
  results = [run(process, data, context) for context in contexts]
  assert_equal(*results, tolerance)
