"""Scores over clients, of those whose test parts say enough.

Nothing here imports TensorFlow.
"""

from collections.abc import Mapping, Sequence
import math
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from tff_fair import fairness
from tff_fair.launchers import measures
from tff_fair.launchers.comparison import plan

BY_CHANCE = 'worst10_by_chance'
"""The column of `worst_by_chance` of the worst 10 %.

`min_by_chance` and `variance_by_chance` are those of the worst client and of
the variance.
"""
KEPT_MEAN = 'client_accuracy_mean_kept'
"""The column of the mean accuracy over the clients that are not left out.

It is NaN in all rows if nobody is left out.
"""

# What tells how the clients differ: column -> the name in `fairness`.
_SPREADS = {
  f'client_accuracy_{name}': name
  for name in ('worst10', 'min', 'variance', 'jain')
}


_FINE_TUNED_SPREADS = {
  f'fine_tuned_accuracy_{name}': name for name in ('worst10', 'min')
}


def left_out(facts: Mapping[str, Any]) -> np.ndarray:
  """Finds the clients with too few test examples, `bool[seeds, clients]`."""
  sizes = _sizes(facts)
  return (sizes > 0) & (sizes < fairness.FEWEST_TEST_EXAMPLES)


def rescored(results: pd.DataFrame, facts: Mapping[str, Any]) -> pd.DataFrame:
  """Recomputes the scores without clients that have few test examples.

  The worst clients, the variance, Jain's index and what compares clients with
  training alone leave out clients with fewer than
  `fairness.FEWEST_TEST_EXAMPLES`; averages have all clients. So do the same
  scores after fine-tuning.

  Args:
    results: The rows of `reading.results`; the worst clients and the spread of
      a seed in which nobody is left out keep their numbers.
    facts: The facts of compare.json.

  Returns:
    The same rows with these scores, those after fine-tuning against training
    alone (`measures.FINE_TUNED_AGAINST_ALONE`), the columns of `by_chance` (NaN
    without the sizes of test parts, and if the server has the test examples)
    and `KEPT_MEAN`.
  """
  place = {seed: i for i, seed in enumerate(facts['seeds'])}
  small, sizes = left_out(facts), _sizes(facts)
  own_sizes = sizes
  if facts['options'].get('split') == 'server':
    own_sizes = 0 * sizes
  runs = list(results.itertuples())
  kept = {
    (run.method, run.seed): np.where(
      small[place[run.seed]], np.nan, run.client_accuracies
    )
    for run in runs
  }
  rows = []
  for run in runs:
    accuracy = kept[run.method, run.seed]
    spread = fairness.client_statistics(accuracy)
    row = {name: getattr(run, name) for name in _SPREADS}
    if small[place[run.seed]].any():
      row = {column: spread[name] for column, name in _SPREADS.items()}
    alone = kept.get((plan.ALONE, run.seed), np.full_like(accuracy, np.nan))
    if run.method != plan.ALONE:
      row |= fairness.against_alone(alone, accuracy, sizes[place[run.seed]])
    if run.fine_tuned_accuracies is not None:
      tuned = np.where(
        small[place[run.seed]], np.nan, run.fine_tuned_accuracies
      )
      row |= _fine_tuned(tuned, alone, sizes[place[run.seed]])
    tested = np.where(np.isnan(accuracy), 0, own_sizes[place[run.seed]])
    row[KEPT_MEAN] = spread['mean'] if small.any() else math.nan
    rows.append(row | by_chance(tested, spread['mean']))
  names = [
    *_SPREADS,
    *measures.AGAINST_ALONE,
    *measures.FINE_TUNED_AGAINST_ALONE,
    KEPT_MEAN,
    *by_chance([], 1.0),
  ]
  found = pd.DataFrame(rows, results.index, dtype=float)
  # Without fine-tuning rows lack its scores.
  found = found.reindex(columns=[*dict.fromkeys([*names, *found])])
  return results.assign(**found)


def _fine_tuned(accuracy, alone, sizes) -> dict[str, float]:
  """The scores after fine-tuning of the clients that count."""
  spread = fairness.client_statistics(accuracy)
  against = fairness.against_alone(alone, accuracy, sizes)
  return {
    **{column: spread[name] for column, name in _FINE_TUNED_SPREADS.items()},
    **{
      column: against[column.removeprefix('fine_tuned_')]
      for column in measures.FINE_TUNED_AGAINST_ALONE
    },
  }


def by_chance(sizes: Sequence[int], accuracy: float) -> dict[str, float]:
  """What scores are expected of clients that are all served alike.

  The arguments are those of `worst_by_chance`.

  Returns:
    Column -> the expected value: of the worst 10 %, of the worst client, and of
    the variance, population form, which for k clients is
    `accuracy (1 - accuracy) (k - 1) / k^2 sum_i 1 / n_i`.
  """
  tested = np.array([size for size in sizes if size > 0], float)
  count = len(tested)
  variance = math.nan
  if count:
    variance = accuracy * (1 - accuracy) * (count - 1) / count**2
    variance *= float((1 / tested).sum())
  return {
    BY_CHANCE: worst_by_chance(sizes, accuracy),
    'min_by_chance': worst_by_chance(sizes, accuracy, 1),
    'variance_by_chance': variance,
  }


def worst_by_chance(
  sizes: Sequence[int], accuracy: float, count: int | None = None
) -> float:
  """The mean accuracy of the worst clients where all are served alike.

  The accuracy of client i is a binomial variable of n_i test examples, divided
  by n_i; all have the same probability of a right prediction. What is returned
  is the expected value of the mean of the m lowest,

      E = (1 / m) int_0^1 E[max(0, m - N(x))] dx,

  N(x) being the number of the k clients whose accuracy is at most x. It is
  exact, and supposes that clients share no test examples.

  Args:
    sizes: n_i, the number of test examples of each client; a client with 0 is
      left out.
    accuracy: The probability.
    count: m; None for the worst 10 %, `ceil(.1 k)`.

  Returns:
    The expected value; NaN without clients or without a probability.
  """
  sizes = [size for size in sizes if size > 0]
  if not sizes or math.isnan(accuracy):
    return math.nan
  count = count or fairness.worst_count(len(sizes))
  grids = [np.arange(size + 1) / size for size in sizes]
  points = np.unique(np.concatenate(grids))
  # The probability that N(x) is 0, 1, ..., m - 1 from each point to the next.
  at_most = np.zeros([count, len(points)])
  at_most[0] = 1
  for size, grid in zip(sizes, grids, strict=True):
    right = np.searchsorted(grid, points, side='right') - 1
    below = special.bdtr(np.arange(size + 1), size, accuracy)[right]
    moved = np.concatenate([np.zeros([1, len(points)]), at_most[:-1]])
    at_most = at_most * (1 - below) + moved * below
  missing = (np.arange(count, 0, -1) @ at_most)[:-1]
  return float(missing @ np.diff(points)) / count


def _sizes(facts) -> np.ndarray:
  """The number of test examples, `int[seeds, clients]`; 0 if not known."""
  shape = len(facts['seeds']), facts['num_clients']
  return np.array(facts.get('test_examples', np.zeros(shape, int)), int)
