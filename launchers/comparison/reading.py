"""The two files of a comparison: compare.csv, a row a run, and compare.json.

The columns of compare.csv:

method, seed, trial       the run; trials count from 0
stage                     screening (a short trial), final (a trial in full) or
                          score, see `tuning`; a trial without a final was
                          dropped
widened                   whether the trial's rate is beyond the planned range
chosen                    whether the row is a result, that is a score; trials
                          have no scores on test data
status                    finished or diverged
learning_rate, parameters what the trial has set
rounds                    rounds of the run
holdout_accuracy          mean over the clients' holdout parts
client_*, global_accuracy scores on test data after the last round; these, and
                          what follows up to harmed_share, are of all clients
                          that have some, see `client_scores` for those that
                          pages leave out
unseen_accuracy_*         the global model on clients that took no part in the
                          training, with --unseen_fraction
fine_tuned_*              the global model after each client has trained it
                          further, with --fine_tune_epochs
group_accuracy_min to     how groups of people are served, with
num_small_groups          --sensitive_columns, see `runs.groups.COLUMNS`
cf                        CF coefficient against Standalone of the same seed
better_off                share of the clients above Standalone's accuracy
gain_mean, gain_sd,       accuracy minus Standalone's: mean, standard deviation
gain_min                  over clients, and lowest
harmed, harmed_share      clients below Standalone's accuracy beyond chance, see
                          `fairness.harm_p_values`: their number and share
target, rounds_to_target  an accuracy, and the first evaluation that has it
bytes_down, bytes_up      of a round, all clients together
seconds_per_round         the median
processor                 where a result was trained; empty if unknown
client_accuracies         JSON, a number or null for each client
fine_tuned_accuracies     the same after fine-tuning
groups                    JSON, a row for each group of people, over all
                          clients: column, group, count and measures
curve                     JSON: rounds, mean and worst10 of the evaluations
command                   the command of `launchers.train`

compare.json has the facts that are not of a single run, and the SHA-256
checksums of both files, so that one that was cut or changed is no comparison.
"""

from collections.abc import Mapping
import io
import json
import os
import pathlib
from typing import Any

import numpy as np
import pandas as pd

from tff_fair import files
from tff_fair.launchers import measures
from tff_fair.launchers.runs import run_files

SCORES = (
  'client_accuracy_mean',
  'client_accuracy_worst10',
  'client_accuracy_min',
  'client_accuracy_variance',
  'client_accuracy_jain',
  'client_f1_mean',
)
"""Columns of scores that a run writes itself."""

_NUMBERS = (
  'holdout_accuracy',
  *SCORES,
  'global_accuracy',
  *measures.FURTHER_SCORES,
  *measures.AGAINST_ALONE,
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
  'stage',
  'widened',
  'chosen',
  'status',
  'learning_rate',
  'parameters',
  'rounds',
  *_NUMBERS,
  'processor',
  'client_accuracies',
  'fine_tuned_accuracies',
  'groups',
  'curve',
  'command',
)
"""All columns, in the order of the file."""

_REQUIRED = ('method', 'seed', 'trial', 'chosen', 'status', 'rounds', 'curve')


_CHECKSUMS = 'checksums'


class ComparisonError(ValueError):
  """A comparison is not there, or damaged; the message is one sentence."""


def write(
  frame: pd.DataFrame,
  facts: Mapping[str, Any],
  csv_path: pathlib.Path,
  json_path: pathlib.Path,
) -> None:
  """Writes compare.csv and compare.json."""
  text = frame.to_csv(index=False)
  of_csv = files.checksum(text)
  sums = {'csv': of_csv, 'facts': files.checksum(_canonical(facts, of_csv))}
  run_files.write_atomically(csv_path, text)
  text = json.dumps({**facts, _CHECKSUMS: sums}, indent=2)
  run_files.write_atomically(json_path, f'{text}\n')


def read(
  csv_path: str | os.PathLike[str], json_path: str | os.PathLike[str]
) -> tuple[pd.DataFrame, dict[str, Any]]:
  """Reads compare.csv and compare.json.

  `client_accuracies` and `fine_tuned_accuracies` are vectors, NaN for a client
  without test data, and `curve` is a dictionary of lists; they are None where
  they are empty, as are `groups`. Numbers that an older version did not write
  are NaN; it did not write checksums, either. Its `stage` is None: a row is a
  trial if it has the first seed, and the chosen trial is a result, too.

  Raises:
    ComparisonError: If a file cannot be read, or has changed since it was
      written.
  """

  def naming(path):
    return files.reading(path, lambda found: _damaged(path, found))

  with naming(json_path):
    facts = json.loads(pathlib.Path(json_path).read_text(encoding='utf-8'))
    sums = facts.pop(_CHECKSUMS, None)
    if sums is not None:
      _check_sum(_canonical(facts, sums['csv']), sums['facts'])
  with naming(csv_path):
    text = pathlib.Path(csv_path).read_text(encoding='utf-8')
    if sums is not None:
      _check_sum(text, sums['csv'])
    frame = pd.read_csv(
      io.StringIO(text),
      dtype=dict.fromkeys(_NUMBERS, float),
      converters={
        'method': str,  # One of a plug-in may look like a missing value.
        'parameters': str,
        'processor': str,
        'client_accuracies': _accuracies,
        'fine_tuned_accuracies': _accuracies,
        'groups': _json,
        'curve': _json,
      },
      float_precision='round_trip',
    )
    missing = [name for name in _REQUIRED if name not in frame]
    if missing:
      raise ValueError(f'no column {missing[0]!r}')
  frame = frame.assign(**{n: np.nan for n in _NUMBERS if n not in frame})
  for name in ('groups', 'stage', 'fine_tuned_accuracies'):
    if name not in frame:
      frame[name] = None
  for name, value in (('widened', False), ('processor', '')):
    if name not in frame:
      frame[name] = value
  return frame, facts


def results(frame: pd.DataFrame) -> pd.DataFrame:
  """Returns the rows that are results: finished, with the chosen values."""
  return frame[frame['chosen'] & (frame['status'] == 'finished')]


def _damaged(path, found) -> ComparisonError:
  return ComparisonError(
    f'{path} must be as a comparison writes it, found: {found}; the command of'
    ' the comparison writes it again.'
  )


def _check_sum(text, expected) -> None:
  if files.checksum(text) != expected:
    raise ValueError('that it was cut or changed')


def _canonical(facts, of_csv) -> str:
  """The text of a checksum of all that compare.json has."""
  return json.dumps([of_csv, facts], sort_keys=True)


def _json(cell) -> Any:
  return json.loads(cell or 'null')


def _accuracies(cell) -> np.ndarray | None:
  return np.array(_json(cell), float) if cell else None
