"""Loads clients' data: from the arrays of a task, or in another process."""

from collections.abc import Callable, Sequence
import functools
import threading
from typing import TYPE_CHECKING, Any
import zlib

import numpy as np

from tff_fair import splits as splits_lib
from tff_fair.tasks import sources

if TYPE_CHECKING:
  import collections

  import tensorflow as tf

  from tff_fair.tasks import task

# A task is built once in a process, whichever thread needs it first.
_BUILDING = threading.Lock()


class ClientLoader:
  """Loads the clients of a task from its arrays, each once.

  Pickled, it has no arrays: it comes out as an `RebuildingLoader`.
  """

  def __init__(
    self,
    x: np.ndarray,
    y: np.ndarray,
    splits: Sequence[splits_lib.Split],
    rebuild: 'Callable[[], task.Task] | None',
    groups: np.ndarray | None = None,
  ):
    """Initializes the loader; with `groups`, clients have them."""
    self._y, self._splits = y, splits
    self._arrays = (x, y) if groups is None else (x, y, groups)
    self._rebuild = rebuild
    self._loaded: dict[int, Any] = {}

  def __call__(
    self, client_id: int
  ) -> 'collections.OrderedDict[str, tf.data.Dataset]':
    """The data of a client, built at the first call and kept."""
    if client_id not in self._loaded:
      self._loaded[client_id] = self.build(client_id)
    return self._loaded[client_id]

  def __reduce__(self):
    if self._rebuild is None:
      raise TypeError(
        'A task must be built by tasks.build_task for another process to load'
        ' its clients, found one built by hand.'
      )
    with_groups = len(self._arrays) > 2
    return RebuildingLoader, (self._rebuild, self.checksum, with_groups)

  def build(
    self, client_id: int
  ) -> 'collections.OrderedDict[str, tf.data.Dataset]':
    """The data of a client, which are not kept."""
    # Takes seconds to import.
    from tff_fair import client

    train, holdout = (
      tuple(array[part] for array in self._arrays)
      for part in (
        self._splits[client_id].train,
        self._splits[client_id].holdout,
      )
    )
    return client.build_client_data(client_id, train, holdout)

  @functools.cached_property
  def checksum(self) -> int:
    """A checksum of all labels, and of which client has which examples."""
    found = zlib.crc32(self._y)
    for split in self._splits:
      for part in split:
        found = zlib.crc32(np.ascontiguousarray(part), found)
        found = zlib.crc32(b'%d' % len(part), found)
    return found


class RebuildingLoader:
  """Loads the clients of a task that another process has built.

  The first call builds the task, from files that must be there too. A client's
  data are built at each call: a runtime keeps what it wants to keep.
  """

  def __init__(
    self,
    rebuild: 'Callable[[], task.Task]',
    checksum: int,
    with_groups: bool = False,
  ):
    """Initializes the loader."""
    self._rebuild = rebuild
    self._checksum = checksum
    self._with_groups = with_groups

  def __call__(
    self, client_id: int
  ) -> 'collections.OrderedDict[str, tf.data.Dataset]':
    """The data of a client."""
    with _BUILDING:
      task = self._rebuild()
      if task.loader.checksum != self._checksum:
        raise sources.DataDiffersError(
          f'The task {task.name!r} must be the same in all processes of a run,'
          ' found other labels or another partition where a client is loaded.'
        )
    if self._with_groups:
      task = task.with_groups()
    return task.loader.build(client_id)
