"""A task: a data set divided over clients, and the model that learns it."""

import collections
from collections.abc import Callable
import dataclasses
import functools
import operator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tasks import splits as splits_lib

if TYPE_CHECKING:
  import tensorflow as tf


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
    test: What the client is judged by; no training ever sees it.
  """

  train: Examples
  holdout: Examples
  test: Examples


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Task:
  """Federated data with the model that learns it.

  The data set is held once; a client is three arrays of positions in it.

  Attributes:
    name: Name of the task.
    num_classes: Number of classes.
    model_fn: Builds a fresh, uncompiled Keras model for the task's inputs.
    data: All examples, of whichever client.
    splits: For each client the positions of its parts in `data`.
  """

  name: str
  num_classes: int
  model_fn: 'Callable[[], tf.keras.Model]'
  data: Examples
  splits: tuple[splits_lib.Split, ...]
  _client_data: dict[int, Any] = dataclasses.field(
    default_factory=dict, init=False, repr=False
  )

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
    """Number of clients; their ids are 0..num_clients-1."""
    return len(self.splits)

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
    # Imported here because it takes seconds that a launcher's --help has not.
    from tff_fair import client

    split = self._split(client_id)
    key = operator.index(client_id)
    if key not in self._client_data:
      self._client_data[key] = client.build_client_data(
        key, tuple(self._take(split.train)), tuple(self._take(split.holdout))
      )
    return self._client_data[key]

  @functools.cached_property
  def global_test(self) -> Examples:
    """The pooled test examples of all clients, in the order of client ids."""
    return self._take(np.concatenate([split.test for split in self.splits]))

  @functools.cached_property
  def global_test_client_ids(self) -> np.ndarray:
    """The client of each example of `global_test`; int32 [n], ascending.

    With it one evaluation of the pool gives the metrics of every client.
    """
    counts = [len(split.test) for split in self.splits]
    return np.repeat(np.arange(self.num_clients, dtype=np.int32), counts)

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
