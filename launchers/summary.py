"""The measures of runs or methods side by side, and which of them is best."""

from collections.abc import Mapping, Sequence
import dataclasses
import math

import pandas as pd

from tff_fair import fairness
from tff_fair.launchers import frame
from tff_fair.launchers import measures
from tff_fair.launchers import statistics

_WINDOW = 'client_f1_variance_window'
_ROUNDING_ERROR = 1e-15  # Of a variance of equal scores.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Summary:
  """Measures of runs, or of methods over seeds.

  Attributes:
    ranked: The runs or methods that may be compared, in the order of tables.
    estimates: `(run or method, column)` -> its estimate.
  """

  ranked: Sequence[str]
  estimates: Mapping[tuple[str, str], statistics.Estimate]

  def order(self, column: str) -> tuple[str, ...]:
    """The ranked ones with a value, best first; none without a direction.

    Those that have it for more seeds come first: a method that rarely reaches
    the target is not better for its one fast run.
    """
    if not measures.MEASURES[column].direction:
      return ()
    found = [m for m in self.ranked if self.estimates[m, column].reached]
    return tuple(sorted(found, key=lambda m: self._key(m, column)))

  def leaders(self, column: str) -> tuple[str, ...]:
    """The ranked ones with the best mean: several if they tie."""
    order = self.order(column)
    return tuple(
      m for m in order if self._key(m, column) == self._key(order[0], column)
    )

  def best(self, column: str) -> str | None:
    """The first of `leaders`, if there is one."""
    return next(iter(self.leaders(column)), None)

  def runner_up(self, column: str) -> str | None:
    """The best one behind the leaders, if there is one."""
    behind = self.order(column)[len(self.leaders(column)) :]
    return next(iter(behind), None)

  def verdict(self, name: str, column: str) -> int:
    """Whether it is separably better than the baseline, 1, or worse, -1."""
    return 0

  def title(self, name: str) -> str:
    """Returns the name as people read it."""
    return name

  def format(self, column: str, value: float) -> str:
    """Formats a value of a measure."""
    return measures.MEASURES[column].format_single(value)

  def show(self, name: str, column: str) -> str:
    """Formats the mean of a measure."""
    return self.format(column, self.estimates[name, column].mean)

  def _key(self, name, column) -> tuple[int, float]:
    found = self.estimates[name, column]
    # Rounded, so that those that tie keep their order.
    mean = float(f'{found.mean:.12g}')
    return -found.reached, -measures.MEASURES[column].direction * mean


def summarize_runs(runs: Sequence[frame.Run], is_ranked: bool) -> Summary:
  """Summarizes the last evaluations of runs, by their labels.

  Values are rounded as they are shown: those that look equal are.
  """
  alone = [run for run in runs if run.algorithm == 'standalone']
  estimates = {}
  for run in runs:
    values = _values(run)
    if is_ranked and len(alone) == 1 and run is not alone[0]:
      values |= against_alone(alone[0], run)
    for column, measure in measures.MEASURES.items():
      value = values.get(column, math.nan)
      is_known = math.isfinite(value)
      shown = float(measure.format_single(value)) if is_known else math.nan
      estimates[run.label, column] = statistics.student([shown])
    low, high = (
      values.get(f'{_WINDOW}_{e}', math.nan) for e in ('low', 'high')
    )
    key = run.label, f'{_WINDOW}_mean'
    estimates[key] = dataclasses.replace(estimates[key], low=low, high=high)
  labels = tuple(run.label for run in runs)
  return Summary(ranked=labels if is_ranked else (), estimates=estimates)


def _values(run) -> dict[str, float]:
  """The measures of a run at its end, without free riders."""
  found = {
    name: 0.0 if 'variance' in name and abs(v) <= _ROUNDING_ERROR else v
    for name, v in run.end.items()
  }
  for name in ('accuracy', 'f1'):
    scores = run.scores(name)
    variance = found.get(f'client_{name}_variance', math.nan)
    found |= {
      f'client_{name}_sd': math.sqrt(variance),
      f'client_{name}_min': fairness.minimum(scores),
      f'client_{name}_max': scores.max(initial=-math.inf),
      f'client_{name}_worst10': fairness.worst_mean(scores),
      f'client_{name}_jain': fairness.jain_index(scores),
    }
  return found


def cf_coefficient(alone: frame.Run, run: frame.Run) -> float:
  """CFFL, equation 4: the honest clients beside those that train alone."""
  return against_alone(alone, run)['cf']


def against_alone(alone: frame.Run, run: frame.Run) -> dict[str, float]:
  """The measures of `fairness.against_alone`, of the honest clients."""
  pairs = pd.DataFrame(
    {'alone': alone.honest['accuracy'], 'run': run.honest['accuracy']}
  )
  sizes = run.test_sizes.reindex(pairs.index, fill_value=0)
  return fairness.against_alone(pairs['alone'], pairs['run'], sizes)
