"""Trains the runs of a table, one after the other."""

from collections.abc import Callable, Sequence
import time

from tff_fair import tasks
from tff_fair.launchers.runs import planned_run
from tff_fair.launchers.runs import run_claim
from tff_fair.launchers.tables import definitions


def check_data(runs: Sequence[planned_run.PlannedRun]) -> None:
  """Builds the task of each preset once, so that missing files show at once.

  Args:
    runs: The runs.

  Raises:
    tff_fair.tasks.DataNotFoundError: If a file is missing; the message names
      the data that can stand in for it.
  """
  from tff_fair.launchers.runs import training

  for run in {run.preset: run for run in runs}.values():
    try:
      training.build_task(run.settings)
    except tasks.DataNotFoundError as error:
      stand_in = definitions.STAND_INS.get(run.settings['task'])
      if stand_in is None:
        raise
      raise tasks.DataNotFoundError(
        f'{error} --dataset={stand_in} uses other data instead.'
      ) from error


def train(
  runs: Sequence[planned_run.PlannedRun],
  left: Sequence[planned_run.PlannedRun],
  after_each: Callable[[], object],
) -> None:
  """Trains the unfinished runs, and shows how far it is.

  A run that diverges ends no other run.

  Args:
    runs: All runs of the table.
    left: Those to train.
    after_each: What is called as soon as a run is finished.

  Raises:
    One of `launchers.runs.training.USER_ERRORS`, or what `after_each` raises;
    `DivergedError` at the end, if runs have diverged.
  """
  import tqdm

  from tff_fair.launchers.runs import training

  rounds = {run.output_dir: run.settings['rounds'] for run in runs}
  to_do = sum(rounds[run.output_dir] for run in left)
  total = sum(rounds.values())
  diverged = []
  with tqdm.tqdm(
    initial=total - to_do,
    total=total,
    disable=None,  # Quiet when the output is not a terminal.
    unit='round',
  ) as progress:
    for number, run in enumerate(left, len(runs) - len(left) + 1):
      name = '/'.join(run.output_dir.parts[-3:])
      progress.set_description(f'{number}/{len(runs)} {name}')
      began = time.monotonic()
      try:
        _train(run, progress.update)
      except training.DivergedError as error:
        diverged.append(f'{name}: {error}')
        print(diverged[-1], flush=True)
        continue
      after_each()
      if progress.disable:
        seconds = time.monotonic() - began
        print(f'{number}/{len(runs)} {name}: {seconds:.0f} s', flush=True)
  if diverged:
    raise training.DivergedError(
      f'{len(diverged)} of {len(left)} runs diverged, and all others are'
      f' trained: {" ".join(diverged)}'
    )


def _train(run, count_rounds) -> None:
  import tensorflow as tf

  from tff_fair.launchers.runs import training

  tf.keras.backend.clear_session()  # Frees the previous run.
  with run_claim.claim(run.output_dir):
    training_run = training.Run(run.settings, run.output_dir, run.flags_text)
    count_rounds(training_run.start)
    training_run.train(lambda row: count_rounds(1))
    training_run.finish()
