"""Which options of a task have no effect with which others."""

from collections.abc import Mapping
from typing import Any

import tasks

_SHIFT = ('shift_sizes', 'shift_method', 'shift', 'pca_dim', 'shift_weights')
_RULES: tuple[tuple[str, dict[str, Any]], ...] = (
  *(
    (name, {'partition': partition})
    for name in (
      'dirichlet_alpha',
      'dirichlet_remainder',
      'balance_cap',
      'min_samples',
    )
    for partition in tasks.PARTITION_NAMES
    if partition != 'dirichlet'
  ),
  ('num_examples', {'partition': 'dirichlet'}),
  *(
    (name, {'partition': partition})
    for name in _SHIFT
    for partition in tasks.PARTITION_NAMES
    if partition != 'covariate_shift'
  ),
  *(
    (name, {'shift_method': 'pc1_sort'})
    for name in ('shift', 'pca_dim', 'shift_weights')
  ),
  ('num_examples', {'partition': 'writer'}),
  ('num_examples', {'partition': 'state'}),
  ('data_fraction', {'task': 'femnist'}),
  ('data_fraction', {'task': 'ehr'}),
  *(
    (name, {'task': task})
    for name in ('dirichlet_remainder', *_SHIFT)
    for task in ('femnist', 'ehr')
  ),
  *(
    (name, {'task': 'ehr'})
    for name in (
      'dirichlet_alpha',
      'balance_cap',
      'min_samples',
      'num_examples',
    )
  ),
  *(
    (name, {'task': task})
    for name in ('ehr_scale', 'max_events')
    for task in tasks.TASK_NAMES
    if task != 'ehr'
  ),
  ('validation_fraction', {'split': 'client'}),
  ('holdout_fraction', {'split': 'server'}),
  # These data sets have a test file of their own.
  *(
    ('test_fraction', {'split': 'server', 'task': task})
    for task in ('mnist', 'fmnist', 'cifar10', 'cifar100')
  ),
)


def unused_options(
  task_name: str, chosen: Mapping[str, Any]
) -> dict[str, Mapping[str, Any]]:
  """The options of a task that have no effect.

  Args:
    task_name: The task.
    chosen: The values of its options.

  Returns:
    Option -> the values of others that leave it without effect.
  """
  values = {**chosen, 'task': task_name}
  return {
    name: others
    for name, others in _RULES
    if all(values.get(n) == value for n, value in others.items())
  }
