"""The two files of a comparison: their columns, and how damaged ones fail.

The columns of compare.csv, a row a run:

method, seed, trial       the run; trials count from 0
chosen                    whether the row is a result; the other trials have
                          no scores on test data
status                    finished or diverged
learning_rate, parameters what the trial has set
rounds                    rounds of the run
holdout_accuracy          mean over the clients' holdout parts
client_*, global_accuracy scores on test data after the last round; these, cf
                          and better_off are of all clients that have some, see
                          `client_scores` for those that pages leave out
cf                        CF coefficient against Standalone of the same seed
better_off                share of the clients above Standalone's accuracy
target, rounds_to_target  an accuracy, and the first evaluation that has it
bytes_down, bytes_up      of a round, all clients together
seconds_per_round         the median
client_accuracies         JSON, a number or null for each client
curve                     JSON: rounds, mean and worst10 of the evaluations
command                   the command of `launchers.train`
"""

from collections.abc import Mapping
import json
import math
import os
import pathlib
from typing import Any

import numpy as np
import pandas as pd

SCORES = (
  'client_accuracy_mean',
  'client_accuracy_worst10',
  'client_accuracy_min',
  'client_accuracy_variance',
  'client_accuracy_jain',
  'client_f1_mean',
)
"""Columns of scores that a run writes itself."""

_MEASURES = (
  'holdout_accuracy',
  *SCORES,
  'global_accuracy',
  'cf',
  'better_off',
  'target',
  'rounds_to_target',
  'bytes_down',
  'bytes_up',
  'seconds_per_round',
)
COLUMNS = (
  'method',
  'seed',
  'trial',
  'chosen',
  'status',
  'learning_rate',
  'parameters',
  'rounds',
  *_MEASURES,
  'client_accuracies',
  'curve',
  'command',
)
"""All columns, in the order of the file."""

_CURVE = ('rounds', 'mean', 'worst10')
# Keys of compare.json, with the type of each.
_FACTS = {
  'version': str,
  'task': str,
  'data': str,
  'num_clients': int,
  'cohort_size': int,
  'client_names': list,
  'rounds': int,
  'seeds': list,
  'tune': int,
  'baseline': str,
  'target_rule': str,
  'options': dict,
  'notes': list,
  'excluded': dict,
}


class ComparisonError(ValueError):
  """A file is not one of a comparison; the message is one sentence."""


def read(
  csv_path: str | os.PathLike[str], json_path: str | os.PathLike[str]
) -> tuple[pd.DataFrame, dict[str, Any]]:
  """Reads a comparison.

  Args:
    csv_path: compare.csv.
    json_path: compare.json.

  Returns:
    The table, in which `chosen` is a bool, an empty number is NaN,
    `client_accuracies` is a tuple of floats (NaN for a client without test
    data) and `curve` is a dictionary of lists, both None where they are empty;
    and the facts of compare.json.

  Raises:
    ComparisonError: If a file is missing or damaged, or they do not belong
      together.
  """
  facts = _read_facts(pathlib.Path(json_path))
  frame = _read_frame(pathlib.Path(csv_path))
  _check_together(frame, facts, pathlib.Path(csv_path))
  return frame, facts


def results(frame: pd.DataFrame) -> pd.DataFrame:
  """Returns the rows that are results: finished, with the chosen values."""
  return frame[frame['chosen'] & (frame['status'] == 'finished')]


def _read_facts(path) -> dict[str, Any]:
  try:
    facts = json.loads(_text(path))
  except json.JSONDecodeError as error:
    raise ComparisonError(f'{path} must be JSON, found: {error}.') from error
  if not isinstance(facts, dict):
    raise ComparisonError(
      f'{path} must be a JSON object, found {type(facts).__name__}.'
    )
  for name, kind in _FACTS.items():
    if not isinstance(facts.get(name), kind):
      raise ComparisonError(
        f'{path}: {name} must be of type {kind.__name__}, found'
        f' {facts.get(name, "nothing")!r}.'
      )
  if not facts['seeds']:
    raise ComparisonError(f'{path}: seeds must not be empty.')
  _check_sizes(facts, path)
  return facts


def _check_sizes(facts, path) -> None:
  """Files of older versions do not have the sizes of test parts."""
  shape = len(facts['seeds']), facts['num_clients']
  found = facts.get('test_examples', np.zeros(shape, int).tolist())
  try:
    sizes = np.array(found)
  except ValueError:  # Rows of different lengths.
    sizes = np.empty(0)
  if sizes.shape != shape or sizes.dtype.kind != 'i' or (sizes < 0).any():
    raise ComparisonError(
      f'{path}: test_examples must have a list of {shape[1]} sizes for each of'
      f' {shape[0]} seeds, found {str(found)[:40]!r}.'
    )


def _text(path) -> str:
  try:
    return path.read_text(encoding='utf-8')
  except (OSError, UnicodeDecodeError) as error:
    reason = getattr(error, 'strerror', None) or 'other bytes than UTF-8'
    raise ComparisonError(
      f'{path} must be a file of launchers.compare, found: {reason}.'
    ) from error


def _read_frame(path) -> pd.DataFrame:
  _text(path)  # Its errors are those of the other file.
  try:
    # Without `index_col`, cells too many in a row would become an index.
    cells = pd.read_csv(path, dtype=str, keep_default_na=False, index_col=False)
  except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
    raise ComparisonError(
      f'{path} must be a table of comma-separated values, found: {error}.'
    ) from error
  missing = [name for name in COLUMNS if name not in cells]
  if missing:
    raise ComparisonError(
      f'{path} must have the column {missing[0]}, found none.'
    )
  if cells.empty:
    raise ComparisonError(f'{path} must have a row for each run, found none.')
  return pd.DataFrame(
    {name: _column(path, name, cells[name]) for name in cells}
  )


def _column(path, name, cells) -> pd.Series:
  parse, dtype = _PARSERS.get(name, (str, object))
  values = []
  for i, cell in enumerate(cells):
    try:
      values.append(parse(cell))
    except (ValueError, TypeError, KeyError) as error:
      raise ComparisonError(
        f'{path}: {name} in row {i + 1} cannot be read, found {cell[:40]!r}.'
      ) from error
  return pd.Series(values, dtype=dtype)


def _number(cell) -> float:
  value = float(cell or 'nan')
  if math.isinf(value):
    raise ValueError
  return value


def _accuracies(cell) -> tuple[float, ...] | None:
  values = json.loads(cell or 'null')
  if values is None:
    return None
  return tuple(math.nan if v is None else _number(str(v)) for v in values)


def _curve(cell) -> Mapping[str, list[float]] | None:
  curve = json.loads(cell or 'null')
  if curve is None:
    return None
  columns = [np.asarray(curve[name], float) for name in _CURVE]
  if len({column.shape for column in columns}) > 1 or columns[0].ndim != 1:
    raise ValueError
  return curve


# Column -> how a cell is read, and the type of the column; others are texts.
_PARSERS = {
  'status': ({n: n for n in ('finished', 'diverged')}.__getitem__, object),
  'chosen': ({'True': True, 'False': False}.__getitem__, bool),
  'client_accuracies': (_accuracies, object),
  'curve': (_curve, object),
  **dict.fromkeys(('seed', 'trial'), (int, int)),
  **dict.fromkeys(('learning_rate', 'rounds', *_MEASURES), (_number, float)),
}


def _check_together(frame, facts, path) -> None:
  baseline, found = facts['baseline'], results(frame)
  if baseline not in set(frame['method']):
    raise ComparisonError(
      f'{path} must have rows of the baseline {baseline}, found none.'
    )
  twice = found[found.duplicated(['method', 'seed'])]
  if len(twice):
    row = twice.iloc[0]
    raise ComparisonError(
      f'{path} must have one result of {row["method"]} with seed'
      f' {row["seed"]}, found more.'
    )
  strange = set(found['seed']) - set(facts['seeds'])
  if strange:
    raise ComparisonError(
      f'{path} must have the seeds {facts["seeds"]} of its facts, found'
      f' {min(strange)}.'
    )
  for method, scores in zip(
    found['method'], found['client_accuracies'], strict=True
  ):
    if scores is not None and len(scores) != facts['num_clients']:
      raise ComparisonError(
        f'{path} must have the accuracies of {facts["num_clients"]} clients,'
        f' found {len(scores)} in a row of {method}.'
      )
