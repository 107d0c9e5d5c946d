"""Runs of `launchers.train` on the embedded digits, in this process."""

import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import pandas as pd
from safetensors import numpy as safetensors_numpy

from tff_fair import runtime
from tff_fair.launchers import train
from tff_fair.launchers.options import train_flags

_ROOT = pathlib.Path(__file__).parents[2]
TABLES = ('metrics.csv', 'clients.csv', 'reports.csv', 'client_scores.csv')

SMALL = {
  'preset': 'fedaboost_digits',
  'rounds': 2,
  'num_clients': 6,
  'local_epochs': 1,
}


def main(output_dir, **values):
  """Trains with these flags over those of `SMALL`; None leaves a flag out.

  Returns:
    What it printed.
  """
  values = {**SMALL, 'output_dir': output_dir, **values}
  return main_with(*[f'--{n}={v}' for n, v in values.items() if v is not None])


def main_with(*arguments):
  """Trains with these arguments, and returns what it printed."""
  printed = io.StringIO()
  try:
    with contextlib.redirect_stdout(printed):
      train.main(['train'], train_flags.parse(list(arguments)))
  finally:
    # A run sets its context; other tests expect the default.
    runtime.set_execution_context('device', device='cpu')
  return printed.getvalue()


def tables(run):
  """File name -> content, of the files that a resumed run must repeat."""
  return {name: (run / name).read_bytes() for name in TABLES}


def models(run):
  """File name -> content, of the models that a run has exported."""
  return {str(p.relative_to(run)): p.read_bytes() for p in run.rglob('*.keras')}


def read(run, name):
  """A csv file of a run."""
  return pd.read_csv(run / name)


def plots(run):
  """The names of a run's plots."""
  return {path.name for path in (run / 'plots').iterdir()}


def checkpoints(run):
  """The rounds of the checkpoints of a run."""
  paths = (run / 'checkpoints').glob('round_*.safetensors')
  return sorted(int(path.stem.removeprefix('round_')) for path in paths)


def variables(run, round_number):
  """The arrays of the state in a checkpoint."""
  path = run / f'checkpoints/round_{round_number}.safetensors'
  arrays = safetensors_numpy.load_file(path)
  return {n: a for n, a in arrays.items() if n.startswith('process/')}


def interrupt(module, arguments, cwd, file, num_lines, number):
  """Starts a program, and sends it a signal once a file has so many lines.

  Returns:
    What it wrote to stderr.
  """
  with tempfile.TemporaryFile('w+') as errors:
    process = subprocess.Popen(
      [sys.executable, '-m', module, *arguments],
      cwd=cwd,
      env={**os.environ, 'PYTHONPATH': str(_ROOT)},
      stdout=subprocess.DEVNULL,
      stderr=errors,
    )
    deadline = time.monotonic() + 200
    while not file.exists() or file.read_text().count('\n') < num_lines:
      assert process.poll() is None and time.monotonic() < deadline
      time.sleep(0.01)
    process.send_signal(number)
    assert process.wait(60) != 0
    errors.seek(0)
    return errors.read()
