"""Analyses the runs of a comparison: estimates, order, fronts.

Everything follows from compare.csv and compare.json. Nothing here imports
TensorFlow.
"""

from collections.abc import Mapping
import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from tff_fair import group_fairness
from tff_fair.launchers import measures
from tff_fair.launchers import statistics
from tff_fair.launchers import summary
from tff_fair.launchers.comparison import client_scores
from tff_fair.launchers.comparison import reading
from tff_fair.launchers.comparison import tuning
from tff_fair.launchers.options import methods as methods_lib
from tff_fair.launchers.runs import client_names

LEVEL = 0.05
"""A difference with a smaller corrected p value is marked."""
LAST_PART = 0.2
"""Whether a method still rises is seen in this part of the rounds, the last."""

NEAR_CHANCE = 0.02
"""So near to what chance gives, the worst clients tell nothing."""
NEGLIGIBLE = 0.01
"""A difference in accuracy up to this is one that a user can ignore."""

_MEAN, _CF = 'client_accuracy_mean', 'cf'
_COEFFICIENTS = (_CF, 'fine_tuned_cf')  # Per cent.
_NAME_WIDTH = 30  # Characters.
_TAU_DIGITS = 9  # Means that differ by rounding tie.


class Tuned(NamedTuple):
  """The chosen values of a method, and what became of its trials.

  `holdout_accuracy` is that of the chosen trial, over the seeds that chose.
  What follows `num_diverged` is of trials in two stages: those in full, those
  beyond the planned range, the lowest and the highest rate that was tried.
  """

  learning_rate: float
  parameters: str
  holdout_accuracy: float
  num_trials: int
  num_diverged: int
  num_finalists: int = 0
  num_widened: int = 0
  lowest: float = math.nan
  highest: float = math.nan

  @property
  def is_at_edge(self) -> bool:
    """Whether the chosen rate is the lowest or the highest one tried."""
    return self.learning_rate in (self.lowest, self.highest)


class Curve(NamedTuple):
  """The mean accuracy of the clients, and its interval, by round.

  It has the rounds that all seeds have; `float64[n]` each.
  """

  rounds: np.ndarray
  mean: np.ndarray
  low: np.ndarray
  high: np.ndarray

  def at(self, place: float) -> float:
    """The mean after some rounds, between two evaluations on a straight line.

    It is NaN before the first evaluation, and without one.
    """
    return _at(self.rounds, self.mean, place)


class Place(NamedTuple):
  """A method in turn after fewer rounds than the others.

  `place` is that of its accuracy among the ranked methods at their end.
  """

  accuracy: float
  place: int
  count: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Analysis(summary.Summary):
  """The numbers that the runs of a comparison give.

  Attributes:
    facts: The facts of compare.json.
    methods: The methods that have a result for every seed, best mean accuracy
      first. `ranked` are those whose clients do not take turns, or those of
      one kind, see `of`.
    incomplete: Every other method, and those that were excluded -> a sentence
      why.
    differences: `(method, column)` -> the estimate of the paired difference
      `method - baseline` over the seeds, for the CF coefficient by Fisher's z;
      of NaN if the baseline is incomplete.
    p_values: `(method, column)` -> the p value of this difference by the paired
      t test, corrected over the ranked methods of the column (Holm); for the
      measures that have a better direction.
    tuned: Every method with a run -> its chosen values.
    curves: Method -> its learning curve.
    rises: Method -> by how much its mean accuracy rises in the last fifth of
      the rounds, between two evaluations on a straight line.
    seconds_a_seed: The time of the rounds of one more seed of all methods, on
      as many cores as a run had.
    groups: Method -> `count` and the measures of each group of people, by
      column and group, means over seeds; empty without groups.
  """

  facts: Mapping[str, Any]
  methods: tuple[str, ...]
  incomplete: Mapping[str, str]
  differences: Mapping[tuple[str, str], statistics.Estimate]
  p_values: Mapping[tuple[str, str], float]
  tuned: Mapping[str, Tuned]
  curves: Mapping[str, Curve]
  rises: Mapping[str, statistics.Estimate]
  seconds_a_seed: float
  groups: Mapping[str, pd.DataFrame] = dataclasses.field(default_factory=dict)

  @property
  def baseline(self) -> str:
    """The method that all are compared with."""
    return self.facts['baseline']

  @property
  def in_turn(self) -> tuple[str, ...]:
    """The methods whose clients take turns.

    A round of theirs is as many updates, one after the other, as there are
    clients, so they are no candidates for the best one.
    """
    return self.kinds.get(methods_lib.IN_TURN, ())

  @property
  def kinds(self) -> dict[str, tuple[str, ...]]:
    """The methods of each kind that there is, see `methods.KINDS`."""
    found = {
      kind: tuple(m for m in self.methods if methods_lib.kind(m) == kind)
      for kind in methods_lib.KINDS
    }
    return {kind: methods for kind, methods in found.items() if methods}

  def of(self, kind: str) -> 'Analysis':
    """The same comparison with only the methods of a kind ranked."""
    return dataclasses.replace(self, ranked=self.kinds[kind])

  @property
  def has_intervals(self) -> bool:
    """Whether there is more than one seed."""
    return len(self.facts['seeds']) > 1

  def knows(self, column: str) -> bool:
    """Whether some method has a value of a measure.

    Comparisons of older versions lack measures that are not computed from the
    accuracies of clients.
    """
    return any(self.estimates[m, column].reached for m in self.methods)

  def verdict(self, name: str, column: str) -> int:
    """Whether a method is separably better than the baseline, 1, or worse, -1.

    It is 0 if the corrected p value is not below `LEVEL`, for what has no
    better direction, and for a method in turn.
    """
    if not self.p_values.get((name, column), math.nan) < LEVEL:
      return 0
    gap = self.differences[name, column].mean
    return (1 if gap > 0 else -1) * measures.MEASURES[column].direction

  def separable(self, column: str, side: int = 1) -> tuple[str, ...]:
    """The ranked methods separably better than the baseline; worse for -1."""
    return tuple(m for m in self.ranked if self.verdict(m, column) == side)

  def equivalent(self, column: str) -> tuple[str, ...]:
    """The ranked methods whose accuracy differs from the baseline's by little.

    By two one-sided tests of each, corrected over the ranked methods, there is
    no difference larger than `NEGLIGIBLE`. Those without a mark may still have
    a larger one.
    """
    if self.baseline not in self.methods:
      return ()
    usual = self.estimates[self.baseline, column].values
    p_values = statistics.holm(
      {
        m: statistics.equivalence_p_value(
          self.estimates[m, column].values, usual, NEGLIGIBLE
        )
        for m in self.ranked
        if m != self.baseline
      }
    )
    return tuple(m for m, p in p_values.items() if p < LEVEL)

  def title(self, name: str) -> str:
    """Returns a method's name in papers; that of a plug-in is cut."""
    return client_names.one_line(methods_lib.title(name), _NAME_WIDTH)

  def format(self, column: str, value: float) -> str:
    """Formats a mean over seeds."""
    return measures.MEASURES[column].format(value)

  def near_chance(self, method: str) -> bool:
    """Whether the worst 10 % are within `NEAR_CHANCE` of what chance gives.

    See `client_scores.worst_by_chance`; not if that is unknown.
    """
    found, expected = (
      self.estimates[method, column].mean
      for column in ('client_accuracy_worst10', client_scores.BY_CHANCE)
    )
    return abs(found - expected) <= NEAR_CHANCE

  def is_flat(self, method: str) -> bool:
    """Whether a method has converged: it changes by at most a standard error.

    That is the change of its mean accuracy in the last fifth of the rounds, up
    or down, see `rises`. It is not known, and False, for fewer than two seeds,
    and without an evaluation before.
    """
    found = self.rises[method]
    return abs(found.mean) <= self.error_of_rise(method)

  def error_of_rise(self, method: str) -> float:
    """The standard error over the seeds of what `is_flat` looks at."""
    values = np.array(self.rises[method].values)
    if len(values) < 2:
      return math.nan
    return float(values.std(ddof=1) / math.sqrt(len(values)))

  def agreement(self, column: str) -> float:
    """Kendall's tau of the ranking by a measure in two halves of the seeds.

    The ranked methods are ordered by their means over the first half of the
    seeds, with the one in the middle, and over the others; those that lack a
    value in a half are left out. Tau-b, which allows for ties, is 1 for the
    same order and -1 for the opposite one. It is NaN for one seed, for fewer
    than two methods, and if all tie in a half.
    """
    seeds = len(self.facts['seeds'])
    middle = -(-seeds // 2)
    values = [self.estimates[m, column].values for m in self.ranked]
    if seeds < 2 or len(values) < 2:
      return math.nan
    rows = pd.DataFrame(values)
    halves = pd.DataFrame(
      {
        'first': rows.iloc[:, :middle].mean(axis=1),
        'second': rows.iloc[:, middle:].mean(axis=1),
      }
    )
    known = halves.dropna().round(_TAU_DIGITS)
    if len(known) < 2:
      return math.nan
    tau, _ = stats.kendalltau(known['first'], known['second'])
    return float(tau)

  def leads(self, method: str, column: str) -> np.ndarray:
    """The differences to the baseline of each seed, on the scale of the tests.

    That is Fisher's z for CF coefficients; float64[seeds].
    """
    return leads(
      column,
      self.estimates[method, column].values,
      self.estimates[self.baseline, column].values,
    )

  def seeds_needed(self, method: str, column: str) -> float:
    """The seeds that would tell a method from the baseline in a measure.

    A guess from the differences at hand, see `statistics.seeds_needed`, at the
    level of the first step of Holm's correction. It is NaN for one seed.
    """
    return statistics.seeds_needed(
      self.leads(method, column), self._first_level(column)
    )

  def smallest_marked(self, column: str) -> float:
    """The smallest lead that Holm's first step marks.

    In standard deviations of the paired differences over the seeds.
    """
    seeds = len(self.facts['seeds'])
    return statistics.smallest_lead(seeds, self._first_level(column))

  def _first_level(self, column) -> float:
    """The level of the interval that Holm's first step looks at."""
    tests = [
      p
      for (_, name), p in self.p_values.items()
      if name == column and not math.isnan(p)
    ]
    return 1 - LEVEL / max(1, len(tests))

  @property
  def equal_depth(self) -> float:
    """The rounds in which a method in turn is as deep as the others.

    That is, it has as many updates one after the other as they have rounds.
    """
    return self.facts['rounds'] / self.facts['num_clients']

  @property
  def equal_updates(self) -> float:
    """The rounds in which a method in turn has as many client updates.

    One of its rounds has an update of every client, a round of the others those
    of a cohort.
    """
    return self.equal_depth * self.facts['cohort_size']

  def place_after(self, method: str, rounds: float) -> Place | None:
    """Where a method in turn is after some rounds.

    It is None if the method's first evaluation is later.
    """
    accuracy = self.curves[method].at(rounds)
    if math.isnan(accuracy):
      return None
    better = sum(self.estimates[m, _MEAN].mean > accuracy for m in self.ranked)
    return Place(accuracy, better + 1, len(self.ranked) + 1)

  def front(self, x_column: str, y_column: str) -> tuple[str, ...]:
    """The Pareto front of two measures of which higher is better.

    These are the ranked methods than which no other of them is as good in both
    means and better in one, by descending x.
    """
    points = {
      m: (self.estimates[m, x_column].mean, self.estimates[m, y_column].mean)
      for m in self.ranked
    }
    known = {m: p for m, p in points.items() if not np.isnan(p).any()}
    front = [m for m in known if not _dominated(known[m], known.values())]
    return tuple(sorted(front, key=lambda m: -known[m][0]))


def is_merit(kind: str, column: str) -> bool:
  """Whether a measure tells how good a method of a kind is.

  Who is served best by one model for all clients follows from their data, so
  the CF coefficient is no merit of the method that trained it.
  """
  return (kind, column) != (methods_lib.ONE_MODEL, _CF)


def analyse(frame: pd.DataFrame, facts: Mapping[str, Any]) -> Analysis:
  """Analyses a comparison, as `reading.read` returns it."""
  found = client_scores.rescored(reading.results(frame), facts)
  found = _with_seconds_ratio(found, facts)
  found = _with_equal_bytes(found, facts)
  seeds, baseline = facts['seeds'], facts['baseline']
  names = [measure.column for measure in measures.OF_METHODS]
  table = found.pivot(index='method', columns='seed', values=[*names, 'curve'])
  complete = [m for m in table.index if set(seeds) == _seeds_of(found, m)]
  values = {
    (method, name): table.loc[method, name][seeds].to_numpy(float)
    for name in names
    for method in complete
  }
  unknown = np.full(len(seeds), np.nan)
  estimates = {key: statistics.student(row) for key, row in values.items()}
  differences = {
    (method, name): difference(name, row, values.get((baseline, name), unknown))
    for (method, name), row in values.items()
  }
  means = {m: estimates[m, _MEAN].mean for m in complete}
  methods = tuple(
    sorted(means, key=lambda m: math.inf if np.isnan(means[m]) else -means[m])
  )
  ranked = tuple(m for m in methods if not methods_lib.takes_turns(m))
  p_values = {}
  for measure in measures.OF_METHODS:
    if measure.direction:
      keys = [(m, measure.column) for m in ranked if m != baseline]
      usual = values.get((baseline, measure.column), unknown)
      p_values |= statistics.holm(
        {
          key: statistics.p_value(leads(key[1], values[key], usual))
          for key in keys
        }
      )
  by_method = dict(list(frame.groupby('method')))
  lacking = {
    m: _why(m, rows, _seeds_of(found, m), seeds)
    for m, rows in by_method.items()
    if m not in complete
  }
  return Analysis(
    facts=facts,
    methods=methods,
    ranked=ranked,
    incomplete=lacking | facts['excluded'],
    estimates=estimates,
    differences=differences,
    p_values=p_values,
    tuned={m: _tuned(rows, seeds[0]) for m, rows in by_method.items()},
    curves={m: _curve(table.loc[m, 'curve'][seeds]) for m in methods},
    rises={m: _rise(table.loc[m, 'curve'][seeds]) for m in methods},
    seconds_a_seed=_seconds_a_seed(found),
    groups=_groups(found, methods),
  )


def difference(
  column: str, values: np.ndarray, others: np.ndarray
) -> statistics.Estimate:
  """Estimates a paired difference of a measure, by Fisher's z of coefficients.

  Args:
    column: The measure.
    values: Its values, `float64[seeds]`.
    others: Those that are subtracted.
  """
  if column not in _COEFFICIENTS:
    return statistics.difference(values, others)
  found = statistics.correlation_difference(values / 100, others / 100)
  return statistics.Estimate(
    100 * found.mean,
    100 * found.low,
    100 * found.high,
    tuple(values - others),
    found.reached,
  )


def leads(column: str, values: np.ndarray, others: np.ndarray) -> np.ndarray:
  """The differences of each seed, on the scale on which they are tested.

  The arguments are those of `difference`.
  """
  if column not in _COEFFICIENTS:
    return np.subtract(values, others)
  z, usual = (statistics.fisher_z(np.divide(c, 100)) for c in (values, others))
  return z - usual


def _groups(found, methods) -> dict[str, pd.DataFrame]:
  """The mean over the seeds of the measures of each group of people."""
  if found['groups'].isna().any():
    return {}
  means = {}
  for method, rows in found.groupby('method'):
    if method in methods:
      table = pd.DataFrame([row for run in rows['groups'] for row in run])
      by_group = table.groupby(['column', 'group'], sort=False)
      means[method] = by_group[['count', *group_fairness.MEASURES]].mean()
  return means


def _seeds_of(found, method) -> set[int]:
  """The seeds with which a method has a result."""
  return set(found['seed'][found['method'] == method])


def _curve(runs) -> Curve:
  """The mean over the seeds; empty without a round that all seeds have."""
  table = _curves_of_seeds(runs)
  values = table.to_numpy(float)
  found = [statistics.student(row) for row in values]
  ends = np.array([(e.low, e.high) for e in found]).reshape(-1, 2).T
  return Curve(table.index.to_numpy(float), values.mean(axis=1), *ends)


def _curves_of_seeds(runs) -> pd.DataFrame:
  """A column for each seed, with the rounds that all have."""
  seeds = [pd.Series(run['mean'], run['rounds'], float) for run in runs]
  return pd.concat(seeds, axis=1, join='inner').sort_index()


def _rise(runs) -> statistics.Estimate:
  """The rise of each seed in the last part of the rounds."""
  table = _curves_of_seeds(runs)
  if table.empty:
    return statistics.student(np.full(table.shape[1], math.nan))
  rounds, values = table.index.to_numpy(float), table.to_numpy(float)
  begin = (1 - LAST_PART) * rounds[-1]
  return statistics.student(
    [row[-1] - np.interp(begin, rounds, row, left=math.nan) for row in values.T]
  )


def _seconds_a_seed(found) -> float:
  """The sum over the methods of what the rounds of a result take."""
  seconds = found['seconds_per_round'] * found['rounds']
  return float(seconds.groupby(found['method']).mean().sum())


def _with_seconds_ratio(found, facts) -> pd.DataFrame:
  """Adds what a round takes, by each method's least disturbed run that counts.

  Other runs train at the same time, and a machine has other work, so the median
  round of a run says as much about these as about its method. A run that the
  baseline shares no processor with counts in no ratio.
  """
  of_run = found.set_index(['processor', 'method'])['seconds_per_round']
  seconds = of_run.groupby(level=[0, 1]).min().unstack('processor')
  # A duration of zero is the clock's resolution.
  usual = seconds.reindex([facts['baseline']]).iloc[0].replace(0, math.nan)
  ratio = (seconds / usual).min(axis=1)
  return found.assign(seconds_ratio=found['method'].map(ratio))


def _with_equal_bytes(found, facts) -> pd.DataFrame:
  """Adds the mean accuracy after as many bytes as the baseline's."""
  sent = found['bytes_down'] + found['bytes_up']
  baseline = found['method'] == facts['baseline']
  budget = (sent * found['rounds'])[baseline].set_axis(found['seed'][baseline])
  # Training alone sends nothing.
  rounds = (found['seed'].map(budget) / sent).where(sent != 0, math.inf)
  place = rounds.clip(upper=found['rounds'])
  means = [
    _at(run['rounds'], run['mean'], after)
    for run, after in zip(found['curve'], place, strict=True)
  ]
  return found.assign(equal_bytes_mean=np.array(means, float))


def _at(rounds, means, place) -> float:
  """A curve between two evaluations; NaN before the first one."""
  if not len(rounds):
    return math.nan
  return float(np.interp(place, rounds, means, left=math.nan))


def _tuned(rows, first_seed) -> Tuned:
  """The tuned flags; also of older versions, which had one stage."""
  trials = rows[rows['stage'].isin([tuning.SCREENING, tuning.FINAL])]
  if trials.empty:
    return _tuned_with_first_seed(rows, first_seed)
  finals = trials[trials['stage'] == tuning.FINAL]
  values = (math.nan, '', math.nan)
  if rows['chosen'].any():
    best = rows[rows['chosen']].iloc[0]
    holdout = finals['holdout_accuracy'][finals['trial'] == best['trial']]
    values = (best['learning_rate'], best['parameters'], holdout.mean())
  numbers = (
    trials['trial'][chosen].nunique()
    for chosen in (
      trials['trial'] >= 0,
      trials['status'] == 'diverged',
      trials['stage'] == tuning.FINAL,
      trials['widened'],
    )
  )
  rates = trials['learning_rate']
  return Tuned(*values, *numbers, rates.min(), rates.max())


def _tuned_with_first_seed(rows, first_seed) -> Tuned:
  trials = rows[rows['seed'] == first_seed]
  diverged = int((trials['status'] == 'diverged').sum())
  chosen = trials[trials['chosen']]
  values = (math.nan, '', math.nan)
  if len(chosen):
    names = ['learning_rate', 'parameters', 'holdout_accuracy']
    values = chosen[names].iloc[0]
  return Tuned(*values, len(trials), diverged)


def _why(name, rows, done, seeds) -> str:
  """Why a method has no result for every seed."""
  title = methods_lib.title(name)
  diverged = rows[rows['status'] == 'diverged']
  if not done and len(diverged) == len(rows):
    runs = f'all {len(rows)} runs' if len(rows) > 1 else 'its only run'
    return f'{title} diverged in {runs}.'
  missing = [seed for seed in seeds if seed not in done]
  lost = [seed for seed in missing if seed in set(diverged['seed'])]
  told = ', '.join(map(str, lost or missing))
  which = f'seed{"s" * (len(lost or missing) > 1)} {told}'
  verb = 'diverged with' if lost else 'has no result for'
  return f'{title} {verb} {which}.'


def _dominated(point, others) -> bool:
  (x, y) = point
  return any(
    other_x >= x and other_y >= y and (other_x, other_y) != point
    for other_x, other_y in others
  )
