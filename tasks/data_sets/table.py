"""A table of one's own: a csv or parquet file with a row for each example.

`--data_file` names it, `--client_column` and `--label_column` its columns.
Inputs are float32 [n, d]: one-hot categories, and numbers standardised with
mean and deviation of the training parts.
"""

import dataclasses
import functools
import os
from typing import TYPE_CHECKING

from tff_fair.tasks import options as options_lib
from tff_fair.tasks import rules
from tff_fair.tasks import sources
from tff_fair.tasks import task

if TYPE_CHECKING:
  from tff_fair.own_data import encoded


def build(options: options_lib.TaskOptions) -> task.Task:
  """Returns the task; clients are in the order of their names.

  Args:
    options: Options with the defaults filled in; `num_clients` takes the first
      clients.

  Raises:
    DataNotFoundError: If there is no such file.
    DataDamagedError: If the file is no table.
    ValueError: If the table is not fit for classification, or does not fit the
      options.
  """
  # Takes a second to import.
  from tff_fair.tasks import own_data

  return own_data.build(DATA_SET, _encode(options), options)


def check(options: options_lib.TaskOptions) -> None:
  """Checks the file and the options; see `build`.

  Args:
    options: Options with the defaults filled in.
  """
  from tff_fair.tasks import own_data

  own_data.check(_encode(options), options)


def _encode(options: options_lib.TaskOptions) -> 'encoded.Encoded':
  from tff_fair.tasks import table_file

  path = sources.check_file(options.data_file, table_file.ENDINGS)
  _check_columns(options)
  relevant = dataclasses.replace(
    options_lib.TaskOptions(),
    data_file=path,
    client_column=options.client_column,
    label_column=options.label_column,
    feature_columns=options.feature_columns,
    missing_values=options.missing_values,
  )
  found = os.stat(path)
  return _encode_once(relevant, found.st_mtime_ns, found.st_size)


# A launcher checks the table before it imports TensorFlow, and then builds the
# task of it.
@functools.lru_cache(maxsize=1)
def _encode_once(
  options: options_lib.TaskOptions, *version: int
) -> 'encoded.Encoded':
  from tff_fair.own_data import table
  from tff_fair.tasks import table_file

  del version  # Only for the cache.
  features = options.feature_columns
  return table.encode(
    table_file.read(options.data_file),
    client=options.client_column,
    label=options.label_column,
    features=None if features is None else _split(features),
    missing=options.missing_values,
    called=table.Arguments(
      client='--client_column',
      label='--label_column',
      features='--feature_columns',
      missing='--missing_values={}',
      table=f"the file '{os.path.basename(options.data_file)}'",
    ),
  )


def _split(names: str) -> list[str]:
  return [name.strip() for name in names.split(',') if name.strip()]


def _check_columns(options: options_lib.TaskOptions) -> None:
  own = options.partition == rules.OWN_PARTITION
  if own and options.client_column is None:
    raise ValueError(
      '--client_column must name the column of the clients, found none;'
      ' --partition=equal --num_clients=10 deals the rows to clients at random.'
    )


DATA_SET = rules.DataSet(
  name='table',
  build=build,
  check_data=check,
  inputs='numbers',
  partition=rules.OWN_PARTITION,
  # A covariate shift would see the numbers before they are standardised.
  partitions=(
    rules.OWN_PARTITION,
    *(name for name in rules.POOL_PARTITIONS if name != 'covariate_shift'),
  ),
  dirichlet_alpha=0.5,
  model='mlp_fedaboost',
  options=(
    'data_file',
    'client_column',
    'label_column',
    'feature_columns',
    'missing_values',
  ),
  required=('data_file', 'label_column'),
)
