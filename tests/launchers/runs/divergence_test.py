import pathlib
import types

import numpy as np
import pandas as pd
import pytest

from tff_fair.launchers.runs import callbacks
from tff_fair.launchers.runs import divergence
from tff_fair.launchers.runs import errors

_GOOD = {
  'train_loss': 0.5,
  'num_clients': 3,
  'num_empty_clients': 1,
  'num_rejected_clients': 1,
  'finalizer_update_non_finite': 0,
}
_COUNTS = {n: number for n, number in _GOOD.items() if n != 'train_loss'}
_BAD = (
  {**_COUNTS, 'train_up_loss': np.inf},  # FedAKD with order='up_down'.
  {**_GOOD, 'num_rejected_clients': 2},
  {**_GOOD, 'finalizer_update_non_finite': 1},
)


def _run(rows):
  """A run that resumes after these rows of metrics.csv."""
  frame = pd.DataFrame(rows, columns=None if rows else list(_GOOD))
  directory = types.SimpleNamespace(
    read_metrics=lambda: frame, path=pathlib.Path('x')
  )
  return types.SimpleNamespace(directory=directory)


def _failures(before, *rows):
  """The message that each row, in its turn, ends the run with; '' for none."""
  run, found = _run(before), []
  callback = divergence.Divergence()
  callback.on_start(run)
  for number, row in enumerate(rows, len(before) + 1):
    result = callbacks.RoundResult(number, row, *[None] * 6)
    try:
      callback.after_round(run, result)
      found.append('')
    except errors.DivergedError as error:
      found.append(str(error).split(': ')[1].split(';')[0])
  return found


def test_three_failed_rounds_in_a_row_are_divergence():
  assert _failures([_GOOD, *_BAD[:2]], _GOOD, *_BAD) == [
    *[''] * 3,
    'the aggregated update was not finite for 3 rounds, up to round 7',
  ]
  # Also if the first two were before a resume.
  assert _failures([_GOOD, *_BAD[:2]], _BAD[1]) == [
    "no client's update was finite for 3 rounds, up to round 4"
  ]
  (failure,) = _failures([_BAD[1]] * 2, _BAD[0])
  assert failure.startswith('the training loss was not finite')


def test_rounds_without_any_data_are_not_divergence():
  empty = {**_GOOD, 'num_empty_clients': 3, 'num_rejected_clients': 0}
  assert _failures([], *[empty] * 4) == [''] * 4


def test_a_run_aggregates_somebody_if_any_round_does():
  nobody = {**_GOOD, 'num_rejected_clients': 2}
  divergence.check_aggregated(_run([nobody, _GOOD]))
  # The rule may leave out all that were accepted.
  for rows in ([nobody] * 2, [{**_GOOD, 'aggregator_num_aggregated': 0}]):
    with pytest.raises(errors.DivergedError, match='^no round has aggregated'):
      divergence.check_aggregated(_run(rows))
