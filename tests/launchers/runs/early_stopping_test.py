"""When a run ends before its last round."""

import math

import numpy as np
import pandas as pd

from tff_fair.launchers.runs import early_stopping

_MEAN = 'client_accuracy_mean'
_NAN = np.nan


def _find(values, metric=_MEAN, stop_after=2, rounds=100, eval_every=1):
  """Returns the rule's findings after a round for each of the values."""
  frame = pd.DataFrame({'round': range(1, len(values) + 1), metric: values})
  settings = {
    'stop_after': stop_after,
    'stop_metric': metric,
    'rounds': rounds,
    'eval_every': eval_every,
  }
  return early_stopping.find(frame, settings)


def test_it_ends_after_so_many_evaluations_without_a_better_value():
  for values, metric, best_round in (
    ([], _MEAN, None),
    ([0.5], _MEAN, None),
    ([0.5, 0.4], _MEAN, None),
    ([0.5, 0.4, 0.4], _MEAN, 1),
    ([0.5, 0.4, 0.6], _MEAN, None),
    ([0.5, 0.4, 0.6, 0.5], _MEAN, None),
    ([0.5, 0.4, 0.6, 0.5, 0.5], _MEAN, 3),
    # A value that is only equal is no better one.
    ([0.5, 0.5, 0.5], _MEAN, 1),
    ([0.4, 0.6, 0.6, 0.6], _MEAN, 2),
    # Nor is an undefined one.
    ([0.5, _NAN, _NAN], _MEAN, 1),
    ([_NAN, 0.5, _NAN], _MEAN, None),
    ([_NAN, 0.5, 0.4, _NAN], _MEAN, 2),
    # Of losses and variances the lower value is better.
    ([0.5, 0.4, 0.6], 'global_loss', None),
    ([0.5, 0.6, 0.5], 'global_loss', 1),
    ([0.5, math.inf, math.inf], 'train_loss', 1),
    ([0.5, 0.4, 0.3], 'client_f1_variance', None),
    ([0.3, 0.4, 0.5], 'client_f1_own_labels_variance', 1),
    ([0.3, 0.4, 0.5], 'client_f1_jain', None),
  ):
    stop = _find(values, metric)
    assert (stop and stop.best_round) == best_round, (values, metric)
    if stop:
      best = values[best_round - 1]
      assert stop == (len(values), metric, best, best_round, 2), values


def test_only_evaluations_count():
  values = [_NAN, 0.5, _NAN, 0.4, _NAN]
  assert _find(values, eval_every=2) is None
  assert _find([*values, 0.4], eval_every=2).best_round == 2
  # A loss is there in every round.
  assert _find([5.0, 4, 3, 6, 2, 6], 'train_loss', eval_every=2).best == 4


def test_a_run_that_had_all_its_rounds_has_not_stopped():
  assert _find([0.5, 0.4, 0.4], rounds=3) is None
  assert _find([0.5, 0.4, 0.4], rounds=4).round == 3


def test_what_the_user_reads():
  assert _find([0.25, 0.5, 0.5, 0.5]).sentence(20) == (
    'stopped early after round 4 of 20: client_accuracy_mean was best, 0.5000,'
    ' in round 2'
  )
  assert _find([_NAN] * 3).sentence(9) == (
    'stopped early after round 3 of 9: client_accuracy_mean was never defined'
  )
