"""The callbacks of docs/callbacks.md, with stand-ins of the trackers."""

import json
import os
import sys

import pytest

from tests.launchers import digits_run

pytestmark = pytest.mark.full

_NOTE = """
import contextlib, json, os

def note(*values):
  with open(os.environ['NOTES'], 'a') as file:
    print(json.dumps([__name__, *values]), file=file)
"""
_STAND_INS = {
  'wandb': """
class Run:
  def log(self, row, step):
    note('log', row['round'], step, row['train_loss'])

  def finish(self):
    note('finish')

def init(*, project, id, name, resume, config):
  note('init', id, resume, config['algorithm'], config['rounds'])
  return Run()
""",
  'mlflow': """
def set_experiment(name):
  pass

@contextlib.contextmanager
def start_run(run_name):
  yield
  note('finish')

def log_params(settings):
  note('init', settings['algorithm'], settings['rounds'])

def log_metrics(row, step):
  note('log', row['round'], step, row['train_loss'])
""",
}


def test_trackers_get_every_row_once(tmp_path, monkeypatch):
  for name, text in _STAND_INS.items():
    (tmp_path / f'{name}.py').write_text(_NOTE + text)
  notes = tmp_path / 'notes'
  path = f'{tmp_path}{os.pathsep}{os.environ.get("PYTHONPATH", "")}'
  monkeypatch.setenv('PYTHONPATH', path)
  monkeypatch.setenv('TRACKER_PYTHON', sys.executable)
  monkeypatch.setenv('NOTES', str(notes))
  kinds = ('WeightsAndBiases', 'MLflow')
  names = ','.join(f'examples.trackers.{kind}' for kind in kinds)
  run = tmp_path / 'run'
  digits_run.main(run, callbacks=names)
  found = [json.loads(line) for line in notes.read_text().splitlines()]
  losses = digits_run.read(run, 'metrics.csv')['train_loss']
  rows = [['log', n, n, pytest.approx(losses[n - 1])] for n in (1, 2)]
  wandb = [values for module, *values in found if module == 'wandb']
  name = str(run).strip('/').replace('/', '.')
  start = ['init', name, 'allow', 'fedaboost', 2]
  assert wandb == [start, *rows, ['finish']]
  mlflow = [values for module, *values in found if module == 'mlflow']
  assert mlflow == [['init', 'fedaboost', 2], *rows, ['finish']]
  # Both are recorded among the flags.
  assert f'--callbacks={names}\n' in (run / 'flags.txt').read_text()
