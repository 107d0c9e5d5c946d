"""The runs of a table are trained one after the other, whatever happens."""

import pathlib

import pytest

from tff_fair.launchers.runs import planned_run
from tff_fair.launchers.runs import training
from tff_fair.launchers.tables import table_training


def _run(name):
  return planned_run.PlannedRun(
    preset=None,
    arguments=(),
    seed=0,
    output_dir=pathlib.Path('out', name, 'seed_0'),
    settings={'rounds': 2},
  )


def test_a_run_that_diverges_ends_no_other(monkeypatch, capsys):
  runs = [_run(name) for name in ('first', 'wild', 'last')]
  trained, recorded = [], []

  def train(run, count_rounds):
    del count_rounds
    if 'wild' in str(run.output_dir):
      raise training.DivergedError('the run has diverged.')
    trained.append(run)

  monkeypatch.setattr(table_training, '_train', train)
  with pytest.raises(training.DivergedError, match='1 of 3 runs diverged'):
    table_training.train(runs, runs, lambda: recorded.append(len(trained)))
  assert trained == [runs[0], runs[2]]
  assert recorded == [1, 2]
  assert 'out/wild/seed_0: the run has diverged.' in capsys.readouterr().out
