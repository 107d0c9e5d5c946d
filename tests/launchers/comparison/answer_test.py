import pytest

from tests.launchers.comparison import made_comparison
from tff_fair.launchers.comparison import analysis
from tff_fair.launchers.comparison import answer
from tff_fair.launchers.options import methods


def _say(folder, rows=None, facts=None):
  paths = made_comparison.write(folder, rows, facts)
  return answer.sentences(analysis.analyse(*analysis.read(*paths)))


def _of_scores(folder, scores, **facts):
  seeds = range(len(scores['fed_avg']))
  return _say(
    folder,
    made_comparison.rows(seeds, scores=scores),
    made_comparison.facts(seeds, len(scores['fed_avg'][0]), **facts),
  )


def test_in_full(tmp_path):
  # CF is 100 where the order of two clients is that of Standalone.
  said = _of_scores(
    tmp_path,
    {
      'fed_avg': [[0.4, 0.6], [0.5, 0.7], [0.6, 0.8]],
      'ditto': [[0.7, 0.8], [0.8, 0.9], [0.8, 0.9]],
      'fed_prox': [[0.3, 0.8], [0.5, 0.6], [0.6, 0.9]],
      'standalone': [[0.3, 0.4], [0.4, 0.5], [0.5, 0.6]],
    },
    excluded={'fed_rdn': 'It needs images.'},
  )
  assert said == [
    'On digits with 2 clients, 6 rounds and 3 seeds, for the mean Ditto leads'
    ' with 0.817 (95 % interval 0.750 to 0.850), against 0.600 with FedAvg; its'
    ' leads over FedAvg (0.217) and over the runner-up FedProx (0.200) are'
    ' separable.',
    'For the worst 10 % of the clients Ditto leads with 0.767 (95 % interval'
    ' 0.700 to 0.800), against 0.500 with FedAvg; its lead over the runner-up'
    ' FedAvg (0.267) is separable.',
    'For collaborative fairness (CF coefficient) Ditto, FedProx and FedAvg tie'
    ' at 100.0.',
    'Of 3 other methods, the mean is separably better than FedAvg’s with 1 and'
    ' worse with 1 (Standalone, by 0.150); the worst 10 % are better with 1 and'
    ' worse with 1 (Standalone, by 0.100).',
    'Nothing is separable from FedAvg in CF coefficient and share of better-off'
    ' clients.',
    'With Ditto and FedAvg every client is better off in every run than when it'
    ' trains alone.',
    'Compared with a round of FedAvg, one of Ditto takes 2.00 times the seconds'
    ' and 1.00 times the bytes.',
    'The target (95 % of FedAvg’s final mean accuracy of the same seed) is best'
    ' reached with Ditto, after 5.0 rounds in 3 of 3 seeds; with FedAvg after'
    ' 3.5 rounds in 2 of 3 seeds.',
    # The sums of ranks are 7, 14.5, 15 and 23.5, with five ties of two:
    # (1036.5 / 10 - 90) / (1 - 30 / 360) = 14.89. The critical difference of
    # the averages is 1.91, and Standalone's is 8.5 / 6 below FedAvg's.
    'Friedman’s test of accuracy over 6 pairs of a client and a seed finds that'
    ' the methods differ (p = 0.002); Nemenyi’s test separates none of 3 from'
    ' FedAvg.',
    'Clients of one seed share its models and are not independent, so this p is'
    ' too small.',
    'An interval of 3 seeds is narrow: separable means little more than that'
    ' all 3 agree in sign, as they do by chance in 1 of 4 comparisons of equal'
    ' methods.',
    'Left out of all this: FedRDN (It needs images).',
  ]


# The end of a sentence about the mean; each seed's accuracy of Ditto and CFFL.
# FedAvg has 0.5, 0.6 and 0.7.
_LEADS = {
  'its lead over the runner-up FedAvg (0.100) is separable.': (
    [0.6, 0.7, 0.8],
    [0.3, 0.3, 0.3],
  ),
  'its lead over the runner-up FedAvg (0.033) is not separable.': (
    [0.4, 0.7, 0.8],
    [0.3, 0.3, 0.3],
  ),
  'its lead over FedAvg (0.100) is separable, that over the runner-up CFFL'
  ' (0.067) is not.': ([0.6, 0.7, 0.8], [0.7, 0.6, 0.6]),
  'its lead over the runner-up CFFL (0.010) is separable, that over FedAvg'
  ' (0.033) is not.': ([0.4, 0.7, 0.8], [0.39, 0.69, 0.79]),
  'neither its lead over FedAvg (0.033) nor that over the runner-up CFFL'
  ' (0.010) is separable.': ([0.4, 0.7, 0.8], [0.41, 0.68, 0.78]),
  'FedAvg itself leads with 0.600 (95 % interval 0.500 to 0.700); its lead over'
  ' the runner-up Ditto (0.033) is not separable.': (
    [0.6, 0.5, 0.6],
    [0.3, 0.3, 0.3],
  ),
  'for the mean CFFL and Ditto tie at 0.700, against 0.600 with FedAvg; of'
  ' their leads over FedAvg only that of Ditto is separable.': (
    [0.6, 0.7, 0.8],
    [0.9, 0.7, 0.5],
  ),
  'for the mean all 3 methods tie at 0.600.': (
    [0.6, 0.6, 0.6],
    [0.7, 0.6, 0.5],
  ),
}


@pytest.mark.parametrize('end,accuracies', _LEADS.items())
def test_who_leads(tmp_path, end, accuracies):
  ditto, cffl = ([[value, value] for value in values] for values in accuracies)
  said = _of_scores(
    tmp_path,
    {
      'fed_avg': [[0.5, 0.5], [0.6, 0.6], [0.7, 0.7]],
      'ditto': ditto,
      'cffl': cffl,
    },
  )
  assert said[0].endswith(end)
  assert 6 <= len(said) <= 12


def test_equal_runs(tmp_path):
  said = _of_scores(
    tmp_path, {m: 2 * [[0.5, 0.5]] for m in ('fed_avg', 'ditto', 'cffl')}
  )
  assert said == [
    'On digits with 2 clients, 6 rounds and 2 seeds, for the mean all 3 methods'
    ' tie at 0.500.',
    'For the worst 10 % of the clients all 3 methods tie at 0.500.',
    'For collaborative fairness (CF coefficient) there is no answer: no method'
    ' has a defined CF coefficient.',
    'Nothing is separable from FedAvg in any measure.',
    'No method reaches the target (95 % of FedAvg’s final mean accuracy of the'
    ' same seed).',
    'Friedman’s test of accuracy over 4 pairs of a client and a seed finds no'
    ' difference between the methods (p = 1.000).',
    'An interval of 2 seeds is narrow: separable means little more than that'
    ' all 2 agree in sign, as they do by chance in 1 of 2 comparisons of equal'
    ' methods.',
  ]


def test_of_one_seed_claims_nothing(tmp_path):
  rows, about = made_comparison.rows((0,)), made_comparison.facts((0,))
  said = _say(tmp_path, rows, about)
  assert 'interval' not in ''.join(said[:-1])
  assert 'separable' not in ''.join(said)
  assert said[-1] == (
    'With one seed there is no interval, and another seed may turn any lead'
    ' round.'
  )


def test_of_many_seeds(tmp_path):
  seeds = range(6)
  said = _say(
    tmp_path, made_comparison.rows(seeds), made_comparison.facts(seeds)
  )
  assert said[-1].startswith('The intervals are of 95 %: by chance about 1 of')


def test_a_measure_that_the_baseline_lacks(tmp_path):
  # FedAvg serves all alike, so that its CF coefficient is not defined.
  said = _of_scores(
    tmp_path,
    {
      'fed_avg': 2 * [[0.5, 0.5]],
      'ditto': 2 * [[0.5, 0.7]],
      'standalone': 2 * [[0.3, 0.5]],
    },
  )
  assert said[2] == (
    'For collaborative fairness (CF coefficient) Ditto leads with 100.0 (95 %'
    ' interval 100.0 to 100.0); FedAvg has no defined value.'
  )


def test_nobody_gains_from_taking_part(tmp_path):
  said = _of_scores(
    tmp_path,
    {
      'fed_avg': [[0.5, 0.6, 0.3, 0.4], [0.5, 0.6, 0.7, 0.4]],
      'standalone': 2 * [[0.4, 0.5, 0.6, 0.4]],
    },
  )
  # 2 and 3 of 4; an equal accuracy is no gain.
  assert (
    'With no method every client is better off in every run than when it trains'
    ' alone; the largest share of clients is 0.62, with FedAvg.'
  ) in said


def test_of_an_incomplete_baseline(tmp_path):
  rows = [
    row
    for row in made_comparison.rows()
    if (row['method'], row['seed']) != ('fed_avg', 1)
  ]
  rows.append(made_comparison.trial_row('fed_avg', 1, 0, 'diverged'))
  said = _say(tmp_path, rows)
  assert said[3] == (
    'FedAvg lacks a result for some seed, so no method is compared with it.'
  )
  assert said[-1] == 'Left out of all this: FedAvg diverged with seed 1.'
  assert not any('against' in sentence for sentence in said)


@pytest.mark.parametrize(
  'found,end',
  [
    (['fed_avg'], 'there is nothing to compare it with.'),
    ([], 'no method has a result for every seed.'),
  ],
)
def test_nothing_to_compare(tmp_path, found, end):
  rows = made_comparison.rows(methods=found)
  rows.append(made_comparison.trial_row('fed_avg', 1, 5, 'diverged'))
  assert _say(tmp_path, rows)[0].endswith(end)


def test_of_all_methods_names_a_few_of_them(tmp_path):
  seeds = range(5)
  rows = made_comparison.rows(seeds, methods=tuple(methods.METHODS))
  said = _say(tmp_path, rows, made_comparison.facts(seeds))
  assert 6 <= len(said) <= 12
  assert max(map(len, said)) < 260
  assert not any('_' in sentence or 'nan' in sentence for sentence in said)
