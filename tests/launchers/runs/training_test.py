"""Runs of FedQuad and its baselines, on a part of the embedded digits."""

import functools
import json
import shutil

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from launchers import train
from launchers.options import settings as settings_lib
from launchers.options import train_flags
from launchers.plots import run_plots
from launchers.runs import training
from tff_fair import metrics

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
_TABLES = ('metrics.csv', 'clients.csv', 'reports.csv', 'client_scores.csv')


def _train(output_dir, *arguments):
  arguments = [*_SMALL, *arguments, f'--output_dir={output_dir}']
  train.main(['train'], train_flags.parse(arguments))


@pytest.fixture(scope='module', name='finished')
def _finished(tmp_path_factory):
  """A finished run, made when it is first asked for."""

  @functools.cache
  def run(*arguments):
    path = tmp_path_factory.mktemp('run')
    _train(path, *arguments)
    return path

  return run


@pytest.fixture(autouse=True)
def _default_runtime_again():
  """A run sets its own context; the other tests expect theirs afterwards."""
  yield
  from tff_fair import runtime

  runtime.set_execution_context('device', device='cpu')


def _settings(path):
  flag_values = train_flags.parse([f'--flagfile={path / "flags.txt"}'])
  return settings_lib.resolve(flag_values, train_flags.FLAG_NAMES)


def _loaded(path, round_number):
  """The task of a run, and its global model after a round."""
  settings = _settings(path)
  task = training.build_task(settings)
  return task, training.load_global_model(settings, task, path, round_number)


_WITHOUT_CE = ('--algorithm=fedquad', '--nouse_ce')


@pytest.mark.parametrize(
  ('algorithm', 'number'),
  [('fed_avg', 1), ('fed_avg', 2), ('fedquad', 1), ('moon', 1)],
)
def test_the_model_of_a_round_scores_what_the_files_say(
  algorithm, number, finished
):
  path = finished(f'--algorithm={algorithm}')
  rounds = pd.read_csv(path / 'metrics.csv').set_index('round')
  task, weights = _loaded(path, number)
  evaluator = metrics.ServerEvaluator(task.model_fn(), task.global_test, 3)
  for name, value in evaluator.evaluate_global(weights).pooled.items():
    expected = rounds.loc[number, f'global_{name}']
    assert value == pytest.approx(expected, rel=1e-5), name
  assert rounds['global_loss'].nunique() == 2


def test_a_round_without_a_checkpoint(finished):
  path = finished('--algorithm=fed_avg')
  with pytest.raises(
    FileNotFoundError, match=rf'^{path} must hold a checkpoint of round 7, fou'
  ) as caught:
    _loaded(path, 7)
  assert '\n' not in str(caught.value)


def test_clients_have_a_share_of_the_data(finished):
  path = finished('--algorithm=fed_avg')
  clients = pd.read_csv(path / 'clients.csv')
  # 1,797 - 359 test examples, none to validate: .3 of 1,438 is 431.4.
  assert clients['num_train'].sum() == 431
  assert clients['num_test'].tolist() == [359] * 3


def test_without_cross_entropy_the_nearest_class_mean_classifies(finished):
  path = finished(*_WITHOUT_CE)
  rounds = pd.read_csv(path / 'metrics.csv').set_index('round')
  # Ten classes; the classifier, which is not trained, would be about .1.
  assert rounds['global_accuracy'].min() > 0.3
  task, weights = _loaded(path, 1)
  parts = [task.examples(i).train for i in range(3)]
  x, labels = map(np.concatenate, zip(*parts, strict=True))
  model = task.model_fn()
  embedded = metrics.embeddings(model, weights, x)
  means = np.array([embedded[labels == c].mean(axis=0) for c in range(10)])
  test_x, test_labels = task.global_test
  tested = metrics.embeddings(model, weights, test_x)
  away = np.linalg.norm(tested[:, np.newaxis] - means, axis=2)
  accuracy = (away.argmin(axis=1) == test_labels).mean()
  # But for a tie that rounding decides.
  assert rounds.loc[1, 'global_accuracy'] == pytest.approx(
    accuracy, abs=1.5 / len(test_labels)
  )


def test_without_cross_entropy_the_classifier_stays_as_it_was(finished):
  path = finished(*_WITHOUT_CE)
  settings = _settings(path)
  assert settings['client_weight_decay'] > 0
  task, weights = _loaded(path, 2)
  tf.keras.utils.set_random_seed(settings['model_seed'])
  initial = task.model_fn().trainable_variables
  for found, expected in zip(weights.trainable[-2:], initial[-2:], strict=True):
    np.testing.assert_array_equal(found, expected.numpy())
  assert not np.array_equal(weights.trainable[0], initial[0].numpy())


class TestUndefinedLoss:
  """A nearest class mean gives no probabilities."""

  @pytest.fixture(name='path')
  def _path(self, finished):
    return finished(*_WITHOUT_CE)

  def test_is_empty_in_the_tables(self, path):
    rounds = pd.read_csv(path / 'metrics.csv')
    assert rounds['global_loss'].isna().all()
    defined = [n for n in rounds if n.startswith(('global_', 'client_'))]
    defined.remove('global_loss')
    assert len(defined) > 5
    assert rounds[defined].notna().all(axis=None)
    for name in ('clients.csv', 'client_scores.csv'):
      frame = pd.read_csv(path / name)
      assert frame['loss'].isna().all()
      assert frame[['accuracy', 'f1']].notna().all(axis=None)

  def test_is_null_in_the_summary(self, path):
    final = json.loads((path / 'summary.json').read_text())['final']
    undefined = {name for name, value in final.items() if value is None}
    assert undefined == {'global_loss'}

  def test_does_not_keep_pictures_from_being_drawn(self, path):
    plots = {p.name for p in (path / 'plots').iterdir()}
    assert plots == {'learning_curves.png', 'client_f1.png'}

  def test_is_drawn_beside_one_that_is_there(self, path, finished, tmp_path):
    runs = {'without': path, 'with': finished('--algorithm=fedquad')}
    figure = run_plots.learning_curves(runs, tmp_path / 'x.png')
    (axes,) = (
      axes for axes in figure.axes if axes.get_title().endswith('loss ↓')
    )
    drawn = [np.isfinite(line.get_ydata()).sum() for line in axes.lines]
    assert sorted(drawn) == [0, 2]

  def test_what_was_trained_has_a_loss(self, path):
    rounds = pd.read_csv(path / 'metrics.csv')
    expected = 0.5 * rounds['train_quadruplet_loss']
    np.testing.assert_allclose(rounds['train_loss'], expected, rtol=1e-5)
    assert (rounds['train_cross_entropy'] > 0).all()


def test_a_round_after_a_stop_is_the_same(finished, tmp_path):
  # Clients of MOON remember their models.
  whole = finished('--algorithm=moon')
  shutil.copytree(whole, tmp_path / 'run')
  shutil.rmtree(tmp_path / 'run/checkpoints/round_2')
  _train(tmp_path / 'run', '--algorithm=moon')
  for name in _TABLES:
    found = (tmp_path / 'run' / name).read_bytes()
    assert found == (whole / name).read_bytes(), name
  rounds = pd.read_csv(whole / 'metrics.csv')
  # Nothing to compare with in the first round.
  assert (rounds['train_contrastive_loss'] > 0).tolist() == [False, True]


def test_a_finished_run_without_cross_entropy_is_shown_again(
  finished, tmp_path, capsys
):
  whole = finished(*_WITHOUT_CE)
  shutil.copytree(whole, tmp_path / 'run')
  capsys.readouterr()
  _train(tmp_path / 'run', *_WITHOUT_CE)
  said = capsys.readouterr().out
  assert 'going on after round 2' in said
  for name in (*_TABLES, 'summary.json'):
    found = (tmp_path / 'run' / name).read_text()
    expected = (whole / name).read_text()
    if name == 'summary.json':
      # The time is of the rounds since the start, here none.
      found, expected = (json.loads(text) for text in (found, expected))
      assert found.pop('median_seconds_per_round') is None
      assert expected.pop('median_seconds_per_round') > 0
    assert found == expected, name


def test_a_diverged_run_without_cross_entropy_ends(tmp_path):
  # One step: weights stay finite, embeddings do not. No class has a mean.
  with pytest.warns(UserWarning, match='^3 clients are left out of the class'):
    _train(
      tmp_path,
      *_WITHOUT_CE,
      '--client_optimizer=sgd',
      '--batch_size=1000',
      '--client_learning_rate=1e30',
      '--rounds=1',
    )
  summary = json.loads((tmp_path / 'summary.json').read_text())
  assert summary['dropped']['num_rejected_clients'] == 0


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    (
      ['--nouse_ce', '--quadruplet_weight=0'],
      'Error: quadruplet_weight must be positive with use_ce=False',
    ),
    (
      ['--algorithm=supcon_fl', '--nouse_ce', '--metric_weight=0'],
      'Error: metric_weight must be positive with use_ce=False',
    ),
    (
      ['--algorithm=moon', '--temperature=0'],
      r'Error: temperature must be positive, found 0\.0\.$',
    ),
    (
      ['--partition=equal', '--num_examples=432'],
      r'Error: num_examples must be in 1\.\.431, found 432\.$',
    ),
    (
      ['--num_clients=300'],
      'Error: 300 clients .* found 431',
    ),
    (
      ['--data_dir=x', '--task=mnist', '--data_fraction=0.000001'],
      "Error: The data file 'mnist.npz'",
    ),
  ],
)
def test_bad_settings_are_one_sentence(
  arguments, message, tmp_path, monkeypatch
):
  monkeypatch.setattr(tf.keras.datasets.mnist, 'load_data', _offline)
  with pytest.raises(SystemExit, match=message) as error:
    _train(tmp_path, *arguments)
  assert '\n' not in str(error.value)
  assert not (tmp_path / 'metrics.csv').exists()


@pytest.mark.parametrize('algorithm', ['cffl', 'fed_ave', 'fed_sac'])
@pytest.mark.parametrize(
  ('preset', 'flag'),
  [
    ('cffl_digits', 'validation_fraction'),
    ('fedakd_digits', 'holdout_fraction'),
  ],
)
def test_some_servers_need_validation_examples(
  algorithm, preset, flag, tmp_path
):
  arguments = [
    f'--preset={preset}',
    f'--algorithm={algorithm}',
    f'--{flag}=0',
    f'--output_dir={tmp_path}',
  ]
  message = (
    f'^Error: {flag} must be above 0 for {algorithm}, whose server validates on'
    ' that part, found 0.0.$'
  )
  with pytest.raises(SystemExit, match=message) as error:
    train.main(['train'], train_flags.parse(arguments))
  assert '\n' not in str(error.value)
  assert not (tmp_path / 'metrics.csv').exists()


def _offline():
  raise OSError('no network')
