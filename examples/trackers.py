"""Sends the rounds of a run to Weights & Biases or to MLflow.

  uv venv trackers && uv pip install --python=trackers wandb mlflow
  export TRACKER_PYTHON=trackers/bin/python
  python -m launchers.train --callbacks=examples.trackers.WeightsAndBiases

Their packages do not fit the versions that TensorFlow Federated needs. So they
have a Python of their own, which reads settings and rows from a pipe.
"""

import json
import os
import subprocess

from tff_fair.launchers.runs import callbacks


class Tracker(callbacks.Callback):
  """Sends a line of JSON with the settings, and one for each round."""

  program = ''

  def on_start(self, run):
    """Starts the other Python."""
    self._process = subprocess.Popen(
      [os.environ['TRACKER_PYTHON'], '-c', self.program],
      stdin=subprocess.PIPE,
      text=True,
      start_new_session=True,  # Ctrl-C is for the run, which then ends this.
    )
    self._send({'name': str(run.directory.path), **run.settings})

  def after_round(self, run, result):
    """Sends the row of metrics.csv."""
    self._send({'round': result.number, **result.row})

  def on_end(self, run, summary):
    """Waits until the other Python has sent everything."""
    self._process.stdin.close()
    self._process.wait()

  def _send(self, values):
    line = json.dumps(values, default=float)  # NumPy's numbers, too.
    print(line, file=self._process.stdin, flush=True)


class WeightsAndBiases(Tracker):
  """A run that goes on has the same page, which keeps the rounds it has."""

  program = """
import json, sys, wandb
settings = json.loads(sys.stdin.readline())
name = settings['name'].strip('/').replace('/', '.')
run = wandb.init(
  project='tff-fair', id=name, name=name, resume='allow', config=settings
)
for line in sys.stdin:
  row = json.loads(line)
  run.log(row, step=row['round'])
run.finish()
"""


class MLflow(Tracker):
  """A run that goes on is another run of MLflow, with the rounds since."""

  program = """
import json, sys, mlflow
settings = json.loads(sys.stdin.readline())
mlflow.set_experiment('tff-fair')
with mlflow.start_run(run_name=settings['name']):
  mlflow.log_params(settings)
  for line in sys.stdin:
    row = json.loads(line)
    mlflow.log_metrics(row, step=row['round'])
"""
