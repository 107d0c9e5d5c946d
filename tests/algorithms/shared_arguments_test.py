"""The arguments that builders share are checked before anything is built."""

import inspect

import numpy as np
import pytest
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tff_fair import algorithms
from tff_fair.algorithms import client_updates

_BUILDERS = {
  name: inspect.signature(build).parameters
  for name, build in vars(algorithms).items()
  if name.startswith('build_')
  and 'client_optimizer' in inspect.signature(build).parameters
}
_OPTIMIZER = 'a tff.learning.optimizers.Optimizer, found float'
_BAD = (
  ('client_optimizer', 0.1, _OPTIMIZER, TypeError),
  ('local_epochs', 0, 'at least 1, found 0'),
  ('batch_size', 2.0, 'an integer, found 2.0', TypeError),
  ('seed', -1, 'at least 0 and at most 46.*, found -1'),
  ('num_clients', 0, 'at least 1, found 0'),
  ('client_learning_rate_fn', 0.1, 'of the round, found float', TypeError),
  ('max_update_norm', 0, 'above 0 and at most 1.*, found 0'),
  ('max_update_norm', -1.0, 'above 0 and .*, found -1'),
  ('max_update_norm', 1e16, r'at most 10*\.0, found 1e'),
  ('max_update_norm', np.nan, 'finite, found nan'),
  ('max_update_norm', 'none', "a real number, found 'none'", TypeError),
  ('focal_gamma', -1.0, 'at least 0, found -1.0'),
  # Without flags.
  ('epsilon', 0.0, 'above 0, found 0.0'),
  ('total_examples', 0, 'at least 1, found 0'),
  ('total_examples', 2.5, 'an integer, found 2.5', TypeError),
  ('uniform', 'no', "one of False, True, found 'no'"),
  ('server_optimizer', 0.1, _OPTIMIZER, TypeError),
  (
    'model_aggregator',
    tff.aggregators.SumFactory(),
    'WeightedAggregationFactory, found SumFactory',
    TypeError,
  ),
)


def test_every_builder_checks_them_first():
  """Nothing else is there to fail: the other arguments are None."""
  for builder, parameters in _BUILDERS.items():
    needed = {
      name: None
      for name, parameter in parameters.items()
      if parameter.default is inspect.Parameter.empty
    }
    arguments = {**needed, 'client_optimizer': linear_task.sgd(0.1)}
    build = getattr(algorithms, builder)
    linear_task.assert_refused(
      build,
      *(bad for bad in _BAD if bad[0] in parameters),
      **{**arguments, 'num_clients': 2},
    )
    # Only clients of plain data need not be counted.
    needs_ids = parameters['num_clients'].default is not None
    expected = 'num_clients must be an integer, found None'
    with pytest.raises(
      TypeError, match=expected if needs_ids else 'model_fn must be a function'
    ):
      build(**{**arguments, 'num_clients': None})


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
