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
