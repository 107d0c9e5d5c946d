"""A round of two exchanges, and clients whose data are floats."""

from collections.abc import Callable, Sequence
import os
import pathlib
import signal
import time
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.runtime import equivalence
from tff_fair import runtime
from tff_fair.runtime import element_dataset
from tff_fair.tensors import client_table

_DATA = tff.SequenceType(np.float32)
_SERVER = tff.FederatedType(np.float32, tff.SERVER)


@tff.tensorflow.computation(np.float32, _DATA)
def _total(start, data):
  """Whose last bits depend on the order, and which refuses huge numbers."""

  def add(total, number):
    with tf.control_dependencies(
      [tf.debugging.Assert(number < 1e6, ['too large'])]
    ):
      return total * 0.9 + number

  return data.reduce(start, add)


@tff.tensorflow.computation(np.float32, np.float32)
def _subtract(a, b):
  return a - b


@tff.tensorflow.computation(np.float32)
def _square(a):
  return a * a


@tff.federated_computation(_SERVER, tff.FederatedType(_DATA, tff.CLIENTS))
def variance(start, data):
  """The clients' totals, how they differ from their mean, and two sums."""
  totals = tff.federated_map(_total, (tff.federated_broadcast(start), data))
  mean = tff.federated_mean(totals)
  apart = tff.federated_map(_subtract, (totals, tff.federated_broadcast(mean)))
  return (
    mean,
    tff.federated_sum(tff.federated_map(_square, apart)),
    tff.federated_sum(totals),
    apart,
  )


def _load_numbers(client_id):
  return (
    np.random.default_rng(client_id)
    .normal(size=1 + client_id % 9)
    .astype(np.float32)
  )


def data_set(client_id: int) -> tf.data.Dataset:
  """A client's data set."""
  return tf.data.Dataset.from_tensor_slices(_load_numbers(client_id))


def at_hand(client_id: int) -> tf.data.Dataset:
  """A client of one number that is at hand, so that it can run in a group."""
  return element_dataset.ElementDataset(_load_numbers(client_id)[0])


@tff.tensorflow.computation(np.float32, _DATA)
def _vector(start, data):
  return tf.stack([start, data.reduce(start, tf.add)])


def build_rows_and_sum() -> Any:
  """The clients' rows in their order, and a sum, as a new computation."""

  @tff.federated_computation(_SERVER, tff.FederatedType(_DATA, tff.CLIENTS))
  def rows_and_sum(start, data):
    found = tff.federated_map(_vector, (tff.federated_broadcast(start), data))
    gather = client_table.build_gather(_vector.type_signature.result)
    return gather(found), tff.federated_sum(found)

  return rows_and_sum


def invoke(
  context: Any, clients: Sequence[Any], computation: Any = variance
) -> Any:
  """A round."""
  with tff.framework.get_context_stack().install(context):
    return computation(0.1, list(clients))


def expected(context: Any, client_ids: Sequence[int]) -> Any:
  """Returns the result of a round of these clients by another context."""
  return invoke(context, [data_set(i) for i in client_ids])


def assert_same_bits(a: Any, b: Any) -> None:
  """The same types, and exactly the same values."""
  equivalence.assert_equal(a, b, 0)


class Loader:
  """Clients by reference; notes each load, and makes trouble as ordered."""

  def __init__(self, folder: pathlib.Path):
    """Notes and orders are in the folder."""
    self._folder = folder
    (folder / 'calls').touch()
    self.load = _build_load(str(folder))

  def references(self, client_ids: Sequence[int]) -> list[Any]:
    """The clients, each of as much work as it has numbers."""
    return [
      runtime.ClientReference(self.load, i, 1 + i % 9) for i in client_ids
    ]

  def order(self, client_id: int, trouble: str, always: bool = False) -> None:
    """Lets a client make trouble when it is loaded next, or each time.

    Trouble: 'kill' or 'stop' its process, 'sleep SECONDS', 'raise', 'exhaust'.
    """
    name = f'{"always" if always else "once"}_{client_id}'
    (self._folder / name).write_text(trouble)

  def forgive(self, client_id: int) -> None:
    """Ends the trouble that a client makes each time."""
    (self._folder / f'always_{client_id}').unlink()

  def calls(self) -> dict[int, list[int]]:
    """Client -> the processes that loaded it since the last call of this."""
    notes = self._folder / 'calls'
    found = {}
    for line in notes.read_text().splitlines():
      client_id, process = map(int, line.split())
      found.setdefault(client_id, []).append(process)
    notes.write_text('')
    return found


def _build_load(folder: str) -> Callable[[int], tf.data.Dataset]:
  # Local, so that it is pickled as a whole: workers do not import tests.
  def load(client_id):
    with open(f'{folder}/calls', 'a') as file:
      file.write(f'{client_id} {os.getpid()}\n')
    trouble = ''
    for name in (f'{folder}/once_{client_id}', f'{folder}/always_{client_id}'):
      if os.path.exists(name):
        with open(name) as file:
          trouble = file.read()
        if 'once' in os.path.basename(name):
          os.remove(name)
    match trouble.split():
      case ['kill']:
        os.kill(os.getpid(), signal.SIGKILL)
      case ['stop']:
        os.kill(os.getpid(), signal.SIGSTOP)
      case ['sleep', seconds]:
        time.sleep(float(seconds))
      case ['raise']:
        raise LookupError(f'Client {client_id} must have data, found none.')
      case ['exhaust']:
        raise tf.errors.ResourceExhaustedError(
          None, None, 'OOM when allocating tensor with shape[9]'
        )
    return tf.data.Dataset.from_tensor_slices(
      np.random.default_rng(client_id)
      .normal(size=1 + client_id % 9)
      .astype(np.float32)
    )

  return load
