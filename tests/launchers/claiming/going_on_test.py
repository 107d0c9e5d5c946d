"""What would decide a claim, by hand."""

import math

from absl import flags
import pytest

from tests.launchers.claiming import made_rows
from tff_fair.launchers import reproduce
from tff_fair.launchers.claiming import going_on
from tff_fair.launchers.claiming import verdicts
from tff_fair.launchers.tables import table_runs

_FLAGS = '--table=fedquad_table1 --cells=cifar10_a03_c10 --methods='


def _plan(claim, *groups):
  found = verdicts.judge(made_rows.group(*groups), {'fedquad-x': claim})
  return going_on.plan(found['fedquad-x'])


def _rows(method, values, **others):
  return made_rows.rows(method, values, **others)


def test_a_decided_claim_needs_nothing():
  claim = made_rows.claim('above fed_avg')
  assert _plan(claim, made_rows.both([9.0, 9.1, 9.2], [1.0] * 3)) is None
  uncounted = claim._replace(uncounted='Because.')
  assert _plan(uncounted, made_rows.both([1.0], [1.0])) is None


def test_what_is_not_run_is_run_at_the_papers_size():
  claim = made_rows.claim('above fed_avg', 'above moon')
  found = _plan(claim, made_rows.rows('fedquad', [1.0]))
  assert math.isnan(found.seeds) and math.isnan(found.core_hours)
  assert found.look == 3
  assert found.commands == (f'{_FLAGS}fedquad,fed_avg,moon --seeds=3',)


def test_one_seed_has_no_spread():
  found = _plan(
    made_rows.claim('above fed_avg'),
    made_rows.both([9.0], [1.0], scale=0.1, rounds=5),
  )
  assert math.isnan(found.seeds) and found.look == 3
  # Two more seeds of two methods, each 90 seconds on two cores.
  assert found.core_hours == pytest.approx(4 * 90 * 2 / 3600)
  assert found.commands == (
    f'{_FLAGS}fedquad,fed_avg --scale=0.1 --rounds=5 --seeds=3',
  )
  found = _plan(
    made_rows.claim('above fed_avg'), made_rows.both([9.0], [1.0], clients=0.5)
  )
  assert found.commands == (
    f'{_FLAGS}fedquad,fed_avg --scale_clients=0.5 --seeds=3',
  )


def test_the_spread_says_how_many_seeds():
  """Mean 9, standard deviation 6: t of 98 % over the root of n is below 1.5.

  It is 2.27 at 4, 1.68 at 5, and 1.37 at 6.
  """
  claim = made_rows.claim('above fed_avg')
  found = _plan(claim, made_rows.both([3.0, 9.0, 15.0], [0.0] * 3))
  assert (found.seeds, found.look) == (6, 6)
  assert found.core_hours == pytest.approx(6 * 90 * 2 / 3600)
  # A fifth of it: .3 takes 63 seeds, which nobody planned.
  found = _plan(claim, made_rows.both([-4.2, 1.8, 7.8], [0.0] * 3))
  assert found.seeds > 60 and found.look == 0
  assert found.core_hours == pytest.approx((found.seeds - 3) * 180 * 2 / 3600)


def test_a_level_without_a_lead_is_never_decided():
  found = _plan(
    made_rows.claim('at least 5'), made_rows.rows('fedquad', [1.0, 5.0, 9.0])
  )
  assert math.isinf(found.seeds) and found.look == 0


def test_the_cheapest_comparison_against_a_claim_is_enough():
  claim = made_rows.claim('above fed_avg', 'above moon', 'above triplet_fl')
  groups = (
    _rows('fedquad', [0.0, 0.5, 1.0]),
    _rows('fed_avg', [5.0, 8.0, 9.0]),
    _rows('moon', [2.0, 4.0, 9.0]),
    _rows('triplet_fl', [0.0, 0.0, 0.0]),
  )
  found = _plan(claim, *groups)
  assert found.commands == (f'{_FLAGS}fedquad,fed_avg --seeds=6',)


def test_all_open_comparisons_have_to_be_for_a_claim():
  claim = made_rows.claim('above fed_avg', 'above moon', 'above triplet_fl')
  groups = (
    _rows('fedquad', [3.0, 9.0, 15.0]),
    _rows('fed_avg', [0.0] * 3),
    _rows('moon', [0.0, 0.1, 6.0]),
    _rows('triplet_fl', [-40.0, -34.0, -28.1]),
  )
  found = _plan(claim, *groups)
  assert found.commands == (f'{_FLAGS}fedquad,fed_avg,moon --seeds=6',)
  # Of three, two are most: one is for it, and the cheapest other is enough.
  found = _plan(claim._replace(most=True), *groups)
  (command,) = found.commands
  assert command in {
    f'{_FLAGS}fedquad,{name} --seeds=6' for name in ('fed_avg', 'moon')
  }


def test_the_commands_for_all_claims_name_what_exists():
  """Those of claims of which nothing is run: their flags are the longest."""
  for name, result in verdicts.judge(made_rows.group([])).items():
    found = going_on.plan(result)
    assert (found is None) == bool(result.claim.uncounted), name
    for command in found.commands if found else ():
      values = flags.FlagValues()
      reproduce.define_flags(values)
      values(['reproduce', *command.split()])
      table_runs.choose(values.table, values.cells, values.methods, None)


def test_a_spread_beside_what_is_missing():
  """The need of the one, and the command for both."""
  claim = made_rows.claim('above fed_avg', 'above moon')
  found = _plan(claim, made_rows.both([3.0, 9.0, 15.0], [0.0] * 3))
  assert (found.seeds, found.look) == (6, 6)
  assert math.isnan(found.core_hours)
  assert found.commands == (f'{_FLAGS}fedquad,fed_avg,moon --seeds=6',)
