"""What crosses between the host and the device, in a separate process.

A second logical CPU stands in for a GPU.
"""

import pytest

from tests.runtime import own_process

pytestmark = pytest.mark.full

_SCRIPT = """
import functools
import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context as eager_context
import tensorflow_federated as tff

tf.config.set_logical_device_configuration(
  tf.config.list_physical_devices('CPU')[0],
  [tf.config.LogicalDeviceConfiguration()] * 2,
)
from tests.algorithms import contract
from tests.algorithms import linear_task
from tff_fair import algorithms
from tff_fair import internals
from tff_fair import runtime

HOST, DEVICE = 'device:CPU:0', 'device:CPU:1'
crossed = []  # Shapes of what crosses in either direction.


def note(tensors, device):
  for tensor in tensors:
    if tensor.dtype != tf.variant and tensor.shape.rank:
      if not tensor.device.endswith(device):
        crossed.append(tuple(tensor.shape))


def watch(call):
  # Every traced function is called here.
  @functools.wraps(call)
  def watched(self, name, tensor_inputs, num_outputs):
    if not tf.executing_eagerly():
      return call(self, name, tensor_inputs, num_outputs)
    results = call(self, name, tensor_inputs, num_outputs)
    device = (self.device_name or DEVICE).rpartition('/')[-1]
    note(tensor_inputs, device)
    note(results, device)
    return results
  return watched


def convert(value, *arguments, **keywords):
  if type(value) is np.ndarray and value.ndim and not tf.inside_function():
    crossed.append(value.shape)
  return plain_convert(value, *arguments, **keywords)


def read(tensor):
  note([tensor], HOST)
  return plain_read(tensor)


eager_context.Context.call_function = watch(eager_context.Context.call_function)
plain_read = internals.read_only_array
plain_convert, tf.convert_to_tensor = tf.convert_to_tensor, convert
internals.read_only_array = read

METHODS = {
  'cffl': functools.partial(
    algorithms.build_cffl, validation=contract.VALIDATION, upload_rate=0.5
  ),
  'corefed': contract.with_embedding(
    algorithms.build_corefed, alignment='client'
  ),
}


def shapes(value):
  return {np.shape(leaf) for leaf in tf.nest.flatten(value)} - {()}


runtime.set_execution_context('device', device='cpu:1', client_threads=1)
for name, builder in METHODS.items():
  process = contract.build(builder)
  data = contract._data(process, [0, 1, 2])
  state = process.next(process.initialize(), data).state
  large = {shape for shape in shapes(state) if np.prod(shape) > 1}
  crossed.clear()
  for _ in range(2):
    state = process.next(state, data).state
  # The state, its tables, and what the server broadcasts.
  assert not set(crossed) & large, (name, set(crossed) & large)
  print(name, sorted(set(crossed)))
  # Reading copies once.
  crossed.clear()
  weights = process.get_model_weights(state)
  assert not crossed, name
  for _ in range(2):
    assert np.isfinite(weights.trainable[0]).all()
  assert crossed == [weights.trainable[0].shape], name
  # Arrays that the context does not know do cross.
  crossed.clear()
  process.next(tf.nest.map_structure(np.array, state), data)
  assert large <= set(crossed), (name, large - set(crossed))
"""


def test_state_and_table_stay_on_the_device():
  own_process.run(_SCRIPT)
