"""The tables' definitions name things that exist."""

import dataclasses
import functools

import pytest

from tests.launchers import tiny_table
from tff_fair import tasks
from tff_fair.launchers import write_docs
from tff_fair.launchers.options import presets
from tff_fair.launchers.results import recording
from tff_fair.launchers.results import records
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import published
from tff_fair.launchers.tables import table_metrics
from tff_fair.launchers.tables import table_plots
from tff_fair.launchers.tables import table_runs

_COMPARED_WITH_ALONE = ('client_accuracy', 'scatter')
# The numbers of each table that have one of the paper beside them.
_ROWS_OF_THE_PAPERS = {
  'fedaboost_text': 31,
  'fedaboost_table1': 24,
  'cffl_table1': 72,
  'cffl_table2': 60,
  'cffl_classes': 0,
  'cffl_freerider': 0,
  'corefed_table1': 104,
  'corefed_table3': 8,
  'corefed_ablation': 0,
  'fedquad_table1': 31,
  'fedquad_table2': 18,
  'fedquad_table3': 31,
  'fedquad_table4': 18,
  'fedquad_table5': 7,
  'fedakd_table1': 574,
  'fedakd_protocols': 138,
  'fedakd_table2': 41,
  'fedakd_table3': 39,
  'fedakd_table4': 12,
  'fedakd_table5': 190,
}


@functools.cache
def _rows(name):
  table = definitions.TABLES[name]
  # Resolves the flags of every run.
  return tiny_table.planner(table).rows(table.cells)


def _runs(name, cell):
  """The runs of a cell by their method."""
  return {row.method: row.runs[0][0] for row in _rows(name) if row.cell == cell}


def test_names_exist():
  numbers = published.read()
  for name, table in definitions.TABLES.items():
    for cell in table.cells.values():
      assert cell.preset in presets.PRESETS, name
      assert cell.data in tasks.TASK_NAMES, name
      assert cell.methods is None or set(cell.methods) <= set(table.methods)
    for metric in table.metrics:
      needed = table_metrics.METRICS[metric].references
      assert set(needed) <= set(table.references), name
    for figure, methods in table.figures.items():
      assert figure in table_plots.FIGURES, name
      assert methods and set(methods) <= set(table.methods), name
      if figure in _COMPARED_WITH_ALONE:
        assert 'standalone' in table.references, name
    # Under another name only if the paper has no such name.
    own = {key[2] for key in numbers if key[0] == (table.published_as or name)}
    assert set(table.printed_as) <= set(table.methods) - own, name
    assert set(table.printed_as.values()) <= own, name
    for reference in table.references.values():
      assert reference.preset is None or reference.preset in presets.PRESETS
  replaced = {*definitions.STAND_INS, *definitions.STAND_INS.values()}
  assert replaced <= set(tasks.TASK_NAMES)


def test_recorded_runs_are_of_the_settings_that_their_tables_plan():
  """Otherwise a number would stand on the page under what it is not of."""
  frame = records.read(write_docs.ROOT / 'results')
  frame = frame[frame['source'] == records.RUN]
  keys = ['table', 'cell', 'method', 'data', 'scale', 'rounds']
  checked = 0
  for key, rows in frame.groupby(keys):
    name, cell, method, data, scale, rounds = key
    table = definitions.TABLES[name]
    planner = tiny_table.planner(
      table.restricted_to([method]),
      rounds=None if 'rounds' in table.methods[method] else int(rounds),
      scale=scale,
      dataset=data,
    )
    planned = {
      row.metric: recording.settings_hash(row.runs[0])
      for row in planner.rows([cell])
    }
    differ = rows['settings'] != rows['metric'].map(planned)
    assert not differ.any(), (*key, *rows['metric'][differ].unique())
    checked += len(rows)
  assert checked > 1000


@pytest.mark.full
def test_rows_resolve_and_their_presets_have_the_data_of_the_paper():
  for name, table in definitions.TABLES.items():
    for row in _rows(name):
      for run in row.runs[0]:
        assert run.settings['task'] == table.cells[row.cell].data, name


def test_every_published_number_has_its_rows_and_no_others():
  numbers, found = published.read(), {}
  for name, table in definitions.TABLES.items():
    keys = [
      published.key(name, cell, method, metric)
      for cell in table.cells
      for method in table.methods_of(cell)
      for metric in table.metrics
    ]
    found[name] = [key for key in keys if key in numbers]
  assert set(numbers) == {key for keys in found.values() for key in keys}
  # More than the paper prints where several of our rows are held against one.
  assert {
    name: len(keys) for name, keys in found.items()
  } == _ROWS_OF_THE_PAPERS


def test_tables_share_runs():
  (shared,) = (
    row.runs[0][0].output_dir
    for row in _rows('corefed_ablation')
    if (row.method, row.metric) == ('fed_avg', 'client_accuracy_mean')
  )
  comparison = table_runs.distinct(_rows('corefed_table1'))
  assert shared in {run.output_dir for run in comparison}
  first, second = (
    {run.output_dir for run in table_runs.distinct(_rows(f'fedquad_table{n}'))}
    for n in (1, 2)
  )
  # Nine methods in three cells and in their five variants, and four centralised
  # runs; Dirichlet(0.5) and its two variants are in both.
  assert (len(first & second), len(first)) == (3 * 9, 8 * 9 + 4)
  first, second = (
    {run.output_dir for run in table_runs.distinct(_rows(f'cffl_table{n}'))}
    for n in (1, 2)
  )
  alone = _runs('cffl_table2', 'mnist_p5')['standalone_authors_rate']
  assert alone.output_dir in second - first
  # Standalone at the authors' rate, in six cells.
  assert len(second - first) == 6


def test_fedaboost_2_alone_trains_by_adamw():
  found = {
    name: tuple(
      run.settings[f'client_{flag}']
      for flag in ('optimizer', 'learning_rate', 'weight_decay')
    )
    for name, run in _runs('fedaboost_text', 'femnist_2').items()
  }
  sgd, adamw = ('sgd', 1e-3, 5e-4), ('adamw', 2e-4, 1e-6)
  assert found.pop('fedaboost') == adamw
  assert found.pop('fedaboost_without_boosting') == adamw
  assert found.pop('fedaboost_cohort_classes') == adamw
  assert found == dict.fromkeys(
    ('fed_avg', 'fed_avg_uniform', 'ditto', 'fedaboost_sgd'), sgd
  )


def test_the_ablation_of_fedquad_runs_what_the_paper_prints():
  both = ['fedquad', 'fedquad_without_ce']
  for cell, methods, values in (
    ('cifar10_beta0.5_m1.0_m1.0', both, (0.5, 1, 1)),
    ('cifar10_beta0.5_m1.0_m0.5', both, (0.5, 1, 0.5)),
    ('cifar10_beta1.0_m1.0_m0.5', both[:1], (1, 1, 0.5)),
    ('cifar10_beta0.5_m2.0_m0.5', both[1:], (0.5, 2, 0.5)),
    ('cifar10_beta0.5_m5.0_m0.5', both[1:], (0.5, 5, 0.5)),
  ):
    runs = _runs('fedquad_table5', cell)
    assert list(runs) == methods, cell
    for method, run in runs.items():
      settings = run.settings
      assert settings['algorithm'] == 'fedquad'
      assert settings['use_ce'] == (method == 'fedquad')
      names = ('quadruplet_weight', 'margin_1', 'margin_2')
      assert tuple(settings[name] for name in names) == values, cell
      assert (settings['rounds'], settings['num_clients']) == (5, 10)
      assert settings['partition'] == 'equal'


def test_a_table_of_some_methods_keeps_its_order_and_the_original():
  original = definitions.TABLES['fedquad_table1']
  assert original.restricted_to(original.methods) == original
  before = dict(original.cells)
  table = original.restricted_to(['moon', 'supcon'])
  assert table.methods_of('cifar10_iid_c10') == ('moon',)
  assert table.methods_of('cifar10_centralised') == ('supcon',)
  assert not any(table.figures.values())
  table = original.restricted_to(['moon', 'fedquad', 'fed_avg'])
  assert table.methods_of('cifar10_a05_c10') == ('fed_avg', 'fedquad', 'moon')
  assert table.figures == {'embeddings': ('fed_avg', 'fedquad')}
  assert original.cells == before


def test_equal_time_is_equal_time():
  runs = {row.method: row.runs[0] for row in _rows('fedakd_table3')}
  rounds = {
    method: own.settings['rounds'] for method, (own, *_) in runs.items()
  }
  assert rounds['fedakd'] == 40
  assert rounds['fed_avg'] == 80
  assert rounds['cgsv'] == rounds['cgsv_script'] == 61
  # What the coefficient compares with trains as long as in table 2.
  cf = [row for row in _rows('fedakd_table3') if row.metric == 'cf']
  assert {row.runs[0][1].settings['rounds'] for row in cf} == {80}


def test_all_values_of_corefeds_table_2_run_by_name():
  runs = _runs('corefed_table1', 'fmnist')
  for flag, values in (
    ('proximal_weight', {'ditto': 0.1, 'ditto_1': 1}),
    ('q', {'q_fed_avg': 0.1, 'q_fed_avg_1': 1}),
    ('deviation', {'fed_mgda': 0.1, 'fed_mgda_1': 1}),
    (
      'line_search_scale',
      {'fed_mdfg': 5, 'fed_mdfg_s3': 3, 'fed_mdfg_s1': 1},
    ),
  ):
    first, *others = values
    for method, value in values.items():
      assert runs[method].settings[flag] == value, method
    for method in others:
      # Nothing but this value.
      found, expected = dict(runs[method].settings), dict(runs[first].settings)
      for settings in (found, expected):
        del settings[flag], settings['output_dir']
      assert found == expected, method


def test_corefeds_table_3_is_not_in_the_setting_of_table_1():
  a, b = (
    _runs('corefed_table3', f'tradeoff_{row}')['corefed'].settings
    for row in 'ab'
  )
  names = ('fairness_exponent', 'sharpness')
  assert tuple(a[name] for name in names) == (2, 0.5)
  assert tuple(b[name] for name in names) == (0.5, 2)
  assert a['batch_size'] == b['batch_size'] == 200
  assert (
    _runs('corefed_table1', 'fmnist')['corefed'].settings['batch_size'] == 50
  )


def test_variants_of_cells_differ_by_what_they_are_called():
  shared = {'shift_pool': 'shared'}
  variants = {
    ('fedaboost_text', 'mnist', '_min64'): {
      'min_samples': 64,
      'data_fraction': 0.6,
    },
    ('fedquad_table1', 'cifar10_a03_c10', '_capped'): {
      'balance_cap': True,
      'min_samples': 10,
    },
    ('fedquad_table1', 'cifar10_iid_c10', '_momentum_09'): {
      'model': 'cnn_fedquad_momentum_09'
    },
    **{
      ('fedakd_table1', f'{data}_{shift}', '_shared'): shared
      for data in ('fmnist', 'cifar10')
      for shift in ('bcs', 'ics5')
    },
    ('fedakd_protocols', 'cifar10_ics5', '_shared'): shared,
    ('fedakd_protocols', 'fmnist_ics5', '_shared'): shared,
  }
  for (name, cell, ending), flags in variants.items():
    cells = definitions.TABLES[name].cells
    found = cells[cell + ending]
    assert found.flags == flags, (name, cell, ending)
    # Only shared draws are held against the paper's numbers of the default.
    assert found.published_as == (cell if flags is shared else None)
    plain = dataclasses.replace(found, flags={}, published_as=None)
    assert plain == cells[cell]
  assert (
    'cifar10_iid_c10_capped' not in definitions.TABLES['fedquad_table1'].cells
  )
