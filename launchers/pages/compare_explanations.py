"""How the runs of a comparison became the numbers of its pages.

Nothing here imports TensorFlow.
"""

from tff_fair.launchers.comparison import analysis as analysis_lib
from tff_fair.launchers.comparison import answer
from tff_fair.launchers.comparison import answer_leads
from tff_fair.launchers.comparison import client_scores
from tff_fair.launchers.pages import compare_tables
from tff_fair.launchers.plots import compare_plots


def sentences(analysis: analysis_lib.Analysis) -> list[str]:
  """What a reader must know to judge the numbers.

  Args:
    analysis: The comparison.

  Returns:
    Paragraphs.
  """
  return [
    _tuning(analysis),
    _marks(analysis),
    _leaders(analysis),
    *_clients(analysis),
    *_turns(analysis),
  ]


def _tuning(analysis) -> str:
  if analysis.facts['tune'] < 2:
    return 'Nothing was tuned: each method has its own defaults.'
  return (
    f'The trials are runs with seed {analysis.facts["seeds"][0]}. The trial'
    ' with the highest mean accuracy of the clients on their holdout data gave'
    ' the values for all seeds; test data took no part in the choice.'
  )


def _marks(analysis) -> str:
  seeds = len(analysis.facts['seeds'])
  if seeds == 1:
    return (
      'There is one seed: the numbers have no intervals, and differences may be'
      ' due to chance.'
    )
  return (
    f'An interval is Student’s 95 % interval of the mean over {seeds} seeds,'
    ' which supposes normal values. “Separably” better or worse is a difference'
    f' from {_baseline(analysis)} with p < {analysis_lib.LEVEL:g}'
    f' {compare_tables.HOW_SEPARABLE}, a correction for each measure.'
  )


def _leaders(analysis) -> str:
  title, fewest = _baseline(analysis), answer_leads.FEWEST_SEEDS
  if len(analysis.facts['seeds']) < fewest:
    return f'With fewer than {fewest} seeds no method is called a leader.'
  return (
    f'A method is called a leader if it is separably better than {title}, and'
    f' if neither its mean accuracy nor {title}’s (nor Standalone’s, for the CF'
    f' coefficient) gains more than {analysis_lib.LARGEST_GAIN:g} in the last'
    ' quarter of the rounds.'
  )


def _clients(analysis) -> list[str]:
  """What the sizes of test parts do, if they are known."""
  if not compare_tables.shown(analysis, [compare_tables.CHANCE]):
    return []
  return [
    'A client with fewer than'
    f' {client_scores.FEWEST_TEST_EXAMPLES} test examples enters averages: mean'
    ' accuracy, macro-F1, the global model. It does not enter what tells how'
    ' clients differ: the worst clients, the variance, Jain’s index, the CF'
    ' coefficient and the share of better-off clients. “The same by chance” is'
    ' the expected worst 10 % if all clients had one true accuracy, the mean:'
    ' the lowest of binomial variables with the sizes of their test parts. A'
    f' worst 10 % within {answer.NEAR_CHANCE:g} of it is no sign that some'
    ' clients are treated worse.'
  ]


def _turns(analysis) -> list[str]:
  if not analysis.in_turn:
    return []
  return [
    'Where clients take turns, a round is as many updates, one after the other,'
    ' as there are clients. Such methods are not ranked and have no marks. At'
    f' the sequential depth of {_baseline(analysis)} their mean accuracy is'
    ' read off the learning curve, on a straight line between two evaluations;'
    ' the place is that among the ranked methods at the end of their rounds.'
  ]


def _baseline(analysis) -> str:
  return compare_plots.title(analysis.baseline)
