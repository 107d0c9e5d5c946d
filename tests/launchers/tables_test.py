"""The tables' definitions name things that exist."""

import pathlib

import pytest

from launchers import presets
from launchers import published
from launchers import table_metrics
from launchers import table_plots
from launchers import table_runs
from launchers import tables
import tasks

_COMPARED_WITH_ALONE = ('client_accuracy', 'scatter')


def _rows(name):
  planner = table_runs.Planner(
    tables.TABLES[name],
    num_seeds=1,
    rounds=None,
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
  ('name', 'metric', 'count'),
  [
    ('cffl_table1', 'cf', 42),
    ('cffl_table2', 'client_accuracy_max', 30),
  ],
)
def test_every_published_number_has_its_row(name, metric, count):
  numbers = {key for key in published.read() if key[0] == name}
  rows = {
    (name, row.cell, row.method, row.metric)
    for row in _rows(name)
    if row.metric == metric
  }
  assert rows == numbers and len(rows) == count


@pytest.mark.parametrize('name', ['cffl_classes', 'cffl_freerider'])
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
