"""The tables of the page on replication."""

import pathlib

import pandas as pd
import pytest

from tests.launchers.claiming import made_rows
from tff_fair.launchers.claiming import evidence
from tff_fair.launchers.claiming import replication
from tff_fair.launchers.claiming import verdicts

_PAGE = pathlib.Path(__file__).parents[3] / 'docs' / 'replication.md'


def _render(monkeypatch, tmp_path, statistic, *groups):
  """The cells of the one line of a table."""
  path = tmp_path / 'x.csv'
  rows = {'table': ['one'], 'what': ['What.'], 'statistic': [statistic]}
  pd.DataFrame(rows).to_csv(path, index=False)
  monkeypatch.setattr(replication, '_FILE', path)
  recorded = evidence.group(pd.DataFrame(sum(groups, [])))
  page = '<!-- replication one -->\n<!-- end of replication -->'
  found = replication.render(page, verdicts.judge(recorded), recorded)
  return found.splitlines()[3].strip('| ').split(' | ')


def test_a_comparison_has_its_interval(monkeypatch, tmp_path):
  statistic = (
    'fedquad_table1: global_accuracy of fedquad above fed_avg in'
    ' cifar10_a03_c10'
  )
  found = _render(
    monkeypatch,
    tmp_path,
    statistic,
    made_rows.both([44.0, 45.0, 46.0], [40.0] * 3, scale=0.1),
  )
  # 5 and sd 1; t of 98 % is 6.965 for three seeds.
  assert found == [
    'What.',
    '5 [0.979, 9.02]',
    '3',
    'reduced: cifar10, 10 %',
    'above 0',
  ]


@pytest.mark.parametrize(
  ('scores', 'shown'),
  [
    ([44.0, 45.0, 46.0], ['5 [0.979, 9.02]', '6.08', '3', '✓ holds']),
    ([45.0], ['5', '6.08', '1', '? undecided']),
    ([], ['6.08', '0', '', 'not run']),
  ],
)
def test_a_claim_has_its_verdict_and_the_papers_lead(
  monkeypatch, tmp_path, scores, shown
):
  found = _render(
    monkeypatch,
    tmp_path,
    'fedquad-6',
    made_rows.both(scores, [40.0] * len(scores)),
    made_rows.rows('moon', [1.0]),
  )
  assert found[0] == 'What. (fedquad-6)'
  assert [*found[1:4], found[-1]] == shown[:3] + shown[-1:]


def test_the_page_has_all_tables_and_no_other_results():
  text = _PAGE.read_text()
  for name in pd.read_csv(replication._FILE)['table'].unique():
    assert f'<!-- replication {name} -->' in text
  # Four pages, beside the tables.
  prose = [line for line in text.splitlines() if not line.startswith('|')]
  assert len(' '.join(prose).split()) < 2000
