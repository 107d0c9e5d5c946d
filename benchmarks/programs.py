"""Runs a Python module in a process of its own."""

import pathlib
import subprocess
import sys
import tempfile

_ROOT = pathlib.Path(__file__).parents[1]


class ProgramError(RuntimeError):
  """A program has failed; the message is one sentence."""


def run(what: str, module: str, *arguments: str) -> list[str]:
  """Runs `python -m module`; returns the lines that it printed.

  Raises:
    ProgramError: If it fails, with the last line of its errors.
  """
  # Files, not pipes, which a process that outlives Python would keep open.
  with (
    tempfile.TemporaryFile('w+') as output,
    tempfile.TemporaryFile('w+') as errors,
  ):
    result = subprocess.run(
      [sys.executable, '-m', module, *arguments],
      cwd=_ROOT,
      stdin=subprocess.DEVNULL,
      stdout=output,
      stderr=errors,
      check=False,
    )
    for file in (output, errors):
      file.seek(0)
    printed, complaints = output.read(), errors.read()
  if result.returncode:
    last = (complaints or 'nothing').splitlines()[-1]
    raise ProgramError(f'{what} must end without error, found: {last}')
  return printed.splitlines()
