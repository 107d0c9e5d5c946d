"""Shows how far a comparison is, and how long it will take."""

from collections.abc import Mapping, Sequence
from typing import Any

import tqdm

from tff_fair.launchers.comparison import outcomes
from tff_fair.launchers.options import methods


class Progress:
  """A progress bar on a terminal, and a line for each method that is tuned."""

  def __init__(self):
    self._bar = tqdm.tqdm(disable=None, unit='round', smoothing=0.02)
    self._skipped = 0

  def __enter__(self) -> 'Progress':
    return self

  def __exit__(self, *exception):
    self._bar.close()

  def expect(self, rounds: int) -> None:
    """Sets the number of rounds of all runs.

    Args:
      rounds: Their number.
    """
    self._bar.reset(rounds)

  def skip_but(self, rounds: int) -> None:
    """Counts rounds as done.

    Args:
      rounds: Those that are left.
    """
    self._skipped = max(0, self._bar.total - rounds)
    self._bar.initial = self._skipped
    self.show_rounds(0)

  def expect_less(self, rounds: int) -> None:
    """Lowers the number of rounds of all runs.

    Args:
      rounds: Those that will not be done.
    """
    self._bar.total -= rounds

  def show_rounds(self, done: int) -> None:
    """Moves the bar.

    Args:
      done: Rounds that the workers have done since the start.
    """
    self._bar.n = min(self._skipped + done, self._bar.total)
    self._bar.refresh()

  def say_chosen(
    self,
    method: str,
    tried: Mapping[str, Any],
    accuracy: float,
    trials: Sequence[outcomes.Outcome],
  ) -> None:
    """Says what a method is tuned to.

    Args:
      method: The method.
      tried: The flags of its best trial.
      accuracy: The holdout accuracy of that trial.
      trials: How the trials ended.
    """
    if not tried:
      return
    values = ' '.join(f'--{name}={value:g}' for name, value in tried.items())
    diverged = sum(t.status == outcomes.DIVERGED for t in trials)
    also = f'; {diverged} of {len(trials)} trials diverged' if diverged else ''
    self._say(
      f'{methods.title(method)}: {values} (holdout accuracy'
      f' {accuracy:.3f}{also})'
    )

  def say_excluded(self, method: str, reason: str) -> None:
    """Says that a method is left out.

    Args:
      method: The method.
      reason: A sentence.
    """
    self._say(f'{methods.title(method)} is left out: {reason}')

  def _say(self, text) -> None:
    self._bar.write(text)
