"""What pages show of groups of people."""

import json

import pandas as pd
import pytest

from tests.launchers import report_run
from tests.launchers import web_page
from tests.launchers.comparison import made_comparison
from tff_fair.launchers import frame
from tff_fair.launchers.comparison import analysis as analysis_lib
from tff_fair.launchers.comparison import reading
from tff_fair.launchers.pages import compare_page
from tff_fair.launchers.pages import group_blocks
from tff_fair.launchers.pages import report_page

_MEASURES = [0.75, 0.5, 0.625, None]


def _write_groups(folder):
  """Groups of a run, with names that are markup or numbers."""
  name = 'group_accuracy_difference'
  pd.DataFrame(
    [
      ['all', 'sex', '<b>f', 90, *_MEASURES],
      ['all', 'sex', '1', 9, *[None] * 4],
      ['0', 'sex', '<b>f', 30, *_MEASURES],
    ],
    columns=[
      *('client_id', 'column', 'group', 'count', 'accuracy'),
      *('selection_rate', 'true_positive_rate', 'false_positive_rate'),
    ],
  ).to_csv(folder / 'groups.csv', index=False)
  pd.DataFrame(
    [
      ['all', 'sex', 2, 0, 0.25, 0.5, 0.4, 0.125],
      [0, 'sex', 1, 1, *[None] * 4],
    ],
    columns=[
      *('client_id', 'column', 'num_groups', 'num_small_groups', name),
      *('demographic_parity_difference', 'demographic_parity_ratio'),
      'equalized_odds_difference',
    ],
  ).to_csv(folder / 'group_differences.csv', index=False)


def test_a_report_has_tables_and_a_picture(tmp_path):
  plain = report_run.write(tmp_path / 'plain')
  path = report_run.write(
    tmp_path / 'run', algorithm='ditto', names=['<i>', 'B', 'C']
  )
  _write_groups(path)
  runs = frame.read_runs([plain, path])
  page = web_page.Page(report_page.render(runs))
  page.check_is_safe()
  assert group_blocks.TITLE in page.lines
  assert '[Groups by sex]' in page.lines
  table = group_blocks.make_group_table(runs[1])
  rows = {row.title: [cell.text for cell in row.cells] for row in table.rows}
  assert rows == {
    '<b>f': ['90', '0.750', '0.500', '0.625', '–'],
    '1': ['9', '–', '–', '–', '–'],
  }
  table = group_blocks.make_client_table(runs[1])
  rows = {row.title: [cell.text for cell in row.cells] for row in table.rows}
  assert rows == {
    'all clients together': ['2', '0', '0.250', '0.500', '0.400', '0.125'],
    '0 <i>': ['1', '1', '–', '–', '–', '–'],
  }
  # Without groups there is no section.
  (alone,) = frame.read_runs([plain])
  assert group_blocks.TITLE not in report_page.render([alone])


def test_a_damaged_table_is_one_sentence(tmp_path):
  path = report_run.write(tmp_path / 'run')
  _write_groups(path)
  (path / 'groups.csv').write_text('client_id,column,group\nall,sex,f\n')
  with pytest.raises(
    frame.FrameError, match='groups.csv must .*no column .*count'
  ):
    frame.read_run(path)


def test_a_comparison_has_the_methods_for_each_group(tmp_path):
  paths = made_comparison.write(tmp_path)
  table = pd.read_csv(paths[0])
  names = ('count', 'accuracy', 'selection_rate', 'true_positive_rate')
  table['groups'] = None
  for i, row in table[table['chosen']].iterrows():
    rates = {'false_positive_rate': None, 'column': 'sex'}
    # The second group is too small with the first seed.
    small = [5, None, None, None]
    large = [100 + row['seed'], 0.5 + 0.1 * row['seed'], 0.25, 1]
    found = {'f': large, 'm': large if row['seed'] else small}
    table.loc[i, 'groups'] = json.dumps(
      [
        {**rates, 'group': group, **dict(zip(names, values, strict=True))}
        for group, values in found.items()
      ]
    )
    table.loc[i, 'group_accuracy_min'] = 0.5
  facts = {**made_comparison.facts(), 'positive_class': '<i>ill'}
  reading.write(table, facts, *paths)
  found = analysis_lib.analyse(*reading.read(*paths))
  page = web_page.Page(compare_page.render(found))
  page.check_is_safe()
  (number,) = [
    i for i, rows in enumerate(page.tables) if rows[0][1][0] == 'Test examples'
  ]
  rows = [[cell[0] for cell in row] for row in page.row('FedAvg', number)]
  # Means over the seeds 0, 1 and 2.
  assert rows == [
    ['101', '0.600', '0.250', '1.000', '–'],
    ['69', '0.650', '0.250', '1.000', '–'],
  ]
  assert 'Worst group\N{NO-BREAK SPACE}↑' in page.text
  assert 'The positive class is ‘<i>ill’.' in page.text
  assert (
    'Groups by sex: FedAvg predicts rightly for 0.600 of f (the lowest) to'
    ' 0.650 of m (the highest), and predicts ‘<i>ill’ for 0.250 of each group.'
  ) in page.text
