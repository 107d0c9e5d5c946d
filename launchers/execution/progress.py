"""Shows how far many runs are."""

import sys

import tqdm


class Progress:
  """A progress bar of rounds on a terminal, and lines above it."""

  def __init__(self):
    self._bar = tqdm.tqdm(disable=None, unit='round', smoothing=0.02)

  def __enter__(self) -> 'Progress':
    return self

  def __exit__(self, *exception):
    self._bar.close()

  def expect(self, rounds: int) -> None:
    """Sets the number of rounds from the start of the program to its end."""
    self._bar.total = rounds
    self._bar.refresh()

  def show_rounds(self, done: int) -> None:
    """Moves the bar to the number of rounds since the start."""
    self._bar.n = min(done, self._bar.total)
    self._bar.refresh()

  def say(self, text: str) -> None:
    """Prints a line."""
    self._bar.write(text)
    sys.stdout.flush()
