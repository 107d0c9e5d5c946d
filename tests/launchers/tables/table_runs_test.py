import pathlib

import numpy as np

from tests.launchers import tiny_table
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import table_runs

_OUT = pathlib.Path('out')


def _planner(table=tiny_table.TABLE, **choices):
  defaults = {'num_seeds': 2, 'data_dir': 'data', 'output_dir': _OUT}
  return tiny_table.planner(table, **{**defaults, **choices})


def _table(methods, cells=tiny_table.TABLE.cells):
  return definitions.Table(
    title='',
    cells=cells,
    methods=methods,
    metrics=('client_accuracy_max',),
    percent=True,
  )


def test_a_run_is_a_command_with_all_seeds_alike():
  run = _planner().run('digits', 'cffl', 1)
  assert run.arguments == (
    '--preset=cffl_digits',
    '--algorithm=cffl',
    '--upload_rate=0.5',
    '--data_dir=data',
  )
  for name in ('model_seed', 'client_seed', 'data_seed'):
    assert run.settings[name] == 1
  assert run.settings['data_dir'] == 'data'
  assert run.settings['num_clients'] == 5
  assert run.output_dir == (
    _OUT / 'runs/cffl_digits/cffl-upload_rate=0.5/seed_1'
  )
  assert run.settings['output_dir'] == str(run.output_dir)
  assert f'--output_dir={run.output_dir}\n' in run.flags_text


def test_the_directory_is_a_function_of_the_settings():
  def folder(rounds=None, **flags):
    table = _table({'m': {'algorithm': 'cffl', **flags}})
    return _planner(table, rounds=rounds).run('digits', 'm', 0).output_dir

  # However it is said that the value is the usual one.
  assert folder() == folder(upload_rate=1.0) == folder(rounds=20)
  others = {
    folder(),
    folder(upload_rate=0.1),
    folder(pretrain=True),
    folder(rounds=3),
    folder(rounds=3, upload_rate=0.1),
  }
  assert len(others) == 5


def test_a_cell_has_flags_and_those_of_a_method():
  cell = definitions.Cell(
    preset='cffl_digits',
    data='digits',
    flags={'rounds': 7, 'batch_size': 4},
    method_flags={'m': {'upload_rate': 0.2, 'batch_size': 5}},
  )
  methods = {
    'm': {'algorithm': 'cffl', 'upload_rate': 0.5},
    'other': {'algorithm': 'cffl', 'upload_rate': 0.5},
  }
  planner = _planner(_table(methods, {'cell': cell}))
  found = {
    name: tuple(
      planner.run('cell', name, 0).settings[flag]
      for flag in ('rounds', 'batch_size', 'upload_rate')
    )
    for name in methods
  }
  assert found == {'m': (7, 5, 0.2), 'other': (7, 4, 0.5)}


def test_rows_leave_out_what_compares_a_run_with_itself():
  rows = _planner().rows(['digits'])
  assert [(row.metric, row.method) for row in rows] == [
    ('cf', 'fed_avg'),
    ('cf', 'cffl'),
    ('client_accuracy_max', 'standalone'),
    ('client_accuracy_max', 'fed_avg'),
    ('client_accuracy_max', 'cffl'),
  ]
  run, alone = rows[1].runs[1]
  assert run.settings['algorithm'] == 'cffl'
  assert alone.settings['algorithm'] == 'standalone'
  assert run.seed == alone.seed == 1
  assert 'upload_rate' not in alone.settings


def test_rows_are_of_the_methods_that_run_in_the_cell():
  cells = {
    name: definitions.Cell(preset='cffl_digits', data='digits', methods=methods)
    for name, methods in (('one', ('b',)), ('all', None), ('other', ('a',)))
  }
  methods = {'a': {'algorithm': 'dssgd'}, 'b': {'algorithm': 'cffl'}}
  table = _table(methods, cells)

  def rows(table):
    rows = _planner(table).rows(['all', 'one', 'other'])
    return [(row.cell, row.method) for row in rows]

  everything = [('all', 'a'), ('all', 'b'), ('one', 'b'), ('other', 'a')]
  assert rows(table) == everything
  assert rows(table.restricted_to(['b'])) == everything[1:3]


def test_a_share_of_the_data_is_in_the_name_of_a_run():
  table = definitions.TABLES['fedquad_table1']
  cell = 'cifar10_a05_c10'
  run = _planner(table, scale=0.015).run(cell, 'moon', 0)
  assert run.settings['data_fraction'] == 0.015
  folder = _OUT / 'runs/fedquad_cifar10_a05_c10'
  assert '--data_fraction=0.015' in run.arguments
  run = _planner(table, scale=0.015).run(cell, 'triplet_fl_without_ce', 1)
  name = 'triplet_fl-data_fraction=0.015-use_ce=False'
  assert run.output_dir == folder / name / 'seed_1'


def test_a_share_of_the_clients_have_as_many_examples():
  table = definitions.TABLES['fedquad_table2']
  cell = 'cifar10_a05_c200'
  run = _planner(table, scale_clients=0.25).run(cell, 'fed_avg', 0)
  settings = run.settings
  assert (settings['num_clients'], settings['data_fraction']) == (50, 0.25)
  # A quarter of 264 is 66; of 196 clients, .01 are 2.
  table = definitions.TABLES['fedaboost_text']
  run = _planner(table, scale=0.5, scale_clients=0.25).run(
    'mnist', 'fed_avg', 0
  )
  assert run.settings['num_clients'] == 66
  assert run.settings['data_fraction'] == 0.125
  table = definitions.TABLES['fedaboost_table1']
  run = _planner(table, scale_clients=0.01).run('cifar_20', 'fed_avg', 0)
  assert run.settings['data_fraction'] == 2 / 196


def test_other_data_have_runs_of_their_own():
  table = definitions.TABLES['corefed_table1']
  usual = _planner(table).run('fmnist', 'fed_avg', 0)
  stand_in = _planner(table, dataset='mnist').run('fmnist', 'fed_avg', 0)
  assert stand_in.output_dir != usual.output_dir
  before, after = usual.settings, stand_in.settings
  changed = {name for name in before if after[name] != before[name]}
  assert changed == {'task', 'output_dir'}
  assert stand_in.settings['task'] == 'mnist'
  other = _planner(table, dataset='mnist').run('cifar10', 'fed_avg', 0)
  assert other.settings['task'] == 'cifar10'


def test_equal_runs_of_two_presets_are_one():
  cells = {
    name: definitions.Cell(preset=name, data='ehr')
    for name in ('fedakd_ehr', 'fedakd_ehr_equal_time')
  }
  planner = _planner(_table({'m': {'algorithm': 'fed_avg'}}, cells))
  rows = planner.rows(cells)
  assert len(rows) == 2
  runs = table_runs.distinct(rows)
  assert [(run.preset, run.seed) for run in runs] == [
    ('fedakd_ehr', 0),
    ('fedakd_ehr', 1),
  ]
  # Plots ask again.
  again = planner.run('fedakd_ehr_equal_time', 'm', 1)
  assert again.output_dir == runs[1].output_dir


def test_a_share_of_health_records_is_a_share_of_those_generated():
  table = definitions.TABLES['fedakd_table4']
  planner = _planner(table, scale=0.1)
  run = planner.run('ehr', 'fedakd_all_data', 0)
  np.testing.assert_allclose(run.settings['ehr_scale'], 0.002)
  assert run.settings['data_fraction'] == 1
  assert _planner(table).run('ehr', 'fedakd', 0).settings['ehr_scale'] is None


def test_distances_over_the_rounds_are_measured_where_they_are_drawn():
  def only_last(table, cell, method):
    run = _planner(definitions.TABLES[table]).run(cell, method, 0)
    assert run.settings['distances']
    return run.only_last_distances

  assert not only_last('corefed_table1', 'fmnist', 'corefed')
  assert only_last('corefed_table1', 'fmnist', 'ditto_1')
  # Table 1 draws this run of the ablation.
  assert not only_last('corefed_ablation', 'fmnist', 'fed_avg')
  assert only_last('corefed_table3', 'tradeoff_a', 'corefed')
