"""The tables' definitions name things that exist."""

import functools
import pathlib

import pytest

from launchers.options import presets
from launchers.options import settings as settings_lib
from launchers.options import train_flags
from launchers.tables import definitions
from launchers.tables import published
from launchers.tables import table_metrics
from launchers.tables import table_plots
from launchers.tables import table_runs
import tasks

_COMPARED_WITH_ALONE = ('client_accuracy', 'scatter')


@functools.cache
def _rows(name):
  planner = table_runs.Planner(
    definitions.TABLES[name],
    num_seeds=1,
    rounds=None,
    scale=1.0,
    dataset=None,
    data_dir=None,
    output_dir=pathlib.Path('x'),
  )
  # Resolves the flags of every run.
  return planner.rows(definitions.TABLES[name].cells)


@pytest.mark.parametrize('name', definitions.TABLES)
def test_names_exist(name):
  table = definitions.TABLES[name]
  for cell in table.cells.values():
    assert cell.preset in presets.PRESETS
    assert cell.data in tasks.TASK_NAMES
    assert cell.methods is None or set(cell.methods) <= set(table.methods)
  for metric in table.metrics:
    needed = table_metrics.METRICS[metric].references
    assert set(needed) <= set(table.references)
  for figure, methods in table.figures.items():
    assert figure in table_plots.FIGURES
    assert methods and set(methods) <= set(table.methods)
    if figure in _COMPARED_WITH_ALONE:
      assert 'standalone' in table.references
  # Under the name of another method only where the paper has no such name.
  numbers = {key[2] for key in published.read() if key[0] == name}
  assert set(table.printed_as) <= set(table.methods) - numbers
  assert set(table.printed_as.values()) <= numbers
  for reference in table.references.values():
    assert reference.preset is None or reference.preset in presets.PRESETS


@pytest.mark.parametrize('name', definitions.TABLES)
def test_rows_resolve_and_their_presets_are_of_the_paper_s_data(name):
  table = definitions.TABLES[name]
  for row in _rows(name):
    for run in row.runs[0]:
      assert run.settings['task'] == table.cells[row.cell].data


@pytest.mark.parametrize(
  ('name', 'metrics', 'count', 'ours'),
  [
    ('cffl_table1', ['cf'], 42, 0),
    ('cffl_table2', ['client_accuracy_max'], 30, 0),
    # FedAvg is not in the paper's table.
    ('corefed_table1', ['client_accuracy_mean'], 12, 2),
    (
      'corefed_table1',
      ['parameters_d_cosine', 'parameters_d_manhattan'],
      24,
      4,
    ),
    ('corefed_table1', ['embedding_d_cosine', 'embedding_d_manhattan'], 24, 4),
    ('corefed_table3', ['client_accuracy_mean'], 2, 0),
    ('corefed_table3', ['embedding_d_cosine', 'embedding_d_manhattan'], 4, 0),
    ('fedquad_table1', ['global_accuracy'], 22, 0),
    ('fedquad_table2', ['global_accuracy'], 12, 0),
    ('fedquad_table3', ['global_accuracy'], 22, 0),
    ('fedquad_table4', ['global_accuracy'], 12, 0),
    ('fedquad_table5', ['global_accuracy'], 7, 0),
  ],
)
def test_every_published_number_has_its_row(name, metrics, count, ours):
  called = {
    metric: table_metrics.METRICS[metric].published or metric
    for metric in metrics
  }
  numbers = {
    key
    for key in published.read()
    if key[0] == name and key[3] in called.values()
  }
  printed_as = definitions.TABLES[name].printed_as
  rows = {
    (
      name,
      row.cell,
      printed_as.get(row.method, row.method),
      called[row.metric],
    )
    for row in _rows(name)
    if row.metric in called
  }
  assert numbers <= rows
  assert len(numbers) == count and len(rows - numbers) == ours


def test_the_paper_s_distances_are_not_those_of_accuracies():
  for name, metric in table_metrics.METRICS.items():
    if name.startswith('accuracy_d_'):
      assert metric.published is None


@pytest.mark.parametrize(
  'name', ['cffl_classes', 'cffl_freerider', 'corefed_ablation']
)
def test_tables_of_our_own_have_no_published_numbers(name):
  assert name not in {key[0] for key in published.read()}


def test_the_free_rider_is_compared_with_the_same_run_without():
  (row,) = (
    row
    for row in _rows('cffl_freerider')
    if row.metric == 'client_accuracy_mean_change'
  )
  with_rider, without = (dict(run.settings) for run in row.runs[0])
  assert with_rider.pop('free_riders') == 1
  assert without.pop('free_riders') == 0
  for settings in (with_rider, without):
    del settings['output_dir']
  assert with_rider == without


def test_the_trade_off_shares_a_run_with_the_comparison():
  (shared,) = (
    row.runs[0][0].output_dir
    for row in _rows('corefed_table3')
    if (row.cell, row.metric) == ('tradeoff_b', 'client_accuracy_mean')
  )
  comparison = table_runs.distinct(_rows('corefed_table1'))
  assert shared in {run.output_dir for run in comparison}


@pytest.mark.parametrize('method', ['corefed', 'cofed', 'refed'])
def test_the_ablation_is_that_of_the_presets(method):
  (run,) = {
    row.runs[0][0] for row in _rows('corefed_ablation') if row.method == method
  }
  preset = f'--preset=corefed_ablation_{method}'
  expected = settings_lib.resolve(
    train_flags.parse([preset]), train_flags.FLAG_NAMES
  )
  assert {**run.settings, 'output_dir': None} == expected


def test_stand_ins_are_tasks():
  assert set(definitions.STAND_INS) | set(
    definitions.STAND_INS.values()
  ) <= set(tasks.TASK_NAMES)


_FEDERATED = {
  'fed_avg': ('fed_avg', None),
  'fedquad': ('fedquad', True),
  'moon': ('moon', None),
  'supcon_fl': ('supcon_fl', True),
  'triplet_fl': ('triplet_fl', True),
  'quadruplet_fl': ('quadruplet_fl', True),
  'supcon_fl_without_ce': ('supcon_fl', False),
  'triplet_fl_without_ce': ('triplet_fl', False),
  'quadruplet_fl_without_ce': ('quadruplet_fl', False),
}
_CENTRALISED = {
  'supervised': ('fed_avg', None),
  'supcon': ('supcon_fl', False),
  'triplet': ('triplet_fl', False),
  'quadruplet': ('quadruplet_fl', False),
}


def _runs(name, cell):
  """The runs of a cell of FedQuad's tables, by their method."""
  return {row.method: row.runs[0][0] for row in _rows(name) if row.cell == cell}


@pytest.mark.parametrize(
  ('numbers', 'setting', 'num_clients', 'methods'),
  [
    ((1, 3), 'iid_c10', 10, _FEDERATED),
    ((1, 3), 'a03_c10', 10, _FEDERATED),
    ((1, 3), 'a05_c10', 10, _FEDERATED),
    ((1, 3), 'centralised', 1, _CENTRALISED),
    ((2, 4), 'a05_c10', 10, _FEDERATED),
    ((2, 4), 'a05_c200', 200, _FEDERATED),
  ],
)
def test_methods_of_the_cells_of_fedquad(
  numbers, setting, num_clients, methods
):
  for number, data in zip(numbers, ('cifar10', 'cifar100'), strict=True):
    runs = _runs(f'fedquad_table{number}', f'{data}_{setting}')
    assert {
      method: (run.settings['algorithm'], run.settings.get('use_ce'))
      for method, run in runs.items()
    } == methods
    for run in runs.values():
      assert run.preset == f'fedquad_{data}_{setting}'
      assert run.settings['num_clients'] == num_clients


def test_the_paper_s_baselines_are_printed_with_and_without_ce():
  table = definitions.TABLES['fedquad_table1']
  assert table.printed_as == {
    f'{name}_without_ce': name
    for name in ('supcon_fl', 'triplet_fl', 'quadruplet_fl')
  }


@pytest.mark.parametrize(
  ('cell', 'methods', 'values'),
  [
    (
      'cifar10_beta0.5_m1.0_m1.0',
      ['fedquad', 'fedquad_without_ce'],
      (0.5, 1, 1),
    ),
    (
      'cifar10_beta0.5_m1.0_m0.5',
      ['fedquad', 'fedquad_without_ce'],
      (0.5, 1, 0.5),
    ),
    ('cifar10_beta1.0_m1.0_m0.5', ['fedquad'], (1, 1, 0.5)),
    ('cifar10_beta0.5_m2.0_m0.5', ['fedquad_without_ce'], (0.5, 2, 0.5)),
    ('cifar10_beta0.5_m5.0_m0.5', ['fedquad_without_ce'], (0.5, 5, 0.5)),
  ],
)
def test_the_ablation_of_fedquad_runs_what_the_paper_prints(
  cell, methods, values
):
  runs = _runs('fedquad_table5', cell)
  assert list(runs) == methods
  for method, run in runs.items():
    settings = run.settings
    assert settings['algorithm'] == 'fedquad'
    assert settings['use_ce'] == (method == 'fedquad')
    names = ('quadruplet_weight', 'margin_1', 'margin_2')
    assert tuple(settings[name] for name in names) == values
    assert (settings['rounds'], settings['num_clients']) == (5, 10)
    assert settings['partition'] == 'equal'


@pytest.mark.parametrize(('first', 'second'), [(1, 2), (3, 4)])
def test_fedquad_s_tables_share_the_runs_of_ten_clients(first, second):
  shared, other = (
    {run.output_dir for run in table_runs.distinct(_rows(name))}
    for name in (f'fedquad_table{first}', f'fedquad_table{second}')
  )
  assert len(shared & other) == len(_FEDERATED)
  assert len(shared) == 3 * len(_FEDERATED) + len(_CENTRALISED)


@pytest.mark.parametrize('name', [f'fedquad_table{i}' for i in range(1, 5)])
def test_embeddings_are_drawn_of_fedavg_and_fedquad(name):
  table = definitions.TABLES[name]
  assert table.figures == {'embeddings': ('fed_avg', 'fedquad')}


class TestRestriction:
  """A table with some of its methods."""

  def test_leaves_out_the_others_everywhere(self):
    table = definitions.TABLES['fedquad_table1'].restricted_to(
      ['moon', 'supcon']
    )
    cell = 'cifar10_iid_c10'
    assert table.methods_of(cell) == ('moon',)
    assert table.methods_of('cifar10_centralised') == ('supcon',)
    assert not any(table.figures.values())

  def test_keeps_the_order_of_the_table(self):
    table = definitions.TABLES['fedquad_table2'].restricted_to(
      ['moon', 'fedquad', 'fed_avg']
    )
    cell = 'cifar10_a05_c200'
    assert table.methods_of(cell) == ('fed_avg', 'fedquad', 'moon')
    assert table.figures == {'embeddings': ('fed_avg', 'fedquad')}

  def test_to_all_methods_changes_nothing(self):
    table = definitions.TABLES['fedquad_table1']
    assert table.restricted_to(table.methods) == table

  def test_leaves_the_table_itself_alone(self):
    table = definitions.TABLES['fedquad_table5']
    before = dict(table.cells)
    table.restricted_to(['fedquad'])
    assert table.cells == before
