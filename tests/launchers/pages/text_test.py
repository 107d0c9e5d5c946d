"""Who leads, whether that may be said, and the caveats, as values and words."""

import json
import math

import pytest

from tests.launchers import report_run
from tests.launchers.comparison import made_comparison
from tff_fair.launchers import differences
from tff_fair.launchers import frame
from tff_fair.launchers import summary
from tff_fair.launchers.comparison import client_scores
from tff_fair.launchers.options import methods
from tff_fair.launchers.pages import text

_MEAN, _WORST10 = 'client_accuracy_mean', 'client_accuracy_worst10'


_WEAK = (
  'FedAvg’s one model may be a weak reference for a model for each client.'
  ' With --fine_tune_epochs=5 it is also scored after five more epochs on each'
  ' client.'
)


def _of_scores(folder, scores, **facts):
  seeds = range(len(scores['fed_avg']))
  return made_comparison.analyse(
    folder,
    made_comparison.rows(seeds, scores=scores),
    made_comparison.facts(seeds, len(scores['fed_avg'][0]), **facts),
  )


def _settled(rows):
  """The rows with curves that do not rise, all but one of their points."""
  for row in rows:
    if row['chosen']:
      mean = [row['client_accuracy_mean']] * 2
      curve = {'rounds': [3, 6], 'mean': mean, 'worst10': mean}
      row['curve'] = json.dumps(curve)
  return rows


# Of five seeds: 0.58 in the mean, always more, sometimes more, always less.
_USUAL = (0.5, 0.6, 0.7, 0.6, 0.5)
_ABOVE = (0.6, 0.7, 0.82, 0.7, 0.62)
_AROUND = (0.4, 0.8, 0.8, 0.7, 0.5)
_BELOW = (0.2, 0.3, 0.4, 0.3, 0.2)
_FAR_BELOW = (0.2, 0.3, 0.42, 0.3, 0.22)


def _of_two(folder, ditto, cffl=_BELOW, num_seeds=5, rising=()):
  """Ditto and CFFL against FedAvg, with settled curves but for some."""
  values = {'fed_avg': _USUAL, 'ditto': ditto, 'cffl': cffl}
  scores = {m: [[v] for v in row[:num_seeds]] for m, row in values.items()}
  rows = _settled(made_comparison.rows(range(num_seeds), scores=scores))
  for row in rows:
    if row['method'] in rising and row['chosen']:
      end = row['client_accuracy_mean']
      mean = [end - 0.1, end]
      curve = {'rounds': [3, 6], 'mean': mean, 'worst10': mean}
      row['curve'] = json.dumps(curve)
  about = made_comparison.facts(range(num_seeds), 1)
  return made_comparison.analyse(folder, rows, about)


class TestLeads:
  def test_a_separable_settled_lead_of_five_seeds(self, tmp_path):
    analysis = _of_two(tmp_path, _ABOVE)
    assert text.find_leader(analysis, _MEAN) == 'ditto'
    said = text.describe_methods(analysis)
    assert said[3] == (
      'A model for each client: Ditto leads in mean accuracy with 0.688,'
      ' separably above FedAvg’s 0.580; next is CFFL with 0.280.'
    )
    assert not any('is called a leader' in sentence for sentence in said)

  def test_the_reference_of_models_for_each_client_is_weak(self, tmp_path):
    said = text.describe_methods(_of_two(tmp_path, _ABOVE))
    assert _WEAK in said
    said = text.describe_methods(_of_two(tmp_path, _AROUND))
    assert not any('weak reference' in sentence for sentence in said)

  def test_the_lead_over_the_fine_tuned_baseline(self, tmp_path):
    values = {'fed_avg': _USUAL, 'ditto': _ABOVE}
    scores = {m: [[v] for v in row] for m, row in values.items()}
    rows = made_comparison.rows(range(5), scores=scores)
    leads = (0.01, -0.01, 0.03, 0, 0.02)
    for row in rows:
      if row['method'] == 'fed_avg':
        tuned = _ABOVE[row['seed']] - leads[row['seed']]
        row['fine_tuned_accuracy_mean'] = tuned
    about = made_comparison.facts(range(5), 1)
    said = text.describe_methods(made_comparison.analyse(tmp_path, rows, about))
    # 0.01 +- 2.776 * 0.0158 / sqrt(5), and 0.688 - 0.01.
    expected = (
      'FedAvg, whose model each client trains further before it is scored, has'
      ' a mean accuracy of 0.678. Ditto’s lead over it in mean accuracy is'
      ' 0.010, with a 95 % interval of [-0.010, 0.030].'
    )
    assert expected in said

  def test_the_cf_coefficient_of_the_fine_tuned_baseline(self, tmp_path):
    rows = made_comparison.rows()
    for row in rows:
      if row['method'] == 'fed_avg' and row['chosen']:
        row['fine_tuned_accuracy_mean'] = 0.75
        row['fine_tuned_accuracies'] = '[0.9, 0.8, 0.7, 0.6]'
      if row['method'] == 'standalone' and row['chosen']:
        row['client_accuracies'] = '[0.8, 0.7, 0.6, 0.5]'
    said = text.describe_methods(made_comparison.analyse(tmp_path, rows))
    assert any(
      'has a mean accuracy of 0.750 and a CF coefficient of 100.0.' in s
      for s in said
    )

  def test_four_seeds_are_too_few(self, tmp_path):
    analysis = _of_two(tmp_path, _ABOVE, num_seeds=4)
    assert analysis.verdict('ditto', _MEAN) > 0
    assert text.find_leader(analysis, _MEAN) is None
    said = text.describe_methods(analysis)
    assert 'Ditto is highest in mean accuracy with 0.705, sep' in said[3]
    assert 'that takes 5 seeds, found 4' in said[6]

  @pytest.mark.parametrize('method', ['fed_avg', 'ditto'])
  def test_none_while_it_or_the_baseline_still_rises(self, tmp_path, method):
    analysis = _of_two(tmp_path, _ABOVE, rising=[method])
    assert text.find_rising(analysis, _MEAN) == (method,)
    assert text.find_leader(analysis, _MEAN) is None
    said = ' '.join(text.describe_methods(analysis))
    title = methods.title(method)
    assert f'{title} has not converged' in said
    # Another method may rise.
    other = _of_two(tmp_path / 'x', _ABOVE, rising=['cffl'])
    assert text.find_leader(other, _MEAN) == 'ditto'

  def test_none_where_no_curve_tells_whether_it_rises(self, tmp_path):
    scores = {
      m: [[v] for v in row]
      for m, row in (('fed_avg', _USUAL), ('ditto', _ABOVE))
    }
    rows = made_comparison.rows(range(5), scores=scores)
    for row in rows:
      row['curve'] = '{"rounds": [6], "mean": [0.7], "worst10": [0.7]}'
    about = made_comparison.facts(range(5), 1)
    analysis = made_comparison.analyse(tmp_path, rows, about)
    assert text.find_rising(analysis, _MEAN) == ('fed_avg', 'ditto')
    assert text.find_leader(analysis, _MEAN) is None

  @pytest.mark.parametrize(
    ('ditto', 'told'),
    [
      (_AROUND, '0.640, not separable from FedAvg’s 0.580'),
      (_FAR_BELOW, '0.288, separably below FedAvg’s 0.580'),
    ],
  )
  def test_none_that_is_not_separably_above_the_baseline(
    self, tmp_path, ditto, told
  ):
    analysis = _of_two(tmp_path, ditto)
    assert not text.find_rising(analysis, _MEAN)
    assert text.find_leader(analysis, _MEAN) is None
    said = text.describe_methods(analysis)
    assert said[1] == (
      'One model for all: FedAvg is highest in mean accuracy with 0.580.'
    )
    assert said[3] == (
      f'A model for each client: Ditto is highest in mean accuracy with {told};'
      ' next is CFFL with 0.280.'
    )
    lead = 'no separable lead over FedAvg in mean accuracy and worst 10 %'
    assert lead in said[6]
    # The seeds at hand tell that it is below.
    takes = [s for s in said if s.startswith('To tell')]
    assert len(takes) == (ditto is _AROUND)

  def test_a_tie_is_none(self, tmp_path):
    analysis = _of_two(tmp_path, _ABOVE, _ABOVE)
    assert analysis.leaders(_MEAN) == ('cffl', 'ditto')
    assert text.find_leader(analysis, _MEAN) is None
    said = text.describe_methods(analysis)
    assert said[3] == (
      'A model for each client: All 2 methods tie in mean accuracy at 0.688,'
      ' separably above FedAvg’s 0.580.'
    )

  def test_for_cf_standalone_must_have_settled_too(self, tmp_path):
    # CF is 100 for Ditto, and varies around -100 for FedAvg.
    scores = {
      'fed_avg': [[0.5, 0.4, 0.3 + 0.01 * seed] for seed in range(5)],
      'ditto': [[0.6, 0.7, 0.8]] * 5,
      'standalone': [[0.3, 0.4, 0.5]] * 5,
    }
    rows = _settled(made_comparison.rows(range(5), scores=scores))
    about = made_comparison.facts(range(5), 3)
    settled = made_comparison.analyse(tmp_path / 'settled', rows, about)
    assert text.find_leader(settled, 'cf') == 'ditto'
    for row in rows:
      if row['method'] == 'standalone':
        row['curve'] = (
          '{"rounds": [3, 6], "mean": [0.3, 0.4], "worst10": [0.3, 0.4]}'
        )
    rising = made_comparison.analyse(tmp_path / 'rising', rows, about)
    assert text.find_leader(rising, _MEAN) == 'ditto'
    assert text.find_leader(rising, 'cf') is None
    assert (
      'No method with a model for each client is called a leader in CF'
      ' coefficient: Standalone has not converged.'
    ) in text.describe_methods(rising)


def test_in_full(tmp_path):
  analysis = _of_scores(
    tmp_path,
    {
      'fed_avg': [[0.4, 0.6], [0.5, 0.7], [0.6, 0.8]],
      'ditto': [[0.7, 0.8], [0.8, 0.9], [0.8, 0.9]],
      'fed_prox': [[0.3, 0.8], [0.5, 0.6], [0.6, 0.9]],
      'standalone': [[0.3, 0.4], [0.4, 0.5], [0.5, 0.6]],
    },
    excluded={'fed_rdn': 'It needs images.'},
  )
  one, own = 'One model for all: ', 'A model for each client: '
  assert text.describe_methods(analysis) == [
    'On digits with 2 clients, 6 rounds and 3 seeds:',
    f'{one}FedProx is highest in mean accuracy with 0.617, not separable from'
    ' FedAvg’s 0.600.',
    f'{one}FedAvg is highest in worst 10 % with 0.500; next is FedProx with'
    ' 0.467.',
    'No method with one model for all is called a leader: that takes 5 seeds,'
    ' found 3; FedAvg and FedProx have not converged; no separable lead over'
    ' FedAvg in mean accuracy.',
    # .05, -.05 and .05 have .289 sd; at 98.33 %, for three methods, t is 2.453
    # for 72 seeds (.2891 sd), and less for 73.
    'To tell the highest with one model for all from FedAvg would take, if the'
    ' differences stay as they are, about: mean accuracy more than 50 seeds.',
    f'{own}Ditto is highest in mean accuracy with 0.817, not separable from'
    ' FedAvg’s 0.600; next is Standalone with 0.450.',
    # 0.3, 0.3 and 0.2: t is 8, p 0.0153, and 0.046 for three methods.
    f'{own}Ditto is highest in worst 10 % with 0.767, separably above FedAvg’s'
    ' 0.500; next is Standalone with 0.400.',
    # CF is 100 where the order of two clients is that of Standalone.
    f'{own}Ditto is highest in CF coefficient with 100.0, not separable from'
    ' FedAvg’s 100.0; 1.00 of its clients are better off than alone (FedAvg:'
    ' 1.00) and the mean gain is 0.367 (FedAvg: 0.150).',
    'No method with a model for each client is called a leader: that takes 5'
    ' seeds, found 3; FedAvg, Ditto and Standalone have not converged; no'
    ' separable lead over FedAvg in mean accuracy and CF coefficient.',
    # .25, .25 and .15 have 3.75 sd; t is 7.65 for three seeds (4.42 sd) and
    # 4.86 for four (2.43 sd).
    'To tell the highest with a model for each client from FedAvg would take,'
    ' if the differences stay as they are, about: mean accuracy 5 seeds; worst'
    ' 10 % 5 seeds; CF coefficient more than 50 seeds. The rounds of 2 more'
    ' seeds of these methods take 6 s, one run after the other.',
    'Separable from FedAvg: Ditto above it in worst 10 %.',
    _WEAK,
    # A line to .5, .6 and .7 in six rounds: a fifth of these.
    'Not converged: FedAvg’s mean accuracy rises by 0.1200 in the last fifth of'
    ' the rounds, which is more than the standard error of that over the seeds,'
    ' 0.0115.',
    # t at 98.33 % is 7.65 for three seeds, and that over the root of 3 is 4.4.
    'Separable: a paired t test over 3 seeds, p < 0.05, corrected for the'
    ' number of methods (Holm). A mark takes a lead of up to 4.4 standard'
    ' deviations of the paired differences, so not separable does not mean'
    ' equal.',
    'Left out: FedRDN: It needs images.',
  ]


def test_what_is_shown_to_cost_little_is_told(tmp_path):
  analysis = _of_scores(
    tmp_path,
    {
      'fed_avg': [[0.5], [0.6], [0.7]],
      'ditto': [[0.501], [0.602], [0.703]],
    },
  )
  told = [s for s in text.describe_methods(analysis) if 'larger than' in s]
  assert told == [
    'No difference from FedAvg larger than 0.01, by two one-sided tests: Ditto'
    ' in mean accuracy; Ditto in worst 10 %.'
  ]


def test_a_cf_coefficient_is_told_with_gains_and_harm(
  tmp_path,
):
  analysis = _of_scores(
    tmp_path,
    {
      'fed_avg': [[0.5, 0.6, 0.5], [0.5, 0.6, 0.4]],
      'ditto': [[0.3, 0.4, 0.5], [0.4, 0.5, 0.6]],
      'standalone': [[0.3, 0.4, 0.5], [0.3, 0.4, 0.5]],
    },
    test_examples=[[400] * 3] * 2,
  )
  said = text.describe_methods(analysis)
  assert (
    '0.50 of its clients are better off than alone (FedAvg: 0.67), the mean'
    ' gain is 0.050 (FedAvg: 0.117) and 0.0 clients are harmed (FedAvg: 0.5)'
  ) in said[5]


def test_a_measure_that_the_baseline_or_all_lack(tmp_path):
  # FedAvg serves all alike, so that its CF coefficient is not defined.
  scores = {
    'fed_avg': 2 * [[0.5, 0.5]],
    'ditto': 2 * [[0.5, 0.7]],
    'standalone': 2 * [[0.3, 0.5]],
  }
  said = text.describe_methods(_of_scores(tmp_path / 'x', scores))
  assert 'Ditto is highest in CF coefficient with 100.0; F' in said[5]
  assert 'FedAvg has no defined value' in said[5]
  del scores['standalone']
  said = text.describe_methods(_of_scores(tmp_path / 'y', scores))
  assert said[5].endswith(': No method has a defined CF coefficient.')


class TestCaveats:
  def _say(self, folder, lowest):
    # Ten clients, of which one is worse, on 100 test examples each.
    scores = {m: [[lowest, *[0.9] * 9]] * 2 for m in ('fed_avg', 'ditto')}
    analysis = _of_scores(folder, scores, test_examples=[[100] * 10] * 2)
    return ' '.join(text.describe_methods(analysis))

  def test_chance_may_be_the_reason(self, tmp_path):
    said = self._say(tmp_path, 0.85)
    chance = client_scores.worst_by_chance([100] * 10, 0.895)
    assert abs(chance - 0.85) < 0.02
    assert f'a worst 10 % of {chance:.3f}. It has 0.850; within 0.02 of' in said
    assert 'Within 0.02 of chance: 2 of 2 methods.' in said

  def test_chance_is_not_the_reason(self, tmp_path):
    said = self._say(tmp_path, 0.3)
    assert 'It has 0.300. Within 0.02 of chance: 0 of 2 methods.' in said

  @pytest.mark.parametrize(
    ('sizes', 'names', 'told'),
    [
      ([[50, 60, 9]] * 2, ('a', 'b', 'Armed\nForces'), ': 1 of 3 clients.'),
      ([[50, 9, 9]] * 2, 'abc', ': 2 of 3 clients.'),
      ([[50, 9, 9], [50, 60, 9]], 'abc', ': 1 to 2 of 3 clients.'),
      ([[50, 9, 9], [9, 60, 9]], 'abc', ': 2 of 3 clients.'),
      ([[50, 9, 60]] * 2, '', ': 1 of 3 clients.'),
      ([[50, 60, 10]] * 2, 'abc', None),
    ],
  )
  def test_clients_with_few_test_examples(self, tmp_path, sizes, names, told):
    scores = {'fed_avg': 2 * [[0.5, 0.6, 1.0]], 'ditto': 2 * [[0.7, 0.7, 0.0]]}
    analysis = _of_scores(
      tmp_path, scores, test_examples=sizes, client_names=[*names]
    )
    found = [s for s in text.describe_methods(analysis) if 'averages only' in s]
    assert len(found) == (told is not None)
    assert not told or told in found[0]
    if sizes == [[50, 60, 9]] * 2:
      assert found[0].endswith('0.700 (Ditto), against 0.550 (FedAvg).')

  def test_the_mean_without_them_is_tested(self, tmp_path):
    # The third client hides Ditto's lead of .1 to .13 at the two others.
    noise = (1.0, 0.0, 1.0, 0.5, 0.0)
    lead = (0.1, 0.12, 0.11, 0.13, 0.1)
    scores = {
      'fed_avg': [[0.5, 0.6, 1 - n] for n in noise],
      'ditto': [
        [0.5 + d, 0.6 + d, n] for n, d in zip(noise, lead, strict=True)
      ],
    }
    found = []
    for at, size in enumerate((50, 9)):
      sizes = [[size, size, 9]] * 5
      analysis = _of_scores(tmp_path / str(at), scores, test_examples=sizes)
      assert analysis.verdict('ditto', _MEAN) == 0
      said = text.describe_methods(analysis)
      found += [s for s in said if 'averages only' in s]
    assert found[0].endswith(
      '0.662 (Ditto), against 0.550 (FedAvg); separably higher: Ditto.'
    )
    assert found[1].endswith('count in averages only: 3 of 3 clients.')

  def test_methods_in_turn_are_not_ranked(self, tmp_path):
    levels = {'fed_avg': 0.5, 'ditto': 0.2, 'dssgd': 0.9}
    scores = {m: [[level] * 4] * 2 for m, level in levels.items()}
    said = text.describe_methods(_of_scores(tmp_path, scores))
    assert 'FedAvg is highest' in said[1]
    told = [sentence for sentence in said if 'DSSGD' in sentence]
    # A quarter of 0.9, after 1.5 of 6 rounds, is above Ditto's 0.2.
    assert told == [
      'Not ranked, because their clients take turns, a round being 4 updates in'
      ' sequence: DSSGD (place 2 of 3). The place is that after 6 updates in'
      ' sequence, as many as FedAvg has.'
    ]

  def test_one_seed_claims_nothing(self, tmp_path):
    analysis = made_comparison.analyse(
      tmp_path, made_comparison.rows((0,)), made_comparison.facts((0,))
    )
    said = ' '.join(text.describe_methods(analysis))
    assert 'separabl' not in said
    assert 'With a single seed there is no interval' in said
    assert 'whether it has converged takes more than one seed.' in said
    # Six rounds of five methods, .1 seconds each, but .2 of Ditto.
    assert 'from 5 a leader may be named. The rounds of 4 more seeds' in said
    assert 'take 14 s, one run after the other.' in said

  def test_what_it_takes_and_what_a_deadline_has_left(self, tmp_path):
    analysis = _of_two(tmp_path, _AROUND)
    (told,) = [s for s in text.describe_methods(analysis) if 'would take' in s]
    # -.1, .2, .1, .1 and 0: .06 has .5262 sd of .1140. At 97.5 %, t is 2.423
    # for 21 seeds (.5288 sd) and 2.414 for 22 (.5147 sd).
    assert told == (
      'To tell the highest with a model for each client from FedAvg would take,'
      ' if the differences stay as they are, about: mean accuracy 22 seeds;'
      ' worst 10 % 22 seeds. The rounds of 17 more seeds of these methods take'
      ' 41 s, one run after the other.'
    )
    scores = {'fed_avg': [[0.5], [0.6]], 'ditto': [[0.6], [0.5]]}
    left = {'runs': 7, 'methods': ['cffl', 'fedakd']}
    said = text.describe_methods(_of_scores(tmp_path / 'x', scores))
    assert not any('Not started' in sentence for sentence in said)
    scores = {'fed_avg': [[0.5], [0.6]], 'ditto': [[0.7], [0.5]]}
    said = text.describe_methods(
      _of_scores(tmp_path / 'y', scores, not_started=left)
    )
    assert said[-1] == (
      'Not started in time: 7 runs of CFFL and FedAKD. Only methods with all'
      ' seeds are ranked.'
    )

  def test_an_incomplete_baseline(self, tmp_path):
    rows = [
      row
      for row in made_comparison.rows()
      if (row['method'], row['seed']) != ('fed_avg', 1)
    ]
    rows.append(made_comparison.trial_row('fed_avg', 1, 0, 'diverged'))
    said = text.describe_methods(made_comparison.analyse(tmp_path, rows))
    assert 'FedAvg lacks a result for some seed' in ' '.join(said)
    assert said[-1] == 'Left out: FedAvg diverged with seed 1.'
    assert not any('from FedAvg' in s or 'above FedAvg' in s for s in said)

  @pytest.mark.parametrize('found', [['fed_avg'], []])
  def test_nothing_to_compare(self, tmp_path, found):
    rows = made_comparison.rows(methods=found)
    rows.append(made_comparison.trial_row('fed_avg', 1, 5, 'diverged'))
    said = text.describe_methods(made_comparison.analyse(tmp_path, rows))
    assert said[0].endswith('there is nothing to compare.')


def test_of_all_methods_names_a_few_of_them(tmp_path):
  seeds = range(5)
  rows = made_comparison.rows(seeds, methods=tuple(methods.METHODS))
  said = text.describe_methods(
    made_comparison.analyse(tmp_path, rows, made_comparison.facts(seeds))
  )
  assert len(said) <= 13 and max(map(len, said)) < 310
  said.remove(_WEAK)  # It names a flag.
  assert not any('_' in sentence or 'nan' in sentence for sentence in said)


def _say(*folders):
  runs = frame.read_runs(folders)
  found = differences.compare(runs)
  measured = summary.summarize_runs(runs, found.ranked)
  said = text.describe_runs(runs, found, measured)
  return [sentence.replace('\u00a0', ' ') for sentence in said]


class TestRuns:
  def test_two_runs(self, tmp_path):
    boost = report_run.write(tmp_path / 'b', algorithm='fedaboost')
    average = report_run.write(
      tmp_path / 'a', (0.7, 0.2, 0.9), names=['Rå', 'Nord', 'Süd']
    )
    # Jain: 2.1^2 / (3 * 1.55) and 1.8^2 / (3 * 1.34).
    assert _say(boost, average) == [
      'On digits with 3 clients, after 3 rounds:',
      'FeDABoost is highest in mean accuracy with 0.7000; next is FedAvg with'
      ' 0.6000.',
      'FeDABoost is highest in accuracy of the worst client with 0.5000 (client'
      ' 0); next is FedAvg with 0.2000 (client 1 Nord).',
      'FeDABoost is highest in Jain’s index with 0.9484; next is FedAvg with'
      ' 0.8060.',
      'One run of each cannot tell a difference from chance.',
    ]

  def test_ties(self, tmp_path):
    equal = [
      report_run.write(tmp_path / name, algorithm=name)
      for name in ('fed_avg', 'ditto')
    ]
    assert _say(*equal)[1] == 'All 2 runs tie in mean accuracy at 0.7000.'
    low = report_run.write(tmp_path / 'x', (0.5, 0.6, 0.7), algorithm='moon')
    assert _say(*equal, low)[1] == (
      'FedAvg and Ditto tie in mean accuracy at 0.7000; next is MOON with'
      ' 0.6000.'
    )

  def test_the_worst_tenth_of_more_than_ten_clients(self, tmp_path):
    accuracy = [0.2, 0.4] + 9 * [1.0]
    folders = [
      report_run.write(
        tmp_path / name, accuracy, num_train=11 * [5], algorithm=name
      )
      for name in ('fed_avg', 'ditto')
    ]
    assert 'All 2 runs tie in worst 10 % at 0.3000.' in _say(*folders)

  def test_a_single_run(self, tmp_path):
    run = report_run.write(tmp_path / 'x', rounds=2)
    # Two thirds of 0.7 and 0.5.
    assert _say(run) == [
      'On digits with 3 clients, after 2 rounds (stopped early), FedAvg: mean'
      ' accuracy 0.4667, accuracy of the worst client 0.3333 (client 0), Jain’s'
      ' index 0.9484.',
      'One run cannot tell a difference from chance.',
    ]

  def test_a_run_without_test_data_has_no_place(self, tmp_path):
    first, second = _say(
      report_run.write(tmp_path / 'x'),
      report_run.write(tmp_path / 'y', 3 * [math.nan], algorithm='ditto'),
    )
    assert 'FedAvg: mean accuracy 0.7000' in first
    assert second.endswith('Ditto: no client has test data.')

  def test_repeats_are_a_range(self, tmp_path):
    folders = [
      report_run.write(tmp_path / str(seed), (0.5, 0.7, last), model_seed=seed)
      for seed, last in ((0, 0.9), (1, 0.6))
    ]
    (said,) = _say(*folders)
    assert ' in 2 runs with other seeds: mean accuracy 0.6000 to 0.7000' in said
    assert ' worst client 0.5000, Jain’s index 0.9484 to 0.9818.' in said

  def test_unlike_and_unfinished_runs_have_no_first(self, tmp_path):
    # Of three rounds, the second is evaluated.
    going = report_run.write(
      tmp_path / 'x', algorithm='ditto', finished=False, eval_every=2
    )
    early = report_run.write(
      tmp_path / 'y', algorithm='moon', finished=False, rounds=1, eval_every=2
    )
    done = report_run.write(tmp_path / 'z', (0.5, 0.5, 0.5))
    first, second, third = _say(going, early, done)
    assert 'after round 2 of 3 (unfinished), Ditto: mean accuracy 0.4' in first
    assert second.endswith('round 1 of 3 (unfinished), MOON: no scores yet.')
    assert 'after 3 rounds, FedAvg: mean accuracy 0.5000' in third

  @pytest.mark.parametrize(
    ('accuracy', 'who'),
    [
      ((0.1, 0.5, 0.9, 1), 'client 0'),
      ((0.5, 0.5, 0.9, 1), 'clients 0 and 1'),
      ((0.5, 0.5, 0.5, 1), '3 clients'),
      ((0.5, 0.5, 0.5, 0.5), ''),
    ],
  )
  def test_up_to_two_worst_clients_are_named(self, tmp_path, accuracy, who):
    # The free rider is worse.
    folder = report_run.write(
      tmp_path / 'x', (*accuracy, 0), num_train=[5, 5, 5, 5, 0]
    )
    run = frame.read_run(folder)
    lowest = run.scores('accuracy').min()
    found = text.describe_clients(run, 'accuracy', lowest)
    assert found.replace('\u00a0', ' ') == who
