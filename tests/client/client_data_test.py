import collections

import numpy as np
import pytest
import tensorflow as tf

from tff_fair import client
from tff_fair.client import client_data

_SPEC = tf.TensorSpec([None, 2], tf.float32)
_X = np.arange(10, dtype=np.float32).reshape(5, 2)
_Y = np.array([0, 1, 2, 0, 1], np.int32)


def _slices(x=_X, y=_Y):
  return tf.data.Dataset.from_tensor_slices(collections.OrderedDict(x=x, y=y))


def test_types():
  plain = client.client_data_type(_SPEC)
  assert str(plain) == '<x=float32[?,2],y=int32[?]>*'
  structured = client.client_data_type(_SPEC, 7)
  assert str(structured) == (
    '<client_id=int32*,train=<x=float32[?,2],y=int32[?]>*,'
    'holdout=<x=float32[?,2],y=int32[?]>*>'
  )


def test_gathers_any_batching_in_order():
  for batch_size in (1, 2, 5, 100):
    examples = client.gather_examples(_slices().batch(batch_size))
    np.testing.assert_array_equal(examples['x'], _X)
    np.testing.assert_array_equal(examples['y'], _Y)
  empty = (
    _slices()
    .batch(5)
    .map(lambda batch: tf.nest.map_structure(lambda t: t[:0], batch))
  )
  for num_elements in (0, 1):
    examples = client.gather_examples(empty.take(num_elements))
    assert examples['x'].shape == (0, 2)
    assert examples['y'].shape == (0,)


@pytest.mark.usefixtures('default_runtime')
class TestGatherClient:
  def _gather(self, num_clients):
    data_type = client.client_data_type(_SPEC, num_clients)
    return client_data.build_gather_client(data_type, 3, num_clients)

  def test_structured(self):
    data = client.build_client_data(4, (_X, _Y), (_X[:1], _Y[:1]))
    gathered = self._gather(5)(data)
    assert gathered['key'] == 4
    np.testing.assert_array_equal(gathered['train']['x'], _X)
    np.testing.assert_array_equal(gathered['holdout']['y'], _Y[:1])

  def test_plain_key_depends_on_the_data_alone(self):
    gather = self._gather(None)
    key = gather(_slices().batch(2))['key']
    assert key == gather(_slices().batch(5))['key']
    assert key != gather(_slices(y=_Y[::-1].copy()).batch(5))['key']
    assert key != gather(_slices(x=_X + 1).batch(5))['key']

  def test_out_of_range(self):
    gather = self._gather(5)
    for client_id, label, message in (
      (5, 0, r'client id must lie in 0\.\.4.*\[5\] \[5\]'),
      (-1, 0, r'client id must lie in 0\.\.4.*\[-1\] \[-1\]'),
      (0, 3, r'Labels must lie in 0\.\.2.*\[0\] \[3\]'),
      (0, -1, r'Labels must lie in 0\.\.2.*\[-1\] \[0\]'),
    ):
      y = np.array([0, label])
      data = client.build_client_data(0, (_X[:2], y), (_X, _Y))
      data['client_id'] = tf.data.Dataset.from_tensors(np.int32(client_id))
      with pytest.raises(RuntimeError, match=message):
        gather(data)


def test_count_classes():
  for labels, expected in (([], 0), ([2, 2], 1), ([0, 3, 0, 1], 3)):
    assert client.count_classes(np.array(labels, np.int32), 4) == expected


def test_labels_that_are_whole_are_converted():
  for y in (_Y.astype(np.float64), _Y.astype(np.uint8)):
    data = client.build_client_data(0, (_X, y), (_X, _Y > 0))
    for part, expected in (('train', _Y), ('holdout', _Y > 0)):
      found = data[part].get_single_element()['y']
      assert found.dtype == tf.int32
      np.testing.assert_array_equal(found, expected)


_NOTHING = np.zeros([0, 2]), []
_ONE = np.ones([1, 2])


@pytest.mark.parametrize(
  ('name', 'bad'),
  [
    *(('client_id', i) for i in (-1, 2**31)),
    ('client_id', 'ann'),
    ('labels of client 3 .*only classif', (_ONE, [1.7])),
    ('labels of client 3 .* nan', (_ONE, [np.nan])),
    ('labels of client 3 .*from_dataframe', (_ONE, ['cat'])),
    (r'labels of shape .*argmax\(axis=1\)', (_X, np.eye(3)[_Y])),
    ('labels of client 3 must be int32', (_ONE, [2**32])),
    ('labels of client 3 must be int32', (_ONE, [-(2**40)])),
    (r'train part of client 3 .*labels of shape \[1, 1\]', (_ONE, [[1]])),
    (r'labels of shape \[\]', (_ONE, 0)),
    (r'inputs of shape \[\]', (1.0, [0])),
    ('inputs that are numbers', ([['a', 'b']], [0])),
    ('inputs that are numbers', ([[1j, 0]], [0])),
    ('as many inputs as labels', (_X, _Y[:4])),
    *(
      (r'finite .* first .* at \[1, 1\]', ([[0, 1], [2, number]], [0, 1]))
      for number in (np.nan, -np.inf, 1e300)
    ),
  ],
)
def test_what_is_no_client(name, bad):
  with pytest.raises((TypeError, ValueError), match=name):
    if name == 'client_id':
      client.build_client_data(bad, _NOTHING, _NOTHING)
    else:
      client.build_client_data(3, bad, _NOTHING)
