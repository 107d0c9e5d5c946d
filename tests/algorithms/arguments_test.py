"""What all builders do with their arguments."""

import collections
import contextlib
import inspect
import re
from unittest import mock

import numpy as np
import pytest
import tensorflow_federated as tff

from tests import limits
from tests.algorithms import linear_task
from tff_fair import aggregators
from tff_fair import algorithms
from tff_fair import annotations
from tff_fair import client
from tff_fair import losses
from tff_fair.algorithms import arguments
from tff_fair.algorithms import client_updates
from tff_fair.algorithms import composition
from tff_fair.launchers.options import builders
from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options import methods

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
  """Builds a method of a model with an embedding, or one that it needs."""
  parameters = inspect.signature(_BUILDERS[name]).parameters
  special = {
    'build_fed_rdn': linear_task.image_model_fn,
    'build_fair_fed': linear_task.binary_model_fn,
  }
  model_fn = special.get(name, linear_task.embedding_model_fn)
  needed = {n: value for n, value in _REQUIRED.items() if n in parameters}
  return _BUILDERS[name](
    model_fn,
    num_clients=2,
    client_optimizer=linear_task.sgd(0.1),
    **needed,
    **options,
  )


def _defaults(build):
  """Legal arguments, as `locals()` at the start of the builder."""
  return {
    name: _REQUIRED.get(name)
    if parameter.default is parameter.empty
    else parameter.default
    for name, parameter in inspect.signature(build).parameters.items()
  } | {'num_clients': 2, 'client_optimizer': linear_task.sgd(0.1)}


def _others(flag, annotation):
  """Values of a wrong type."""
  if isinstance(flag, flag_types.Integer) and not flag.choices:
    yield 1.5
  if flag.kind in ('integer', 'float'):
    yield '1'
  yield 'none such'
  if not annotations.read(annotation).optional:
    yield None


def test_an_argument_is_refused_outside_of_its_limits_and_taken_at_them():
  refused = taken = 0
  for method in methods.METHODS.values():
    build = builders.get(method.name)
    legal = _defaults(build)
    for flag in method.flags:
      if flag.argument:
        continue
      annotation = inspect.signature(build).parameters[flag.name].annotation
      for value in (*limits.outside(flag), *_others(flag, annotation)):
        with pytest.raises(
          (TypeError, ValueError), match=f'^{flag.name} must be .*, found '
        ):
          arguments.check_arguments(build, {**legal, flag.name: value})
          pytest.fail(f'{method.name}: {flag.name}={value!r}')
        refused += 1
      for value in limits.inside(flag):
        arguments.check_arguments(build, {**legal, flag.name: value})
        taken += 1
  assert refused > 450 and taken > 150


def test_what_no_graph_can_hold_is_refused():
  for build, name, value, message in (
    (algorithms.build_fedaboost, 'focal_weight', 1e-300, 'at least 1.18e-38'),
    (algorithms.build_fedaboost, 'batch_size', 2**31, 'at most 2147483647'),
    (algorithms.build_fed_sac, 'importance_every', 2**31, 'at most 2147483647'),
  ):
    with pytest.raises(ValueError, match=f'^{name} must be {message}, found'):
      arguments.check_arguments(build, {**_defaults(build), name: value})


_OPTIMIZER = (
  'a tff.learning.optimizers.Optimizer, such as .*build_sgdm.0.1., found float'
)
# What builders share, and has no flag of a method.
_BAD = (
  ('client_optimizer', 0.1, _OPTIMIZER, TypeError),
  ('local_epochs', 0, 'at least 1, found 0'),
  ('batch_size', 2.0, 'an integer, found 2.0', TypeError),
  ('seed', -1, 'at least 0 and at most 46.*, found -1'),
  ('num_clients', 0, 'at least 1, found 0'),
  ('client_learning_rate_fn', 0.1, 'of the round, found float', TypeError),
  ('max_update_norm', 0, 'above 0 and at most 1.*, found 0'),
  ('max_update_norm', 1e16, r'at most 10*\.0, found 1e'),
  ('max_update_norm', np.nan, 'finite, found nan'),
  ('focal_gamma', -1.0, 'at least 0, found -1.0'),
  ('epsilon', 0.0, 'above 0, found 0.0'),
  ('total_examples', 0, 'at least 1, found 0'),
  ('server_optimizer', 0.1, _OPTIMIZER, TypeError),
  (
    *('model_aggregator', tff.aggregators.SumFactory()),
    *('WeightedAggregationFactory, found SumFactory', TypeError),
  ),
)


def test_shared_arguments_are_checked_before_anything_is_built():
  """Nothing else is there to fail: the other arguments are None."""
  for builder, build in _BUILDERS.items():
    parameters = inspect.signature(build).parameters
    needed = {
      name: None
      for name, parameter in parameters.items()
      if parameter.default is inspect.Parameter.empty
    }
    legal = {**needed, 'client_optimizer': linear_task.sgd(0.1)}
    linear_task.assert_refused(
      build,
      *(bad for bad in _BAD if bad[0] in parameters),
      **{**legal, 'num_clients': 2},
    )
    # Only clients of plain data need not be counted.
    needs_ids = parameters['num_clients'].default is not None
    expected = 'num_clients must be an integer, found None'
    with pytest.raises(
      TypeError, match=expected if needs_ids else 'model_fn must be a function'
    ):
      build(**{**legal, 'num_clients': None})
      pytest.fail(builder)


def test_a_docstring_describes_the_arguments_that_there_are():
  for builder, build in _BUILDERS.items():
    _, _, rest = inspect.getdoc(build).partition('\nArgs:\n')
    own = set(re.findall(r'^  (\w+): ', rest.partition('\n\n')[0], re.M))
    names = set(inspect.signature(build).parameters)
    assert own <= names <= set(builders.argument_texts(build)), builder


class _Reached(Exception):
  """A part was used."""


class _Aggregator(tff.aggregators.WeightedAggregationFactory):
  def create(self, value_type, weight_type):
    raise _Reached


def _compose(model, client_work, *, server_optimizer, **options):
  """Stands for `compose_process`."""
  del client_work  # It is not built.
  if server_optimizer is not None:
    raise _Reached
  if options.get('split_statistics', True):
    options['model_aggregator'].create(None, None)
  options['rule'].create(model.weights_type, tff.TensorType(np.float32))


_COMPOSE = {'new': _compose}
_NO_CLIENTS = (client, 'build_client_work', {})
_PARTS = (
  pytest.param(
    *('focal_gamma', 2.0),
    [(losses, 'focal_loss', {'side_effect': _Reached})],
    marks=pytest.mark.full,  # Builds much before it is there.
  ),
  (
    *('robust', True),
    [_NO_CLIENTS, (aggregators, 'robust_factory', {'side_effect': _Reached})],
  ),
  *(
    (name, value, [_NO_CLIENTS, (composition, 'compose_process', _COMPOSE)])
    for name, value in (
      ('server_optimizer', linear_task.sgd(0.5)),
      ('model_aggregator', _Aggregator()),
    )
  ),
)


@pytest.mark.parametrize(('name', 'value', 'patches'), _PARTS)
def test_a_part_is_used(name, value, patches):
  used = 0
  for builder, build in _BUILDERS.items():
    if name in inspect.signature(build).parameters:
      with contextlib.ExitStack() as stack:
        for module, part, replacement in patches:
          stack.enter_context(mock.patch.object(module, part, **replacement))
        with pytest.raises(_Reached):
          _call(builder, **{name: value})
          pytest.fail(builder)
      used += 1
  assert used >= 13


def test_a_robust_rule_is_alone():
  for builder, build in _BUILDERS.items():
    if {'robust', 'model_aggregator'} <= {*inspect.signature(build).parameters}:
      with pytest.raises(
        ValueError, match='must be None with robust=True.*found _Aggregator'
      ):
        _call(builder, robust=True, model_aggregator=_Aggregator())
        pytest.fail(builder)


@pytest.mark.parametrize('mode', ('value', 'norm'))
def test_clip_update(mode):
  update = [np.float32([[3.0, -0.5]]), np.float32([0.0])]
  found = client_updates.clip_update(update, 1.0, mode)
  scale = np.hypot(3, 0.5)
  expected = {'value': [1, -0.5], 'norm': [3 / scale, -0.5 / scale]}[mode]
  np.testing.assert_allclose(found[0], [expected], rtol=1e-6)
  np.testing.assert_array_equal(found[1], [0])
  # An update that is not finite must be rejected, not clipped.
  for bad in (np.nan, np.inf):
    found = client_updates.clip_update([np.float32([bad, 1])], 1.0, mode)
    assert np.isnan(found[0][0])
