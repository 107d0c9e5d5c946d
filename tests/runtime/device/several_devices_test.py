"""Several devices in a separate process: devices cannot be added later.

Logical CPUs stand in for GPUs.
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.full

_ROOT = pathlib.Path(__file__).resolve().parents[3]
_SCRIPT = """
import sys
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

tf.config.set_logical_device_configuration(
  tf.config.list_physical_devices('CPU')[0],
  [tf.config.LogicalDeviceConfiguration()] * 4,
)
tf.debugging.set_log_device_placement(True)
from tests.runtime import equivalence
from tests.runtime import equivalence_test
from tff_fair import runtime
from tff_fair.runtime.device import values

contexts = [
  runtime.create_execution_context('device', device=device)
  for device in ('cpu', 'cpu:0,cpu:1', ['cpu:2', 'cpu:1'], 'all')
]


def leaves(value):
  return [np.asarray(leaf).tobytes() for leaf in tf.nest.flatten(value)]


# Many clients; clients that wait for a sum; a server that gathers rows.
for name, repeats in (('fed_avg', 5), ('fedaboost', 1), ('cffl', 1)):
  process, data = equivalence_test.build(name)
  one, *others = (
    leaves(equivalence.run(process, data * repeats, context))
    for context in contexts
  )
  assert len(one) > 10
  for other in others:
    assert other == one, name

# The state stays on the first device.
context = contexts[2]
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


def test_bits_and_places():
  environment = {k: v for k, v in os.environ.items() if 'INTRAOP' not in k}
  done = subprocess.run(
    [sys.executable, '-c', _SCRIPT],
    capture_output=True,
    check=False,
    text=True,
    cwd=_ROOT,
    env=environment,
  )
  assert done.returncode == 0, done.stderr[-2000:]
  pairs = re.findall(
    r'\((\w+)\): \S*device:(CPU:\d)', done.stdout + done.stderr
  )
  # The clients' part runs on both devices, and on no other.
  places = {place for op, place in pairs if op == 'MatrixDeterminant'}
  assert places == {'CPU:1', 'CPU:2'}
