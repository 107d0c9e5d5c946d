"""From the settings of a run to what a builder is called with."""

import inspect

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from launchers.options import methods
from launchers.options import settings as settings_lib
from launchers.options import train_flags
from launchers.runs import training
from tff_fair import algorithms

# The flags that reach a builder under another name, or as part of something.
_RENAMED = (
  'personal_optimizer',
  'personal_learning_rate',
  'personal_weight_decay',
  'free_riders',
  'free_rider_kind',
  'margin_1',
  'margin_2',
)


def _resolve(*arguments):
  flag_values = train_flags.parse(['--num_clients=3', *arguments])
  return settings_lib.resolve(flag_values, train_flags.FLAG_NAMES)


@pytest.fixture(name='built')
def _built(monkeypatch):
  """Takes flags to the builder that they call, and its arguments."""
  calls = []

  def replace(name):
    signature = inspect.signature(getattr(algorithms, name))

    def record(*arguments, **keywords):
      # Refuses what the builder itself would refuse.
      calls.append((name, signature.bind(*arguments, **keywords).arguments))

    monkeypatch.setattr(algorithms, name, record)

  for name in dir(algorithms):
    if name.startswith('build_'):
      replace(name)

  def build(*arguments):
    settings = _resolve(*arguments)
    calls.clear()
    methods.build_process(settings, training.build_task(settings), None)
    (call,) = calls
    return settings, *call

  return build


@pytest.mark.parametrize('algorithm', methods.METHOD_FLAGS)
def test_flags_of_a_method_are_arguments_of_its_builder(algorithm, built):
  split = 'server' if algorithm == 'cffl' else 'client'
  settings, _, arguments = built(
    f'--algorithm={algorithm}', f'--split={split}', '--batch_size=7'
  )
  expected = {
    name: settings[name]
    for name in ('batch_size', *methods.METHOD_FLAGS[algorithm])
    if name not in _RENAMED
  }
  assert {name: arguments[name] for name in expected} == expected


def test_every_method_has_a_builder_of_its_own(built):
  names = [
    built(
      f'--algorithm={algorithm}',
      f'--split={"server" if algorithm == "cffl" else "client"}',
    )[1]
    for algorithm in methods.METHOD_FLAGS
  ]
  assert len(set(names)) == len(names)


@pytest.mark.parametrize(
  ('algorithm', 'builder'),
  [
    ('fedquad', 'build_fedquad'),
    ('moon', 'build_moon'),
    ('supcon_fl', 'build_supcon_fl'),
    ('triplet_fl', 'build_triplet_fl'),
    ('quadruplet_fl', 'build_quadruplet_fl'),
    ('fed_prox', 'build_fed_prox'),
  ],
)
def test_builders_of_fedquad_and_its_baselines(algorithm, builder, built):
  assert built(f'--algorithm={algorithm}')[1] == builder


@pytest.mark.parametrize('algorithm', ['fedquad', 'quadruplet_fl'])
def test_two_flags_are_the_margins(algorithm, built):
  _, _, arguments = built(
    f'--algorithm={algorithm}', '--margin_1=3', '--margin_2=0.25'
  )
  assert tuple(arguments['margins']) == (3.0, 0.25)


@pytest.mark.parametrize('arguments', [[], ['--algorithm=fedquad']])
def test_a_run_with_cross_entropy_needs_no_centroids(arguments):
  settings = _resolve(*arguments)
  task = training.build_task(settings)
  assert methods.build_class_centroids(settings, task) is None


@pytest.mark.usefixtures('default_runtime')
@pytest.mark.parametrize(
  'algorithm', ['fedquad', 'supcon_fl', 'triplet_fl', 'quadruplet_fl']
)
def test_centroids_are_of_all_clients_training_data(algorithm):
  settings = _resolve(f'--algorithm={algorithm}', '--nouse_ce')
  task = training.build_task(settings)
  tf.keras.utils.set_random_seed(0)
  model = task.model_fn()
  centroids = methods.build_class_centroids(settings, task)
  found = centroids(_weights(model))
  parts = [task.examples(i).train for i in range(3)]
  x, y = map(np.concatenate, zip(*parts, strict=True))
  embeddings = model(x)['embedding'].numpy()
  expected = [embeddings[y == label].sum(axis=0) for label in range(10)]
  np.testing.assert_allclose(found['sums'], expected, rtol=1e-4, atol=1e-4)
  assert found['counts'].tolist() == np.bincount(y).tolist()
  assert found['num_rejected_clients'] == 0


def _weights(model):
  return tff.learning.models.ModelWeights(
    [variable.numpy() for variable in model.trainable_variables],
    [variable.numpy() for variable in model.non_trainable_variables],
  )
