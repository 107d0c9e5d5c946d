import collections

import numpy as np
import pytest
import tensorflow as tf

from tests import refusals
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


def test_built_data_have_the_type_of_the_contract():
  data = client.build_client_data(3, (_X, _Y), (_X[:0], _Y[:0]))
  specs = tf.nest.map_structure(lambda d: d.element_spec, data)
  assert list(data) == ['client_id', 'train', 'holdout']
  assert specs['client_id'] == tf.TensorSpec([], tf.int32)
  assert list(specs['train']) == ['x', 'y']
  assert specs['holdout']['y'] == tf.TensorSpec([0], tf.int32)


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

  def test_no_examples(self):
    gathered = self._gather(None)(_slices().batch(2).take(0))
    assert gathered['train']['y'].shape == (0,)

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


def test_a_client_that_rounds_shall_drop():
  bad = np.full([5, 2], np.nan)
  data = client.build_client_data(0, (bad, _Y), (_X, _Y), check_finite=False)
  assert np.isnan(data['train'].get_single_element()['x']).all()


def test_what_is_no_client():
  nothing = (np.zeros([0, 2]), [])
  one = np.ones([1, 2])
  wrong_id = r'^client_id must be .* found'
  refusals.check(
    client.build_client_data,
    [
      *(
        ({'client_id': bad}, (TypeError, ValueError), wrong_id)
        for bad in (-1, 1.5, np.nan, '1', None, True, 2**31)
      ),
      (
        {'train': (one, [1.7])},
        TypeError,
        r'client 3 must be integers.*only classification.*float64 such as 1.7',
      ),
      ({'client_id': 'ann'}, TypeError, "found 'ann': client.from_arrays and"),
      ({'train': (one, [np.nan])}, TypeError, 'found float64 such as nan'),
      (
        {'train': (one, ['cat'])},
        TypeError,
        "found <U3 such as 'cat': client.from_arrays and client.from_dataframe",
      ),
      (
        {'train': (_X, np.eye(3)[_Y])},
        ValueError,
        r'labels of shape \[5, 3\]: y.argmax\(axis=1\) gives the classes',
      ),
      *(
        (
          {'holdout': ([[0, 1], [2, bad]], [0, 1])},
          ValueError,
          r'holdout part of client 3 must hold finite .* first at \[1, 1\]',
        )
        for bad in (np.nan, -np.inf, 1e300)
      ),
      (
        {'train': (one, [2**32])},
        ValueError,
        'client 3 must be int32, fou',
      ),
      ({'train': (one, [-(2**40)])}, ValueError, 'client 3 must be int32, fou'),
      ({'train': (one, [[1]])}, ValueError, r'labels of shape \[1, 1\]'),
      ({'train': (one, 0)}, ValueError, r'labels of shape \[\]'),
      ({'train': (1.0, [0])}, ValueError, r'inputs of shape \[\]'),
      ({'train': ([['a', 'b']], [0])}, TypeError, 'inputs that are numbers'),
      ({'holdout': ([[1j, 0]], [0])}, TypeError, 'inputs that are numbers'),
      ({'train': (_X, _Y[:4])}, ValueError, 'train part of client 3.*5.*and l'),
    ],
    client_id=3,
    train=nothing,
    holdout=nothing,
  )
