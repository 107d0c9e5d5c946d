"""Which clients a round has, and which evaluations a summary averages."""

import types

import numpy as np
import pandas as pd
import pytest

from tff_fair.launchers.runs import run_summary
from tff_fair.launchers.runs import training


def test_cohorts_follow_the_seed_of_clients_alone():
  task = types.SimpleNamespace(num_clients=20, num_train=lambda client_id: 5)

  def cohorts(**seeds):
    settings = {
      'algorithm': 'fed_avg',
      'split': 'client',
      'client_fraction': 0.3,
      'client_seed': 0,
      'model_seed': 0,
      **seeds,
    }
    draw = training.build_cohorts(settings, task)
    return [sorted(draw(number)[0]) for number in (1, 2)]

  assert [len(cohort) for cohort in cohorts()] == [6, 6]
  assert cohorts(model_seed=1) == cohorts()
  assert cohorts(client_seed=1) != cohorts()


def test_the_window_is_of_evaluations_and_not_of_rounds():
  column = pd.Series([np.nan if i % 2 else float(i) for i in range(40)])
  found = run_summary._window(column)
  assert found['evaluations'] == 10
  # 20, 22, ..., 38.
  assert found['mean'] == pytest.approx(29)
