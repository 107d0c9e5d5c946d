"""From the settings of a run to the call of a builder."""

import inspect
import types
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import algorithms
from tff_fair import runtime
from tff_fair.launchers.options import builders
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.runs import building
from tff_fair.launchers.runs import errors
from tff_fair.launchers.runs import training

# Methods whose builders are in `algorithms`.
_OURS = {**methods.PAPERS, **methods.BASELINES}


def _resolve(*arguments):
  flag_values = train_flags.parse(['--num_clients=3', *arguments])
  return settings_lib.resolve(flag_values, train_flags.FLAG_NAMES)


@pytest.fixture(name='built')
def _built(monkeypatch):
  """From flags to their settings, and the arguments of the builder's call."""
  calls = []
  task = training.build_task(_resolve())

  def recorder(name):
    signature = inspect.signature(builders.get(name))

    def record(*arguments, **keywords):
      # Refuses what the builder itself would refuse.
      calls.append((name, signature.bind(*arguments, **keywords).arguments))
      return mock.Mock(spec=algorithms.FairLearningProcess)

    return record

  recorders = {name: recorder(name) for name in methods.METHODS}
  monkeypatch.setattr(builders, 'get', recorders.__getitem__)

  def build(*arguments):
    settings = _resolve(*arguments)
    building.build_process(settings, task, 'statistics', 'contributions')
    name, found = calls.pop()
    assert name == settings['algorithm']
    return settings, found

  return build


def test_flags_reach_the_builder_of_the_method(built):
  for method in _OURS.values():
    groups = ['--task=adult', '--sensitive_columns=sex']
    settings, arguments = built(
      f'--algorithm={method.name}',
      '--batch_size=7',
      *(groups if method.needs_groups else []),
    )
    assert arguments['num_clients'] == 3
    expected = {
      flag.name: settings[flag.name]
      for flag in method.flags
      if not flag.argument
    }
    expected['batch_size'] = 7
    assert {name: arguments[name] for name in expected} == expected


def test_arguments_that_several_flags_set(built):
  for algorithm in ('fedquad', 'quadruplet_fl'):
    _, arguments = built(
      f'--algorithm={algorithm}', '--margin_1=3', '--margin_2=0.25'
    )
    assert tuple(arguments['margins']) == (3.0, 0.25)
  _, arguments = built('--client_seed=4', '--learning_rate_decay=0.5')
  assert arguments['seed'] == 4
  rate_fn = arguments['client_learning_rate_fn']
  assert rate_fn(tf.constant(2)).numpy() == np.float32(0.01 * 0.25)
  assert arguments['server_optimizer'] is None
  _, arguments = built(
    '--algorithm=ditto',
    '--personal_optimizer=adamw',
    '--personal_learning_rate=0.5',
    '--learning_rate_decay=0.5',
  )
  assert arguments['personal_learning_rate_fn'](tf.constant(1)) == 0.25
  assert 'AdamW' in type(arguments['personal_optimizer']).__name__


def test_no_norm_bound_is_zero(built):
  for flag, expected in (
    ('--batch_size=7', train_flags.FLAGS['max_update_norm'].default),
    ('--max_update_norm=2.5', 2.5),
    ('--max_update_norm=0', None),
  ):
    _, arguments = built(flag)
    assert arguments['max_update_norm'] == expected


def test_arguments_that_come_from_the_task(built):
  _, arguments = built('--algorithm=round_robin_fed_avg')
  settings = _resolve()
  task = training.build_task(settings)
  assert arguments['total_examples'] == sum(map(task.num_train, range(3)))
  _, arguments = built('--algorithm=cffl')
  assert list(arguments['amounts']) == list(map(task.num_train, range(3)))
  assert arguments['free_riders'] is None
  np.testing.assert_array_equal(arguments['validation'][1], task.validation.y)
  _, arguments = built('--algorithm=fed_rdn')
  assert arguments['statistics'] == 'statistics'
  _, arguments = built('--algorithm=fed_sac')
  assert arguments['contributions'] == 'contributions'


def test_server_optimizers(built):
  for kind in train_flags.FLAGS['server_optimizer'].choices:
    _, arguments = built(
      '--algorithm=fed_avg',
      f'--server_optimizer={kind}',
      '--server_learning_rate=0.25',
    )
    optimizer = arguments['server_optimizer']
    assert kind in type(optimizer).__name__.lower()
    state = optimizer.initialize(tf.TensorSpec([1]))
    assert state['learning_rate'] == 0.25
  _, arguments = built('--algorithm=scaffold', '--server_learning_rate=0.5')
  assert arguments['server_learning_rate'] == 0.5
  assert 'server_optimizer' not in arguments


def test_cohorts_follow_the_seed_of_clients_alone():
  task = types.SimpleNamespace(num_clients=20, num_train=lambda client_id: 5)

  def cohorts(**seeds):
    settings = {
      'algorithm': 'fed_avg',
      'split': 'client',
      'client_fraction': 0.3,
      'client_seed': 0,
      'model_seed': 0,
      **seeds,
    }
    draw = training.build_cohorts(settings, task)
    return [sorted(draw(number)[0]) for number in (1, 2)]

  assert [len(cohort) for cohort in cohorts()] == [6, 6]
  assert cohorts(model_seed=1) == cohorts()
  assert cohorts(client_seed=1) != cohorts()


@pytest.mark.usefixtures('default_runtime')
@pytest.mark.parametrize('algorithm', ['fedquad', 'supcon_fl'])
def test_centroids_are_of_all_clients_training_data(algorithm):
  settings = _resolve(f'--algorithm={algorithm}')
  task = training.build_task(settings)
  assert building.build_class_centroids(settings, task) is None
  settings = _resolve(f'--algorithm={algorithm}', '--nouse_ce')
  tf.keras.utils.set_random_seed(0)
  model = task.model_fn()
  centroids = building.build_class_centroids(settings, task)
  found = centroids(
    tff.learning.models.ModelWeights(
      [variable.numpy() for variable in model.trainable_variables],
      [variable.numpy() for variable in model.non_trainable_variables],
    )
  )
  parts = [task.examples(i).train for i in range(3)]
  x, y = map(np.concatenate, zip(*parts, strict=True))
  embeddings = model(x)['embedding'].numpy()
  expected = [embeddings[y == label].sum(axis=0) for label in range(10)]
  np.testing.assert_allclose(found['sums'], expected, rtol=1e-4, atol=1e-4)
  assert found['counts'].tolist() == np.bincount(y).tolist()
  assert found['num_rejected_clients'] == 0


@pytest.fixture(name='chosen')
def _chosen(monkeypatch):
  """From flags to the runtime that they set, and its options."""
  calls = []

  def record(kind, **options):
    calls.append((kind, options))

  monkeypatch.setattr(runtime, 'set_execution_context', record)

  def choose(*arguments):
    building.set_runtime(_resolve(*arguments))
    return calls[-1]

  return choose


def test_flags_reach_the_runtime(chosen):
  assert chosen('--runtime=native') == ('native', {})
  assert chosen('--device=gpu:0,gpu:1', '--client_threads=3') == (
    'device',
    {'device': 'gpu:0,gpu:1', 'client_threads': 3},
  )
  given = {
    'num_workers': 4,
    'cpus_per_worker': 3,
    'gpus_per_worker': 2,
    'address': 'a.example:6379',
    'timeout': 5.0,
  }
  assert chosen(
    '--runtime=cluster',
    '--num_workers=4',
    '--cpus_per_worker=3',
    '--gpus_per_worker=2',
    '--cluster_address=a.example:6379',
    '--worker_timeout=5',
  ) == ('cluster', given)


def test_what_a_runtime_refuses_is_said_with_the_flag(monkeypatch):
  settings = _resolve('--runtime=cluster')
  for error, message in (
    (ValueError('address must be x.'), '--cluster_address must be x.'),
    (ValueError('num_workers must be x.'), '--num_workers must be x.'),
    (ValueError('The machine must be x.'), 'The machine must be x.'),
    (ImportError('Ray must be installed.'), 'Ray must be installed.'),
  ):

    def refuse(kind, error=error, **options):
      if kind == 'cluster':
        raise error

    monkeypatch.setattr(runtime, 'set_execution_context', refuse)
    with pytest.raises(training.RunError) as caught:
      building.set_runtime(settings)
    assert str(caught.value) == message


def test_errors_of_arguments_are_said_of_their_flags():
  for sentence, expected in (
    ('seed must be at least 0, found -1.', '--data_seed must be at least 0,'),
    ('shift must be finite', '--shift must be finite'),
    (
      "remainder='drop' must leave num_clients * min_samples = 4 examples",
      "--dirichlet_remainder='drop' must leave --num_clients * --min_samples",
    ),
    ('The split must be', 'The split must be'),
    ("The file 'num_clients/x.num_clients'", "The file 'num_clients/x.num_cl"),
  ):
    assert building.with_flags(sentence).startswith(expected), sentence
  for algorithm, sentence, expected in (
    ('fedaboost', 'seed must be', '--client_seed must be'),
    ('fedaboost', 'max_gamma must be', '--max_gamma must be'),
    ('fedquad', 'margins must be', 'margins must be'),
    ('ditto', 'client_weight_decay must', '--client_weight_decay must'),
  ):
    flag_values = train_flags.parse([f'--algorithm={algorithm}'])
    settings = {n: flag_values[n].value for n in train_flags.FLAG_NAMES}
    with pytest.raises(errors.RunError, match=f'^{expected}'):
      building.build(mock.Mock(side_effect=ValueError(sentence)), settings)
