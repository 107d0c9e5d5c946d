"""Runs of FedAvg and of FedQuad without cross-entropy, on a few digits."""

import json

import numpy as np
import pytest
import tensorflow as tf

from tests.launchers import digits_run
from tff_fair import metrics
from tff_fair.launchers import frame as frame_lib
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.plots import method_styles
from tff_fair.launchers.plots import run_plots
from tff_fair.launchers.runs import embeddings
from tff_fair.launchers.runs import training

pytestmark = pytest.mark.full

_SMALL = (
  '--preset=fedquad_digits',
  '--model=mlp_cffl_mnist',
  '--num_clients=3',
  '--data_fraction=0.3',
  '--local_epochs=1',
  '--rounds=2',
  '--eval_every=1',
  '--checkpoint_every=1',
)
_WITHOUT_CE = ('--algorithm=fedquad', '--nouse_ce')


def _train(output_dir, *arguments):
  return digits_run.main_with(*_SMALL, *arguments, f'--output_dir={output_dir}')


@pytest.fixture(scope='module', name='fed_avg')
def _fed_avg(tmp_path_factory):
  path = tmp_path_factory.mktemp('fed_avg')
  _train(path, '--algorithm=fed_avg')
  return path


@pytest.fixture(scope='module', name='without_ce')
def _without_ce(tmp_path_factory):
  path = tmp_path_factory.mktemp('without_ce')
  _train(path, *_WITHOUT_CE)
  return path


def _settings(path):
  flag_values = train_flags.parse([f'--flagfile={path / "flags.txt"}'])
  return settings_lib.resolve(flag_values, train_flags.FLAG_NAMES)


def _loaded(path, round_number):
  """The task of a run, and its global model after a round."""
  settings = _settings(path)
  task = training.build_task(settings)
  return task, training.load_global_model(settings, task, path, round_number)


class TestModelOfARound:
  def test_scores_what_the_files_say(self, fed_avg):
    rounds = digits_run.read(fed_avg, 'metrics.csv').set_index('round')
    assert rounds['global_loss'].nunique() == 2
    for number in (1, 2):
      task, weights = _loaded(fed_avg, number)
      evaluator = metrics.ServerEvaluator(task.model_fn(), task.global_test, 3)
      for name, value in evaluator.evaluate_global(weights).pooled.items():
        expected = rounds.loc[number, f'global_{name}']
        assert value == pytest.approx(expected, rel=1e-5), name

  def test_embeds_random_test_examples(self, fed_avg):
    settings, limits = _settings(fed_avg), dict(max_classes=4, max_examples=50)
    found = embeddings.of_run(settings, fed_avg, None, **limits)
    assert (found.num_classes, found.round_number) == (10, 2)
    assert set(found.labels) == {0, 1, 2, 3} and len(found.labels) == 50
    task, weights = _loaded(fed_avg, 2)
    x, labels = task.global_test
    everything = metrics.embeddings(task.model_fn(), weights, x)
    for vector, label in zip(found.vectors[:5], found.labels, strict=False):
      away = np.linalg.norm(everything - vector, axis=1)
      assert away.min() < 1e-4 and labels[away.argmin()] == label
    # The same examples by another model.
    first = embeddings.of_run(settings, fed_avg, 1, **limits)
    assert first.labels.tolist() == found.labels.tolist()
    assert not np.allclose(first.vectors, found.vectors)


class TestWithoutCrossEntropy:
  def test_the_nearest_class_mean_classifies(self, without_ce):
    rounds = digits_run.read(without_ce, 'metrics.csv').set_index('round')
    # Ten classes; the classifier, which is not trained, would be about .1.
    assert rounds['global_accuracy'].min() > 0.3
    task, weights = _loaded(without_ce, 1)
    parts = [task.examples(i).train for i in range(3)]
    x, labels = map(np.concatenate, zip(*parts, strict=True))
    model = task.model_fn()
    embedded = metrics.embeddings(model, weights, x)
    means = np.array([embedded[labels == c].mean(axis=0) for c in range(10)])
    test_x, test_labels = task.global_test
    tested = metrics.embeddings(model, weights, test_x)
    away = np.linalg.norm(tested[:, np.newaxis] - means, axis=2)
    accuracy = (away.argmin(axis=1) == test_labels).mean()
    # Except for a tie that rounding decides.
    assert rounds.loc[1, 'global_accuracy'] == pytest.approx(
      accuracy, abs=1.5 / len(test_labels)
    )

  def test_the_exported_model_classifies_likewise(self, without_ce):
    task = training.build_task(_settings(without_ce))
    x, labels = task.global_test
    model = tf.keras.models.load_model(without_ce / 'model.keras')
    accuracy = (model.predict(x, verbose=0).argmax(axis=1) == labels).mean()
    rounds = digits_run.read(without_ce, 'metrics.csv').set_index('round')
    assert rounds.loc[2, 'global_accuracy'] == pytest.approx(
      accuracy, abs=1.5 / len(labels)
    )

  def test_the_classifier_stays_as_it_was(self, without_ce):
    settings = _settings(without_ce)
    assert settings['client_weight_decay'] > 0
    task, weights = _loaded(without_ce, 2)
    tf.keras.utils.set_random_seed(settings['model_seed'])
    initial = task.model_fn().trainable_variables
    classifier = zip(weights.trainable[-2:], initial[-2:], strict=True)
    for found, expected in classifier:
      np.testing.assert_array_equal(found, expected.numpy())
    assert not np.array_equal(weights.trainable[0], initial[0].numpy())

  def test_the_undefined_loss_is_empty_in_all_files(
    self, without_ce, fed_avg, tmp_path
  ):
    rounds = digits_run.read(without_ce, 'metrics.csv')
    assert rounds['global_loss'].isna().all()
    defined = [n for n in rounds if n.startswith(('global_', 'client_'))]
    defined.remove('global_loss')
    assert len(defined) > 5
    assert rounds[defined].notna().all(axis=None)
    # The loss of the training is defined.
    expected = 0.5 * rounds['train_quadruplet_loss']
    np.testing.assert_allclose(rounds['train_loss'], expected, rtol=1e-5)
    for name in ('clients.csv', 'client_scores.csv'):
      frame = digits_run.read(without_ce, name)
      assert frame['loss'].isna().all()
      assert frame[['accuracy', 'f1']].notna().all(axis=None)
    final = json.loads((without_ce / 'summary.json').read_text())['final']
    assert {n for n, value in final.items() if value is None} == {'global_loss'}
    # It is drawn next to a run that has a loss.
    runs = {
      'without': frame_lib.read_run(without_ce),
      'with': frame_lib.read_run(fed_avg),
    }
    styles = method_styles.of_runs(['fedquad', 'fed_avg'])
    figure = run_plots.learning_curves(
      runs, dict(zip(runs, styles, strict=True))
    )
    title = 'Global model: loss ↓'
    (axes,) = (a for a in figure.axes if a.get_title() == title)
    drawn = [np.isfinite(line.get_ydata()).sum() for line in axes.lines]
    assert drawn == [0, 2]

  def test_a_diverged_run_ends(self, tmp_path):
    # After one step weights are finite, embeddings are not: no class has a
    # mean.
    message = 'diverged: the embeddings of no client are finite after round 1;'
    with pytest.raises(SystemExit, match=message):
      _train(
        tmp_path,
        *_WITHOUT_CE,
        '--client_optimizer=sgd',
        '--batch_size=1000',
        '--client_learning_rate=1e30',
        '--max_update_norm=0',
        '--rounds=1',
      )
    assert not (tmp_path / 'summary.json').exists()
