"""A table of one's own: a csv or parquet file with a row for each example.

`--data_file` names it, `--client_column` and `--label_column` its columns.
Inputs are float32 [n, d]: one-hot categories, and numbers standardised with
mean and deviation of the training parts.
"""

import os
from typing import TYPE_CHECKING

from tff_fair.tasks import options as options_lib
from tff_fair.tasks import own_data
from tff_fair.tasks import rules

if TYPE_CHECKING:
  from tff_fair.own_data import encoded


def _encode(options: options_lib.TaskOptions) -> 'encoded.Encoded':
  # Imports pandas.
  from tff_fair.own_data import sensitive
  from tff_fair.own_data import table
  from tff_fair.tasks import table_file

  _check_columns(options)
  features = options.feature_columns
  drop = options.drop_columns
  keys = [options.client_column, options.label_column]
  read = table_file.read(options.data_file, [key for key in keys if key])
  groups = sensitive.split_names(options.sensitive_columns)
  table_file.check_spellings(options.data_file, read, groups)
  return table.encode(
    read,
    client=options.client_column,
    label=options.label_column,
    features=None if features is None else sensitive.split_names(features),
    drop=() if drop is None else sensitive.split_names(drop),
    missing_values=options.missing_values,
    sensitive=groups,
    drop_sensitive=options.drop_sensitive,
    positive_label=options.positive_label,
    called=table.Arguments(
      client='--client_column',
      label='--label_column',
      features='--feature_columns',
      drop='--drop_columns={}',
      missing_values='--missing_values={}',
      sensitive='--sensitive_columns',
      drop_sensitive='--drop_sensitive',
      positive_label='--positive_label',
      table=f"the file '{os.path.basename(options.data_file)}'",
      missing_texts=table_file.missing_texts(options.data_file, read),
    ),
  )


def _check_columns(options: options_lib.TaskOptions) -> None:
  own = options.partition == rules.OWN_PARTITION
  if own and options.client_column is None:
    raise ValueError(
      '--client_column must name the column of the clients, found none;'
      ' --partition=equal --num_clients=10 deals the rows to clients at random.'
    )


DATA_SET = own_data.data_set(
  'table',
  _encode,
  endings=('.csv', '.csv.gz', '.parquet'),
  options=(
    'data_file',
    'client_column',
    'label_column',
    'feature_columns',
    'drop_columns',
    'missing_values',
    'sensitive_columns',
    'drop_sensitive',
    'positive_label',
  ),
  required=('data_file', 'label_column'),
  inputs='numbers',
  # A covariate shift would see the numbers before they are standardised.
  partitions=(
    rules.OWN_PARTITION,
    *(name for name in rules.POOL_PARTITIONS if name != 'covariate_shift'),
  ),
)
