"""What the runs of a comparison say, as numbers: estimates, order, fronts.

Everything follows from compare.csv and compare.json. Nothing here imports
TensorFlow.
"""

from collections.abc import Mapping
import dataclasses
import functools
import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tff_fair.launchers import statistics
from tff_fair.launchers.comparison import client_scores
from tff_fair.launchers.comparison import measures
from tff_fair.launchers.comparison import reading
from tff_fair.launchers.options import methods as methods_lib

read = reading.read
"""See `tff_fair.launchers.comparison.reading.read`."""

LEVEL = 0.05
"""A difference with a smaller corrected p value is marked."""
LARGEST_GAIN = 0.005
"""A method that gains more in the last quarter of its rounds still rises."""


class Tuned(NamedTuple):
  """The chosen values of a method.

  Attributes:
    learning_rate: The chosen one; NaN if no trial was.
    parameters: The method's own ones, `name=value` each; may be empty.
    holdout_accuracy: What they were chosen by; NaN if unknown.
    num_trials: The number of trials.
    num_diverged: How many of them diverged.
  """

  learning_rate: float
  parameters: str
  holdout_accuracy: float
  num_trials: int
  num_diverged: int


class Curve(NamedTuple):
  """The mean accuracy of the clients over the rounds.

  Attributes:
    rounds: The rounds that all seeds have, `float64[n]`.
    mean: The mean over the seeds, `float64[n]`.
    low: The lower end of its 95 % interval; NaN with one seed.
    high: The upper end.
  """

  rounds: np.ndarray
  mean: np.ndarray
  low: np.ndarray
  high: np.ndarray

  def at(self, place: float) -> float:
    """The mean after some rounds, between two evaluations on a straight line.

    Args:
      place: The number of rounds, which need not be whole.

    Returns:
      The mean; NaN before the first evaluation, and without one.
    """
    if not len(self.rounds):
      return math.nan
    return float(np.interp(place, self.rounds, self.mean, left=math.nan))


class Depth(NamedTuple):
  """A method whose clients take turns, at the baseline's sequential depth.

  Attributes:
    rounds: The method's rounds after which as many updates have followed one
      another as the baseline has rounds.
    accuracy: The mean accuracy of the clients then.
    place: Its place among the ranked methods at the end of all their rounds.
    count: The number of places.
  """

  rounds: float
  accuracy: float
  place: int
  count: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Analysis:
  """What the runs of a comparison say.

  Attributes:
    facts: The facts of compare.json.
    methods: The methods that have a result for every seed, best mean accuracy
      first.
    incomplete: Every other method, and those that were excluded -> a sentence
      why.
    estimates: `(method, column)` -> its estimate, for `methods` and the columns
      of `measures.MEASURES`.
    differences: `(method, column)` -> the estimate of the paired difference
      `method - baseline` over the seeds; of NaN if the baseline is incomplete.
    p_values: `(method, column)` -> the p value of this difference by the paired
      t test, corrected over the ranked methods of the column (Holm); for the
      measures that have a better direction.
    kept_means: Method -> the mean accuracy over the clients with enough test
      examples, see `client_scores`.
    tuned: Every method with a run -> its chosen values.
    runs: Method -> the curves of its seeds, for `curve`.
  """

  facts: Mapping[str, Any]
  methods: tuple[str, ...]
  incomplete: Mapping[str, str]
  estimates: Mapping[tuple[str, str], statistics.Estimate]
  differences: Mapping[tuple[str, str], statistics.Estimate]
  p_values: Mapping[tuple[str, str], float]
  kept_means: Mapping[str, float]
  tuned: Mapping[str, Tuned]
  runs: Mapping[str, tuple[Mapping[str, list[float]], ...]]

  @property
  def baseline(self) -> str:
    """The method that all are compared with."""
    return self.facts['baseline']

  @property
  def ranked(self) -> tuple[str, ...]:
    """The methods that are compared with each other: not those of `in_turn`."""
    return tuple(m for m in self.methods if not methods_lib.takes_turns(m))

  @property
  def in_turn(self) -> tuple[str, ...]:
    """The methods whose clients take turns.

    A round of theirs is as many updates, one after the other, as there are
    clients, so they are no candidates for the best one.
    """
    return tuple(m for m in self.methods if methods_lib.takes_turns(m))

  def verdict(self, method: str, column: str) -> int:
    """Whether a method is separably better than the baseline, or worse.

    Args:
      method: One of `methods`.
      column: A measure's.

    Returns:
      1 for better, -1 for worse; 0 if the corrected p value is not below
      `LEVEL`, for what has no better direction, and for a method in turn.
    """
    if not self.p_values.get((method, column), math.nan) < LEVEL:
      return 0
    gap = self.differences[method, column].mean
    return (1 if gap > 0 else -1) * _direction(column)

  def gain(self, method: str) -> float:
    """What a method's mean accuracy gains in the last quarter of the rounds.

    Args:
      method: One of `methods`.

    Returns:
      The gain, of the curve's mean over the seeds; NaN if there is no
      evaluation before that quarter.
    """
    curve = self.curve(method)
    if not len(curve.rounds):
      return math.nan
    last = curve.rounds[-1]
    return curve.at(last) - curve.at(0.75 * last)

  def at_baseline_depth(self, method: str) -> Depth | None:
    """Where a method in turn is after as many updates as the baseline.

    Args:
      method: One of `in_turn`.

    Returns:
      Its place at that depth; None if its first evaluation is later.
    """
    rounds = self.facts['rounds'] / self.facts['num_clients']
    accuracy = self.curve(method).at(rounds)
    if math.isnan(accuracy):
      return None
    mean = measures.MEASURES[0].column
    better = sum(self.estimates[m, mean].mean > accuracy for m in self.ranked)
    return Depth(rounds, accuracy, better + 1, len(self.ranked) + 1)

  def order(self, column: str) -> tuple[str, ...]:
    """The ranked methods with a value, best first.

    Those that have it for more seeds come first: a method that rarely reaches
    the target is not better for its one fast run.

    Args:
      column: A measure's.

    Returns:
      The methods; none for what has no better direction.
    """
    found = [m for m in self.ranked if self.estimates[m, column].reached]
    if not _direction(column):
      return ()
    return tuple(sorted(found, key=functools.partial(self._key, column)))

  def leaders(self, column: str) -> tuple[str, ...]:
    """The methods with the best mean: several if they tie.

    Args:
      column: A measure's.

    Returns:
      The methods; none if no method has a value, or there is no direction.
    """
    order = self.order(column)
    return tuple(m for m in order if self._ties(m, order[0], column))

  def best(self, column: str) -> str | None:
    """The method with the best mean.

    Args:
      column: A measure's.

    Returns:
      The method, of several that tie the first of `methods`; None if no method
      has a value, or there is no direction.
    """
    return next(iter(self.leaders(column)), None)

  def front(self, x_column: str, y_column: str) -> tuple[str, ...]:
    """The Pareto front of the means of two measures.

    Args:
      x_column: A measure's, of which higher is better.
      y_column: Another.

    Returns:
      The ranked methods than which no other of them is as good in both and
      better in one, by descending x.
    """
    points = {
      m: (self.estimates[m, x_column].mean, self.estimates[m, y_column].mean)
      for m in self.ranked
    }
    known = {m: p for m, p in points.items() if not np.isnan(p).any()}
    front = [m for m in known if not _dominated(known[m], known.values())]
    return tuple(sorted(front, key=lambda m: -known[m][0]))

  def curve(self, method: str) -> Curve:
    """The learning curve of a method.

    Args:
      method: One of `methods`.

    Returns:
      The mean over the seeds with its interval; empty without an evaluation
      that all seeds have.
    """
    seeds = [
      pd.Series(run['mean'], run['rounds'], float) for run in self.runs[method]
    ]
    table = pd.concat(seeds, axis=1, join='inner').sort_index()
    values = table.to_numpy(float)
    found = [statistics.student(row) for row in values]
    ends = np.array([(e.low, e.high) for e in found]).reshape(-1, 2).T
    return Curve(table.index.to_numpy(float), values.mean(axis=1), *ends)

  def _key(self, column, method) -> tuple[int, float]:
    found = self.estimates[method, column]
    # Rounded, so that methods that tie keep their order.
    return -found.reached, -_direction(column) * float(f'{found.mean:.12g}')

  def _ties(self, method, other, column) -> bool:
    return self._key(column, method) == self._key(column, other)


def analyse(frame: pd.DataFrame, facts: Mapping[str, Any]) -> Analysis:
  """Analyses a comparison.

  Args:
    frame: The table of `read`.
    facts: Its facts.

  Returns:
    The analysis, the same for the same arguments.
  """
  found = client_scores.rescored(reading.results(frame), facts)
  found = _with_seconds_ratio(found, frame, facts)
  seeds = facts['seeds']
  complete = [
    name
    for name, rows in found.groupby('method', sort=True)
    if set(rows['seed']) == set(seeds)
  ]
  estimates, differences = _estimates(found, complete, facts)
  mean = measures.MEASURES[0].column
  ordered = tuple(
    sorted(complete, key=lambda m: _last_if_nan(-estimates[m, mean].mean))
  )
  by_seed = found.set_index(['method', 'seed'])
  return Analysis(
    facts=facts,
    methods=ordered,
    incomplete=_incomplete(frame, complete, facts),
    estimates=estimates,
    differences=differences,
    p_values=_p_values(differences, complete, facts['baseline']),
    kept_means=found.groupby('method')[client_scores.KEPT_MEAN]
    .mean()
    .to_dict(),
    tuned={
      name: _tuned(rows, seeds[0])
      for name, rows in frame.groupby('method', sort=True)
    },
    runs={
      name: tuple(by_seed.loc[(name, seed), 'curve'] for seed in seeds)
      for name in ordered
    },
  )


def _with_seconds_ratio(found, frame, facts) -> pd.DataFrame:
  """Adds what a round takes, by each method's least disturbed run.

  Other runs train at the same time, and a machine has other work, so the median
  round of a run says as much about these as about its method.
  """
  seconds = frame.groupby('method')['seconds_per_round'].min()
  # A clock that stood still says nothing.
  ratio = seconds / (seconds.get(facts['baseline'], math.nan) or math.nan)
  return found.assign(seconds_ratio=found['method'].map(ratio))


def _estimates(found, complete, facts) -> tuple[dict, dict]:
  """The estimates of all methods and measures, and of the differences."""
  columns = [measure.column for measure in measures.MEASURES]
  keys = [(method, column) for column in columns for method in complete]
  seeds = facts['seeds']
  values = {}
  for column in columns:
    table = found.pivot(index='method', columns='seed', values=column)
    for method in complete:
      values[method, column] = table.loc[method, seeds].to_numpy(float)
  unknown = np.full(len(seeds), np.nan)
  return (
    {key: statistics.student(values[key]) for key in keys},
    {
      key: statistics.difference(
        values[key], values.get((facts['baseline'], key[1]), unknown)
      )
      for key in keys
    },
  )


def _p_values(differences, methods, baseline) -> dict[tuple[str, str], float]:
  """Those of the ranked methods, corrected within each measure."""
  tested = [
    m for m in methods if m != baseline and not methods_lib.takes_turns(m)
  ]
  found = {}
  for measure in measures.MEASURES:
    if measure.higher is not None:
      keys = [(method, measure.column) for method in tested]
      found |= statistics.holm(
        {k: statistics.p_value(differences[k].values) for k in keys}
      )
  return found


def _tuned(rows, first_seed) -> Tuned:
  trials = rows[rows['seed'] == first_seed]
  diverged = int((trials['status'] == 'diverged').sum())
  chosen = trials[trials['chosen']]
  if chosen.empty:
    return Tuned(math.nan, '', math.nan, len(trials), diverged)
  row = chosen.iloc[0]
  return Tuned(
    float(row['learning_rate']),
    row['parameters'],
    float(row['holdout_accuracy']),
    len(trials),
    diverged,
  )


def _incomplete(frame, complete, facts) -> dict[str, str]:
  sentences = {
    name: _why(name, rows, facts['seeds'])
    for name, rows in frame.groupby('method', sort=True)
    if name not in complete
  }
  return {**sentences, **facts['excluded']}


def _why(name, rows, seeds) -> str:
  """Why a method has no result for every seed."""
  title = methods_lib.title(name)
  done = set(reading.results(rows)['seed'])
  diverged = rows[rows['status'] == 'diverged']
  if not done and len(diverged) == len(rows):
    runs = f'all {len(rows)} runs' if len(rows) > 1 else 'its only run'
    return f'{title} diverged in {runs}.'
  missing = [seed for seed in seeds if seed not in done]
  lost = [seed for seed in missing if seed in set(diverged['seed'])]
  if lost:
    return f'{title} diverged with {_seeds(lost)}.'
  return f'{title} has no result for {_seeds(missing)}.'


def _seeds(seeds) -> str:
  plural = 's' if len(seeds) > 1 else ''
  return f'seed{plural} {", ".join(map(str, seeds))}'


def _direction(column) -> int:
  """1 where higher is better, -1 where lower is, otherwise 0."""
  return {True: 1, False: -1, None: 0}[measures.BY_COLUMN[column].higher]


def _dominated(point, others) -> bool:
  (x, y) = point
  return any(
    other_x >= x and other_y >= y and (other_x, other_y) != point
    for other_x, other_y in others
  )


def _last_if_nan(value) -> float:
  return math.inf if math.isnan(value) else value
