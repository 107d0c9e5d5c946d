"""Clients as the data source of federated programs."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair import runtime


class ClientDataSource(tff.program.FederatedDataSource):
  """Gives the clients of each round to a federated program.

  With `tff.program.DatasetDataSource` each client is one data set; here it may
  also be a structure of data sets. Round n, from 1, has the clients
  `tff.simulation.build_uniform_sampling_fn(client_ids, random_seed=seed)(n,
  k)`: without replacement, and the same for the same seed. A program saves only
  the number of the last round, so that a restarted program continues with the
  same clients as an uninterrupted one.

  A round holds the clients' data, which every TFF context takes, or, with
  `by_reference`, only references to them, for our runtimes: each client is
  loaded where it is trained, on `cluster` by a worker. The results are the
  same.
  """

  def __init__(
    self,
    client_data_fn: Callable[[int], Any],
    client_ids: Sequence[int],
    *,
    seed: int = 0,
    by_reference: bool = False,
    num_examples_fn: Callable[[int], int] | None = None,
  ) -> None:
    """Initializes the data source.

    Args:
      client_data_fn: `client id -> data`, a `tf.data.Dataset` or a structure of
        them, such as `build_client_data` returns. Called once here, and each
        time a client is drawn or, with `by_reference`, loaded.
      client_ids: Ids of all clients, at least one.
      seed: Seed of the choice of clients, 0..2^32-1.
      by_reference: Whether a round holds a `runtime.ClientReference` for each
        client in place of its data. `client_data_fn` is then pickled for other
        processes, with all that it holds: it should read files, not hold
        arrays.
      num_examples_fn: `client id -> number of training examples`, by which a
        runtime deals the clients of a round to its workers; None if they are
        all alike. Only with `by_reference`.

    Raises:
      TypeError: If a function is not callable, or `seed` not an integer.
      ValueError: If there are no clients, `seed` is out of range, or there is a
        `num_examples_fn` without `by_reference`.
    """
    checks.check_function('client_data_fn', client_data_fn, 'a client id')
    checks.check_integer('seed', seed, 0, 2**32 - 1)
    checks.check_choice('by_reference', by_reference, (False, True))
    if num_examples_fn is not None:
      checks.check_function('num_examples_fn', num_examples_fn, 'a client id')
      if not by_reference:
        raise ValueError(
          'num_examples_fn must be None without by_reference, which alone uses'
          f' it, found {num_examples_fn!r}.'
        )
    if not client_ids:
      raise ValueError('client_ids must name at least one client, found none.')
    self._client_data_fn = client_data_fn
    self._by_reference = by_reference
    self._num_examples_fn = num_examples_fn
    self._client_ids = list(client_ids)
    self._sample = tff.simulation.build_uniform_sampling_fn(
      self._client_ids, random_seed=seed
    )
    member = _data_type(client_data_fn(self._client_ids[0]))
    self._federated_type = tff.FederatedType(member, tff.CLIENTS)
    # A program restores an iterator from its class alone, so the class has to
    # hold the source.
    self._iterator_class = type(
      'ClientDataIterator', (_ClientDataIterator,), {'source': self}
    )

  def __repr__(self) -> str:
    return f'ClientDataSource of {len(self._client_ids)} clients'

  @property
  def federated_type(self) -> tff.FederatedType:
    """The type of a round's data, `{D}@CLIENTS`."""
    return self._federated_type

  def iterator(self) -> tff.program.FederatedDataSourceIterator:
    """Returns an iterator before the first round."""
    return self._iterator_class(0)

  def round_data(self, round_number: int, k: int | None = None) -> list[Any]:
    """Returns the data of a round's clients, or references to them.

    Also usable in `tff.simulation.run_training_process`, as
    `training_selection_fn=lambda n: source.round_data(n, k)`.

    Args:
      round_number: The round, from 1.
      k: Number of clients, at most all; None for all, in the order of
        `client_ids`.

    Raises:
      TypeError: If `k` is not an integer.
      ValueError: If `k` is out of range.
    """
    chosen = self._client_ids
    if k is not None:
      checks.check_integer('k', k, 1, len(chosen))
      chosen = self._sample(round_number, k)
    return [self._client(client_id) for client_id in chosen]

  def _client(self, client_id: int) -> Any:
    """A client's data, or a reference to them."""
    if not self._by_reference:
      return self._client_data_fn(client_id)
    options = {}
    if self._num_examples_fn is not None:
      options['num_examples'] = self._num_examples_fn(client_id)
    return runtime.ClientReference(self._client_data_fn, client_id, **options)


class _ClientDataIterator(tff.program.FederatedDataSourceIterator):
  """Counts rounds; the attribute `source` of a subclass has the data."""

  source: ClientDataSource

  def __init__(self, round_number: int) -> None:
    self._round_number = round_number

  @classmethod
  def from_bytes(cls, buffer: bytes) -> '_ClientDataIterator':
    """Restores an iterator."""
    return cls(int(buffer))

  def to_bytes(self) -> bytes:
    """The number of its last round, in digits."""
    return b'%d' % self._round_number

  @property
  def federated_type(self) -> tff.FederatedType:
    """See `ClientDataSource`."""
    return self.source.federated_type

  def select(self, k: int | None = None) -> list[Any]:
    """The data of the next round; see `ClientDataSource.round_data`."""
    self._round_number += 1
    return self.source.round_data(self._round_number, k)


def _data_type(data) -> tff.Type:
  """The type of one client's data."""
  return tff.types.to_type(
    tf.nest.map_structure(
      lambda dataset: tff.SequenceType(
        tff.types.tensorflow_to_type(dataset.element_spec)
      ),
      data,
    )
  )
