import importlib

import numpy as np
import pytest
from ray import cloudpickle
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.runtime.cluster import loaded_clients
from tff_fair.runtime.cluster import messages
from tff_fair.runtime.device import values

_SEQUENCE = tff.SequenceType(tff.TensorType(np.float32))
_CALLS = []


def _load(client_id):
  """A client of `client_id` times 1000 bytes, and what a graph needs."""
  _CALLS.append(client_id)
  return tf.data.Dataset.from_tensor_slices(
    np.full([250 * client_id], client_id, np.float32)
  )


def _python_data(client_id):
  _CALLS.append(client_id)
  return tf.data.Dataset.from_generator(
    lambda: [2.0], output_signature=tf.TensorSpec([], tf.float32)
  )


def _calls(kept_bytes, client_ids, load=_load):
  """The clients that are loaded if these are asked for in turn."""
  clients = loaded_clients.LoadedClients(kept_bytes)
  clients.add_loaders({7: cloudpickle.dumps(load)})
  _CALLS.clear()
  for client_id in client_ids:
    value = clients(messages.Reference(7, client_id), _SEQUENCE)
    assert next(iter(value)) == client_id
  return list(_CALLS)


@pytest.mark.parametrize(
  ('kept_bytes', 'client_ids', 'expected'),
  [
    (10**6, [1, 2, 1, 2], [1, 2]),
    # Two clients of a thousand bytes have room, and the one used last stays.
    (5000, [1, 2, 1, 3, 1, 2], [1, 2, 3, 2]),
    (5000, [1, 8, 8, 1], [1, 8, 8]),  # Too large to be kept, and drops nobody.
    (0, [1, 1], [1, 1]),
  ],
)
def test_which_clients_are_loaded_again(kept_bytes, client_ids, expected):
  assert _calls(kept_bytes, client_ids) == expected


def test_data_that_call_python_have_no_known_size():
  assert _calls(10**9, [2, 2], _python_data) == [2, 2]


def test_the_memory_of_a_value():
  row = tf.zeros([5, 2])
  assert loaded_clients.memory((row, tf.constant(1))) == 44
  data = values.from_python(_load(4), _SEQUENCE, values.Mirror())
  assert 4000 < loaded_clients.memory((data, row)) - 40 < 6000


class _OfMissingModule:
  def __reduce__(self):
    return importlib.import_module, ('not_installed_here',)


def test_a_function_that_cannot_be_loaded_is_an_error_of_its_clients():
  clients = loaded_clients.LoadedClients()
  clients.add_loaders({0: cloudpickle.dumps(_OfMissingModule())})
  for _ in range(2):
    with pytest.raises(ModuleNotFoundError, match='not_installed_here'):
      clients(messages.Reference(0, 0), _SEQUENCE)
