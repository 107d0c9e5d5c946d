"""A task: a data set divided over clients, and the model that learns it."""

import collections
from collections.abc import Callable, Sequence
import dataclasses
import functools
import operator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tff_fair import checks
from tff_fair import splits as splits_lib
from tff_fair.own_data import encoded
from tff_fair.tasks import client_loader

if TYPE_CHECKING:
  import tensorflow as tf

  from tff_fair import runtime


# Kind of leak -> what a run with it says.
_LEAK_NOTES = {
  'test_trains': 'LEAK, a control run (test_leak=test_trains): every client'
  ' also trains on its own test examples, so no score is of unseen examples.',
  'train_tests': 'LEAK, a control run (test_leak=train_tests): every client is'
  ' tested on the very examples that it trains on, so no score is of unseen'
  ' examples.',
  'test_validates': 'LEAK, a control run (test_leak=test_validates): every'
  ' client validates on its own test examples, so that its scores are not of'
  ' unseen examples where a method validates.',
}


class Examples(NamedTuple):
  """Labelled examples.

  Attributes:
    x: float32 [n, ...], the inputs.
    y: int32 [n], the classes, 0..num_classes-1.
  """

  x: np.ndarray
  y: np.ndarray


class ClientExamples(NamedTuple):
  """The three parts of a client's data.

  Attributes:
    train: What the client trains on.
    holdout: What the client validates on during training.
    test: What the client is evaluated on, never used in training.
  """

  train: Examples
  holdout: Examples
  test: Examples


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Task:
  """Federated data with the model that learns it.

  The data set is held once; a client is three arrays of positions in it. Test
  examples belong to the clients or to the server. The server may have its own
  validation examples.

  Attributes:
    name: Name of the task.
    num_classes: Number of classes.
    model_fn: Builds a fresh, uncompiled Keras model for the task's inputs.
    data: All examples, of the clients and of the server.
    splits: For each client the positions of its parts in `data`.
    server: The positions of the server's parts in `data`; None if it has none.
    free_riders: Ids of the clients that take part without data.
    rebuild: Builds the same task in another process that unpickles it, and
      keeps it there; `tasks.build_task` sets it.
    client_names: The name of each client, where the data have names; empty if
      clients are called by their ids.
    class_names: The name of each class, likewise.
    features: How each column of a table became an input; empty for other data.
    notes: Sentences about the data that the user should read before training.
    columns: The columns of the table that the data come from; else empty.
    divided_by: What the values of the user's arrays were divided by.
    unseen: The clients that take no part in the training, as a task of their
      own; None if there are none.
    sensitive: The groups of people of each sensitive column, of all examples.
    positive_class: The class that counts as positive in the rates of groups;
      None if there are more than two classes, or no groups.
    gives_groups: Whether the clients' data have the component `group`, that of
      the first sensitive column.
  """

  name: str
  num_classes: int
  model_fn: 'Callable[[], tf.keras.Model]'
  data: Examples
  splits: tuple[splits_lib.Split, ...]
  server: splits_lib.ServerSplit | None = None
  free_riders: tuple[int, ...] = ()
  rebuild: 'Callable[[], Task] | None' = None
  client_names: tuple[str, ...] = ()
  class_names: tuple[str, ...] = ()
  features: tuple[encoded.Feature, ...] = ()
  notes: tuple[str, ...] = ()
  columns: tuple[encoded.Column, ...] = ()
  divided_by: int = 1
  unseen: 'Task | None' = None
  sensitive: tuple[encoded.Groups, ...] = ()
  positive_class: int | None = None
  gives_groups: bool = False

  def __post_init__(self):
    x, y = self.data
    if x.dtype != np.float32 or y.dtype != np.int32:
      raise TypeError(
        f'data must be float32 inputs and int32 labels, found {x.dtype} and '
        f'{y.dtype}.'
      )
    if y.shape != x.shape[:1]:
      raise ValueError(
        'data must have one label for each input, found inputs of shape '
        f'{x.shape} and labels of shape {y.shape}.'
      )
    if not self.splits:
      raise ValueError('splits must name at least one client, found none.')

  def __repr__(self):
    return (
      f'Task(name={self.name!r}, num_clients={self.num_clients}, '
      f'num_classes={self.num_classes}, '
      f'num_examples={len(self.data.y)})'
    )

  @property
  def num_clients(self) -> int:
    """Number of clients and free riders; ids are 0..num_clients-1."""
    return len(self.splits)

  @property
  def has_server_test(self) -> bool:
    """Whether the server, not the clients, has the test examples."""
    return self.server is not None

  def with_free_riders(self, count: int) -> 'Task':
    """Returns this task with additional clients, the last ones, without data.

    Args:
      count: Number of free riders, at least 0.

    Raises:
      TypeError: If `count` is not an integer.
      ValueError: If `count` is negative.
    """
    checks.check_integer('count', count, 0)
    nothing = splits_lib.Split(*(np.empty(0, np.int64) for _ in range(3)))
    ids = range(self.num_clients, self.num_clients + count)
    names = self.client_names
    if names:
      names += tuple(f'free rider {i}' for i in range(1, count + 1))
    return dataclasses.replace(
      self,
      client_names=names,
      splits=self.splits + (nothing,) * count,
      free_riders=(*self.free_riders, *ids),
      rebuild=None,
    )

  def with_test_leak(self, leak: str) -> 'Task':
    """Returns this task with test examples that clients train or validate on.

    For control runs only; a note says so.

    Args:
      leak: See `tff_fair.splits.with_leak`.

    Raises:
      ValueError: If there is no such leak, or the server has the test examples.
    """
    if self.has_server_test:
      raise ValueError(
        'leak must be of test examples that clients have, found'
        f' {leak!r} with a server that has them.'
      )
    return dataclasses.replace(
      self,
      splits=tuple(splits_lib.with_leak(s, leak) for s in self.splits),
      notes=(*self.notes, _LEAK_NOTES[leak]),
      rebuild=None,
    )

  def with_unseen(self, fraction: float, *, seed: int) -> 'Task':
    """Returns this task without some clients, which are its `unseen` ones.

    The others have the ids from 0, in the order that they had; so have the
    unseen ones in their task. A note says how many there are.

    Args:
      fraction: Share of the clients, see `tff_fair.splits.draw_unseen`.
      seed: Seed of the draw.

    Raises:
      TypeError: As `draw_unseen`.
      ValueError: Likewise, or if no other client has training data, or the
        server has the test examples.
    """
    if self.has_server_test:
      raise ValueError(
        'unseen_fraction must be of clients that have test examples, found'
        f' {fraction} with a server that has them.'
      )
    sizes = [sum(map(len, split)) for split in self.splits]
    drawn = splits_lib.draw_unseen(sizes, fraction=fraction, seed=seed)
    seen = np.setdiff1d(range(self.num_clients), drawn)
    if not drawn.size:
      return self
    if not any(self.num_train(i) for i in seen):
      raise ValueError(
        'unseen_fraction must leave a client with training data in, found none'
        f' among {len(seen)} of {self.num_clients}.'
      )
    note = (
      f'{len(drawn)} of {self.num_clients} clients are unseen'
      f' (unseen_fraction={fraction:g}): they take no part in the training.'
    )
    unseen = dataclasses.replace(self._of_clients(drawn), notes=())
    notes = (*self.notes, note)
    return dataclasses.replace(
      self._of_clients(seen), notes=notes, unseen=unseen
    )

  def with_groups(self) -> 'Task':
    """Returns this task with groups of people in its clients' data.

    They are those of the first sensitive column, for methods that train by
    them; a note says so.

    Raises:
      ValueError: If there is no sensitive column, its groups are not two, or
        there are not two classes.
    """
    if self.gives_groups:
      return self
    if not self.sensitive:
      raise ValueError(
        'sensitive_columns must name the two groups of people that a method'
        ' weighs clients by, found none.'
      )
    first, *others = self.sensitive
    if self.positive_class is None:
      raise ValueError(
        'The labels must be of 2 classes for a method that weighs clients by'
        f' rates of groups of people, found {self.num_classes}.'
      )
    if len(first.names) != 2:
      raise ValueError(
        f'The sensitive column {first.column!r}, the first one, must hold 2'
        ' groups for a method that weighs clients by them, found'
        f' {len(first.names)}.'
      )
    note = (
      'Clients are weighted by how the model treats the groups'
      f' {first.names[0]!r} and {first.names[1]!r} of {first.column!r}.'
    )
    if others:
      note += ' The other sensitive columns are only measured.'
    return dataclasses.replace(
      self, gives_groups=True, notes=(*self.notes, note)
    )

  def _of_clients(self, ids: Sequence[int]) -> 'Task':
    """The task with some of its clients."""
    names = self.client_names
    return dataclasses.replace(
      self,
      splits=tuple(self.splits[i] for i in ids),
      client_names=tuple(names[i] for i in ids) if names else names,
      rebuild=None,
    )

  def training_positions(self) -> np.ndarray:
    """Returns the positions in `data` of all examples outside test sets.

    Returns:
      int64 [n]: the server's validation set and what is dealt to clients, or
      the clients' train and holdout parts.
    """
    if self.server is not None:
      return np.concatenate([self.server.to_deal, self.server.validation])
    parts = [(split.train, split.holdout) for split in self.splits]
    return np.concatenate([part for pair in parts for part in pair])

  def num_train(self, client_id: int) -> int:
    """Returns the number of training examples of a client.

    Args:
      client_id: The client, 0..num_clients-1.

    Raises:
      TypeError: If `client_id` is not an integer.
      ValueError: If there is no such client.
    """
    return len(self._split(client_id).train)

  def examples(self, client_id: int) -> ClientExamples:
    """Returns copies of a client's examples.

    Args:
      client_id: The client, 0..num_clients-1.

    Raises:
      TypeError: If `client_id` is not an integer.
      ValueError: If there is no such client.
    """
    return ClientExamples(*(map(self._take, self._split(client_id))))

  def client_data(
    self, client_id: int
  ) -> 'collections.OrderedDict[str, tf.data.Dataset]':
    """Returns what a process of this library takes as this client's data.

    The structure is built on the first call and kept, tensors included; over
    all clients that amounts to one copy of their train and holdout examples.

    Args:
      client_id: The client, 0..num_clients-1.

    Returns:
      An `OrderedDict` of data sets with the keys `client_id`, `train` and
      `holdout`; the test examples are not part of it.

    Raises:
      TypeError: If `client_id` is not an integer.
      ValueError: If there is no such client.
    """
    self._split(client_id)
    return self.loader(operator.index(client_id))

  def client_reference(self, client_id: int) -> 'runtime.ClientReference':
    """Returns what stands for `client_data` in the argument of a process.

    A runtime that trains the client in another process builds the task there,
    once, and loads the client from it. The data set must be there in the same
    folder, or in that machine's cache, or it is downloaded.

    Args:
      client_id: The client, 0..num_clients-1.

    Returns:
      A reference, of a few hundred bytes when it is pickled.

    Raises:
      TypeError: If `client_id` is not an integer.
      ValueError: If there is no such client.
    """
    # Takes seconds to import.
    from tff_fair import runtime

    # A client without training data still takes part.
    work = max(1, self.num_train(client_id))
    return runtime.ClientReference(self.loader, operator.index(client_id), work)

  @functools.cached_property
  def loader(self) -> client_loader.ClientLoader:
    """`client id -> client_data`, of any existing client."""
    groups = self.sensitive[0].codes if self.gives_groups else None
    return client_loader.ClientLoader(
      *self.data, self.splits, self.rebuild, groups
    )

  @functools.cached_property
  def validation(self) -> Examples:
    """The server's validation examples.

    If the server has none, the pooled holdout parts of all clients, in the
    order of client ids; they may be empty.
    """
    if self.server is not None:
      return self._take(self.server.validation)
    return self._take(np.concatenate([split.holdout for split in self.splits]))

  @functools.cached_property
  def global_test(self) -> Examples:
    """The server's test examples.

    If the server has none, those of all clients, in the order of client ids.
    """
    if self.server is not None:
      return self._take(self.server.test)
    return self._take(np.concatenate([split.test for split in self.splits]))

  def _split(self, client_id: int) -> splits_lib.Split:
    try:
      index = operator.index(client_id)
    except TypeError:
      raise TypeError(
        f'client_id must be an integer, found {client_id!r}.'
      ) from None
    if not 0 <= index < self.num_clients:
      raise ValueError(
        f'client_id must be in 0..{self.num_clients - 1}, found {index}.'
      )
    return self.splits[index]

  def _take(self, indices: np.ndarray) -> Examples:
    return Examples(self.data.x[indices], self.data.y[indices])
