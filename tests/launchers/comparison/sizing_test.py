"""A comparison is fitted into a time once, from measured costs."""

import pathlib

import pytest

from tff_fair.launchers.comparison import budget
from tff_fair.launchers.comparison import plan
from tff_fair.launchers.comparison import sizing

_METHODS = ['fed_avg', 'standalone']
_ASKED = budget.Size(rounds=60, seeds=5, tune=8)


class _Pool:
  """Says what runs cost; they leave files as real ones do."""

  def __init__(self, seconds=1.0):
    self._seconds = seconds
    self.timed = []

  def time(self, runs):
    for run in runs:
      run.output_dir.mkdir(parents=True)
      (run.output_dir / 'flags.txt').write_text(run.flags_text)
    self.timed += [run.settings['algorithm'] for run in runs]
    # No start; the rounds alone.
    return {name: budget.Cost(0.0, self._seconds) for name in self.timed}


@pytest.fixture(name='planner')
def _planner(tmp_path):
  return plan.Planner(
    shared={'task': 'digits'}, rounds=60, tune=8, output_dir=tmp_path
  )


def _fit(pool, planner, seconds, methods=_METHODS):
  return sizing.fit(pool, planner, methods, _ASKED, seconds, 1)


def test_the_same_command_decides_the_same_without_timing_again(planner):
  pool = _Pool()
  # Two methods, six runs of each (four trials, two more seeds), 60 rounds.
  enough = 1.1 * 2 * 6 * 60 + 5  # Which is more than the timing takes.
  assert sizing.decided(planner, _METHODS, _ASKED, enough) is None
  found = _fit(pool, planner, enough)
  assert found == budget.Size(rounds=60, seeds=3, tune=4)
  assert pool.timed == _METHODS
  # Timed anew it would be another.
  slower = _Pool(seconds=2.0)
  assert _fit(slower, planner, enough) == found
  assert sizing.decided(planner, _METHODS, _ASKED, enough) == found
  assert not slower.timed
  # Another command.
  assert _fit(slower, planner, 2 * enough) == found
  assert slower.timed == _METHODS


def test_nothing_is_left_of_the_timing(planner):
  # Those of a program that was killed at this point.
  (planner.output_dir / 'budget' / 'runs').mkdir(parents=True)
  for _ in range(2):
    with pytest.raises(budget.BudgetError, match='for one round of each of 2'):
      _fit(_Pool(), planner, 1.0)
    assert list(planner.output_dir.iterdir()) == []
  _fit(_Pool(), planner, 100.0)
  names = [path.name for path in planner.output_dir.iterdir()]
  assert names == ['budget.json']


@pytest.mark.parametrize('text', ['', '{}', '[]', '{"key": 1}', '{"used": 1}'])
def test_a_damaged_decision_is_none(text, planner):
  pathlib.Path(planner.output_dir / 'budget.json').write_text(text)
  assert sizing.decided(planner, _METHODS, _ASKED, 9.0) is None
