"""The bytes that a round sends, counted in the types of a computation."""

from collections.abc import Iterator
import math
from typing import NamedTuple

import numpy as np
import tensorflow_federated as tff

from tff_fair.runtime import secure_sums


class Messages(NamedTuple):
  """The bytes that a round sends to and from one client.

  Attributes:
    broadcast: From the server, the same for all clients.
    row: From the server: the client's row of the client table.
    gathered: To the server, which keeps all clients' values: new rows, reports,
      and the updates if the rule compares them.
    summed: To the server, which keeps their sum.
  """

  broadcast: int
  row: int
  gathered: int
  summed: int

  @property
  def down(self) -> int:
    """Bytes from the server to a client."""
    return self.broadcast + self.row

  @property
  def up(self) -> int:
    """Bytes from a client to the server."""
    return self.gathered + self.summed


def count_messages(computation: tff.Computation, cohort_size: int) -> Messages:
  """Counts the broadcasts, selections and aggregations of a call of `next`.

  The number of clients is the length of axes of unknown size, which hold a row
  for each client.
  """
  tree, _ = tff.tensorflow.replace_intrinsics_with_bodies(
    secure_sums.replace_secure_sums(computation).to_building_block()
  )
  found = []

  def add(block):
    if isinstance(block, tff.framework.Intrinsic):
      found.append(_message(block.uri, block.type_signature, cohort_size))
    return block, False

  tff.framework.transform_postorder(tff.framework.to_call_dominant(tree), add)
  return Messages(*map(sum, zip(Messages(0, 0, 0, 0), *found, strict=True)))


def count_bytes(value_type: tff.Type, unknown: int = 1) -> int:
  """Counts the bytes of a type; `unknown` is the length of unknown axes."""
  return sum(_tensor_bytes(tensor, unknown) for tensor in _tensors(value_type))


def _message(uri, operator_type, cohort_size) -> Messages:
  """Counts the bytes that an operator of TFF sends."""
  broadcast = row = gathered = summed = 0
  match uri:
    case 'federated_broadcast':
      broadcast = count_bytes(operator_type.parameter, cohort_size)
    case 'federated_select':
      keys, _, _, select = operator_type.parameter
      number = math.prod(keys.member.shape)
      row = number * count_bytes(select.result, cohort_size)
    case 'federated_aggregate':
      for tensor in _tensors(operator_type.parameter[2].result):
        if None in tensor.shape:
          gathered += _tensor_bytes(tensor, 1)
        else:
          summed += _tensor_bytes(tensor, 1)
  return Messages(broadcast, row, gathered, summed)


def _tensor_bytes(tensor_type, unknown) -> int:
  sizes = (unknown if size is None else size for size in tensor_type.shape)
  return np.dtype(tensor_type.dtype).itemsize * math.prod(sizes)


def _tensors(value_type) -> Iterator[tff.TensorType]:
  match value_type:
    case tff.FederatedType():
      yield from _tensors(value_type.member)
    case tff.StructType():
      for part in value_type:
        yield from _tensors(part)
    case tff.TensorType():
      yield value_type
