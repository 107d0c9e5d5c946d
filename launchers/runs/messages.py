"""The bytes that a round sends, counted in the types of a computation."""

from collections.abc import Iterator
import dataclasses
import math

import numpy as np
import tensorflow_federated as tff

from tff_fair.runtime import secure_sums


@dataclasses.dataclass(frozen=True)
class Messages:
  """The bytes that a round sends.

  Attributes:
    broadcast: From the server, the same for all clients: once to each worker.
    row: From the server to each client: its row of the client table.
    gathered: From each client to the server, which keeps all clients' values:
      new rows, reports, and the updates if the rule compares them.
    summed: The sums over clients; a worker sends one for eight clients.
  """

  broadcast: int
  row: int
  gathered: int
  summed: int

  @property
  def upload(self) -> int:
    """Bytes of the values that one client makes for the server."""
    return self.gathered + self.summed


def count_messages(computation: tff.Computation, cohort_size: int) -> Messages:
  """The messages of one call of a computation.

  Args:
    computation: `next` of a process.
    cohort_size: Number of clients; the length of axes of unknown size, which
      hold a row for each client.

  Returns:
    The bytes of its broadcasts, selections and aggregations.
  """
  tree, _ = tff.tensorflow.replace_intrinsics_with_bodies(
    secure_sums.replace_secure_sums(computation).to_building_block()
  )
  counts = dict.fromkeys(('broadcast', 'row', 'gathered', 'summed'), 0)

  def add(block):
    if isinstance(block, tff.framework.Intrinsic):
      found = _message(block.uri, block.type_signature, cohort_size)
      for name, number in found.items():
        counts[name] += number
    return block, False

  tff.framework.transform_postorder(tff.framework.to_call_dominant(tree), add)
  return Messages(**counts)


def count_bytes(value_type: tff.Type, unknown: int = 1) -> int:
  """The bytes of a value.

  Args:
    value_type: Its type.
    unknown: The length of axes of unknown size.
  """
  return sum(_tensor_bytes(tensor, unknown) for tensor in _tensors(value_type))


def _message(uri, operator_type, cohort_size) -> dict[str, int]:
  """Counts the bytes that an operator of TFF sends."""
  match uri:
    case 'federated_broadcast':
      return {'broadcast': count_bytes(operator_type.parameter, cohort_size)}
    case 'federated_select':
      keys, _, _, select = operator_type.parameter
      number = math.prod(keys.member.shape)
      return {'row': number * count_bytes(select.result, cohort_size)}
    case 'federated_aggregate':
      accumulator = operator_type.parameter[2].result
      kept = {True: 0, False: 0}
      for tensor in _tensors(accumulator):
        kept[None in tensor.shape] += _tensor_bytes(tensor, 1)
      return {'gathered': kept[True], 'summed': kept[False]}
  return {}


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
