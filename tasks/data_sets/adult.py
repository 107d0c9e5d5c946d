"""UCI Adult: does a person earn more than 50,000 dollars a year?

Census records (Becker and Kohavi, 1996), files `adult.data` and `adult.test`
pooled and balanced as in CFFL: all 11,687 records above 50,000 dollars and as
many random others. Inputs are float32 [23374, 108], one-hot categories and
then standardised numbers; class 1 is the higher income, and the positive one in
the rates of groups of people.
"""

import dataclasses
import functools
import os

import numpy as np

from tff_fair import streams
from tff_fair.own_data import encoded
from tff_fair.tasks import options as options_lib
from tff_fair.tasks import pooled
from tff_fair.tasks import rules
from tff_fair.tasks import sources
from tff_fair.tasks import task

_FILE_NAMES = ('adult.data', 'adult.test')
_ADDRESS = 'https://archive.ics.uci.edu/ml/machine-learning-databases/adult/'
_SHA256 = {
  'adult.data': (
    '5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d'
  ),
  'adult.test': (
    'a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05'
  ),
}
# A file that was cut between two lines looks whole but for these.
_NUM_RECORDS = {'adult.data': 32561, 'adult.test': 16281}


def build(options: options_lib.TaskOptions) -> task.Task:
  """Returns the task.

  The numbers are standardised with mean and deviation of the training records:
  all that are outside the server's test set, or, under the split 'client', the
  clients' train and holdout parts.
  """
  # Imports pandas.
  from tff_fair.own_data import sensitive
  from tff_fair.tasks import adult_records

  _check(options)
  parts = [_read(name, options.data_dir) for name in _FILE_NAMES]
  data = task.Examples(*map(np.concatenate, zip(*parts, strict=True)))
  data = _balanced(data, options.seed)
  names = sensitive.split_names(options.sensitive_columns)
  groups = tuple(adult_records.find_groups(data.x, name) for name in names)
  num_categorical = adult_records.NUM_CATEGORICAL_FEATURES
  if options.drop_sensitive:
    dropped = adult_records.feature_positions(names)
    data = data._replace(x=np.delete(data.x, dropped, axis=1))
    num_categorical -= len(dropped)
  built = pooled.build(DATA_SET.name, data=data, num_classes=2, options=options)
  built = _standardised(built, num_categorical)
  if not groups:
    return built
  positive, note = _choose_positive(options)
  return dataclasses.replace(
    built,
    class_names=adult_records.CLASSES,
    sensitive=groups,
    positive_class=positive,
    notes=(*built.notes, note),
  )


def _check(options: options_lib.TaskOptions) -> None:
  """Refuses groups of people that the records do not have."""
  # Imports pandas.
  from tff_fair.own_data import sensitive
  from tff_fair.tasks import adult_records

  names = sensitive.split_names(options.sensitive_columns)
  adult_records.check_sensitive(names)
  if names:
    _choose_positive(options)


def _choose_positive(
  options: options_lib.TaskOptions,
) -> tuple[int | None, str]:
  from tff_fair.own_data import sensitive
  from tff_fair.tasks import adult_records

  return sensitive.choose_positive(
    '--positive_label', options.positive_label, adult_records.CLASSES
  )


def _read(file_name: str, data_dir: str | os.PathLike | None) -> task.Examples:
  # Imports pandas.
  from tff_fair.tasks import adult_records

  path = sources.find_file(file_name, data_dir)
  if path is None:
    path = sources.fetch(
      file_name,
      functools.partial(_download, file_name),
      data_dir=data_dir,
      cache_dir=sources.KERAS_CACHE,
    )
  examples = adult_records.read(path)
  required, found = _NUM_RECORDS[file_name], len(examples.y)
  if found != required:
    raise sources.DataDamagedError(
      path, f'{required} records', f'{found} of them'
    )
  return examples


def _download(file_name: str) -> os.PathLike:
  file = sources.Download(_ADDRESS + file_name, _SHA256[file_name])
  return sources.download(file, f'{sources.KERAS_CACHE}/{file_name}')


def _balanced(data: task.Examples, seed: int) -> task.Examples:
  """Returns all records of class 1 and as many random ones of class 0."""
  above, others = (np.flatnonzero(data.y == label) for label in (1, 0))
  if not 0 < len(above) <= len(others):
    raise sources.DataDamagedError(
      ' and '.join(_FILE_NAMES),
      'records above 50,000 dollars and at least as many others',
      f'{len(above)} and {len(others)}',
    )
  rng = streams.generator(seed, streams.BALANCE)
  others = rng.choice(others, len(above), replace=False)
  chosen = np.sort(np.concatenate([above, others]))
  return task.Examples(data.x[chosen], data.y[chosen])


def _standardised(built: task.Task, first: int) -> task.Task:
  """Returns the task with standardised numbers; constant ones become 0.

  `first` is the position of the first number.
  """
  x, y = built.data
  numbers = encoded.standardise(
    x[:, first:].astype(np.float64), built.training_positions()
  )
  x = np.hstack([x[:, :first], numbers])
  return dataclasses.replace(built, data=task.Examples(x, y))


DATA_SET = rules.DataSet(
  name='adult',
  build=build,
  files=_FILE_NAMES,
  inputs='numbers',
  num_clients=5,
  partition='power_law',
  # A covariate shift would see the numbers before they are standardised.
  partitions=tuple(
    name for name in rules.POOL_PARTITIONS if name != 'covariate_shift'
  ),
  dirichlet_alpha=0.5,
  model='mlp_cffl_adult',
  options=('sensitive_columns', 'drop_sensitive', 'positive_label'),
  check_data=_check,
)
