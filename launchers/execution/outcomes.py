"""Outcomes of runs, as a comparison keeps them beside its own files."""

from collections.abc import Mapping
import json
import pathlib
from typing import NamedTuple

from tff_fair import files
from tff_fair.launchers.runs import run_files

_FILE = 'compared.json'
_CHECKSUM = 'checksum'
FINISHED, DIVERGED = 'finished', 'diverged'


class Outcome(NamedTuple):
  """How a run ended (`status`), why, and what was measured after it.

  Bytes are of all clients in a round; `seconds_per_round` is the median, None
  if the run was not timed; `seconds` is where the time since its last start
  went: `building`, `rounds` and `rest` (evaluation and files).
  """

  status: str
  reason: str = ''
  holdout_accuracy: float | None = None
  bytes_down: int | None = None
  bytes_up: int | None = None
  seconds_per_round: float | None = None
  seconds: Mapping[str, float] | None = None


def write(outcome: Outcome, output_dir: pathlib.Path) -> None:
  """Writes the outcome of a run into its directory."""
  found = outcome._asdict()
  found = {**found, _CHECKSUM: files.checksum(json.dumps(found))}
  text = json.dumps(found, indent=2)
  run_files.write_atomically(output_dir / _FILE, f'{text}\n')


def read(output_dir: pathlib.Path) -> Outcome | None:
  """Reads it; None if the run has not ended, or the file is damaged."""
  path = output_dir / _FILE
  try:
    with files.reading(path, ValueError):
      found = json.loads(path.read_text())
      # A version before checksums wrote none.
      expected = found.pop(_CHECKSUM, None)
      outcome = Outcome(**found)
      if outcome.status not in (FINISHED, DIVERGED):
        raise ValueError(outcome.status)
  except ValueError:
    return None
  is_whole = expected in (None, files.checksum(json.dumps(found)))
  return outcome if is_whole else None
