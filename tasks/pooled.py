"""Builds a task from one pool of examples and a partition of it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tasks import options as options_lib
from tasks import partitions
from tasks import splits
from tasks import task

if TYPE_CHECKING:
  import tensorflow as tf


def build(
  name: str,
  *,
  data: task.Examples,
  num_classes: int,
  model_fn: 'Callable[[], tf.keras.Model]',
  options: options_lib.TaskOptions,
) -> task.Task:
  """Divides a pool of examples over clients and splits each client.

  Args:
    name: Name of the task.
    data: The pool.
    num_classes: Number of classes.
    model_fn: Builds a fresh Keras model.
    options: Options with the defaults of the task filled in.

  Returns:
    The task.

  Raises:
    ValueError: If the pool cannot be divided as the options say.
  """
  return task.Task(
    name=name,
    num_classes=num_classes,
    model_fn=model_fn,
    data=data,
    splits=splits.split_clients(
      _partition(name, data.y, options),
      seed=options.seed,
      test_fraction=options.test_fraction,
      holdout_fraction=options.holdout_fraction,
    ),
  )


def _partition(
  name: str, labels: np.ndarray, options: options_lib.TaskOptions
) -> list[np.ndarray]:
  if options.partition == 'equal':
    return partitions.equal(len(labels), options.num_clients, seed=options.seed)
  if options.partition == 'dirichlet':
    return partitions.dirichlet(
      labels,
      options.num_clients,
      options.dirichlet_alpha,
      seed=options.seed,
      min_samples=options.min_samples,
    )
  raise ValueError(
    f"The task {name!r} must have the partition 'dirichlet' or 'equal', "
    f'found {options.partition!r}.'
  )
