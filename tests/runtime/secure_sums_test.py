"""Secure sums on the local runtimes, which make them ordinary sums."""

import numpy as np
import pytest
import tensorflow_federated as tff

from tff_fair import runtime

_INTS = tff.FederatedType(np.int32, tff.CLIENTS)


@tff.federated_computation(_INTS)
def _below_256(numbers):
  return tff.federated_secure_sum_bitwidth(numbers, 8)


@tff.federated_computation(_INTS)
def _up_to_200(numbers):
  return tff.federated_secure_sum(numbers, 200)


@tff.federated_computation(_INTS)
def _modulo_10(numbers):
  return tff.backends.mapreduce.federated_secure_modular_sum(numbers, 10)


@pytest.fixture(
  scope='module',
  params=['device', pytest.param('native', marks=pytest.mark.full)],
)
def context(request):
  with tff.framework.get_context_stack().install(
    runtime.create_execution_context(request.param)
  ):
    yield
  runtime.set_execution_context('device', device='cpu')  # Ends the worker.


@pytest.mark.usefixtures('context')
def test_secure_sums_are_sums_within_bounds():
  for total, bound in ((_below_256, 255), (_up_to_200, 200)):
    assert total([2, bound, 3]) == bound + 5
    with pytest.raises(RuntimeError, match='larger than maximum'):
      total([1, bound + 1])
  assert _modulo_10([4, 5, 3]) == 2
