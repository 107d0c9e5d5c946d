"""The arguments that builders share are refused before anything is built."""

import inspect

import pytest
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tff_fair import algorithms

_BUILDERS = {
  name: inspect.signature(build).parameters
  for name, build in vars(algorithms).items()
  if name.startswith('build_')
  and 'client_optimizer' in inspect.signature(build).parameters
}
_BAD = {
  'client_optimizer': (0.1, TypeError, 'a tff.learning.optimizers.Optimizer'),
  'local_epochs': (0, ValueError, 'at least 1, found 0'),
  'batch_size': (2.0, TypeError, 'an integer, found 2.0'),
  'seed': (-1, ValueError, 'in 0.*, found -1'),
  'num_clients': (0, ValueError, 'at least 1, found 0'),
  'client_learning_rate_fn': (0.1, TypeError, 'of the round, found float'),
  'focal_gamma': (-1.0, ValueError, 'at least 0.0, found -1.0'),
  'uniform': ('no', ValueError, "one of False, True, found 'no'"),
  'server_optimizer': (0.1, TypeError, 'Optimizer, found float'),
  'model_aggregator': (
    tff.aggregators.SumFactory(),
    TypeError,
    'WeightedAggregationFactory, found SumFactory',
  ),
}
_CASES = [
  (builder, name)
  for builder, parameters in _BUILDERS.items()
  for name in _BAD
  if name in parameters
]


def _call(builder, **arguments):
  """Calls a builder that can go no further than its checks."""
  needed = {
    name: None
    for name, parameter in _BUILDERS[builder].items()
    if parameter.default is inspect.Parameter.empty
  }
  getattr(algorithms, builder)(
    **{
      **needed,
      'num_clients': 2,
      'client_optimizer': linear_task.sgd(0.1),
      **arguments,
    }
  )


@pytest.mark.parametrize(('builder', 'name'), _CASES)
def test_a_bad_argument_is_refused_first_of_all(builder, name):
  value, error, message = _BAD[name]
  with pytest.raises(error, match=f'^{name} must be .*{message}'):
    _call(builder, **{name: value})


@pytest.mark.parametrize('builder', _BUILDERS)
def test_clients_must_be_counted_unless_they_may_be_plain_data(builder):
  if _BUILDERS[builder]['num_clients'].default is None:
    required = '^model_fn must be a function'
  else:
    required = '^num_clients must be an integer, found None'
  with pytest.raises(TypeError, match=required):
    _call(builder, num_clients=None)
