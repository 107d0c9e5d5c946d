"""Values of clients that workers hold, so that nothing is sent twice."""

import collections
from collections.abc import Callable, Hashable, Iterable, Mapping
import itertools
from typing import Any
import weakref

import numpy as np
from ray import cloudpickle
import tensorflow as tf

from tff_fair.runtime import client_reference
from tff_fair.runtime.cluster import messages
from tff_fair.runtime.cluster import pool as pool_lib

# How many bytes of data sets a worker keeps, those that were sent or used last.
KEPT_BYTES = 2**30
# Of how many clients is known where they ran last.
_KEPT_HOMES = 100_000


class ClientValues:
  """The data sets and references of clients, by number.

  A data set is sent to a worker once, and kept there while the caller keeps it,
  within a bound. Of a reference only the client's id is sent.
  """

  def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
    """Knows nothing yet."""
    self._kept_bytes = kept_bytes
    self._numbers = itertools.count()
    self._data_sets: dict[int, int] = {}  # By the `id` of the data set.
    self._sizes: dict[int, int] = {}
    # Graphs from which sizes were taken, until they are sent.
    self._graphs: dict[int, np.ndarray] = {}
    # Function, or its `id` if it has no hash -> the function, its number.
    self._loaders: dict[Any, tuple[Callable[[Any], Any], int]] = {}
    # Number of a function -> how many clients it loaded, and their bytes.
    self._loaded: dict[int, tuple[int, float]] = {}
    self._homes: collections.OrderedDict[Hashable, pool_lib.Worker] = (
      collections.OrderedDict()
    )

  def key(self, client: Any) -> Hashable | None:
    """The key of a client in all rounds; None if a worker keeps nothing."""
    own = tuple(
      (self._loader(part.load), part.client_id)
      if isinstance(part, client_reference.ClientReference)
      else self._data_set(part)
      for part in _kept_parts(client)
    )
    return own or None

  def size(self, client: Any) -> float:
    """The work of a client: its examples, or the bytes of its data sets."""
    sizes = [
      part.num_examples
      if isinstance(part, client_reference.ClientReference)
      else self._sizes[self._data_set(part)]
      for part in _kept_parts(client)
    ]
    return sum(sizes) if sizes else 1

  def num_bytes(self, client: Any) -> float:
    """The bytes of a client's data; a mean for those of a reference.

    They are infinite before a worker has loaded any.
    """
    return sum(
      self._mean_bytes(self._loader(part.load))
      if isinstance(part, client_reference.ClientReference)
      else self._sizes[self._data_set(part)]
      for part in _kept_parts(client)
    )

  def learn(self, loaded: Mapping[int, tuple[int, float]]) -> None:
    """Learns what workers have loaded, see `messages.StageResult`."""
    for loader, new in loaded.items():
      before = self._loaded.get(loader, (0, 0))
      self._loaded[loader] = tuple(map(sum, zip(before, new, strict=True)))

  def _mean_bytes(self, loader):
    clients, total = self._loaded.get(loader, (0, 0))
    return total / clients if clients else float('inf')

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

  def send(
    self, client: Any, worker: pool_lib.Worker, call: messages.StageCall
  ) -> Any:
    """A client's value as it is sent; adds to `call` what is new there."""
    if isinstance(client, client_reference.ClientReference):
      loader = self._loader(client.load)
      if loader not in worker.loaders:
        call.loaders[loader] = _pickle(client.load)
        worker.loaders.add(loader)
      return messages.Reference(loader, client.client_id)

    def send_dataset(dataset):
      key = self._data_set(dataset)
      size = worker.data_sets.pop(key, None)
      if size is None:
        # Another worker gets it anew: kept, it would be a second copy here.
        sent = self._graphs.pop(key, None)
        if sent is None:
          sent = messages.sent_dataset(dataset)
        call.data_sets[key] = sent
        size = sent.nbytes
      worker.data_sets[key] = size  # The last one was used last.
      return messages.SentDataSet(key)

    return messages.to_message(client, send_dataset)

  def drop_unused(
    self, worker: pool_lib.Worker, needed: Iterable[Any]
  ) -> list[int]:
    """Chooses what a worker drops: what is gone here, or over the bound."""
    stay = {
      self._data_set(part)
      for client in needed
      for part in _kept_parts(client)
      if isinstance(part, tf.data.Dataset)
    }
    total = sum(worker.data_sets.values())
    dropped = []
    for key, size in list(worker.data_sets.items()):
      gone = key not in self._sizes
      if key not in stay and (gone or total > self._kept_bytes):
        del worker.data_sets[key]
        dropped.append(key)
        total -= size
    return dropped

  def _loader(self, load):
    key = load if isinstance(load, Hashable) else id(load)
    if key not in self._loaders:
      self._loaders[key] = load, next(self._numbers)
    return self._loaders[key][1]

  def _data_set(self, dataset):
    """The key of a data set, while the caller keeps it."""
    key = self._data_sets.get(id(dataset))
    if key is None:
      key = next(self._numbers)
      sent = messages.sent_dataset(dataset)
      self._sizes[key] = sent.nbytes
      if sent is not dataset:
        self._graphs[key] = sent
      self._data_sets[id(dataset)] = key
      forget = weakref.finalize(dataset, self._forget, id(dataset), key)
      forget.atexit = False
    return key

  def _forget(self, identity, key):
    self._data_sets.pop(identity, None)
    self._sizes.pop(key, None)
    self._graphs.pop(key, None)


def _kept_parts(
  value: Any,
) -> list[tf.data.Dataset | client_reference.ClientReference]:
  """The data sets and references in a value."""
  if isinstance(value, tuple):
    return [kept for part in value for kept in _kept_parts(part)]
  kinds = tf.data.Dataset, client_reference.ClientReference
  return [value] if isinstance(value, kinds) else []


def _pickle(load: Callable[[Any], Any]) -> bytes:
  try:
    return cloudpickle.dumps(load)
  except Exception as error:
    reason = ' '.join(str(error).split())
    raise TypeError(
      'The `load` of a ClientReference must be a function that can be pickled,'
      f' found {load!r}: {reason}'
    ) from error
