import types

import numpy as np
import pytest
import tensorflow as tf

from tff_fair import metrics
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.runs import building
from tff_fair.launchers.runs import contributions
from tff_fair.launchers.runs import errors
from tff_fair.launchers.runs import training

_FLAGS = (
  '--preset=fedakd_digits',
  '--algorithm=fed_sac',
  '--model=mlp_fedaboost',
  '--num_clients=3',
  '--partition=equal',
  '--data_fraction=0.2',
  '--rounds=2',
)


@pytest.fixture(scope='module')
def resolved():
  flag_values = train_flags.parse([*_FLAGS])
  settings = settings_lib.resolve(flag_values, train_flags.FLAG_NAMES)
  training.set_runtime(settings)
  return settings, training.build_task(settings)


@pytest.mark.full
def test_they_are_the_accuracies_of_clients_that_train_alone(
  tmp_path, resolved
):
  settings, task = resolved
  found = contributions.of_clients(settings, task, tmp_path)
  tf.keras.utils.set_random_seed(settings['model_seed'])
  process = building.build_process(
    {**settings, 'algorithm': 'standalone'}, task
  )
  state = process.initialize()
  for _ in range(2):
    data = [task.client_data(i) for i in range(3)]
    state = process.next(state, data).state
  model, (x, y) = task.model_fn(), task.validation
  assert len(y) == sum(len(split.holdout) for split in task.splits) > 0
  for client_id, accuracy in enumerate(found):
    process.get_client_model_weights(state, client_id).assign_weights_to(model)
    right = model(x)['logits'].numpy().argmax(axis=1) == y
    np.testing.assert_allclose(accuracy, right.mean(), rtol=1e-6)
  assert max(found) > 0.2  # They have learnt something.


def test_a_resumed_run_reads_them_from_its_directory(tmp_path, resolved):
  settings, task = resolved
  contributions.keep([0.25, 0.5, 1.0], tmp_path)
  text = (tmp_path / contributions.FILE).read_text()
  assert text == '[0.25, 0.5, 1.0]'
  assert contributions.of_clients(settings, task, tmp_path) == [0.25, 0.5, 1.0]
  path = tmp_path / contributions.FILE
  for damaged in (
    text[:9],
    '[0.25, 0.5]',
    '[0.25, 0.5, 7]',
    '{}',
    '[1, 0, NaN]',
  ):
    path.write_text(damaged)
    with pytest.raises(
      ValueError, match=f'^{path} must hold an accuracy of ea'
    ):
      contributions.of_clients(settings, task, tmp_path)


@pytest.mark.full
def test_a_client_whose_model_is_of_no_use_has_no_accuracy(
  tmp_path, resolved, monkeypatch
):
  scores = types.SimpleNamespace(loss=np.array([1, np.nan, 1]))
  monkeypatch.setattr(
    metrics.ServerEvaluator, 'evaluate_clients', lambda *_: scores
  )
  message = 'has diverged: the loss of client 1, trained alone, is not finite'
  with pytest.raises(errors.DivergedError, match=message):
    contributions.of_clients(*resolved, tmp_path)
