"""Callbacks: three hooks beside the training of a run.

Files, checkpoints and early stopping of `launchers.train` are callbacks, and
`--callbacks=my_module.MyCallback` adds one of the user's; docs/callbacks.md has
examples. Nothing here imports TensorFlow.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd


class RoundResult(NamedTuple):
  """A round that has just been trained.

  Attributes:
    number: Its number, from 1.
    row: Its row of metrics.csv, column -> number; the columns of an evaluation
      are there in rounds that are evaluated.
    reports: A row for each client that took part, as in reports.csv.
    scores: `global` and, of clients with models of their own, `personal` ->
      `tff_fair.metrics.ClientScores`; None without an evaluation.
    before: The state of the process before the round.
    state: The state after it; `run.process` gets the model out of it.
    data: The data of the clients of its last call of `next`.
    seconds: Its wall-clock seconds, without evaluation and files.
  """

  number: int
  row: dict[str, Any]
  reports: pd.DataFrame
  scores: Mapping[str, Any] | None
  before: Any
  state: Any
  data: Sequence[Any]
  seconds: float


class Callback:
  """Takes part in a run; a subclass overrides the hooks that it needs.

  A callback of `--callbacks` is built without arguments when the program
  starts, and must not change the run: its settings, states and files.
  """

  def on_start(self, run: Any) -> None:
    """Is called before the first round that this start of the run trains.

    Args:
      run: The `training.Run`; it resumes after its round `start`, or 0.
    """

  def after_round(self, run: Any, result: RoundResult) -> bool | None:
    """Is called after each round that is trained, when its rows are written.

    A resumed run has the rounds up to its checkpoint behind it, and does not
    call this for them again. After `kill -9` the rounds since the last
    checkpoint are trained, and reported, a second time.

    Args:
      run: The `training.Run`.
      result: The round.

    Returns:
      Whether to stop the run; None is False. It ends after the next round that
      is evaluated, which may be this one.
    """

  def on_end(self, run: Any, summary: Mapping[str, Any] | None) -> None:
    """Is called once, when the run ends in any way but `kill -9`.

    Args:
      run: The `training.Run`.
      summary: The content of summary.json; None if the run was interrupted, or
        has failed.
    """
