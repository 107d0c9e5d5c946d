"""What differs between runs, and whether they are ranked."""

import dataclasses

import pytest

from tests.launchers import report_run
from tff_fair import tasks
from tff_fair.launchers import differences
from tff_fair.launchers import frame


def _compare(*folders):
  return differences.compare(frame.read_runs(folders))


@pytest.fixture(scope='module', name='runs')
def _runs(tmp_path_factory):
  root = tmp_path_factory.mktemp('runs')
  return frame.read_runs(
    [
      report_run.write(root / 'x', algorithm='fedaboost'),
      report_run.write(root / 'y', (0.2, 0.7, 0.9)),
    ]
  )


def _differing(runs, name, values):
  """Compares the runs, which differ in a flag or in the version."""
  if name == 'version':
    changes = [{'version': value} for value in values]
  else:
    changes = [
      {'settings': {**run.settings, name: str(value)}}
      for run, value in zip(runs, values, strict=True)
    ]
  return differences.compare(
    [dataclasses.replace(r, **c) for r, c in zip(runs, changes, strict=True)]
  )


def test_flags_that_forbid_a_rank_are_told_or_say_nothing(runs):
  for name, values in (
    ('data_seed', (0, 1)),
    ('model_seed', (0, 1)),
    ('client_seed', (0, 1)),
    ('task', ('digits', 'mnist')),
    ('partition', ('dirichlet', 'equal')),
    ('split', ('client', 'server')),
    ('local_epochs', (1, 5)),
    ('test_leak', (None, 'test_trains')),
    ('unseen_fraction', (0.2, 0.3)),
    ('score_last', (None, 3)),
    ('model', ('linear', 'mlp')),
    ('version', ('0.1.0', '0.2.0')),
  ):
    found = _differing(runs, name, values)
    shown = f'{name} ({values[0]}, {values[1]})'
    assert [str(difference) for difference in found.unlike] == [shown]
    assert not found.ranked and not found.repeats
    assert shown in found.warnings[0]
  for name, values in (
    ('batch_size', (16, 32)),
    ('client_learning_rate', (0.1, 0.2)),
    ('client_fraction', (0.5, 1.0)),
    ('fine_tune_epochs', (1, 2)),
    ('drop_sensitive', ('False', 'True')),
    ('server_optimizer', ('adam', 'yogi')),
  ):
    found = _differing(runs, name, values)
    assert found.ranked and not found.unlike, name
    shown = f'{name} ({values[0]}, {values[1]})'
    assert found.warnings == [f'The runs differ in {shown}.']
  # The subject of a comparison, or without effect on the numbers.
  for name in ('boost_rate', 'runtime', 'data_dir', 'checkpoint_every'):
    found = _differing(runs, name, (1, 2))
    assert found.ranked and not found.warnings, name


def test_a_flag_that_a_method_ignores_is_no_difference(tmp_path):
  for name, warns in (('standalone', False), ('fedaboost', True)):
    found = _compare(
      report_run.write(tmp_path / name / 'x', fine_tune_epochs=2),
      report_run.write(tmp_path / name / 'y', algorithm=name),
    )
    assert bool(found.conditions) == warns, name


def test_repeats_differ_in_their_seeds_only(tmp_path):
  folders = [
    report_run.write(tmp_path / str(seed), model_seed=seed) for seed in (0, 1)
  ]
  found = _compare(*folders)
  assert found.repeats and not found.ranked
  other = report_run.write(tmp_path / 'x', algorithm='ditto', model_seed=2)
  assert not _compare(*folders, other).repeats


def test_an_unfinished_run_is_not_ranked(tmp_path):
  going = report_run.write(tmp_path / 'x', algorithm='ditto', finished=False)
  found = _compare(going, report_run.write(tmp_path / 'y'))
  assert not found.unlike and not found.ranked


def test_rounds_are_those_that_are_done(tmp_path):
  found = _compare(
    report_run.write(tmp_path / 'x', algorithm='ditto', rounds=2),
    report_run.write(tmp_path / 'y'),
  )
  assert [str(d) for d in found.unlike] == ['rounds (2, 3)']
  assert not found.ranked


def test_a_method_in_turn_is_not_better_than_others(tmp_path):
  average, dssgd, in_turn = (
    report_run.write(tmp_path / name, algorithm=name)
    for name in ('fed_avg', 'dssgd', 'round_robin_fed_avg')
  )
  found = _compare(average, dssgd)
  expected = ['updates in a row a round (one, one a client)']
  assert [str(d) for d in found.unlike] == expected
  assert not found.ranked
  assert _compare(dssgd, in_turn).ranked


def test_what_a_run_does_not_know_is_no_difference(tmp_path):
  # An older version, and a method that does not read the flags.
  found = _compare(
    report_run.write(
      tmp_path / 'x', version='0.2.0', local_epochs=5, model='mlp_digits'
    ),
    report_run.write(tmp_path / 'y', algorithm='ditto'),
  )
  default = tasks.get_data_set('digits').default('model')
  assert [str(d) for d in found.unlike] == [f'model (mlp_digits, {default})']


def test_many_are_counted(tmp_path):
  names = (
    'data_seed',
    'model_seed',
    'client_seed',
    'local_epochs',
    'test_fraction',
    'data_fraction',
    'min_samples',
  )
  found = _compare(
    *(
      report_run.write(tmp_path / str(i), **dict.fromkeys(names, i))
      for i in (1, 2)
    )
  )
  assert len(found.unlike) == len(names)
  assert ', 2 more (see Settings):' in found.warnings[0]
