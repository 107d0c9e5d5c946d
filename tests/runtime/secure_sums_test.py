"""Secure sums on the two runtimes of one machine: plain ones."""

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


@pytest.fixture(scope='module', params=['device', 'native'])
def context(request):
  with tff.framework.get_context_stack().install(
    runtime.create_execution_context(request.param)
  ):
    yield
  runtime.set_execution_context('device', device='cpu')  # Ends the worker.


@pytest.mark.usefixtures('context')
class TestSecureSums:
  @pytest.mark.parametrize(
    ('total', 'expected'), [(_below_256, 205), (_up_to_200, 205)]
  )
  def test_they_are_sums(self, total, expected):
    assert total([2, 200, 3]) == expected

  def test_a_modular_one_wraps_around(self):
    assert _modulo_10([4, 5, 3]) == 2

  @pytest.mark.parametrize(
    ('total', 'number'), [(_below_256, 256), (_up_to_200, 201)]
  )
  def test_a_value_above_the_bound_is_an_error(self, total, number):
    assert total([number - 1]) == number - 1
    with pytest.raises(RuntimeError, match='larger than maximum'):
      total([1, number])
