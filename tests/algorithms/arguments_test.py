"""What all builders do with their arguments."""

import collections
import dataclasses
import inspect
import re
import typing
from unittest import mock

import numpy as np
import pytest
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tff_fair import aggregators
from tff_fair import algorithms
from tff_fair import client
from tff_fair import losses
from tff_fair.algorithms import arguments
from tff_fair.algorithms import composition

_SHARED = {'model_fn'} | {
  field.name for field in dataclasses.fields(arguments.SharedArguments)
}
_BUILDERS = {
  name: build
  for name, build in vars(algorithms).items()
  if name.startswith('build_')
  and 'client_optimizer' in inspect.signature(build).parameters
}
_VALIDATION = (np.eye(4, dtype=np.float32), np.arange(4) % 3)
_ROWS = np.ones([2, 1], np.float32)
_REQUIRED = {
  'validation': _VALIDATION,
  'contributions': (0.5, 1.0),
  'statistics': collections.OrderedDict(mean=_ROWS, std=_ROWS),
  'total_examples': 10,
}


def _call(name, **options):
  """Builds a method of a model with an embedding, and of images for FedRDN."""
  parameters = inspect.signature(_BUILDERS[name]).parameters
  model_fn = linear_task.embedding_model_fn
  if name == 'build_fed_rdn':
    model_fn = linear_task.image_model_fn
  needed = {n: value for n, value in _REQUIRED.items() if n in parameters}
  return _BUILDERS[name](
    model_fn,
    num_clients=2,
    client_optimizer=linear_task.sgd(0.1),
    **needed,
    **options,
  )


def _choices(build):
  """The arguments whose legal values are in the signature."""
  for name, hint in typing.get_type_hints(build).items():
    if hint is bool or typing.get_origin(hint) is typing.Literal:
      yield name


def test_an_illegal_choice_is_refused_by_every_builder():
  number = 0
  for builder, build in _BUILDERS.items():
    for name in _choices(build):
      with pytest.raises(ValueError, match=f'^{name} must be one of .*, found'):
        _call(builder, **{name: 'none such'})
      number += 1
  assert number > 30


def test_a_docstring_describes_what_it_does_not_share():
  for builder, build in _BUILDERS.items():
    _, _, rest = inspect.getdoc(build).partition('\nArgs:\n')
    described = set(re.findall(r'^  (\w+): ', rest.partition('\n\n')[0], re.M))
    names = set(inspect.signature(build).parameters)
    assert described <= names, builder
    if builder == 'build_fed_avg':
      assert described == names
    elif 'See `build_fedquad`' in build.__doc__:
      own = set(inspect.signature(algorithms.build_fedquad).parameters)
      assert names - _SHARED - own <= described, builder
    else:
      assert names - _SHARED <= described, builder
      assert 'See `build_' in build.__doc__, builder


class _Reached(Exception):
  """A part was used."""


class _Aggregator(tff.aggregators.WeightedAggregationFactory):
  def create(self, value_type, weight_type):
    raise _Reached


def test_a_focal_gamma_is_used():
  for builder, build in _BUILDERS.items():
    if 'focal_gamma' in inspect.signature(build).parameters:
      with (
        mock.patch.object(losses, 'focal_loss', side_effect=_Reached),
        pytest.raises(_Reached),
      ):
        _call(builder, focal_gamma=2.0)
        pytest.fail(builder)


def _compose(model, client_work, *, server_optimizer, **options):
  """Stands for `compose_process`."""
  del client_work  # It is not built.
  if server_optimizer is not None:
    raise _Reached
  if options.get('split_statistics', True):
    options['model_aggregator'].create(None, None)
  options['rule'].create(model.weights_type, tff.TensorType(np.float32))


@pytest.mark.parametrize(
  ('name', 'value'),
  [
    ('server_optimizer', linear_task.sgd(0.5)),
    ('model_aggregator', _Aggregator()),
  ],
)
def test_a_part_of_the_server_is_used(name, value):
  for builder, build in _BUILDERS.items():
    if name in inspect.signature(build).parameters:
      with (
        mock.patch.object(client, 'build_client_work'),
        mock.patch.object(composition, 'compose_process', _compose),
        pytest.raises(_Reached),
      ):
        _call(builder, **{name: value})
        pytest.fail(builder)


def test_a_robust_rule_is_used_and_alone():
  number = 0
  for builder, build in _BUILDERS.items():
    parameters = inspect.signature(build).parameters
    if 'robust' not in parameters:
      continue
    with (
      mock.patch.object(client, 'build_client_work'),
      mock.patch.object(aggregators, 'robust_factory', side_effect=_Reached),
      pytest.raises(_Reached),
    ):
      _call(builder, robust=True)
      pytest.fail(builder)
    if 'model_aggregator' in parameters:
      with pytest.raises(
        ValueError, match='must be None with robust=True.*found _Aggregator'
      ):
        _call(builder, robust=True, model_aggregator=_Aggregator())
    number += 1
  assert number == 15
