import copy
import pickle

import numpy as np
import pytest
import tensorflow as tf

from tff_fair import internals
from tff_fair.runtime.device import device_array


@pytest.fixture(name='reads')
def _reads(monkeypatch):
  """The tensors that are copied to the host."""
  reads = []
  plain = internals.read_only_array

  def read(tensor):
    reads.append(tensor)
    return plain(tensor)

  monkeypatch.setattr(internals, 'read_only_array', read)
  return reads


_NUMBERS = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_is_copied_when_it_is_read_and_only_once(reads):
  tensor = tf.constant(_NUMBERS)
  array = device_array.DeviceArray(tensor)
  assert isinstance(array, np.ndarray)
  assert (array.shape, array.dtype, array.ndim) == ((2, 3), np.float32, 2)
  assert (array.size, array.nbytes, len(array)) == (6, 24, 2)
  assert tf.nest.flatten({'a': array})[0] is array
  assert tf.convert_to_tensor(array) is tensor
  assert not reads
  np.testing.assert_array_equal(array, _NUMBERS)
  assert array[1, 2] == 5
  assert len(reads) == 1


def test_is_used_like_an_array():
  array = device_array.DeviceArray(tf.constant(_NUMBERS))
  for function in (
    lambda a: a + 1,
    lambda a: 1 - a,
    lambda a: a @ a.T,
    lambda a: a > 2,
    lambda a: a[0],
    lambda a: a.sum(),
    lambda a: np.concatenate([a, a]),
    lambda a: np.where(a > 2, a, 0),
    lambda a: np.isfinite(a).all(),
    lambda a: np.asarray(a, np.float64),
    lambda a: np.stack(list(a)),
    lambda a: tf.reduce_sum(a).numpy(),
    lambda a: a.tolist(),
    repr,
    lambda a: pickle.loads(pickle.dumps(a)),
    copy.deepcopy,
  ):
    found, expected = function(array), function(_NUMBERS)
    np.testing.assert_array_equal(found, expected)
    assert type(found) is type(expected)


def test_cannot_be_changed():
  array = device_array.DeviceArray(tf.constant(_NUMBERS))
  with pytest.raises(TypeError, match='item assignment'):
    array[0] = 1
  with pytest.raises(ValueError, match='cannot set WRITEABLE flag'):
    np.asarray(array).flags.writeable = True
