import math
import pathlib

import pandas as pd
import pytest

from tests.launchers import tiny_table
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import published
from tff_fair.launchers.tables import table_report

_NAN = math.nan


@pytest.fixture(autouse=True)
def _tables(monkeypatch):
  monkeypatch.setitem(definitions.TABLES, 'tiny', tiny_table.TABLE)
  monkeypatch.setitem(definitions.TABLES, 'other', tiny_table.TABLE)
  monkeypatch.setattr(published, 'read', lambda: tiny_table.NUMBERS)


def _build(values, cell='digits', method='cffl', metric='cf', **of_row):
  """A row of the tiny table; `of_row` are its name, rounds, scale."""
  planner = tiny_table.planner(
    num_seeds=len(values),
    rounds=of_row.get('rounds'),
    scale=of_row.get('scale', 1.0),
    scale_clients=of_row.get('scale_clients', 1.0),
    output_dir=pathlib.Path('a b'),
  )
  (row,) = (
    row
    for row in planner.rows([cell])
    if (row.method, row.metric) == (method, metric)
  )
  return table_report.build_row(of_row.get('table', 'tiny'), row, values)


def test_a_row_by_hand():
  row = _build([98.0, 99.0])
  assert row['ours'] == '98.5'
  assert row['sd'] == '0.707107'  # sqrt(.5), ddof 1
  assert row['values'] == '98;99'
  assert (row['seeds'], row['undefined']) == ('2', '0')
  assert (row['paper'], row['paper_sd']) == ('99', '0.5')
  assert row['difference'] == '-0.5'
  assert (row['rounds'], row['paper_rounds']) == ('20', '20')
  assert (row['data'], row['marks']) == ('digits', '')


def test_commands_repeat_the_runs():
  first, second = _build([98.0, 99.0])['commands'].split(' && ')
  assert first == (
    'for seed in 0 1; do tff-fair train --preset=cffl_digits'
    ' --algorithm=standalone --model_seed=$seed --client_seed=$seed'
    " --data_seed=$seed --output_dir='a b/runs/cffl_digits/standalone'/seed_"
    '$seed; done'
  )
  assert '--algorithm=cffl --upload_rate=0.5 --model_seed=$seed' in second


def test_undefined_is_a_word_and_never_0():
  row = _build([_NAN, 98.0, _NAN])
  assert (row['ours'], row['sd'], row['undefined']) == ('98', '', '2')
  assert row['values'] == 'undefined;98;undefined'
  row = _build([_NAN], method='fed_avg')
  assert (row['ours'], row['difference'], row['undefined']) == (
    'undefined', '', '1',
  )  # fmt: skip


def test_a_share_of_the_data_is_marked(tmp_path):
  row = _build([98.0], cell='stand_in', rounds=3, scale=0.5)
  assert row['marks'] == (
    'data: digits, not mnist; share of the data: 0.5, not 1;'
    ' rounds: 3, not 20; seeds: 1, not 2'
  )
  assert '--data_fraction=0.5 ' in row['commands']
  section = table_report.write(tmp_path, 'tiny', [row])
  lines = [' '.join(line.split()) for line in section.splitlines()]
  assert '| stand_in | 98.00 † |' in lines


def test_files_hold_the_rows_and_a_grid(tmp_path):
  rows = [
    _build([_NAN, _NAN], method='fed_avg'),
    _build([98.0, 99.0]),
    _build([_NAN, 98.0], cell='stand_in'),
    _build([90.0, 91.0], metric='client_accuracy_max'),
  ]
  section = table_report.write(tmp_path, 'tiny', rows)
  frame = pd.read_csv(tmp_path / 'table.csv', dtype=str, keep_default_na=False)
  assert frame.to_dict('records') == rows
  text = (tmp_path / 'table.md').read_text()
  assert text == section
  lines = [' '.join(line.split()) for line in section.splitlines()]
  assert '## CF coefficient (per cent)' in lines
  assert '| | fed_avg | cffl |' in lines
  assert '| digits | undefined / 3.00 | 98.50 ± 0.71 / 99.00 ± 0.50 |' in lines
  assert '| stand_in | | 98.00 (1 of 2 undefined) † |' in lines
  assert '## Maximum accuracy of the clients (per cent)' in lines
  assert '| digits | 90.50 ± 0.71 |' in lines
  assert any('†' in line and 'Not as in the paper' in line for line in lines)


def test_tables_of_one_directory_keep_each_other_s_rows(tmp_path):
  both = [_build([98.0]), _build([97.0], cell='stand_in')]
  table_report.write(tmp_path, 'tiny', both)
  table_report.write(tmp_path, 'other', [_build([50.0], table='other')])
  table_report.write(tmp_path, 'tiny', [_build([96.0])])
  frame = pd.read_csv(tmp_path / 'table.csv')
  assert frame['table'].tolist() == ['other', 'tiny']
  assert frame['ours'].tolist() == [50, 96]
  text = (tmp_path / 'table.md').read_text()
  assert text.index('# other') < text.index('50.00')
  assert text.index('50.00') < text.index('# tiny') < text.index('96.00')


def test_fewer_clients_are_told():
  row = _build([98.0], scale_clients=0.4)
  told = 'share of the data: 0.4, not 1; clients: 2, not 5'
  assert row['marks'].startswith(told)


def test_synthetic_records_are_called_that(tmp_path):
  name, cell = 'fedakd_table4', 'ehr'
  planner = tiny_table.planner(
    definitions.TABLES[name],
    scale=0.5,
    data_dir=str(tmp_path),
    output_dir=tmp_path,
  )
  row = planner.rows([cell])[0]
  written = table_report.build_row(name, row, [50.0])
  assert written['data'] == 'synthetic records (ehr_scale 0.01)'
  assert written['marks'] == (
    'data: synthetic records (ehr_scale 0.01), not TriNetX; seeds: 1, not 3'
  )
