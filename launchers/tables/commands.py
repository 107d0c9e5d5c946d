"""The commands of `launchers.train` that train the runs of a table."""

from collections.abc import Iterable
import shlex

from tff_fair.launchers import command_names
from tff_fair.launchers.runs import planned_run

# Between the commands of a number that compares runs.
AND = ' && '


def train(arguments: Iterable[str], seed: int | str) -> str:
  """A command, without an output directory.

  Args:
    arguments: Flags of the run, as of `PlannedRun.arguments`.
    seed: The value of all seeds, or a variable of the shell.
  """
  return ' '.join(
    [
      command_names.command('train'),
      *map(shlex.quote, arguments),
      *(f'--{name}={seed}' for name in planned_run.SEED_FLAGS),
    ]
  )
