"""A run on data with names, from its first line to the models it leaves."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tests.launchers import digits_run
from tests.launchers import nasty_names
from tff_fair.launchers import frame as frame_lib
from tff_fair.launchers.pages import report_page
from tff_fair.launchers.runs import client_names
from tff_fair.launchers.runs import training

pytestmark = pytest.mark.full

_NAMES = nasty_names.NAMES[:3]
_CLASSES = ('zero', 'one, "two"', *'23456789')
_NOTE = 'The column id is left out.'


def test_names_are_in_all_files_and_models_predict_what_was_scored(
  tmp_path, monkeypatch
):
  build_task = training.build_task
  tasks = []

  def build_named(settings):
    task = dataclasses.replace(
      build_task(settings),
      client_names=_NAMES,
      class_names=_CLASSES,
      notes=(_NOTE,),
    )
    tasks.append(task)
    return task

  monkeypatch.setattr(training, 'build_task', build_named)
  run = tmp_path / 'run'
  printed = digits_run.main(
    run,
    preset=None,
    algorithm='ditto',
    num_clients=3,
    data_fraction=0.3,
    client_learning_rate=0.1,
    export='all',
  )
  assert printed.index(_NOTE) < printed.index('after 2 rounds')
  assert json.loads((run / 'summary.json').read_text())['notes'] == [_NOTE]
  clients = digits_run.read(run, 'clients.csv')
  for name in ('clients.csv', 'client_scores.csv', 'reports.csv'):
    frame = digits_run.read(run, name)
    assert frame['client'].tolist() == [_NAMES[i] for i in frame['client_id']]
  worst = client_names.one_line(_NAMES[clients['accuracy'].idxmin()], 30)
  assert f'({worst})\n' in printed
  assert digits_run.plots(run) >= {'client_accuracy.png'}
  assert _NOTE in report_page.render([frame_lib.read_run(run)])

  (task,) = tasks
  classes = json.loads((run / 'model.json').read_text())['classes']
  assert classes == list(_CLASSES)
  for i, expected in enumerate(clients['accuracy']):
    x, y = task.examples(i).test
    model = tf.keras.models.load_model(run / f'models/client_{i}.keras')
    found = model.predict(x, verbose=0).argmax(axis=1)
    assert np.mean(found == y) == pytest.approx(expected)
  x, y = task.global_test
  found = _predicted(run, x)
  assert set(found) <= set(_CLASSES)
  right = np.take(_CLASSES, y) == found
  final = digits_run.read(run, 'metrics.csv').iloc[-1]
  assert np.mean(right) == pytest.approx(final['global_accuracy'])


def _predicted(run, x):
  """The classes by plain Keras, in a Python without tff_fair."""
  np.save(run / 'inputs.npy', x)
  program = """
import json, sys
sys.modules['tff_fair'] = None  # Importing it is an error.
import numpy as np
import tensorflow as tf

model = tf.keras.models.load_model('model.keras')
with open('model.json') as file:
  classes = json.load(file)['classes']
for i in model.predict(np.load('inputs.npy'), verbose=0).argmax(axis=1):
  print(classes[i])
"""
  return subprocess.run(
    [sys.executable, '-c', program],
    cwd=run,
    stdout=subprocess.PIPE,
    text=True,
    check=True,
    timeout=200,
  ).stdout.splitlines()
