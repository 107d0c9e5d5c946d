"""The tables' definitions name things that exist."""

import pathlib

import pytest

from launchers import presets
from launchers import published
from launchers import settings as settings_lib
from launchers import table_metrics
from launchers import table_plots
from launchers import table_runs
from launchers import tables
from launchers import train_flags
import tasks

_COMPARED_WITH_ALONE = ('client_accuracy', 'scatter')


def _rows(name):
  planner = table_runs.Planner(
    tables.TABLES[name],
    num_seeds=1,
    rounds=None,
    dataset=None,
    data_dir=None,
    output_dir=pathlib.Path('x'),
  )
  # Resolves the flags of every run.
  return planner.rows(tables.TABLES[name].cells)


@pytest.mark.parametrize('name', tables.TABLES)
def test_names_exist(name):
  table = tables.TABLES[name]
  for cell in table.cells.values():
    assert cell.preset in presets.PRESETS
    assert cell.data in tasks.TASK_NAMES
  for metric in table.metrics:
    needed = table_metrics.METRICS[metric].references
    assert set(needed) <= set(table.references)
  for figure, methods in table.figures.items():
    assert figure in table_plots.FIGURES
    assert methods and set(methods) <= set(table.methods)
    if figure in _COMPARED_WITH_ALONE:
      assert 'standalone' in table.references
  for reference in table.references.values():
    assert reference.preset is None or reference.preset in presets.PRESETS


@pytest.mark.parametrize('name', tables.TABLES)
def test_rows_resolve_and_their_presets_are_of_the_paper_s_data(name):
  table = tables.TABLES[name]
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
  rows = {
    (name, row.cell, row.method, called[row.metric])
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
  assert set(tables.STAND_INS) | set(tables.STAND_INS.values()) <= set(
    tasks.TASK_NAMES
  )
