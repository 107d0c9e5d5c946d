"""Health records: will a patient be diagnosed with pancreatic cancer?

FedAKD's experiment (appendix H), a client for each state of the USA. Its claims
are not public: the task reads files of the format of `tasks.ehr_records`, and
without them generates synthetic records (`tasks.ehr_synthetic`). Inputs are
float32 [n, 1 + max_events, 4], packed as `ehr_records.pack` describes; class 1
is the diagnosis.
"""

import functools
import os
import pathlib
from typing import TYPE_CHECKING
import warnings

import numpy as np

from tff_fair import splits
from tff_fair import streams
from tff_fair.tasks import model_builders
from tff_fair.tasks import options as options_lib
from tff_fair.tasks import rules
from tff_fair.tasks import sources
from tff_fair.tasks import task

if TYPE_CHECKING:
  from tff_fair.tasks import ehr_records

_FILE_NAMES = ('patients.csv', 'events.csv')
_NUM_CLASSES = 2
_DEFAULT_MAX_EVENTS = 128


def is_synthetic(data_dir: str | os.PathLike | None = None) -> bool:
  """Returns whether the records are generated because there are no files.

  Args:
    data_dir: The data folder, which may hold `patients.csv` and `events.csv`;
      None for the environment variable TFF_FAIR_DATA_DIR.
  """
  return _find_files(data_dir) is None


def build(options: options_lib.TaskOptions) -> task.Task:
  """Returns the task; a client is a state, in alphabetical order.

  A tenth (`holdout_fraction`) of all records, drawn from all states together,
  are the holdout parts; pooled they are the server's validation set. Of the
  rest of a state, two ninths (`test_fraction / (1 - holdout_fraction)`) test,
  and the others, at least one record, train.

  Args:
    options: Options with the defaults filled in; `ehr_scale` is how many
      records are generated without files.

  Returns:
    The task. States without records are not clients; a warning names them.
  """
  # Takes seconds to import.
  from tff_fair.tasks import ehr_records

  records = _records(options)
  _check_states(records, options.num_clients)
  parts = split(
    records.owners,
    seed=options.seed,
    test_fraction=options.test_fraction,
    holdout_fraction=options.holdout_fraction,
  )
  packed = ehr_records.pack(
    records,
    training=np.concatenate([part.train for part in parts]),
    max_events=options.max_events or _DEFAULT_MAX_EVENTS,
  )
  return task.Task(
    name=DATA_SET.name,
    num_classes=_NUM_CLASSES,
    model_fn=functools.partial(
      model_builders.get(options.model),
      packed.x.shape[1:],
      _NUM_CLASSES,
      vocabulary_size=packed.num_ids,
      num_sexes=len(ehr_records.SEXES),
      num_postal_buckets=ehr_records.NUM_POSTAL_BUCKETS,
    ),
    data=task.Examples(packed.x, records.labels),
    splits=parts,
  )


def split(
  owners: np.ndarray,
  *,
  seed: int,
  test_fraction: float = 0.2,
  holdout_fraction: float = 0.1,
) -> tuple[splits.Split, ...]:
  """Splits the records of all states.

  With `round(x) = floor(x + 1/2)`: `round(holdout_fraction * n)` of all n
  records are held out, `round(test_fraction / (1 - holdout_fraction) * m)` of
  the m others of a state test, and the rest trains, at least one of each state.

  Args:
    owners: int64 [n], the state of each record, 0..K-1; each has a record.
    seed: Seed, at least 0.
    test_fraction: Share, in [0, 1), of all records that test.
    holdout_fraction: Share, in [0, 1), of all records that are held out.

  Returns:
    One `Split` for each state, disjoint.
  """
  if test_fraction + holdout_fraction >= 1:
    raise ValueError(
      'test_fraction + holdout_fraction must be below 1, found '
      f'{test_fraction} + {holdout_fraction}.'
    )
  rng = streams.generator(seed, streams.EHR_SPLIT)
  shuffled = rng.permutation(len(owners))
  # The last record of each state is excluded from the draw: it trains.
  _, from_end = np.unique(owners[shuffled[::-1]], return_index=True)
  drawable = np.delete(shuffled, len(owners) - 1 - from_end)
  _, num_held_out, _ = splits.split_sizes(
    len(owners), test_fraction=0.0, holdout_fraction=holdout_fraction
  )
  is_held_out = np.isin(np.arange(len(owners)), drawable[:num_held_out])
  parts = []
  for state in range(owners.max() + 1):
    mine = shuffled[owners[shuffled] == state]
    rest = mine[~is_held_out[mine]]
    *_, num_tests = splits.split_sizes(
      len(rest),
      test_fraction=test_fraction / (1 - holdout_fraction),
      holdout_fraction=0.0,
    )
    parts.append((rest[num_tests:], mine[is_held_out[mine]], rest[:num_tests]))
  return tuple(splits.Split(*map(np.sort, part)) for part in parts)


def _find_files(
  data_dir: str | os.PathLike | None,
) -> list[pathlib.Path] | None:
  """Returns the paths of both files, or None if there is neither."""
  paths = [sources.find_file(name, data_dir) for name in _FILE_NAMES]
  found = [path for path in paths if path is not None]
  if len(found) == 1:
    raise sources.DataNotFoundError(
      f"The data files '{_FILE_NAMES[0]}' and '{_FILE_NAMES[1]}' must lie in "
      f"one data folder, found only '{found[0]}'."
    )
  return found or None


def _records(options: options_lib.TaskOptions) -> 'ehr_records.Records':
  from tff_fair.tasks import ehr_records
  from tff_fair.tasks import ehr_synthetic

  paths = _find_files(options.data_dir)
  if paths is None:
    scale = options.ehr_scale or ehr_synthetic.DEFAULT_SCALE
    tables = ehr_synthetic.generate(scale, options.seed)
  elif options.ehr_scale is not None:
    raise ValueError(
      'ehr_scale must not be set where records are read and not generated, '
      f"found {options.ehr_scale} with the file '{paths[0]}'."
    )
  else:
    tables = ehr_records.read(*paths)
  return ehr_records.label(*tables)


def _check_states(
  records: 'ehr_records.Records', num_clients: int | None
) -> None:
  num_states = len(records.states)
  if num_states < 2:
    raise sources.DataDamagedError(
      ' and '.join(_FILE_NAMES),
      'records of at least two states with events before a diagnosis',
      f'those of {num_states}',
    )
  if num_clients not in (None, num_states):
    raise ValueError(
      'num_clients must be the number of states with records, '
      f'{num_states}, found {num_clients}.'
    )
  if records.dropped_states:
    warnings.warn(
      f'{len(records.dropped_states)} of '
      f'{num_states + len(records.dropped_states)} states have no record with '
      'an event before a diagnosis and are not clients: '
      f'{", ".join(records.dropped_states)}.',
      stacklevel=2,
    )


DATA_SET = rules.DataSet(
  name='ehr',
  build=build,
  files=_FILE_NAMES,
  inputs='records',
  partition='state',
  partitions=('state',),
  model='gru_ehr',
  clients='a state',
  options=('ehr_scale', 'max_events'),
  is_synthetic=is_synthetic,
)
