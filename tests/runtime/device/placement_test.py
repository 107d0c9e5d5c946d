"""Where blocks run, in processes of their own: devices cannot be added later.

No GPU is at hand: a second logical CPU stands for it.
"""

import re

import pytest

from tests import forked

_START = """
import numpy as np
import tensorflow as tf
cpu = tf.config.list_physical_devices('CPU')[0]
tf.config.set_logical_device_configuration(
  cpu, [tf.config.LogicalDeviceConfiguration()] * 2
)
import tensorflow_federated as tff
from tff_fair import runtime
from tff_fair.runtime.device import placement

"""

_ROUND = """
tf.debugging.set_log_device_placement(True)
runtime.set_execution_context('device', device='cpu:1')
sequence = tff.SequenceType(tff.TensorType(np.float32, [2]))

@tff.tensorflow.computation(sequence)
@tf.function
def gather(rows):
  return rows.batch(10).get_single_element()

@tff.tensorflow.computation(tff.TensorType(np.float32, [None, 2]))
@tf.function
def multiply(rows):
  return tf.matmul(rows, rows, transpose_a=True)

@tff.federated_computation(tff.FederatedType(sequence, tff.CLIENTS))
def total(data):
  products = tff.federated_map(multiply, tff.federated_map(gather, data))
  return tff.federated_sum(products)

data = tf.data.Dataset.from_tensor_slices(np.ones([3, 2], np.float32))
assert total([data, data])[0, 0] == 6
"""


def _run(script):
  done = forked.run(code=_START + script)
  assert done.returncode == 0, done.stderr[-2000:]
  return done.stdout + done.stderr


def test_blocks_run_on_the_device_and_data_sets_on_the_cpu():
  # A line such as "MatMul: (MatMul): /job:localhost/.../device:CPU:1".
  pairs = re.findall(r'\((\w+)\): \S*device:(CPU:\d)', _run(_ROUND))
  places = {}
  for op, place in pairs:
    places.setdefault(op, set()).add(place)
  assert places['MatMul'] == {'CPU:1'}
  assert places['AddV2'] == {'CPU:1'}  # The sum, at the server.
  assert places['DatasetToSingleElement'] == {'CPU:0'}
  assert places['BatchDatasetV2'] == {'CPU:0'}


def test_values_stay_on_the_device_between_rounds():
  _run("""
from tff_fair.runtime.device import values

runtime.set_execution_context('device', device='cpu:1')
state_type = tff.TensorType(np.float32, [3])
initialize = tff.tensorflow.computation(lambda: tf.ones([3]))
double = tff.tensorflow.computation(lambda x: 2 * x, state_type)
state = initialize()
for _ in range(3):
  state = double(state)
  tensor = values.from_python(state, state_type)
  assert tensor.device.endswith('CPU:1'), tensor.device
assert state[0] == 8
""")


def test_names_of_devices():
  _run("""
names = ['auto', 'cpu', 'cpu:0', 'cpu:1']
found = [placement.resolve_device(name) for name in names]
assert found == ['/device:CPU:0'] * 3 + ['/device:CPU:1'], found
""")


def test_operations_get_one_thread_unless_somebody_chose():
  _run("""
import os
threading = tf.config.threading

def limited():
  placement.limit_op_threads()
  return threading.get_intra_op_parallelism_threads()

os.environ['TF_NUM_INTRAOP_THREADS'] = '2'
assert limited() == 0
del os.environ['TF_NUM_INTRAOP_THREADS']
threading.set_intra_op_parallelism_threads(3)
assert limited() == 3
threading.set_intra_op_parallelism_threads(0)
assert limited() == 1
tf.ones([2])  # TensorFlow starts: too late to change anything.
runtime.set_execution_context('device')
assert limited() == 1
""")


def test_a_gpu_that_is_not_there():
  from tff_fair.runtime.device import placement

  with pytest.raises(ValueError, match=r"one of \['cpu:0'.*found 'gpu:77'"):
    placement.resolve_device('gpu:77')
