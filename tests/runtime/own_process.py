"""Scripts that need a process of their own."""

from collections.abc import Mapping
import os
import pathlib
import subprocess
import sys

_ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(
  script: str, environment: Mapping[str, str] = os.environ
) -> subprocess.CompletedProcess:
  """Runs a script, which must succeed, in the repository's root."""
  done = subprocess.run(
    [sys.executable, '-c', script],
    capture_output=True,
    check=False,
    text=True,
    cwd=_ROOT,
    env=environment,
  )
  assert done.returncode == 0, done.stdout + done.stderr[-2000:]
  return done
