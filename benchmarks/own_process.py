"""A part of the benchmark that needs a process of its own."""

import json
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

_ROOT = pathlib.Path(__file__).parents[1]


class ProgramError(RuntimeError):
  """A process has failed; the message is one sentence."""


def run(module: str, argument: Any, what: str) -> Any:
  """Runs a module, and returns what it prints in its last line.

  Args:
    module: Its name; it is run as a program.
    argument: What it gets as its argument, as JSON.
    what: What it does, for the error.

  Returns:
    The last line, which is JSON.

  Raises:
    ProgramError: If the process has failed.
  """
  # Files, not pipes, which a process that outlives Python would keep open.
  with (
    tempfile.TemporaryFile('w+') as output,
    tempfile.TemporaryFile('w+') as errors,
  ):
    result = subprocess.run(
      [sys.executable, '-m', module, json.dumps(argument)],
      cwd=_ROOT,
      stdin=subprocess.DEVNULL,
      stdout=output,
      stderr=errors,
      check=False,
    )
    output.seek(0), errors.seek(0)
    printed, complaints = output.read(), errors.read()
  if result.returncode:
    last = (complaints or 'nothing').splitlines()[-1]
    raise ProgramError(f'{what} must end without error, found: {last}')
  return json.loads(printed.splitlines()[-1])
