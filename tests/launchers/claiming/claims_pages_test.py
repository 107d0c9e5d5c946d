"""The table and the pages of verdicts; the committed ones are up to date."""

import dataclasses
import math

import pytest

from tests.launchers.claiming import made_rows
from tff_fair.launchers import claims as launcher
from tff_fair.launchers.claiming import claims_docs
from tff_fair.launchers.claiming import claims_table
from tff_fair.launchers.claiming import definitions
from tff_fair.launchers.claiming import papers
from tff_fair.launchers.claiming import protocols
from tff_fair.launchers.claiming import recorded as recorded_lib
from tff_fair.launchers.claiming import verdicts
from tff_fair.launchers.claiming import wording
from tff_fair.launchers.results import records

_CLAIM = 'fedquad-6'  # Above FedAvg on CIFAR-10, Dirichlet(0.3).


@pytest.fixture(scope='module', name='committed')
def _committed():
  return recorded_lib.Recorded(records.read(launcher.ROOT / 'results'))


@pytest.fixture(scope='module', name='results')
def _results(committed):
  return verdicts.judge(committed)


def _judged(*groups):
  return verdicts.judge(made_rows.made(*groups))


def _row(results, name=_CLAIM):
  frame = claims_table.frame(results)
  return frame[frame['id'] == name].iloc[0]


def test_committed_table_is_what_the_results_say(results):
  path = launcher.ROOT / 'results' / claims_table.FILE
  assert path.read_text() == claims_table.frame(results).to_csv(index=False)


def test_committed_page_is_what_the_results_say(results, committed):
  text = (launcher.ROOT / 'docs' / 'claims.md').read_text()
  assert text == claims_docs.page(results, protocols.measure(committed))


def test_committed_readme_is_what_the_results_say(results):
  text = (launcher.ROOT / 'README.md').read_text()
  assert text == claims_docs.render(text, results)
  for symbol in claims_docs.SYMBOLS.values():
    assert f'| {symbol} ' in text


def test_pages_follow_the_results(results, committed):
  other = _judged(made_rows.rows('fedquad', [1.0, 2.0]))
  readme = (launcher.ROOT / 'README.md').read_text()
  assert claims_docs.render(readme, other) != readme
  page = claims_docs.page(other, [])
  assert page != claims_docs.page(results, protocols.measure(committed))
  assert 'Not run yet.' in page


def test_a_row_says_what_was_compared():
  row = _row(
    _judged(
      made_rows.rows('fedquad', [43.0, 44.0, 43.5], scale=0.05),
      made_rows.rows('fed_avg', [40.0, 40.0, 40.0], scale=0.05),
    )
  )
  assert row['verdict'] == 'holds'
  assert row['statistic'] == (
    'fedquad_table1: global_accuracy of fedquad above fed_avg in'
    ' cifar10_a03_c10'
  )
  expected = {
    'paper': 'fedquad',
    'place': 'table 1',
    'comparisons': 1,
    'for': 1,
    'against': 0,
    'open': 0,
    'missing': 0,
    'left': '43.5',
    'right': '40',
    'estimate': '3.5',
    'low': '2.258',
    'high': '4.742',
    'seeds': '3',
    'data': 'cifar10',
    'scale': '0.05',
    'rounds': '20',
    'source': 'run',
    'paper_supports': 1,
    'paper_prints': 1,
    'script_verdict': '-',
    'note': '',
  }
  assert row[list(expected)].to_dict() == expected


def test_a_row_without_results_says_so():
  row = _row(_judged(made_rows.rows('moon', [1.0])))
  assert row['verdict'] == 'undecided at this scale'
  assert (row['missing'], row['note'], row['seeds']) == (1, 'Not run.', '')
  assert row['estimate'] == row['low'] == ''


@pytest.mark.parametrize(
  ('values', 'answer'),
  [
    ([1.0, 1.0], 'yes'),
    ([9.0, 9.0], 'no'),
    ([1.0, 9.0], 'undecided'),
    ([], 'not run'),
  ],
)
def test_whether_the_other_reading_brings_a_claim_out(values, answer):
  results = _judged(
    made_rows.rows('fedquad', [5.0, 5.0]),
    made_rows.rows('triplet_fl_without_ce', values),
  )
  assert _row(results, 'fedquad-8')['script_verdict'] == answer


def test_several_settings_and_means_in_words():
  results = _judged(
    made_rows.rows('fedquad', [5.0, 6.0]),
    made_rows.rows('fed_avg', [5.0, 5.0]),
    made_rows.rows('fedquad', {'0-1': 5.0}, scale=0.5),
    made_rows.rows('moon', {'0-1': 5.0}, scale=0.5, source='transcribed'),
  )
  run = [*results[_CLAIM].ours.run, *results['fedquad-10'].ours.run]
  assert wording.seeds(run) == '2, means'
  assert wording.scale(run) == '0.5, 1'
  assert wording.source(run) == 'run, transcribed'
  assert wording.difference(run[0]) == '5.5 less 5: 0.5 [-5.853, 6.853]'
  assert wording.difference(run[1]) == '5 less 5: 0'


def test_an_undefined_difference_in_words():
  results = _judged(
    made_rows.rows('fedquad', [math.nan, math.nan]),
    made_rows.rows('fed_avg', [1.0, 1.0]),
  )
  measured = results[_CLAIM].ours.telling
  assert wording.difference(measured) == 'undefined'
  assert wording.seeds([measured]) == '0'


def test_a_statistic_that_is_no_product_lists_its_comparisons():
  side = made_rows.side
  text = wording.statistic(
    definitions.order([side('fedquad'), side('fed_avg'), side('moon')])
  )
  assert text.count(';') == 1 and text.count(' above ') == 2
  other = side('fedquad', cell='cifar10_iid_c10')
  text = wording.statistic([definitions.Comparison(side('fedquad'), other)])
  assert 'above fedquad in cifar10_iid_c10 in cifar10_a03_c10' in text


@pytest.mark.parametrize(
  ('above', 'margin', 'relation'),
  [
    (True, 0.0, 'above'),
    (False, 0.0, 'below'),
    (True, 0.2, 'more than 0.2 above'),
    (False, 0.2, 'more than 0.2 below'),
    (True, -2.0, 'less than 2 below'),
    (False, -2.0, 'less than 2 above'),
  ],
)
def test_a_margin_in_words(above, margin, relation):
  compared = dataclasses.replace(made_rows.against(above=above), margin=margin)
  text = wording.comparison(compared)
  assert f'fedquad {relation} fed_avg' in text


def test_data_that_stand_in_are_named():
  results = _judged(
    *(
      made_rows.rows(
        method,
        [0.9, 0.9],
        table='corefed_table1',
        cell='fmnist',
        metric='client_accuracy_mean',
        data='mnist',
      )
      for method in ('corefed', 'ditto')
    )
  )
  page = claims_docs.page(results, [])
  assert page.count('MNIST stands in for Fashion-MNIST.') == 1


def test_counts_are_of_all_claims_and_their_papers():
  results = _judged(
    made_rows.rows('fedquad', [5.0, 5.1]), made_rows.rows('fed_avg', [1.0, 1.0])
  )
  counts = claims_table.counts(results)
  assert list(counts.index) == list(papers.PAPERS)
  assert counts.to_numpy().sum() == len(papers.CLAIMS)
  assert counts.loc['fedquad', 'holds'] == counts['holds'].sum() == 1
  # Of all other claims nothing was run, and some do not count.
  lines = claims_docs.page(results, []).splitlines()
  line = next(r for r in lines if r.startswith('| all '))
  uncounted = sum(bool(claim.uncounted) for claim in papers.CLAIMS.values())
  assert counts['not counted'].sum() == uncounted
  counted = len(papers.CLAIMS) - uncounted
  assert line == f'| all | {counted} | 1 | 0 | 0 | {counted - 1} |' + (
    f' {counted - 1} | {uncounted} |'
  )


def test_a_claim_that_no_run_decides_does_not_count():
  claim = dataclasses.replace(papers.CLAIMS[_CLAIM], uncounted='Because.')
  made = made_rows.made(
    made_rows.rows('fedquad', [5.0, 5.1]), made_rows.rows('fed_avg', [1.0, 1.0])
  )
  results = verdicts.judge(made, {_CLAIM: claim})
  assert results[_CLAIM].ours.verdict == verdicts.UNCOUNTED
  row = _row(results)
  assert (row['verdict'], row['note']) == ('not counted', 'Because.')
  assert claims_table.counts(results).loc['fedquad', 'holds'] == 0


def test_the_protocols_of_the_scripts():
  values = {
    'fed_avg': 20.0,
    'fedakd_own_protocol': 70.0,
    'fedakd_fed_avg_protocol': 15.0,
    'fedakd_local_fed_avg_protocol': 18.0,
    'fed_avg_fedakd_protocol': 60.0,
  }
  rows = [
    made_rows.rows(
      method,
      [value, value + 1.0],
      table='fedakd_protocols',
      cell='cifar10_pow',
      metric=protocols.METRIC,
      scale=0.15,
      rounds=30
      if method in ('fedakd_own_protocol', 'fed_avg_fedakd_protocol')
      else 20,
    )
    for method, value in values.items()
  ]
  (cell,) = protocols.measure(made_rows.made(*rows))
  assert cell.name == 'cifar10_pow'
  found = [m.estimate.mean for m in cell.differences.values()]
  assert found == [50.0, -5.0, -2.0, 10.0, 55.0, 40.0]
  page = claims_docs.page(_judged(*rows), [cell])
  assert '| 70.5 less 20.5: 50 [50, 50] |' in page
  # Table 1 of the paper.
  assert '| lead in the paper | 70.96 less 63.95: 7.01 |' in page
  assert 'Share of the data: 0.15. Seeds: 2.' in page
