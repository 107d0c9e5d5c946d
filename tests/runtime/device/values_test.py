import collections
import gc

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.runtime.device import values

PAIR = tff.to_type(collections.OrderedDict(a=np.int32, b=np.float32))
ROWS = tff.SequenceType(
  collections.OrderedDict(
    b=tff.TensorType(np.float32, [None]), a=tff.TensorType(np.int32)
  )
)
_EXAMPLES = tf.data.Dataset.from_tensor_slices(
  collections.OrderedDict(x=np.float32([1, 2]), y=np.int32([0, 1]))
)
_BATCHES = tff.SequenceType(
  collections.OrderedDict(
    x=tff.TensorType(np.float32, [None]), y=tff.TensorType(np.int32, [None])
  )
)
_CLIENT = tff.to_type(
  collections.OrderedDict(
    client_id=tff.SequenceType(np.int32), train=_BATCHES, holdout=_BATCHES
  )
)


def _from_python(value, value_type):
  return values.from_python(value, value_type, values.Mirror())


def test_bad_arguments_are_refused():
  for value, value_type, found in (
    (np.int64(1), tff.TensorType(np.int32), r'int32, found int64\[\]'),
    (1.5, tff.TensorType(np.int32), r'int32, found 1.5'),
    ('one', tff.TensorType(np.float32), "float32, found 'one'"),
    (
      np.zeros([3], np.float32),
      tff.TensorType(np.float32, [2]),
      r'float32\[2\], found float32\[3\]',
    ),
    ({'b': 1.0, 'a': 1}, PAIR, r"\['a', 'b'\], in this order, found \['b', "),
    ((1,), PAIR, r"\['a', 'b'\], in this order, found \[None\]"),
    (1, PAIR, 'must be a structure, found int'),
    (_EXAMPLES, _CLIENT, 'found _TensorSliceDataset: .*from_client_data'),
    (_EXAMPLES, _BATCHES, r'found <x=float32,y=int32>\*: batch it, such as'),
    (
      tf.data.Dataset.range(3),
      _BATCHES,
      r'found int64\*: map its elements to OrderedDict\(x=..., y=...\), and',
    ),
    (3, ROWS, 'must be a tf.data.Dataset or a list, found int'),
    (
      tf.data.Dataset.range(3),
      tff.SequenceType(np.int32),
      r'must be of type int32\*, found int64\*',
    ),
    (
      (1, 2),
      tff.FederatedType(np.int32, tff.CLIENTS),
      'a list with an entry per client, found tuple',
    ),
  ):
    with pytest.raises(TypeError, match=found):
      _from_python(value, value_type)


def test_structures_of_all_kinds_are_taken():
  pair = collections.namedtuple('pair', ['a', 'b'])
  for value in ({'a': 1, 'b': 2.0}, pair(1, 2.0), (1, 2.0), [1, 2.0]):
    converted = _from_python(value, PAIR)
    assert [int(converted[0]), float(converted[1])] == [1, 2.0]


def test_a_list_becomes_a_data_set():
  elements = [
    collections.OrderedDict(b=np.arange(n, dtype=np.float32), a=n)
    for n in (2, 3)
  ]
  dataset = _from_python(elements, ROWS)
  assert [(e['a'], len(e['b'])) for e in dataset.as_numpy_iterator()] == [
    (2, 2),
    (3, 3),
  ]
  empty = _from_python([], ROWS)
  assert not list(empty)
  assert list(empty.element_spec) == ['b', 'a']


def test_the_number_of_clients():
  client = tff.FederatedType(np.int32, tff.CLIENTS)
  server = tff.FederatedType(np.int32, tff.SERVER)
  same = tff.FederatedType(np.int32, tff.CLIENTS, all_equal=True)

  def count(value, *types):
    value_type = tff.to_type(types)
    return values.count_clients(_from_python(value, value_type), value_type)

  assert count(([1, 2], 3, [4, 5], 6), client, server, client, same) == 2
  assert count((1,), server) == 0
  with pytest.raises(ValueError, match=r'one entry per client, found \[1, 2\]'):
    count(([1, 2], [1]), client, client)


def test_an_array_that_is_passed_back_is_not_converted_again():
  tensor = tf.random.stateless_normal([3, 2], seed=[0, 1])
  array_type = tff.TensorType(np.float32, [3, 2])
  mirror = values.Mirror()
  array = values.to_python(tensor, array_type, 0, mirror)
  np.testing.assert_array_equal(array, tensor.numpy())
  assert values.from_python(array, array_type, mirror) is tensor
  # Not an equal array, and not in another context.
  copy = values.from_python(array.copy(), array_type, mirror)
  assert copy is not tensor
  np.testing.assert_array_equal(copy, array)
  assert _from_python(array, array_type) is not tensor
  # A tensor is forgotten with its array.
  assert len(mirror) == 1
  del array
  gc.collect()
  assert not len(mirror)
