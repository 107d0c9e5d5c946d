"""How trials are chosen: many short ones, few long ones, then one.

Successive halving (Jamieson and Talwalkar, 2016) in two stages, the same for
all methods. Of `--tune` trials, each has a quarter of the rounds with the first
of `SEEDS`. The best quarter of them, two at the least, is trained in full with
all of `SEEDS`; the best mean accuracy on the clients' holdout parts is chosen.
Two trials are trained in full at once. No seed of these is one of a score.

The last quarter of the short trials come one after the other. While the best
one so far has the lowest or the highest learning rate so far, the next trial
goes beyond it, as far as the next rate is on the inside; otherwise it is the
next planned one. So every method has the same number of client updates,
wherever its range ends.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import math
from typing import Any

import numpy as np

RATE = 'client_learning_rate'
SEEDS = (100, 101, 102)
"""The seeds that choose; scores have seeds from 0."""
SCREENING, FINAL, SCORE = 'screening', 'final', 'score'
"""The stages of a run: a short trial, a trial in full, and a result."""
_SHARE = 4  # A short trial has such a part of the rounds, and so many go on.
_FEWEST_FINALISTS = 2


@dataclasses.dataclass(frozen=True)
class Trial:
  """A trial: the flags that it sets.

  `is_widened` tells whether its rate is beyond those of all planned trials.
  """

  tried: Mapping[str, Any]
  is_widened: bool = False


@dataclasses.dataclass(frozen=True)
class Protocol:
  """The size of the two stages.

  Attributes:
    tune: The number of trials of each method.
    rounds: The rounds of a run in full.
  """

  tune: int
  rounds: int

  @property
  def finalists(self) -> int:
    """The number of trials in full."""
    return min(self.tune, max(_FEWEST_FINALISTS, -(-self.tune // _SHARE)))

  @property
  def screened(self) -> int:
    """The number of short trials; 0 if all trials are in full."""
    return self.tune if self.tune > self.finalists else 0

  @property
  def screening_rounds(self) -> int:
    """The rounds of a short trial."""
    return -(-self.rounds // _SHARE)

  @property
  def most_widened(self) -> int:
    """The number of trials that may go beyond the range."""
    return self.screened // _SHARE

  def sizes(self) -> dict[str, tuple[int, int]]:
    """Returns the number of runs of each stage of trials, and their rounds."""
    return {
      SCREENING: (self.screened, self.screening_rounds),
      FINAL: (self.finalists * len(SEEDS), self.rounds),
    }

  def facts(self, cohort_size: int) -> dict[str, Any] | None:
    """Returns the protocol for compare.json; None if nothing is tuned."""
    if not self.tune:
      return None
    return {
      'seeds': list(SEEDS),
      'screened': self.screened,
      'screening_rounds': self.screening_rounds,
      'most_widened': self.most_widened,
      'finalists': self.finalists,
      'client_updates': cohort_size
      * sum(count * rounds for count, rounds in self.sizes().values()),
    }


def next_trial(
  planned: Sequence[Mapping[str, Any]],
  trials: Sequence[Trial],
  accuracies: Sequence[float | None],
) -> Trial:
  """The short trial that follows others.

  Args:
    planned: The flags of all trials, in their order, if none is widened.
    trials: Those so far.
    accuracies: Of each on the holdout parts; None if it diverged.

  Returns:
    If the best one (the first of several) has the lowest or the highest rate
    tried, a trial with its other flags and the rate `edge^2 / neighbor`, in two
    digits. Otherwise the next planned one that has not been tried.
  """
  best = next(iter(rank(accuracies)), None)
  if best is not None:
    tried = trials[best].tried
    rates = sorted({trial.tried[RATE] for trial in trials})
    edge = tried[RATE]
    if len(rates) > 1 and edge in (rates[0], rates[-1]):
      neighbor = rates[1] if edge == rates[0] else rates[-2]
      rate = float(f'{edge**2 / neighbor:.2g}')
      ends = [flags[RATE] for flags in planned]
      is_widened = not min(ends) <= rate <= max(ends)
      return Trial({**tried, RATE: rate}, is_widened)
  known = [trial.tried for trial in trials]
  return Trial(next(flags for flags in planned if flags not in known))


def rank(accuracies: Sequence[float | None]) -> list[int]:
  """The trials that did not diverge, best first, earlier ones before equals."""
  found = [i for i, accuracy in enumerate(accuracies) if accuracy is not None]
  return sorted(found, key=lambda i: -accuracies[i])


def choose(
  rates: Sequence[float],
  accuracies: Sequence[Sequence[float | None]],
  middle: float,
) -> int | None:
  """The trial that is chosen of those in full.

  Args:
    rates: The learning rate of each trial.
    accuracies: Of each trial with each seed; None where it diverged.
    middle: The middle of the planned rates.

  Returns:
    Of the trials that the best mean leads by no more than one standard error,
    the one whose rate is nearest to the middle in ratio; of equals, the one
    with the best mean, then the first. The error is that of the paired
    differences over the seeds, since a seed changes the data of all trials
    alike. None if every trial has diverged with some seed.
  """
  whole = {
    i: np.array(row, float)
    for i, row in enumerate(accuracies)
    if None not in row
  }
  if not whole:
    return None
  means = {i: float(row.mean()) for i, row in whole.items()}
  best = max(means, key=means.get)
  tied = [i for i, row in whole.items() if _is_tied(whole[best] - row)]
  return min(tied, key=lambda i: (_distance(rates[i], middle), -means[i]))


def _distance(rate, middle) -> float:
  """How far a rate is from the middle, in ratio; equal ones to the last bit."""
  return round(abs(math.log(rate / middle)), 9)


def _is_tied(leads) -> bool:
  """Whether the mean lead over a trial is at most its standard error."""
  error = leads.std(ddof=1) / math.sqrt(len(leads))
  # They are equal, but for rounding, if all seeds but one have no lead.
  return bool(leads.mean() <= error) or math.isclose(leads.mean(), error)
