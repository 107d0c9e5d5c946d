"""Builds a task from one pool of examples and a partition of it."""

import functools
from typing import Any

import numpy as np

from tff_fair import checks
from tff_fair import splits
from tff_fair import streams
from tff_fair.own_data import encoded
from tff_fair.tasks import covariate_shift
from tff_fair.tasks import model_builders
from tff_fair.tasks import options as options_lib
from tff_fair.tasks import partitions
from tff_fair.tasks import rules
from tff_fair.tasks import task


def build(
  name: str,
  *,
  data: task.Examples,
  num_classes: int,
  options: options_lib.TaskOptions,
  test_start: int | None = None,
  owners: np.ndarray | None = None,
) -> task.Task:
  """Divides a pool of examples over clients and splits each client.

  Under the split 'server' the server first takes its validation and test
  examples; the rest is dealt to the clients, which only train. A
  `data_fraction` below 1 is drawn from the examples that are to be dealt.

  Args:
    name: Name of the task.
    data: The pool.
    num_classes: Number of classes.
    options: Options with the defaults of the task filled in.
    test_start: Position at which the examples of the test file begin; None if
      there is no test file.
    owners: int64 [n], the client of each example, for the partition 'client'.

  Returns:
    The task.

  Raises:
    ValueError: If the pool cannot be divided as the options say.
  """
  server = _server_split(len(data.y), test_start, options)
  to_deal = np.arange(len(data.y)) if server is None else server.to_deal
  to_deal = draw(to_deal, options.data_fraction, seed=options.seed)
  if options.num_examples is not None:
    checks.check_integer('num_examples', options.num_examples, 1, len(to_deal))
  return task.Task(
    name=name,
    num_classes=num_classes,
    model_fn=functools.partial(
      model_builders.get(options.model), data.x.shape[1:], num_classes
    ),
    data=data,
    splits=_client_splits(data, to_deal, owners, options),
    server=server,
  )


def draw(positions: np.ndarray, fraction: float, *, seed: int) -> np.ndarray:
  """Draws the fraction of the examples that is dealt to clients.

  Returns:
    At least one of the positions, sorted.
  """
  if fraction == 1:
    return positions
  size = max(1, int(fraction * len(positions) + 0.5))
  rng = streams.generator(seed, streams.DATA_FRACTION)
  return np.sort(rng.permutation(positions)[:size])


def _server_split(
  num_examples: int, test_start: int | None, options: options_lib.TaskOptions
) -> splits.ServerSplit | None:
  if options.split == 'client':
    return None
  return splits.split_server(
    num_examples,
    seed=options.seed,
    test_start=test_start,
    test_fraction=options.test_fraction,
    validation_fraction=options.validation_fraction,
  )


def _client_splits(
  data: task.Examples,
  to_deal: np.ndarray,
  owners: np.ndarray | None,
  options: options_lib.TaskOptions,
) -> tuple[splits.Split, ...]:
  fractions = {'test_fraction': 0.0, 'holdout_fraction': 0.0}
  if options.split == 'client':
    fractions = {name: getattr(options, name) for name in fractions}
  if _divides_pool_first(options):
    drawn = covariate_shift.split_covariate_shift(
      data.x[to_deal], **_shift_options(options), **fractions
    )
    return tuple(
      splits.Split(*(to_deal[part] for part in own)) for own in drawn
    )
  if options.partition == rules.OWN_PARTITION:
    parts = encoded.positions_by_owner(owners[to_deal], options.num_clients)
  else:
    parts = _partition(data, to_deal, options)
  if options.partition == 'class' and options.split == 'client':
    _check_dealt_once(parts, options)
  return splits.split_clients(
    [to_deal[part] for part in parts], seed=options.seed, **fractions
  )


def _divides_pool_first(options: options_lib.TaskOptions) -> bool:
  return (
    options.partition == 'covariate_shift'
    and options.shift_method == 'importance'
    and options.split == 'client'
    and options.shift_pool == 'split'
  )


def _shift_options(options: options_lib.TaskOptions) -> dict[str, Any]:
  """The arguments of both functions that draw examples by weights."""
  return {
    'num_clients': options.num_clients,
    'sizes': options.shift_sizes,
    'shift': options.shift,
    'pca_dim': options.pca_dim,
    'weights': options.shift_weights,
    'seed': options.seed,
    'total': options.num_examples,
  }


def _partition(
  data: task.Examples, to_deal: np.ndarray, options: options_lib.TaskOptions
) -> list[np.ndarray]:
  """Returns for each client positions in `to_deal`."""
  labels = data.y[to_deal]
  if options.partition == 'dirichlet':
    return partitions.dirichlet(
      labels,
      options.num_clients,
      options.dirichlet_alpha,
      seed=options.seed,
      remainder=options.dirichlet_remainder,
      balance_cap=options.balance_cap,
      min_samples=options.min_samples,
      small_clients=options.small_clients,
    )
  total = options.num_examples
  if options.partition == 'class':
    return partitions.classes(
      labels,
      options.num_clients,
      seed=options.seed,
      total=total,
      random_classes=options.random_classes,
    )
  if options.partition == 'covariate_shift':
    return covariate_shift.covariate_shift(
      data.x[to_deal],
      method=options.shift_method,
      **_shift_options(options),
    )
  deal = {
    'equal': partitions.equal,
    'power_law': partitions.power_law,
    'zipf': partitions.zipf,
  }
  return deal[options.partition](
    len(labels), options.num_clients, seed=options.seed, total=total
  )


def _check_dealt_once(
  partition: list[np.ndarray], options: options_lib.TaskOptions
) -> None:
  # Otherwise a client would be tested on examples that clients have trained on.
  dealt = np.concatenate(partition)
  if len(np.unique(dealt)) < len(dealt):
    raise ValueError(
      'num_examples must be so small that no class runs out where clients keep '
      f"test examples (split='client'), found {options.num_examples}."
    )
