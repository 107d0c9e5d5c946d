import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import runtime


def test_unknown_kind():
  with pytest.raises(
    ValueError, match=r"'device', 'native', 'cluster'.*found 'gpu'"
  ):
    runtime.set_execution_context('gpu')


def test_unknown_option():
  with pytest.raises(TypeError, match='device'):
    runtime.set_execution_context('native', device='cpu')


def test_native_runs_a_computation():
  @tff.federated_computation(tff.FederatedType(np.int32, tff.CLIENTS))
  def total(values):
    return tff.federated_sum(values)

  try:
    runtime.set_execution_context('native')
    assert total([1, 2, 3]) == 6
  finally:
    runtime.set_execution_context('device', device='cpu')  # Ends the worker.


@pytest.mark.usefixtures('default_runtime')
def test_a_failed_computation_is_one_line():
  @tff.tensorflow.computation(np.float32)
  def fail(x):
    with tf.control_dependencies(
      [tf.debugging.Assert(x > 1, ['too small', x])]
    ):
      return tf.identity(x)

  assert fail(2.0) == 2
  with pytest.raises(RuntimeError, match=r'too small\] \[0.5\]$') as error:
    fail(0.5)
  assert '\n' not in str(error.value)
