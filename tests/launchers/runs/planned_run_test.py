"""Equal runs are trained once; runs that differ in seeds alone are a group."""

import pytest

from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.runs import planned_run


def _plan(folder, seed=0, **flags):
  flags = {'algorithm': 'cffl', 'task': 'digits', **flags}
  return planned_run.plan(flags, seed, folder)


def _finish(run):
  run.output_dir.mkdir(parents=True)
  (run.output_dir / 'flags.txt').write_text(run.flags_text)
  (run.output_dir / 'summary.json').touch()


def test_a_finished_equal_run_is_used_wherever_it_lies(tmp_path):
  _finish(_plan(tmp_path / 'deep/er/x', data_dir='here', client_threads=1))
  equal = planned_run.EqualRuns(tmp_path)
  run = equal.place(_plan(tmp_path / 'own'))
  assert run.output_dir == tmp_path / 'deep/er/x'
  assert run.is_finished()
  # A run that is finished stays where it is.
  _finish(_plan(tmp_path / 'own'))
  assert equal.place(_plan(tmp_path / 'own')).output_dir == tmp_path / 'own'


@pytest.mark.parametrize(
  'flags',
  [
    {'seed': 1},
    {'upload_rate': 0.5},
    {'rounds': 3},
    {'data_fraction': 0.5},
    {'eval_every': 2},
    {'stop_after': 3},
    {'algorithm': 'fed_avg'},
  ],
)
def test_a_run_of_other_settings_is_not_equal(flags, tmp_path):
  _finish(_plan(tmp_path / 'there'))
  own = _plan(tmp_path / 'own', **flags)
  equal = planned_run.EqualRuns(tmp_path)
  assert equal.place(own) == own
  assert planned_run.EqualRuns(tmp_path / 'else').place(own) == own


def test_an_unfinished_run_is_not_used(tmp_path):
  _finish(_plan(tmp_path / 'there'))
  (tmp_path / 'there/summary.json').unlink()
  own = _plan(tmp_path / 'own')
  assert planned_run.EqualRuns(tmp_path).place(own) == own


def test_a_run_that_may_have_ended_earlier_is_not_finished(tmp_path):
  run = _plan(tmp_path / 'own')
  assert not run.is_finished()
  _finish(run)
  assert run.is_finished()
  (tmp_path / 'own/flags.txt').write_text(run.flags_text + '--stop_after=3\n')
  assert not run.is_finished()


def test_damaged_directories_are_passed_over(tmp_path):
  _finish(_plan(tmp_path / 'a'))
  (tmp_path / 'a/flags.txt').write_bytes(b'\xff')
  _finish(_plan(tmp_path / 'b'))
  (tmp_path / 'b/flags.txt').unlink()
  _finish(_plan(tmp_path / 'c'))
  run = planned_run.EqualRuns(tmp_path).place(_plan(tmp_path / 'own'))
  assert run.output_dir == tmp_path / 'c'


def test_the_first_of_equal_plans_is_the_place_of_all(tmp_path):
  equal = planned_run.EqualRuns(tmp_path)
  first = equal.place(_plan(tmp_path / 'first'))
  second = equal.place(_plan(tmp_path / 'second', upload_rate=1.0))
  assert (first.output_dir, second.output_dir) == 2 * (tmp_path / 'first',)
  # With the command that it was planned with.
  assert '--upload_rate=1.0' in second.arguments
  assert second.settings['output_dir'] == str(tmp_path / 'first')


def test_a_directory_of_another_run_is_refused(tmp_path):
  _finish(_plan(tmp_path / 'own', rounds=3))
  with pytest.raises(settings_lib.SettingsError, match='--rounds is 3 there'):
    planned_run.EqualRuns(tmp_path).place(_plan(tmp_path / 'own'))


def test_groups_differ_in_their_seeds_alone(tmp_path):
  runs = [
    _plan(tmp_path / f'{rate}_{seed}', seed, upload_rate=rate)
    for seed in (0, 1, 2)
    for rate in (0.1, 0.5)
  ]
  groups = planned_run.group(runs)
  assert [
    [(run.settings['upload_rate'], run.seed) for run in runs] for runs in groups
  ] == [[(rate, seed) for seed in (0, 1, 2)] for rate in (0.1, 0.5)]
