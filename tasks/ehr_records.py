"""Reads health records and packs each into one array.

Two files: `patients.csv` with the columns `patient_id`, `state`, `sex` and
`postal_code`, one row a patient; `events.csv` with `patient_id`, `age` (years),
`code` and `value` (a number or empty), one row an event. Rows may be in any
order; other columns are ignored. Codes are compared without dots and case.

The label is 1 if a code of pancreatic cancer occurs (FedAKD, appendix H). To
prevent leakage, all events of that patient at or after the age of the first
such code are removed.
"""

from collections.abc import Sequence
import os
from typing import NamedTuple

import numpy as np
import pandas as pd

from tff_fair.tasks import sources

# Malignant neoplasm of pancreas: ICD-10 C25, C25.0-4, C25.7-9 and ICD-9 157,
# 157.0-4, 157.8, 157.9.
DIAGNOSES = (
  'C25',
  *(f'C25{digit}' for digit in '01234789'),
  '157',
  *(f'157{digit}' for digit in '0123489'),
)
# Sexes that begin with neither F nor M have the id 0.
SEXES = ('', 'F', 'M')
NUM_POSTAL_BUCKETS = 1000
NUM_FEATURES = 4

_PADDING, _UNKNOWN = 0, 1
_NUM_RESERVED_IDS = 2


class Records(NamedTuple):
  """Records, sorted by state and patient.

  Attributes:
    states: The states with records, in alphabetical order.
    dropped_states: The states of patients without records.
    owners: int64 [n], the state of each record as its place in `states`.
    sexes: int64 [n], places in `SEXES`.
    postal_buckets: int64 [n], 0..NUM_POSTAL_BUCKETS-1.
    labels: int32 [n], 1 where pancreatic cancer was diagnosed, else 0.
    events: `record` (int64), `code` (str categories), `age` and `value`
      (float64; NaN is missing), sorted by record and age.
  """

  states: tuple[str, ...]
  dropped_states: tuple[str, ...]
  owners: np.ndarray
  sexes: np.ndarray
  postal_buckets: np.ndarray
  labels: np.ndarray
  events: pd.DataFrame


class Packed(NamedTuple):
  """The result of `pack`.

  Attributes:
    x: float32 [n, 1 + max_events, 4], the records.
    vocabulary: The codes with the ids 2, 3, ...
  """

  x: np.ndarray
  vocabulary: tuple[str, ...]

  @property
  def num_ids(self) -> int:
    """Number of code ids: the vocabulary, padding and unknown."""
    return _NUM_RESERVED_IDS + len(self.vocabulary)


def read(
  patients_path: str | os.PathLike, events_path: str | os.PathLike
) -> tuple[pd.DataFrame, pd.DataFrame]:
  """Reads both files.

  Returns:
    The patients, all columns str, and the events: `patient_id` and `code` are
    str categories, `age` and `value` float64, where NaN is a missing value.
  """
  patients = _read_table(
    patients_path,
    {'patient_id': str, 'state': str, 'sex': str, 'postal_code': str},
  )
  _check_filled(patients_path, patients, ('patient_id', 'state'))
  repeated = patients['patient_id'].duplicated()
  if repeated.any():
    raise sources.DataDamagedError(
      patients_path,
      'each patient once',
      f'{patients["patient_id"][repeated].iloc[0]!r} again',
    )
  events = _read_table(
    events_path,
    {'patient_id': 'category', 'age': None, 'code': 'category', 'value': None},
  )
  _check_filled(events_path, events, ('patient_id', 'age', 'code'))
  for name in ('age', 'value'):
    events[name] = _numbers(events_path, events[name])
  names = events['patient_id'].cat.categories
  unknown = names[~names.isin(patients['patient_id'])]
  if len(unknown):
    raise sources.DataDamagedError(
      events_path,
      f"events of the patients in '{patients_path}'",
      f'the unknown patient {unknown[0]!r}',
    )
  return patients, events


def label(patients: pd.DataFrame, events: pd.DataFrame) -> Records:
  """Labels patients and removes the events that reveal the label.

  Records without remaining events are dropped, and so are states without
  records.

  Returns:
    The records; they do not depend on the order of the rows.
  """
  patients = patients.assign(state=patients['state'].str.strip().str.upper())
  patients = patients.sort_values(['state', 'patient_id'], ignore_index=True)
  record = _positions(events['patient_id'], patients['patient_id'])
  events = pd.DataFrame(
    {
      'record': record,
      'code': _normalised(events['code']),
      'age': events['age'].to_numpy(),
      'value': events['value'].to_numpy(),
    }
  )
  diagnosed = _first_diagnosis(events, len(patients))
  events = events[events['age'].to_numpy() < diagnosed[record]]
  kept = np.bincount(events['record'], minlength=len(patients)) > 0
  events = events.assign(record=(np.cumsum(kept) - 1)[events['record']])
  # By code and value as well, so that the order of the rows has no effect.
  events = events.sort_values(
    ['record', 'age', 'code', 'value'], ignore_index=True
  )
  records = patients[kept]
  states = sorted(records['state'].unique())
  return Records(
    states=tuple(states),
    dropped_states=tuple(sorted(set(patients['state']) - set(states))),
    owners=pd.Index(states).get_indexer(records['state']).astype(np.int64),
    sexes=_sex_ids(records['sex']),
    postal_buckets=_postal_buckets(records['postal_code']),
    labels=np.isfinite(diagnosed)[kept].astype(np.int32),
    events=events,
  )


def pack(
  records: Records, *, training: np.ndarray, max_events: int = 128
) -> Packed:
  """Packs each record into one array, as the model `gru_ehr` takes it.

  Row 0 is (sex id, postal bucket, number of events, 0). The events follow in
  order of time as (code id, age, value, 1 if the value is missing), the latest
  `max_events` of them; then zeros. Code ids are 0 for padding, 1 for a code
  outside the vocabulary, and 2 and up for the vocabulary. The vocabulary, and
  the mean and deviation that standardise ages and present values, are those of
  the training records' events that are kept. A missing value is 0, and so are
  all numbers of a kind that is constant in the training records.

  Args:
    records: The records.
    training: int64 [m], the positions of the training records.
    max_events: Maximum number of events of a record, at least 1.

  Returns:
    The packed records and their vocabulary.
  """
  num_records = len(records.labels)
  events, slots = _latest(records.events, num_records, max_events)
  owner = events['record'].to_numpy()
  is_training = np.isin(np.arange(num_records), training)[owner]
  vocabulary = sorted(events['code'][is_training].unique())
  missing = events['value'].isna().to_numpy()
  value = _standardised(events['value'].to_numpy(), is_training & ~missing)
  x = np.zeros((num_records, 1 + max_events, NUM_FEATURES), np.float32)
  x[:, 0, 0] = records.sexes
  x[:, 0, 1] = records.postal_buckets
  x[:, 0, 2] = np.bincount(owner, minlength=num_records)
  x[owner, slots, 0] = _code_ids(events['code'], vocabulary)
  x[owner, slots, 1] = _standardised(events['age'].to_numpy(), is_training)
  x[owner, slots, 2] = np.where(missing, 0, value)
  x[owner, slots, 3] = missing
  return Packed(x, tuple(vocabulary))


def _read_table(
  path: str | os.PathLike, columns: dict[str, str | type | None]
) -> pd.DataFrame:
  """Reads columns with their types; empty fields are NaN."""
  with sources.reading(path, f'a table of {", ".join(columns)}'):
    found = pd.read_csv(path, nrows=0).columns
    missing = [name for name in columns if name not in found]
    if missing:
      raise sources.DataDamagedError(
        path,
        f'the columns {", ".join(columns)}',
        f'none that is called {missing[0]!r}',
      )
    return pd.read_csv(
      path,
      usecols=list(columns),
      index_col=False,
      dtype={name: kind for name, kind in columns.items() if kind},
      keep_default_na=False,
      na_values=[''],
      low_memory=False,
    )[list(columns)]


def _check_filled(
  path: str | os.PathLike, table: pd.DataFrame, names: Sequence[str]
) -> None:
  for name in names:
    empty = np.flatnonzero(table[name].isna())
    if empty.size:
      raise sources.DataDamagedError(
        path, f'the {name} in each row', f'none in row {empty[0] + 1}'
      )


def _numbers(path: str | os.PathLike, column: pd.Series) -> pd.Series:
  """Returns float64 [n]; empty fields stay NaN."""
  numbers = column
  if column.dtype not in (np.int64, np.float64):
    numbers = pd.to_numeric(column.astype(str), errors='coerce')
  numbers = numbers.astype(np.float64)
  bad = ~(numbers.abs() <= np.finfo(np.float32).max) & column.notna()
  if bad.any():
    raise sources.DataDamagedError(
      path,
      f'numbers in the column {column.name!r}',
      repr(column[bad].iloc[0]),
    )
  return numbers


def _positions(entries: pd.Series, values: pd.Series) -> np.ndarray:
  """Returns int64 [n], the place of each entry in `values`."""
  entries = entries.astype('category').cat
  places = pd.Index(values).get_indexer(entries.categories)
  return places[entries.codes].astype(np.int64)


def _normalised(codes: pd.Series) -> pd.Categorical:
  """Returns the codes in capitals and without dots."""
  codes = codes.astype('category').cat
  names = codes.categories.str.strip().str.upper()
  names = names.str.replace('.', '', regex=False)
  places, categories = pd.factorize(names, sort=True)
  return pd.Categorical.from_codes(places[codes.codes], categories)


def _first_diagnosis(events: pd.DataFrame, num_patients: int) -> np.ndarray:
  """Returns float64 [n], the age at the first diagnosis, else infinity."""
  diagnoses = events[events['code'].isin(DIAGNOSES)]
  ages = np.full(num_patients, np.inf)
  np.minimum.at(
    ages, diagnoses['record'].to_numpy(), diagnoses['age'].to_numpy()
  )
  return ages


def _sex_ids(sexes: pd.Series) -> np.ndarray:
  initials = sexes.fillna('').str.strip().str.upper().str[:1]
  return np.maximum(pd.Index(SEXES).get_indexer(initials), 0).astype(np.int64)


def _postal_buckets(postal_codes: pd.Series) -> np.ndarray:
  codes = postal_codes.fillna('').str.strip().to_numpy(object)
  # Unlike Python's, this hash is the same in every process.
  hashed = pd.util.hash_array(codes) % NUM_POSTAL_BUCKETS
  return hashed.astype(np.int64)


def _latest(
  events: pd.DataFrame, num_records: int, max_events: int
) -> tuple[pd.DataFrame, np.ndarray]:
  """Returns the latest events of each record, and their rows in its array."""
  owner = events['record'].to_numpy()
  counts = np.bincount(owner, minlength=num_records)
  from_end = np.cumsum(counts)[owner] - np.arange(len(owner))
  slots = np.minimum(counts, max_events)[owner] - from_end + 1
  kept = slots >= 1
  return events[kept], slots[kept]


def _code_ids(codes: pd.Series, vocabulary: Sequence[str]) -> np.ndarray:
  places = _positions(codes, pd.Series(vocabulary, dtype=object))
  return np.where(places < 0, _UNKNOWN, places + _NUM_RESERVED_IDS)


def _standardised(numbers: np.ndarray, training: np.ndarray) -> np.ndarray:
  """Returns the numbers with mean 0, deviation 1 where `training` is true."""
  chosen = numbers[training]
  if not chosen.size or not np.ptp(chosen):
    return np.zeros_like(numbers)
  return (numbers - chosen.mean()) / chosen.std()
