import numpy as np
import pandas as pd

from tff_fair.launchers.runs import failed_rounds

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


def test_three_failed_rounds_in_a_row_are_divergence():
  found = failed_rounds.FailedRounds(pd.DataFrame([_GOOD, *_BAD[:2]]))
  assert found.add(_COUNTS) is None
  assert found.add(_BAD[0]) is None
  assert found.add(_BAD[1]) is None
  assert found.add(_BAD[2]) == (
    'the aggregated update was not finite for 3 rounds'
  )
  # Also if the first two were before a resume.
  found = failed_rounds.FailedRounds(pd.DataFrame([_GOOD, *_BAD[:2]]))
  assert found.add(_BAD[1]) == "no client's update was finite for 3 rounds"


def test_rounds_without_any_data_are_not_divergence():
  empty = {**_GOOD, 'num_empty_clients': 3, 'num_rejected_clients': 0}
  found = failed_rounds.FailedRounds(pd.DataFrame(columns=list(_GOOD)))
  assert [found.add(empty) for _ in range(4)] == [None] * 4


def test_a_run_aggregates_somebody_if_any_round_does():
  nobody = {**_GOOD, 'num_rejected_clients': 2}
  assert failed_rounds.any_aggregated(pd.DataFrame([nobody, _GOOD]))
  assert not failed_rounds.any_aggregated(pd.DataFrame([nobody, nobody]))
  # The rule may leave out all that were accepted.
  by_rule = {**_GOOD, 'aggregator_num_aggregated': 0}
  assert not failed_rounds.any_aggregated(pd.DataFrame([by_rule]))
