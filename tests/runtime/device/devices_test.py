"""Where blocks run, in a separate process: devices cannot be added later.

Logical CPUs stand in for GPUs.
"""

import os
import re

import pytest

from tests.runtime import own_process

pytestmark = pytest.mark.full

_SCRIPT = """
import os
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff
from tff_fair import runtime
from tff_fair.runtime.device import placement
from tff_fair.runtime.device import values

# Operations get one thread, unless another number was set.
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

tf.config.set_logical_device_configuration(
  tf.config.list_physical_devices('CPU')[0],
  [tf.config.LogicalDeviceConfiguration()] * 4,
)
tf.debugging.set_log_device_placement(True)
names = ['auto', 'cpu', 'cpu:0', 'cpu:1']  # TensorFlow starts.
found = [placement.resolve_devices(name)[0] for name in names]
assert found == ['/device:CPU:0'] * 3 + ['/device:CPU:1'], found
runtime.set_execution_context('device')
assert limited() == 1

# Values stay on the device between rounds.
context = runtime.create_execution_context('device', device='cpu:1')
tff.framework.set_default_context(context)
state_type = tff.TensorType(np.float32, [3])
initialize = tff.tensorflow.computation(lambda: tf.ones([3]))
double = tff.tensorflow.computation(lambda x: 2 * x, state_type)
state = initialize()
for _ in range(3):
  state = double(state)
  tensor = values.from_python(state, state_type, context._mirror)
  assert tensor.device.endswith('CPU:1'), tensor.device
assert state[0] == 8

# Blocks run on the device, data sets on the CPU.
sequence = tff.SequenceType(tff.TensorType(np.float32, [2]))

@tff.tensorflow.computation(sequence)
@tf.function
def gather(rows):
  return rows.batch(10).get_single_element()

@tff.tensorflow.computation(tff.TensorType(np.float32, [None, 2]))
@tf.function
def multiply(rows):
  return tf.matmul([rows], [rows], transpose_a=True)[0]

@tff.federated_computation(tff.FederatedType(sequence, tff.CLIENTS))
def total(data):
  products = tff.federated_map(multiply, tff.federated_map(gather, data))
  return tff.federated_sum(products)

data = tf.data.Dataset.from_tensor_slices(np.ones([3, 2], np.float32))
assert total([data, data])[0, 0] == 6

# Several devices return the bits of one.
from tests.runtime import equivalence
from tests.runtime import equivalence_test
from tests.runtime.cluster import rounds

contexts = [
  runtime.create_execution_context('device', device=device)
  for device in ('cpu', ['cpu:2', 'cpu:3'], 'cpu:0,cpu:1', 'all')
]

def leaves(value):
  return [np.asarray(leaf).tobytes() for leaf in tf.nest.flatten(value)]

for number in (0, 1, 9, 40):
  one, *others = (
    leaves(rounds.expected(context, range(number))) for context in contexts
  )
  assert others == [one] * 3, number
# Clients that wait for a sum, and a server that gathers rows.
process, data = equivalence_test.build('cffl')
one, other = (
  leaves(equivalence.run(process, data, context)) for context in contexts[:2]
)
assert len(one) > 10 and other == one

# The state stays on the first device.
context = contexts[1]
tff.framework.set_default_context(context)
state_type = tff.FederatedType(tff.TensorType(np.float32, [3, 3]), tff.SERVER)
work = tff.tensorflow.computation(
  lambda x, y: x * tf.linalg.det(tf.linalg.diag([y, 1.0])),
  (state_type.member, np.float32),
)

@tff.federated_computation(
  state_type, tff.FederatedType(np.float32, tff.CLIENTS)
)
def next_round(state, numbers):
  sent = tff.federated_broadcast(state)
  return tff.federated_sum(tff.federated_map(work, (sent, numbers)))

state = np.eye(3, dtype=np.float32)
for _ in range(2):
  state = next_round(state, [1.0, 2.0, 3.0, 4.0])
  tensor = context._mirror.tensor(state)
  assert tensor.device.endswith('CPU:2'), tensor.device
assert state[0, 0] == 100
"""


def test_threads_and_devices():
  # conftest sets a number of threads.
  environment = {k: v for k, v in os.environ.items() if 'INTRAOP' not in k}
  done = own_process.run(_SCRIPT, environment)
  # A line such as "MatMul: (MatMul): /job:localhost/.../device:CPU:1".
  pairs = re.findall(
    r'\((\w+)\): \S*device:(CPU:\d)', done.stdout + done.stderr
  )
  places = {}
  for op, place in pairs:
    places.setdefault(op, set()).add(place)
  assert places['BatchMatMulV2'] == {'CPU:1'}
  assert places['DatasetToSingleElement'] == {'CPU:0'}
  assert places['BatchDatasetV2'] == {'CPU:0'}
  # The clients' part runs on both devices, and on no other.
  assert places['MatrixDeterminant'] == {'CPU:2', 'CPU:3'}
