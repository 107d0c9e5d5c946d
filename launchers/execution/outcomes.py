"""What a comparison keeps of a run beside its own files."""

from collections.abc import Mapping
import json
import pathlib
from typing import NamedTuple

from tff_fair.launchers.runs import run_files

_FILE = 'compared.json'
FINISHED, DIVERGED = 'finished', 'diverged'


class Outcome(NamedTuple):
  """How a run ended, and what was measured after it.

  Attributes:
    status: `FINISHED` or `DIVERGED`.
    reason: Why it diverged, in a sentence.
    holdout_accuracy: Mean accuracy of the clients on their holdout parts.
    bytes_down: From the server to all clients, in a round.
    bytes_up: From all clients to the server, in a round.
    seconds_per_round: The median; None if the run was not timed.
    seconds: Where its time went, `building`, `rounds` and `rest` (evaluation
      and files), since its last start; None if it diverged.
  """

  status: str
  reason: str = ''
  holdout_accuracy: float | None = None
  bytes_down: int | None = None
  bytes_up: int | None = None
  seconds_per_round: float | None = None
  seconds: Mapping[str, float] | None = None


def write(outcome: Outcome, output_dir: pathlib.Path) -> None:
  """Writes the outcome of a run into its directory.

  Args:
    outcome: The outcome.
    output_dir: The run's directory.
  """
  text = json.dumps(outcome._asdict(), indent=2)
  run_files.write_atomically(output_dir / _FILE, f'{text}\n')


def read(output_dir: pathlib.Path) -> Outcome | None:
  """Reads the outcome of a run.

  Args:
    output_dir: The run's directory.

  Returns:
    The outcome; None if the run has not ended, or the file is damaged.
  """
  try:
    return Outcome(**json.loads((output_dir / _FILE).read_text()))
  except (FileNotFoundError, TypeError, ValueError):
    return None
