"""Values of clients that workers hold, so that nothing is sent twice."""

import collections
from collections.abc import Callable, Hashable, Iterator, Mapping
import dataclasses
import itertools
from typing import Any, NamedTuple
import weakref

import numpy as np
from ray import cloudpickle
import tensorflow as tf
import tree

from tff_fair.runtime import client_reference
from tff_fair.runtime.cluster import messages
from tff_fair.runtime.cluster import pool as pool_lib

# How many bytes of values a worker keeps, those that were sent or used last.
KEPT_BYTES = 2**30
# Of how many clients is known where they ran last.
_KEPT_HOMES = 100_000


class Client(NamedTuple):
  """A client as the driver knows it, without its data.

  Attributes:
    key: The same in all rounds; None if workers keep nothing of the client.
    work: Its examples, or the bytes of its data sets.
    num_bytes: The bytes of its data; for a reference the mean of its function,
      infinite before a worker has loaded any.
  """

  key: Hashable | None
  work: float
  num_bytes: float


@dataclasses.dataclass(frozen=True)
class Parcel:
  """The values that a call sends to a worker.

  Attributes:
    worker: The worker.
    values: Number -> a value that is new there.
    loaders: Functions that are new there, pickled.
    used: The numbers of all values that the call needs.
  """

  worker: pool_lib.Worker
  values: dict[int, Any] = dataclasses.field(default_factory=dict)
  loaders: dict[int, bytes] = dataclasses.field(default_factory=dict)
  used: set[int] = dataclasses.field(default_factory=set)


class _Kept(NamedTuple):
  """The number of a value that workers keep, and its bytes."""

  number: int
  num_bytes: int


class ClientValues:
  """The data sets and references of clients, by number.

  A value that consists of data sets, such as a client's, is sent to a worker
  once, and kept there while the caller keeps it, within a bound. Of a reference
  only the client's id is sent.
  """

  def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
    """Knows nothing yet."""
    self._kept_bytes = kept_bytes
    self._numbers = itertools.count()
    self._kept: dict[Any, _Kept] = {}  # By what `_identity` returns.
    self._used: set[int] = set()  # The numbers of all of them.
    # By the `id` of a data set, if its size needed it, until it is sent.
    self._graphs: dict[int, np.ndarray] = {}
    # Function, or its `id` if it has no hash -> the function, its number.
    self._loaders: dict[Any, tuple[Callable[[Any], Any], int]] = {}
    # Number of a function -> how many clients it loaded, and their bytes.
    self._loaded: dict[int, tuple[int, float]] = {}
    self._homes: collections.OrderedDict[Hashable, pool_lib.Worker] = (
      collections.OrderedDict()
    )

  def client(self, parts: tuple[Any, ...]) -> Client:
    """Describes a client by its parts of the argument."""
    key, work, num_bytes = [], 0, 0
    for part, identity in _kept_parts(parts):
      if identity is None:
        loader = self._loader(part.load)
        key.append((loader, part.client_id))
        work += part.num_examples
        num_bytes += self._mean_bytes(loader)
      else:
        kept = self._keep(part, identity)
        key.append(kept.number)
        work += kept.num_bytes
        num_bytes += kept.num_bytes
    return Client(tuple(key) or None, work if key else 1, num_bytes)

  def learn(self, loaded: Mapping[int, tuple[int, float]]) -> None:
    """Learns what workers have loaded, see `messages.StageResult`."""
    for loader, new in loaded.items():
      before = self._loaded.get(loader, (0, 0))
      self._loaded[loader] = before[0] + new[0], before[1] + new[1]

  def home(self, key: Hashable | None) -> pool_lib.Worker | None:
    """The worker that ran a client last."""
    return self._homes.get(key)

  def move(self, key: Hashable | None, worker: pool_lib.Worker) -> None:
    """Learns where a client runs from now on."""
    if key is not None:
      self._homes[key] = worker
      self._homes.move_to_end(key)
      if len(self._homes) > _KEPT_HOMES:
        self._homes.popitem(last=False)

  def send(self, value: Any, parcel: Parcel) -> Any:
    """A client's value as it is sent; adds to the parcel what is new there."""
    if isinstance(value, client_reference.ClientReference):
      loader = self._loader(value.load)
      if loader not in parcel.worker.loaders:
        parcel.loaders[loader] = _pickle(value.load)
        parcel.worker.loaders.add(loader)
      return messages.Reference(loader, value.client_id)
    identity = _identity(value)
    if identity is None:
      if isinstance(value, tuple):
        return tuple(self.send(part, parcel) for part in value)
      return messages.to_message(value)
    number, size = self._keep(value, identity)
    there = parcel.worker.values
    if there.pop(number, None) is None:
      parcel.values[number] = messages.to_message(value, self._send_dataset)
    there[number] = size  # The last one was used last.
    parcel.used.add(number)
    return messages.Kept(number)

  def drop_unused(self, parcel: Parcel) -> list[int]:
    """Chooses what a worker drops: what is gone here, or over the bound."""
    there = parcel.worker.values
    total = sum(there.values())
    dropped = []
    for number, size in list(there.items()):
      gone = number not in self._used
      if number not in parcel.used and (gone or total > self._kept_bytes):
        del there[number]
        dropped.append(number)
        total -= size
    return dropped

  def _loader(self, load):
    key = load if isinstance(load, Hashable) else id(load)
    if key not in self._loaders:
      self._loaders[key] = load, next(self._numbers)
    return self._loaders[key][1]

  def _mean_bytes(self, loader):
    clients, total = self._loaded.get(loader, (0, 0))
    return total / clients if clients else float('inf')

  def _keep(self, value, identity) -> _Kept:
    """The number of a value, while the caller keeps its data sets."""
    kept = self._kept.get(identity)
    if kept is None:
      size = 0
      for dataset in tree.flatten(value):
        sent = messages.sent_dataset(dataset)
        size += sent.nbytes
        if sent is not dataset:
          self._graphs[id(dataset)] = sent
        forget = weakref.finalize(dataset, self._forget, identity, id(dataset))
        forget.atexit = False
      self._kept[identity] = kept = _Kept(next(self._numbers), size)
      self._used.add(kept.number)
    return kept

  def _send_dataset(self, dataset):
    # Another worker gets it anew: kept, it would be a second copy here.
    graph = self._graphs.pop(id(dataset), None)
    return messages.sent_dataset(dataset) if graph is None else graph

  def _forget(self, identity, dataset):
    self._graphs.pop(dataset, None)
    kept = self._kept.pop(identity, None)
    if kept is not None:
      self._used.remove(kept.number)


def _kept_parts(value: Any) -> Iterator[tuple[Any, Any]]:
  """Yields references, and what a worker keeps, with the identity of these."""
  for part in value:
    identity = _identity(part)
    if identity or isinstance(part, client_reference.ClientReference):
      yield part, identity
    elif isinstance(part, tuple):
      yield from _kept_parts(part)


def _identity(value: Any) -> Any:
  """Returns a key that distinguishes values of data sets, None for others."""
  if isinstance(value, tuple):
    found = tuple([_identity(part) for part in value])
    return found if found and None not in found else None
  return id(value) if isinstance(value, tf.data.Dataset) else None


def _pickle(load: Callable[[Any], Any]) -> bytes:
  try:
    return cloudpickle.dumps(load)
  except Exception as error:
    reason = ' '.join(str(error).split())
    raise TypeError(
      'The `load` of a ClientReference must be a function that can be pickled,'
      f' found {load!r}: {reason}'
    ) from error
