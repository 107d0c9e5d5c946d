"""Runs that score more than the clients of the training."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from tests.launchers import digits_run
from tff_fair import tasks

_FLAGS = {'algorithm': 'fed_avg', 'checkpoint_every': 1, 'rounds': 2}
# Whole batches, so that the order of the examples does not matter.
_RATE = 0.5
_FURTHER = {
  'unseen_fraction': 0.34,
  'fine_tune_epochs': 3,
  'client_learning_rate': _RATE,
  'client_weight_decay': 0,
  'batch_size': 2000,
}


def _final(run):
  return json.loads((run / 'summary.json').read_text())['final']


def _task():
  """The clients of the runs."""
  return tasks.build_task(
    'digits', num_clients=6, dirichlet_alpha=0.5, unseen_fraction=0.34
  )


def _accuracies(run, task, epochs=0):
  """Those of the global model after steps of gradient descent."""
  found = []
  for examples in map(task.examples, range(task.num_clients)):
    model = tf.keras.models.load_model(run / 'model.keras')
    for _ in range(epochs):
      with tf.GradientTape() as tape:
        loss = tf.keras.losses.sparse_categorical_crossentropy(
          examples.train.y, model(examples.train.x), from_logits=True
        )
        loss = tf.reduce_mean(loss)
      variables = model.trainable_variables
      gradients = tape.gradient(loss, variables)
      for variable, gradient in zip(variables, gradients, strict=True):
        variable.assign_sub(_RATE * gradient)
    hits = model(examples.test.x).numpy().argmax(1) == examples.test.y
    found.append(hits.mean())
  return found


@pytest.fixture(scope='module', name='finished')
def _finished(tmp_path_factory):
  """A run with two unseen clients of six, and what it printed."""
  path = tmp_path_factory.mktemp('run')
  return path, digits_run.main(path, **_FLAGS, **_FURTHER)


@pytest.mark.full
def test_the_global_model_is_scored_on_unseen_clients(finished):
  run, printed = finished
  assert '2 of 6 clients are unseen (unseen_fraction=0.34): they' in printed
  assert digits_run.read(run, 'clients.csv')['client_id'].tolist() == [
    *range(4)
  ]
  assert _task().unseen.num_clients == 2
  accuracies = _accuracies(run, _task().unseen)
  final = _final(run)
  assert final['unseen_accuracy_mean'] == pytest.approx(np.mean(accuracies))
  assert final['unseen_accuracy_min'] == pytest.approx(min(accuracies))
  assert final['unseen_accuracy_worst10'] == final['unseen_accuracy_min']
  metrics = digits_run.read(run, 'metrics.csv')
  assert metrics['unseen_accuracy_mean'].notna().all()
  shown = f'{final["unseen_accuracy_mean"]:.4f}'
  assert f'on unseen clients\n    mean          {shown}\n' in printed


@pytest.mark.full
def test_the_global_model_is_fine_tuned_by_each_client(finished):
  run, printed = finished
  final, clients = _final(run), digits_run.read(run, 'clients.csv')
  accuracies = _accuracies(run, _task(), epochs=3)
  assert clients['fine_tuned_accuracy'].tolist() == pytest.approx(accuracies)
  assert not np.allclose(accuracies, clients['accuracy'])
  assert final['fine_tuned_accuracy_mean'] == pytest.approx(np.mean(accuracies))
  assert final['fine_tuned_accuracy_min'] == pytest.approx(min(accuracies))
  unseen = _accuracies(run, _task().unseen, epochs=3)
  mean = final['fine_tuned_unseen_accuracy_mean']
  assert mean == pytest.approx(np.mean(unseen))
  assert (
    f'unseen clients, fine-tuned\n    mean          {mean:.4f}\n' in printed
  )


@pytest.mark.full
def test_a_resumed_run_has_the_same_further_scores(finished, tmp_path):
  whole, _ = finished
  run = tmp_path / 'run'
  shutil.copytree(whole, run)
  (run / 'checkpoints/round_2.safetensors').unlink()
  printed = digits_run.main(run, **_FLAGS, **_FURTHER)
  assert 'resuming after round 1' in printed
  assert digits_run.tables(run) == digits_run.tables(whole)
  assert _final(run) == _final(whole)


@pytest.mark.full
def test_none_of_both_changes_nothing(tmp_path):
  flags = {**_FLAGS, 'rounds': 1}
  digits_run.main(tmp_path / 'none', **flags)
  zeros = {'unseen_fraction': 0, 'fine_tune_epochs': 0}
  digits_run.main(tmp_path / 'zero', **flags, **zeros)
  none, zero = (digits_run.tables(tmp_path / name) for name in ('none', 'zero'))
  assert none == zero


def test_all_clients_cannot_be_unseen(tmp_path):
  with pytest.raises(SystemExit) as error:
    digits_run.main(tmp_path, **_FLAGS, unseen_fraction=0.95)
  assert '--unseen_fraction must leave some clients out and some in, found' in (
    str(error.value)
  )
