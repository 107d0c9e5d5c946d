"""Every public function and class is fuzzed, or it says here why not."""

import importlib
import inspect
import pathlib
import pkgutil

import pytest

import tasks
from tff_fair import aggregators
from tff_fair import checks
from tff_fair import client
from tff_fair import fairness
from tff_fair import losses
from tff_fair import metrics
from tff_fair import models
from tff_fair import tensors

pytestmark = pytest.mark.full

_DATA_READERS = 'It reads or makes a data set; its own tests damage the files.'
_BUILDERS = 'It builds a Keras model of a paper, which its own tests describe.'
_BY_HAND = 'Its own tests compare it with other arithmetic.'
_REFUSALS = 'Its own tests go through tables of bad input.'
_STRUCTURE = 'A structure without code of its own.'
# By the name of a module, or of something in it.
_EXEMPT = {
  'tff_fair.models.client_models': _BUILDERS,
  'tff_fair.models.record_models': _BUILDERS,
  'tasks.adult_records': _DATA_READERS,
  'tasks.ehr_records': _DATA_READERS,
  'tasks.ehr_synthetic': _DATA_READERS,
  'tasks.idx': _DATA_READERS,
  'tasks.images': _DATA_READERS,
  'tasks.pooled.build': _DATA_READERS,
  'tasks.registry': _DATA_READERS,
  'tasks.sources': _DATA_READERS,
  'tasks.writers': _DATA_READERS,
  'tasks.options': 'Its checks are those that the partitions make again.',
  'tasks.rules': 'Its own tests go through all rules.',
  'tasks.amounts': _BY_HAND,
  **{
    f'tasks.covariate_shift.{name}': _BY_HAND
    for name in (
      'principal_components',
      'client_weights',
      'shift_weights',
      'effective_sample_size',
      'fit_gaussian',
      'gaussian_kl',
      'approximate_kl',
    )
  },
  'tasks.shift_divergences': _BY_HAND,
  'tasks.task': _STRUCTURE,
  'tff_fair.aggregators.gathered.ServerOutput': _STRUCTURE,
  'tff_fair.aggregators.gathered.divide_by_max': _BY_HAND,
  'tff_fair.aggregators.gathered.divide_by_sum': _BY_HAND,
  'tff_fair.aggregators.gathered.finite_rows': _BY_HAND,
  'tff_fair.aggregators.gathered.trainable_type': _REFUSALS,
  **{
    f'tff_fair.aggregators.gradient_reuse.{name}': _BY_HAND
    for name in (
      'alignment_scores',
      'contributions',
      'participation_frequencies',
      'participation_window',
    )
  },
  'tff_fair.aggregators.largest_values.LargestValuesFactory': _BY_HAND,
  'tff_fair.aggregators.largest_values.keep_largest_of_each': _BY_HAND,
  'tff_fair.aggregators.model_weights': _BY_HAND,
  'tff_fair.aggregators.sparse_rewards.RatedRound': _STRUCTURE,
  'tff_fair.aggregators.type_checks': _REFUSALS,
  'tff_fair.checks': _REFUSALS,
  'tff_fair.client.client_data.client_data_type': _BY_HAND,
  'tff_fair.client.client_data.count_classes': _BY_HAND,
  'tff_fair.client.embeddings.check_embedding': _REFUSALS,
  'tff_fair.client.full_batch.batch_losses': _BY_HAND,
  'tff_fair.client.full_batch.fisher_trace': _BY_HAND,
  'tff_fair.client.local_training.client_seed': _BY_HAND,
  'tff_fair.client.metric_objectives': _BY_HAND,
  'tff_fair.client.objectives': _BY_HAND,
  'tff_fair.client.quadruplets': _BY_HAND,
  'tff_fair.fairness.Interval': _STRUCTURE,
  'tff_fair.losses.distillation': _BY_HAND,
  'tff_fair.losses.focal.check_parameters': _REFUSALS,
  'tff_fair.losses.keras_losses': _BY_HAND,
  **{
    f'tff_fair.losses.metric_learning.{name}': _BY_HAND
    for name in (
      'classic_quadruplet_loss',
      'quadruplet_loss',
      'supervised_contrastive_loss',
      'triplet_loss',
    )
  },
  'tff_fair.tensors.flat': _BY_HAND,
  'tff_fair.tensors.shapes': _REFUSALS,
}
_HERE = pathlib.Path(__file__).parent
_PACKAGES = (losses, metrics, aggregators, client, models, tensors, tasks)


def _modules():
  yield checks
  yield fairness
  for package in _PACKAGES:
    for module in pkgutil.iter_modules(package.__path__):
      yield importlib.import_module(f'{package.__name__}.{module.name}')


def _public():
  """Name -> what is public, of every module's own."""
  return {
    f'{module.__name__}.{name}': value
    for module in _modules()
    for name, value in vars(module).items()
    if not name.startswith('_')
    and (inspect.isfunction(value) or inspect.isclass(value))
    and value.__module__ == module.__name__
  }


def _tests(values):
  """The tests among these, and those of the classes among these."""
  for value in values:
    yield value
    if inspect.isclass(value):
      yield from vars(value).values()


def _fuzzed():
  names = [path.stem for path in sorted(_HERE.glob('*_test.py'))]
  modules = [importlib.import_module(f'tests.fuzz.{name}') for name in names]
  return {
    subject
    for module in modules
    for test in _tests(list(vars(module).values()))
    for subject in getattr(test, 'fuzzed', ())
  }


_PUBLIC = _public()


def _exempt(name):
  return name in _EXEMPT or name.rpartition('.')[0] in _EXEMPT


@pytest.fixture(scope='module')
def fuzzed():
  return _fuzzed()


def test_everything_public_is_fuzzed(fuzzed):
  missing = {
    name
    for name, value in _PUBLIC.items()
    if not _exempt(name) and value not in fuzzed
  }
  assert not missing, f'add a property for {sorted(missing)}'


def test_what_is_exempt_exists_and_is_not_fuzzed(fuzzed):
  for name in _EXEMPT:
    subjects = [
      value
      for public, value in _PUBLIC.items()
      if name in (public, public.rpartition('.')[0])
    ]
    assert subjects, name
    assert not fuzzed & set(subjects), name


def test_what_is_fuzzed_is_public(fuzzed):
  assert fuzzed <= set(_PUBLIC.values())
