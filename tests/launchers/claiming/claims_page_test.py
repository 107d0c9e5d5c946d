"""What is written of the verdicts, with numbers by hand."""

import math

from tests.launchers.claiming import made_rows
from tff_fair.launchers.claiming import claims_page
from tff_fair.launchers.claiming import statements
from tff_fair.launchers.claiming import verdicts

_CLAIM = 'fedquad-6'  # Above FedAvg on CIFAR-10, Dirichlet(0.3).


def _row(*groups, name=_CLAIM):
  """The row of a claim in results/claims.csv."""
  claims = {name: statements.CLAIMS[name]}
  results = verdicts.judge(made_rows.group(*groups), claims)
  return claims_page.to_frame(results).iloc[0]


def test_a_row_says_what_was_compared():
  row = _row(
    made_rows.rows('fedquad', [43.0, 44.0, 43.5], scale=0.05),
    made_rows.rows('fed_avg', [40.0, 40.0, 40.0], scale=0.05),
  )
  expected = {
    'paper': 'fedquad',
    'place': 'table 1',
    'comparisons': 1,
    'for': 1,
    'against': 0,
    'open': 0,
    'missing': 0,
    'verdict': 'holds',
    'difference': 'global_accuracy, cifar10_a03_c10: fedquad less fed_avg',
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


def test_undefined_numbers_and_transcribed_means():
  nan = math.nan
  row = _row(
    made_rows.rows('fedquad', [nan, nan]), made_rows.rows('fed_avg', [1.0, 2.0])
  )
  assert (row['left'], row['right'], row['estimate']) == ('', '1.5', '')
  assert row['seeds'] == '0'
  row = _row(
    *(
      made_rows.rows(method, {'0-1': 5.0}, source='transcribed')
      for method in ('fedquad', 'fed_avg')
    )
  )
  assert (row['seeds'], row['source']) == ('means', 'transcribed')
  assert (row['estimate'], row['low']) == ('0', '')


def test_several_settings_of_a_claim_are_listed():
  rows = [
    made_rows.rows('quadruplet_fl', [5.0, 6.0]),
    made_rows.rows('triplet_fl', [5.0, 5.0]),
    *(
      made_rows.rows(
        method,
        {'0-1': 5.0},
        cell='cifar10_a05_c10',
        scale=0.015,
        rounds=5,
        source='transcribed',
      )
      for method in ('quadruplet_fl', 'triplet_fl')
    ),
  ]
  row = _row(*rows, name='fedquad-28')
  assert (row['open'], row['missing']) == (2, 1)
  listed = row[['seeds', 'scale', 'rounds', 'source']].tolist()
  assert listed == ['2, means', '0.015, 1', '5, 20', 'run, transcribed']


def test_counts_are_of_all_claims_and_their_papers():
  results = verdicts.judge(
    made_rows.group(
      made_rows.rows('fedquad', [5.0, 5.1]),
      made_rows.rows('fed_avg', [1.0, 1.0]),
    )
  )
  lines = claims_page.to_block(results, 'x.md').splitlines()
  # Of all other claims nothing was run, and some do not count.
  uncounted = sum(bool(c.uncounted) for c in statements.CLAIMS.values())
  counted = len(statements.CLAIMS) - uncounted
  assert '| [FedQuad](x.md#fedquad) | 36 | 1 | 0 | 0 | 35 | 35 | 0 |' in lines
  assert lines[-1] == f'| all | {counted} | 1 | 0 | 0 | {counted - 1} |' + (
    f' {counted - 1} | {uncounted} |'
  )


def test_protocols_are_on_the_page():
  place = {'table': 'fedakd_protocols', 'cell': 'fmnist_pow'}
  protocols = {
    'fed_avg': (20.0, 20),
    'fedakd_own_protocol': (70.0, 30),
    'fedakd_fed_avg_protocol': (15.0, 20),
    'fedakd_local_fed_avg_protocol': (18.0, 20),
    'fed_avg_fedakd_protocol': (60.0, 30),
  }
  recorded = made_rows.group(
    *(
      made_rows.rows(
        method,
        [value, value + 1.0],
        metric='client_accuracy_mean',
        data='mnist',
        scale=0.15,
        rounds=rounds,
        **place,
      )
      for method, (value, rounds) in protocols.items()
    )
  )
  page = claims_page.to_page(verdicts.judge(recorded), recorded)
  lines = page[page.index('| difference | `fmnist_pow` |') :].splitlines()
  assert [line.split('|')[2].strip() for line in lines[2:9]] == [
    '70.5 less 20.5: 50 [50, 50]',
    '15.5 less 20.5: -5 [-5, -5]',
    '18.5 less 20.5: -2 [-2, -2]',
    '70.5 less 60.5: 10 [10, 10]',
    '70.5 less 15.5: 55 [55, 55]',
    '60.5 less 20.5: 40 [40, 40]',
    '93.5 less 91.16: 2.34',  # Table 1 of the paper.
  ]
  assert lines[9:11] == ['| seeds | 2 |', '| data; share | mnist; 0.15 |']


def test_a_row_of_the_page_has_the_verdict_under_both_readings():
  place = {'scale': 0.05}
  recorded = made_rows.group(
    made_rows.rows('quadruplet_fl', [5.0, 5.0], **place),
    made_rows.rows('triplet_fl', [9.0, 9.0], **place),
    made_rows.rows('quadruplet_fl_without_ce', [8.0, 8.0], **place),
    made_rows.rows('triplet_fl_without_ce', [1.0, 1.0], **place),
  )
  page = claims_page.to_page(verdicts.judge(recorded), recorded)
  (line,) = (row for row in page.splitlines() if '**fedquad-28**' in row)
  what = 'global_accuracy, cifar10_a03_c10: '
  assert [cell.strip() for cell in line.split('|')[3:9]] == [
    f'`{what}quadruplet_fl less triplet_fl`: 5 less 9: -4 [-4, -4]',
    '2',
    'cifar10; 0.05; 20',
    '3 of 3',
    '✗ does not hold: 0, 1, 0, 2',
    f'undecided: `{what}quadruplet_fl_without_ce less triplet_fl_without_ce`:'
    ' 8 less 1: 7 [7, 7]',
  ]
