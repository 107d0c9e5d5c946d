"""What is written of the verdicts, with numbers by hand."""

import math

from tests.launchers.claiming import made_rows
from tff_fair.launchers.claiming import claims_page
from tff_fair.launchers.claiming import statements
from tff_fair.launchers.claiming import verdicts

_CLAIM = 'fedquad-6'  # Above FedAvg on CIFAR-10, Dirichlet(0.3).


def _judge(*groups, name=_CLAIM):
  claims = {name: statements.CLAIMS[name]}
  return verdicts.judge(made_rows.group(*groups), claims)


def _row(*groups, name=_CLAIM):
  """The first row of a claim in results/claims.csv."""
  return claims_page.to_frame(_judge(*groups, name=name)).iloc[0]


def _cells(*groups, name=_CLAIM):
  """The cells of a claim's first line on the page, without the first two."""
  recorded = made_rows.group(*groups)
  page = claims_page.to_page(_judge(*groups, name=name), recorded)
  line = next(row for row in page.splitlines() if f'**{name}**' in row)
  return [cell.strip() for cell in line.split('|')[3:-1]]


def test_a_row_says_what_was_compared():
  row = _row(made_rows.both([43.0, 44.0, 43.5, 99.0], [40.0] * 4, scale=0.05))
  expected = {
    'paper': 'fedquad',
    'place': 'table 1',
    'size': 'reduced',
    'comparisons': 1,
    'for': 1,
    'against': 0,
    'tie': 0,
    'open': 0,
    'missing': 0,
    'undefined': 0,
    'verdict': 'holds',
    'difference': 'global_accuracy, cifar10_a03_c10: fedquad minus fed_avg',
    'left': '43.5',
    'right': '40',
    'estimate': '3.5',
    'low': '1.49',  # 6.9646 * .5 / 3^.5 is 2.0105.
    'high': '5.51',
    'clients': '',
    'seeds': '3',
    'left_aside': '1',
    'negligible': '',
    'data': 'cifar10',
    'scale': '0.05',
    'rounds': '20',
    'source': 'run',
    'to_decide': '',
    'paper_supports': 1,
    'paper_prints': 1,
    'script_verdict': '-',
    'note': '',
  }
  assert row[list(expected)].to_dict() == expected


def test_a_line_begins_with_the_difference():
  shown = _cells(
    made_rows.both([43.0, 44.0, 43.5, 99.0], [40.0] * 4, scale=0.05)
  )
  what = '`global_accuracy, cifar10_a03_c10: fedquad minus fed_avg`'
  assert shown[:5] == [
    f'3.5 [1.49, 5.51] = 43.5 minus 40; {what}',
    '3 (1 left aside)',
    'reduced: cifar10; 0.05; 20',
    '✓ holds: 1 for',
    '',
  ]


def test_no_difference_has_what_counts():
  (*_, seeds, size, verdict) = _cells(
    made_rows.both([40.5, 40.0, 39.5], [40.0] * 3)
  )[:4]
  assert (seeds, size) == ('3', "the paper's: cifar10; 1; 20")
  assert verdict == '≈ no difference larger than 3.04: 1 tie'


def test_every_size_has_its_line():
  groups = [
    made_rows.both([43.0, 44.0, 43.5], [40.0] * 3, data='mnist', scale=0.1),
    made_rows.both([43.0], [40.0]),
  ]
  frame = claims_page.to_frame(_judge(*groups))
  assert frame[['size', 'verdict', 'seeds']].to_numpy().tolist() == [
    ["the paper's", 'undecided', '1'],
    ['stand-in', 'holds', '3'],
  ]
  # It is decided, though by other data, and is said to be.
  assert set(frame['to_decide']) == {''}
  block = claims_page.to_block(_judge(*groups), 'x.md').splitlines()
  assert block[2] == '| [FedQuad](x.md#fedquad) | 1 | - | - | 1 ✓ | 0 | 0 | 0 |'


def test_what_was_passed_over_is_in_the_notes():
  row = _row(
    made_rows.both([43.0, 44.0, 43.5], [40.0] * 3, scale=0.1),
    made_rows.both([38.0], [40.0], scale=0.4),
  )
  assert row['verdict'] == 'holds' and row['scale'] == '0.1'
  assert row['note'] == 'Also with cifar10; 0.4; 20, 1 seed: -2.'


def test_what_would_decide_it():
  flags = (
    '--table=fedquad_table1 --cells=cifar10_a03_c10 --methods=fedquad,fed_avg'
  )
  # As in the test of the plan.
  assert _row(made_rows.both([3.0, 9.0, 15.0], [0.0] * 3))['to_decide'] == (
    f'about 6 seeds: look at 6, 0.3 core-hours: `{flags} --seeds=6`'
  )
  # The page has no flags.
  (*_, shown) = _cells(made_rows.both([3.0, 9.0, 15.0], [0.0] * 3))[:5]
  assert shown == 'about 6 seeds: look at 6, 0.3 core-hours'
  assert _row(made_rows.both([3.0], [0.0]))['to_decide'] == (
    f'look at 3, 0.2 core-hours: `{flags} --seeds=3`'
  )
  assert _row()['to_decide'] == f'look at 3: `{flags} --seeds=3`'
  row = _row(made_rows.both([-4.2, 1.8, 7.8], [0.0] * 3))
  assert row['to_decide'].startswith('about 6')
  assert ' seeds: beyond the planned 9, ' in row['to_decide']
  assert row['to_decide'].endswith(f': `{flags} --seeds=9`')


def test_claims_without_runs_are_listed_by_their_place():
  results = verdicts.judge(
    made_rows.group(made_rows.both([5.0, 5.1, 5.2], [1.0] * 3))
  )
  page = claims_page.to_page(results, made_rows.group([]))
  section = page.partition('\n## FedQuad\n')[2].partition('\n## ')[0]
  assert section.count('\n| **') == 1 and f'\n| **{_CLAIM}**' in section
  listed = section.partition('**Not run**')[2]
  for name, claim in statements.CLAIMS.items():
    if name.startswith('fedquad-') and name != _CLAIM:
      assert f' **{name}** {claim.text}' in listed
  (line,) = [x for x in page.splitlines() if '**fedaboost-9**' in x]
  assert line.startswith('- *table 1:* ') and ' (not counted)' in line


def test_undefined_numbers_and_transcribed_means():
  nan = math.nan
  row = _row(made_rows.both([nan, nan], [1.0, 2.0]))
  assert (row['left'], row['right'], row['estimate']) == ('', '1.5', '')
  assert row['seeds'] == '0'
  row = _row(made_rows.both({'0-1': 5.0}, {'0-1': 5.0}, source='transcribed'))
  assert (row['seeds'], row['source']) == ('means', 'transcribed')
  assert (row['estimate'], row['low']) == ('0', '')


def test_clients_are_counted():
  shown = _cells(
    made_rows.rows(
      'cffl_u0.1',
      [100.0, 100.0, 80.0],
      table='cffl_table2',
      cell='mnist_p5',
      metric='above_standalone',
      data='mnist',
      rounds=30,
    ),
    name='cffl-19',
  )
  assert shown[0].startswith('-6.667 [')
  assert ' = 93.33 minus 100 (14 of 15 clients); `above_standalone' in shown[0]


def test_what_cannot_exist_is_counted_and_said():
  row = _row(name='fedakd-25')
  assert (row['comparisons'], row['missing'], row['undefined']) == (25, 20, 5)
  start = '5 of 25 comparisons cannot exist and are left out. All of FedAvg'
  assert row['note'].startswith(start)
  assert 'fed_avg' not in row['to_decide']


def test_several_settings_of_a_claim_are_listed():
  rows = [
    made_rows.rows('quadruplet_fl', [5.0, 6.0], scale=0.1),
    made_rows.rows('triplet_fl', [5.0, 5.0], scale=0.1),
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
  assert listed == ['2, means', '0.015, 0.1', '5, 20', 'run, transcribed']


def test_counts_are_of_all_claims_and_their_papers():
  results = verdicts.judge(
    made_rows.group(made_rows.both([5.0, 5.1, 5.2], [1.0] * 3))
  )
  lines = claims_page.to_block(results, 'x.md').splitlines()
  # Of all other claims nothing was run, and some do not count.
  uncounted = sum(bool(c.uncounted) for c in statements.CLAIMS.values())
  counted = len(statements.CLAIMS) - uncounted
  assert '| [FedQuad](x.md#fedquad) | 36 | 1 ✓ | - | - | 35 | 35 | 0 |' in lines
  assert lines[-1] == f'| all | {counted} | 1 ✓ | - | - | {counted - 1} |' + (
    f' {counted - 1} | {uncounted} |'
  )
  page = claims_page.to_page(results, made_rows.group([]))
  assert "| the paper's | 1 | 0 | 0 | 0 | 0 | 1 |" in page


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
        [value, value + 1.0, value + 0.5],
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
    '50 [50, 50] = 70.5 minus 20.5',
    '-5 [-5, -5] = 15.5 minus 20.5',
    '-2 [-2, -2] = 18.5 minus 20.5',
    '10 [10, 10] = 70.5 minus 60.5',
    '55 [55, 55] = 70.5 minus 15.5',
    '40 [40, 40] = 60.5 minus 20.5',
    '2.34 = 93.5 minus 91.16',  # Table 1 of the paper.
  ]
  assert lines[9:11] == ['| seeds | 3 |', '| data; share | mnist; 0.15 |']


def test_a_row_of_the_page_has_the_verdict_under_both_readings():
  place = {'scale': 0.05}
  shown = _cells(
    made_rows.rows('quadruplet_fl', [5.0, 5.0, 5.0], **place),
    made_rows.rows('triplet_fl', [9.0, 9.1, 9.2], **place),
    made_rows.rows('quadruplet_fl_without_ce', [8.0, 8.0, 8.0], **place),
    made_rows.rows('triplet_fl_without_ce', [1.0, 1.1, 1.2], **place),
    name='fedquad-28',
  )
  what = 'global_accuracy, cifar10_a03_c10: '
  assert shown[0] == (
    '-4.1 [-4.502, -3.698] = 5 minus 9.1;'
    f' `{what}quadruplet_fl minus triplet_fl`'
  )
  assert shown[3] == '✗ does not hold: 1 against, 2 missing'
  assert shown[5:7] == [
    '3 of 3',
    '6.9 [6.498, 7.302] = 8 minus 1.1; '
    f'`{what}quadruplet_fl_without_ce minus triplet_fl_without_ce`:'
    ' undecided (1 of 3 comparisons)',
  ]
