"""Clients that a worker has loaded, and keeps within a bound."""

import collections
from collections.abc import Callable, Mapping
import threading
from typing import Any

from ray import cloudpickle
import tensorflow as tf

from tff_fair.runtime import element_dataset
from tff_fair.runtime.cluster import messages
from tff_fair.runtime.device import values

# How many bytes of clients a worker keeps, those that were used last.
KEPT_BYTES = 2**30


class LoadedClients:
  """Loads clients by reference, and keeps the last ones."""

  def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
    """Has nothing yet; a client above the bound is loaded each time."""
    self._kept_bytes = kept_bytes
    self._pickled: dict[int, bytes] = {}
    self._loaders: dict[int, Callable[[Any], Any]] = {}
    # Key -> value and size; the last one was used last.
    self._kept: collections.OrderedDict[Any, tuple[Any, int]] = (
      collections.OrderedDict()
    )
    self._bytes = 0
    # Number of a function -> how many clients it loaded, and their bytes.
    self._new: dict[int, tuple[int, float]] = {}
    self._mirror = values.Mirror()
    # A `load` need not be safe in several threads.
    self._lock = threading.Lock()

  def add_loaders(self, pickled: Mapping[int, bytes]) -> None:
    """Learns functions that load clients, by number."""
    self._pickled.update(pickled)

  def __call__(self, reference: messages.Reference, value_type: Any) -> Any:
    """The value of a client."""
    key = reference.loader, reference.client_id
    with self._lock:
      if key in self._kept:
        self._kept.move_to_end(key)
        return self._kept[key][0]
      loaded = self._loader(reference.loader)(reference.client_id)
      value = values.from_python(loaded, value_type, self._mirror, load=False)
      size = memory(value)
      clients, total = self._new.get(reference.loader, (0, 0))
      self._new[reference.loader] = clients + 1, total + size
      self._keep(key, value, size)
      return value

  def take_new(self) -> dict[int, tuple[int, float]]:
    """Takes what was loaded since the last call: see `StageResult.loaded`."""
    with self._lock:
      new, self._new = self._new, {}
    return new

  def _loader(self, number):
    # Not earlier: what fails is then an error of the client.
    if number in self._pickled:
      self._loaders[number] = cloudpickle.loads(self._pickled[number])
      del self._pickled[number]
    return self._loaders[number]

  def _keep(self, key, value, size):
    if size > self._kept_bytes:
      return
    self._kept[key] = value, size
    self._bytes += size
    while self._bytes > self._kept_bytes:
      _, (_, dropped) = self._kept.popitem(last=False)
      self._bytes -= dropped


def memory(value: Any) -> float:
  """Bytes that a value holds; infinity for a data set that calls Python."""
  if isinstance(value, tuple):
    return sum(map(memory, value))
  if isinstance(value, element_dataset.ElementDataset):
    return value.nbytes
  if isinstance(value, tf.data.Dataset):
    try:
      return messages.serialize_dataset(value).nbytes
    except ValueError:
      return float('inf')
  return value.numpy().nbytes if value.dtype != tf.string else 0
