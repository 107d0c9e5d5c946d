"""Tables of recorded results, worked by hand."""

import math
from unittest import mock

import pandas as pd

from tff_fair.launchers import write_docs
from tff_fair.launchers.results import layouts
from tff_fair.launchers.results import records
from tff_fair.launchers.results import results_tables
from tff_fair.launchers.results import titles
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import published

_PAPER = {
  ('fedquad_table1', 'cifar10_a03_c10', 'fed_avg', 'global_accuracy'): (
    published.Number(74.05, math.nan)
  ),
  ('fedquad_table1', 'cifar10_a03_c10', 'supcon_fl', 'global_accuracy'): (
    published.Number(68.0, 1.25)
  ),
}
_HEADLINE = """paper,layout,cell,metric,methods
FedQuad,fedquad_table1,cifar10_a03_c10,global_accuracy,fedquad fed_avg
"""


def _rows(method, *values, **others):
  """A row for each seed, of FedQuad's table 1 unless told otherwise."""
  return [
    {
      'table': 'fedquad_table1',
      'cell': 'cifar10_a03_c10',
      'method': method,
      'data': 'cifar10',
      'seed': str(seed),
      'scale': 1.0,
      'clients': 1.0,
      'rounds': 20,
      'metric': 'global_accuracy',
      'value': value,
      'sd': math.nan,
      'source': 'run',
      **others,
    }
    for seed, value in enumerate(values)
  ]


def _lines(*rows, name='fedquad_table1', paper=None):
  """The lines of a table that are not empty."""
  layout, frame = layouts.LAYOUTS[name], pd.DataFrame(sum(rows, []))
  with mock.patch.object(published, 'read', lambda: paper or {}):
    text = results_tables.render(layout, frame)
  return [line for line in text.splitlines() if line]


def test_means_deviations_and_missing_methods():
  lines = _lines(
    _rows('fed_avg', 70.0, 71.0, 72.04), _rows('moon', 60.06), paper=_PAPER
  )
  # The paper's half goes up; a method without result has no row.
  assert lines == [
    "**Accuracy of the global model (per cent)**, ours / the paper's:",
    '|  | Dirichlet(0.3), 3 seeds |',
    '| --- | ---: |',
    '| FedAvg | 71.0 ± 1.0 / 74.1 |',
    '| MOON | 60.1 (1 seed) / - |',
  ]


def test_the_papers_number_stands_beside_every_version_of_a_baseline():
  rows = _rows('supcon_fl', 41.0), _rows('supcon_fl_without_ce', 42.0)
  assert _lines(*rows, paper=_PAPER)[3:] == [
    '| SupConFL | 41.0 / 68.0 ± 1.3 |',
    '| SupConFL, without cross-entropy | 42.0 / 68.0 ± 1.3 |',
  ]
  # Not beside that of another cell, nor of another metric.
  other = _rows('supcon_fl', 41.0, cell='cifar10_a05_c10')
  assert _lines(other, paper=_PAPER)[-1] == '| SupConFL | 41.0 |'


def test_undefined_values_are_no_zeros():
  place = {
    'table': 'cffl_classes',
    'cell': 'mnist_class_p5',
    'data': 'mnist',
    'rounds': 50,
    'metric': 'cf',
  }
  nan = math.nan
  lines = _lines(
    _rows('cffl_u0.1', 90.0, nan, 92.0, **place),
    _rows('cffl_u1', nan, nan, nan, **place),
    name='cffl_classes',
  )
  assert lines == [
    '**CF coefficient (per cent)**:',
    '|  | P5, 3 seeds |',
    '| --- | ---: |',
    '| CFFL, u .1 | 91.00 ± 1.41 (1 of 3 undefined) |',
    '| CFFL, u 1 | undefined |',
  ]


def test_every_scale_number_of_rounds_and_stand_in_has_its_column():
  lines = _lines(
    _rows('fed_avg', 40.0, scale=0.015),
    _rows('fed_avg', 50.0, rounds=10),
    _rows('fed_avg', 60.0, scale=0.05),
    _rows('fed_avg', 70.0),
    _rows('fed_avg', 30.0, cell='cifar10_iid_c10'),
  )
  assert lines[1::2] == [
    '|  | IID, 1 seed | Dirichlet(0.3), 1 seed'
    ' | Dirichlet(0.3), 10 rounds, not 20, 1 seed'
    ' | Dirichlet(0.3), 5 % of the data, 1 seed'
    ' | Dirichlet(0.3), 1.5 % of the data, 1 seed |',
    '| FedAvg | 30.0 | 70.0 | 50.0 | 60.0 | 40.0 |',
  ]
  place = {'table': 'fedakd_table1', 'cell': 'fmnist_pow', 'data': 'mnist'}
  lines = _lines(
    _rows('standalone', 95.0, metric='client_accuracy_max', **place),
    _rows('standalone', 93.0, metric='cf', **place),
    name='fedakd_table1_fmnist',
  )
  # A grid a metric, in the table's order.
  assert lines[0] == '**CF coefficient (per cent)**:'
  assert lines[4] == '**Maximum accuracy of the clients (per cent)**:'
  assert lines[1] == lines[5] == '|  | POW, on MNIST, 1 seed |'


def test_a_transcribed_number_is_marked_and_not_printed_finer_than_it_was():
  place = {
    'table': 'corefed_table1',
    'cell': 'cifar10',
    'rounds': 1000,
    'metric': 'client_accuracy_mean',
  }
  lines = _lines(
    _rows('corefed', 0.722, source='transcribed', **place),
    _rows('ditto', 0.5, source='transcribed', **place),
    _rows('fed_avg', 0.5, **place),
    name='corefed_table1_cifar10',
  )
  assert lines == [
    '**CIFAR-10, 1 seed**:',
    '|  | Mean accuracy of the clients (fraction) |',
    '| --- | ---: |',
    '| CoRe-Fed | .722 ‡ |',
    '| Ditto | .500 ‡ |',
    '| FedAvg | .5000 |',
  ]


def test_a_transcribed_mean_does_not_count_beside_runs_of_its_number():
  mean = _rows('fed_avg', 2.5, sd=1.0, seed='0-2', source='transcribed')
  assert _lines(mean)[1::2] == [
    '|  | Dirichlet(0.3), 3 seeds |',
    '| FedAvg | 2.5 ± 1.0 ‡ |',
  ]
  assert (
    _lines(mean, _rows('fed_avg', 3.0, 5.0))[-1] == '| FedAvg | 4.0 ± 1.4 |'
  )
  # Of another scale it is another number.
  lines = _lines(mean, _rows('fed_avg', 3.0, scale=0.5))
  assert lines[-1] == '| FedAvg | 2.5 ± 1.0 ‡ | 3.0 |'


def test_a_table_without_results_says_so():
  lines = _lines(_rows('fed_avg', 70.0), name='fedquad_table5')
  assert lines == [results_tables.NOTHING]


def test_headlines_are_of_the_fullest_setting_that_has_all_methods(
  tmp_path, monkeypatch
):
  monkeypatch.setattr(published, 'read', lambda: _PAPER)
  file = tmp_path / 'headlines.csv'
  file.write_text(_HEADLINE)
  alone = _rows('fedquad', 80.0, 80.0, 80.0)
  both = _rows('fedquad', 50.0, 50.0, 50.0, scale=0.1)
  both += _rows('fed_avg', 40.0, 40.0, 40.0, scale=0.1)

  def lines(rows):
    frame = pd.DataFrame(rows)
    text = results_tables.render_headlines(frame, file)
    return text.splitlines()[2:]

  assert lines(alone + both) == [
    '| FedQuad, Dirichlet(0.3), 10 % of the data, 3 seeds | Accuracy of the'
    ' global model (per cent) | FedQuad 50.0 ± 0.0 / -; FedAvg 40.0 ± 0.0 /'
    ' 74.1 |'
  ]
  assert lines(alone) == []
  assert lines(alone + both[:-1]) == []  # Two seeds make no headline,
  old = [{**row, 'source': 'transcribed'} for row in both]
  assert lines(alone + old) == []  # and transcribed numbers make none.


def test_other_metrics_stay_in_the_file():
  place = {
    'table': 'cffl_why',
    'cell': 'mnist_p10',
    'data': 'mnist',
    'rounds': 30,
  }
  shown = _rows('standalone', 90.0, metric='client_accuracy_max', **place)
  other = _rows('standalone', 50.0, metric='accuracy_of_largest', **place)
  lines = _lines(shown, other, name='cffl_why')
  assert [line.partition(' (')[0] for line in lines[::3]] == [
    '**Maximum accuracy of the clients',
    '| Standalone | 90.00 |',
  ]


def test_layouts_show_every_recorded_cell_and_titles_are_unique():
  frame = records.read(write_docs.ROOT / 'results')
  shown = {
    (layout.table, cell)
    for layout in layouts.LAYOUTS.values()
    for cell in layout.cells
  }
  assert {*zip(frame['table'], frame['cell'], strict=True)} <= shown
  for layout in layouts.LAYOUTS.values():
    table = definitions.TABLES[layout.table]
    assert {*layout.cells} <= {*table.cells}
    assert {*layout.metrics} <= {*table.metrics}
    methods = [titles.method(name) for name in table.methods]
    assert len({*methods}) == len(methods)
    assert len({*layout.cells.values()}) == len(layout.cells)
