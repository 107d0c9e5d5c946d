"""The page of results says what the recorded results say."""

import math
import re

import pandas as pd
import pytest

from tff_fair.launchers.results import headlines
from tff_fair.launchers.results import layouts
from tff_fair.launchers.results import records
from tff_fair.launchers.results import results_docs
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


def _row(method, value, **others):
  """A recorded number, of FedQuad's table 1 unless told otherwise."""
  return {
    'table': 'fedquad_table1',
    'cell': 'cifar10_a03_c10',
    'method': method,
    'data': 'cifar10',
    'seed': '0',
    'scale': 1.0,
    'rounds': 20,
    'metric': 'global_accuracy',
    'value': value,
    'sd': math.nan,
    'source': 'run',
    **others,
  }


def _transcribed(method, value, sd=math.nan, **others):
  return _row(method, value, sd=sd, source='transcribed', **others)


def _lines(*rows, name='fedquad_table1', numbers=None):
  """The lines of a table that are not empty."""
  layout, frame = layouts.LAYOUTS[name], pd.DataFrame(rows)
  text = results_tables.render(layout, frame, numbers or {})
  return [line for line in text.splitlines() if line]


def test_the_committed_pages_are_written_from_the_committed_results():
  frame = records.read(results_docs.ROOT / 'results')
  pages = [page.read_text() for page in results_docs.PAGES]
  for page in pages:
    assert results_docs.render(page, frame) == page
  for name in (*layouts.LAYOUTS, 'headlines'):
    for mark in (
      f'<!-- results {name} -->\n',
      f'<!-- end of results {name} -->',
    ):
      assert ''.join(pages).count(mark) == 1


def _seeds(*args, number=3, **others):
  return [_row(*args, seed=str(seed), **others) for seed in range(number)]


def test_headlines_are_of_the_fullest_setting_that_has_all_methods():
  headline = headlines.Headline(
    paper='FedQuad',
    layout='fedquad_table1',
    cell='cifar10_a03_c10',
    metric='global_accuracy',
    methods=('fedquad', 'fed_avg'),
  )
  alone = _seeds('fedquad', 80.0)
  both = _seeds('fedquad', 50.0, scale=0.1) + _seeds('fed_avg', 40.0, scale=0.1)

  def lines(rows):
    return headlines.render(pd.DataFrame(rows), _PAPER, [headline]).split('\n')

  assert lines(alone + both)[2] == (
    '| FedQuad, Dirichlet(0.3), 10 % of the data, 3 seeds | Accuracy of the'
    ' global model (per cent) | FedQuad 50.0 ± 0.0 / -; FedAvg 40.0 ± 0.0 /'
    ' 74.1 |'
  )
  assert len(lines(alone)) == 2
  assert len(lines(alone + both[:-1])) == 2, 'two seeds make no headline'
  old = [{**row, 'source': 'transcribed'} for row in both]
  assert len(lines(alone + old)) == 2, 'transcribed numbers make no headline'


def test_every_recorded_number_is_on_the_page():
  frame = records.read(results_docs.ROOT / 'results')
  shown = {
    (layout.table, cell)
    for layout in layouts.LAYOUTS.values()
    for cell in layout.cells
  }
  assert {*zip(frame['table'], frame['cell'], strict=True)} <= shown


def test_layouts_have_cells_of_their_tables_and_methods_titles_of_their_own():
  for layout in layouts.LAYOUTS.values():
    table = definitions.TABLES[layout.table]
    assert {*layout.cells} <= {*table.cells}
    assert len({titles.method(name) for name in table.methods}) == len(
      table.methods
    )


def test_means_deviations_and_missing_methods():
  seeds = [
    _row('fed_avg', value, seed=str(seed))
    for seed, value in enumerate((70.0, 71.0, 72.04))
  ]
  lines = _lines(*seeds, _row('moon', 60.06), numbers=_PAPER)
  # The paper prints halves as 74.05; a method without result has no row.
  assert lines == [
    "**Accuracy of the global model (per cent)**, ours / the paper's:",
    '|  | Dirichlet(0.3), 3 seeds |',
    '| --- | ---: |',
    '| FedAvg | 71.0 ± 1.0 / 74.1 |',
    '| MOON | 60.1 (1 seed) / - |',
  ]


def test_the_papers_number_stands_beside_every_version_of_a_baseline():
  rows = [_row('supcon_fl', 41.0), _row('supcon_fl_without_ce', 42.0)]
  assert _lines(*rows, numbers=_PAPER)[3:] == [
    '| SupConFL | 41.0 / 68.0 ± 1.3 |',
    '| SupConFL, without cross-entropy | 42.0 / 68.0 ± 1.3 |',
  ]


def test_undefined_values():
  def cf(method, *values):
    return [
      _row(
        method,
        value,
        table='cffl_classes',
        cell='mnist_class_p5',
        data='mnist',
        rounds=50,
        metric='cf',
        seed=str(seed),
      )
      for seed, value in enumerate(values)
    ]

  nan = math.nan
  rows = [*cf('cffl_u0.1', 90.0, nan, 92.0), *cf('cffl_u1', nan, nan, nan)]
  assert _lines(*rows, name='cffl_classes') == [
    '**CF coefficient (per cent)**:',
    '|  | P5, 3 seeds |',
    '| --- | ---: |',
    '| CFFL, u .1 | 91.00 ± 1.41 (1 of 3 undefined) |',
    '| CFFL, u 1 | undefined |',
  ]


def test_every_scale_number_of_rounds_and_stand_in_has_its_column():
  rows = [
    _row('fed_avg', 40.0, scale=0.015),
    _row('fed_avg', 50.0, rounds=10),
    _row('fed_avg', 60.0, scale=0.05),
    _row('fed_avg', 70.0),
  ]
  assert _lines(*rows)[1::2] == [
    '|  | Dirichlet(0.3), 1 seed | Dirichlet(0.3), 10 rounds, not 20, 1 seed'
    ' | Dirichlet(0.3), 5 % of the data, 1 seed'
    ' | Dirichlet(0.3), 1.5 % of the data, 1 seed |',
    '| FedAvg | 70.0 | 50.0 | 60.0 | 40.0 |',
  ]
  row = _row('standalone', 95.0, table='fedakd_table1', cell='fmnist_pow')
  row |= {'data': 'mnist', 'metric': 'client_accuracy_max', 'scale': 0.15}
  lines = _lines(row, name='fedakd_table1_fmnist')
  assert lines[1] == '|  | POW, on MNIST, 15 % of the data, 1 seed |'


def test_a_transcribed_number_is_marked_and_not_printed_finer_than_it_was():
  rows = [
    _row(
      method,
      0.5,
      table='corefed_table1',
      cell='cifar10',
      rounds=1000,
      metric='client_accuracy_mean',
    )
    for method in ('corefed', 'ditto', 'fed_avg')
  ]
  rows[0] |= {'value': 0.722, 'source': 'transcribed'}
  rows[1] |= {'value': 0.5, 'source': 'transcribed'}
  assert _lines(*rows, name='corefed_table1_cifar10') == [
    '**CIFAR-10, 1 seed**:',
    '|  | Mean accuracy of the clients (fraction) |',
    '| --- | ---: |',
    '| CoRe-Fed | .722 ‡ |',
    '| Ditto | .500 ‡ |',
    '| FedAvg | .5000 |',
  ]


def test_runs_join_a_transcribed_mean_and_replace_it_once_they_have_its_seeds():
  mean = _transcribed('fed_avg', 2.5, 1.0, seed='0-2')  # Of 1.5, 2.5, 3.5.
  runs = [_row('fed_avg', float(s), seed=str(s)) for s in range(5)]
  # Seeds 3 and 4 are new, 0 is in the mean: 1.5, 2.5, 3.5, 3, 4.
  assert _lines(mean, runs[0], *runs[3:])[-1] == '| FedAvg | 2.9 ± 1.0 ‡ |'
  assert _lines(mean, *runs[:3])[-1] == '| FedAvg | 1.0 ± 1.0 |'
  # Without its deviation there is none of all.
  mean['sd'] = math.nan
  assert _lines(mean, runs[3])[-1] == '| FedAvg | 2.6 ‡ |'


def test_a_table_without_results_says_so():
  row = _row('fed_avg', 70.0)
  assert _lines(row, name='fedquad_table5') == [results_tables.NOTHING]


def test_a_block_of_no_table_ends_the_command():
  page = '<!-- results fedqad_table1 -->\n<!-- end of results fedqad_table1 -->'
  with pytest.raises(results_docs.BlockError) as error:
    results_docs.render(page, pd.DataFrame([_row('fed_avg', 70.0)]))
  assert str(error.value).startswith(
    "A block must be a known name, found 'fedqad_table1'."
  )


def test_damaged_results_end_the_command_in_a_sentence(tmp_path, monkeypatch):
  folder = tmp_path / 'results'
  folder.mkdir()
  good = results_docs.ROOT / 'results' / 'fedquad_table5.csv'
  text = good.read_text().replace(',0.015,', ',a bit,', 1)
  (folder / good.name).write_text(text)
  page = tmp_path / 'results.md'
  page.write_text('as before')
  monkeypatch.setattr(results_docs, 'ROOT', tmp_path)
  monkeypatch.setattr(results_docs, 'PAGES', (page,))
  with pytest.raises(SystemExit) as end:
    results_docs.main(['results_docs'])
  assert re.fullmatch(r'Error: .* found .*\.', str(end.value))
  assert 'a bit' in str(end.value) and 'fedquad_table5.csv' in str(end.value)
  assert page.read_text() == 'as before'
