"""Runs that score more than the clients of the training."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from tests.launchers import digits_run
from tff_fair import tasks

_FLAGS = {'algorithm': 'fed_avg', 'checkpoint_every': 1, 'rounds': 2}


def _final(run):
  return json.loads((run / 'summary.json').read_text())['final']


def _unseen_task(fraction):
  """The unseen clients of the runs."""
  task = tasks.build_task(
    'digits', num_clients=6, dirichlet_alpha=0.5, unseen_fraction=fraction
  )
  return task.unseen


def _accuracy(run, examples):
  model = tf.keras.models.load_model(run / 'model.keras')
  return np.mean(model.predict(examples.x, verbose=0).argmax(1) == examples.y)


@pytest.fixture(scope='module', name='finished')
def _finished(tmp_path_factory):
  """A run with two unseen clients of six, and what it printed."""
  path = tmp_path_factory.mktemp('run')
  return path, digits_run.main(path, **_FLAGS, unseen_fraction=0.34)


def test_the_global_model_is_scored_on_unseen_clients(finished):
  run, printed = finished
  assert '2 of 6 clients are unseen (unseen_fraction=0.34): they' in printed
  assert digits_run.read(run, 'clients.csv')['client_id'].tolist() == [
    *range(4)
  ]
  unseen = _unseen_task(0.34)
  assert unseen.num_clients == 2
  accuracies = [_accuracy(run, unseen.examples(i).test) for i in range(2)]
  final = _final(run)
  assert final['unseen_accuracy_mean'] == pytest.approx(np.mean(accuracies))
  assert final['unseen_accuracy_min'] == pytest.approx(min(accuracies))
  assert final['unseen_accuracy_worst10'] == final['unseen_accuracy_min']
  metrics = digits_run.read(run, 'metrics.csv')
  assert metrics['unseen_accuracy_mean'].notna().all()
  shown = f'{final["unseen_accuracy_mean"]:.4f}'
  assert f'on unseen clients\n    mean          {shown}\n' in printed


def test_a_resumed_run_has_the_same_further_scores(finished, tmp_path):
  whole, _ = finished
  run = tmp_path / 'run'
  shutil.copytree(whole, run)
  (run / 'checkpoints/round_2.safetensors').unlink()
  printed = digits_run.main(run, **_FLAGS, unseen_fraction=0.34)
  assert 'resuming after round 1' in printed
  assert digits_run.tables(run) == digits_run.tables(whole)
  assert _final(run) == _final(whole)


def test_without_unseen_clients_nothing_changes(tmp_path):
  flags = {**_FLAGS, 'rounds': 1}
  digits_run.main(tmp_path / 'none', **flags)
  digits_run.main(tmp_path / 'zero', **flags, unseen_fraction=0)
  none, zero = (digits_run.tables(tmp_path / name) for name in ('none', 'zero'))
  assert none == zero


def test_all_clients_cannot_be_unseen(tmp_path):
  with pytest.raises(SystemExit) as error:
    digits_run.main(tmp_path, **_FLAGS, unseen_fraction=0.95)
  assert '--unseen_fraction must leave some clients out and some in, found' in (
    str(error.value)
  )
