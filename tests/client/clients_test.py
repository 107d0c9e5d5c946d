"""Clients of tables, of arrays, and of TFF's `ClientData`."""

import collections
import warnings

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client
from tff_fair import tasks

_ROWS = 30


def _table(**columns):
  rows = np.arange(_ROWS)
  return pd.DataFrame(
    {
      'hospital': np.array(['Ulm', 'Bonn', 'Berlin'])[rows % 3],
      'age': 20 + (7 * rows) % 15,
      'sex': np.array(['f', 'm'])[(rows // 2) % 2],
      'outcome': np.array(['well', 'ill'])[(rows // 5) % 2],
      **columns,
    }
  )


def _hospitals(table=None, **options):
  table = _table() if table is None else table
  return client.from_dataframe(
    table, **{'client': 'hospital', 'label': 'outcome', **options}
  )


def _arrays(dataset):
  batch = client.gather_examples(dataset)
  return batch['x'].numpy(), batch['y'].numpy()


class TestFromDataFrame:
  def test_is_the_task_of_the_same_table(self, tmp_path):
    _table().to_csv(tmp_path / 'own.csv', index=False)
    task = tasks.build_task(
      'table',
      data_file=str(tmp_path / 'own.csv'),
      client_column='hospital',
      label_column='outcome',
    )
    found = _hospitals()
    assert found.client_names == task.client_names == ('Berlin', 'Bonn', 'Ulm')
    assert found.class_names == task.class_names == ('ill', 'well')
    assert found.feature_names == ('age', 'sex=f', 'sex=m')
    assert found.input_shape == (3,)
    for i, name in enumerate(found.client_names):
      data, examples = found.data(name), task.examples(i)
      for part in ('train', 'holdout'):
        for array, expected in zip(
          _arrays(data[part]), getattr(examples, part), strict=True
        ):
          np.testing.assert_array_equal(array, expected)
      np.testing.assert_array_equal(found.test(i)[0], examples.test.x)

  def test_a_client_is_a_name_or_an_id(self):
    found = _hospitals(_table(hospital=np.arange(_ROWS) % 3 + 1))
    assert found.client_id('1') == 0 and found.client_id(1) == 1
    assert [len(y) for _, y in found.tests()] == [2, 2, 2]
    for bad, found_text in ((3, 'found 3'), ('12', 'Did you'), (1.0, '1.0')):
      with pytest.raises(
        (TypeError, ValueError), match=f'client .*{found_text}'
      ):
        found.client_id(bad)

  def test_what_the_user_should_know_is_a_warning(self):
    with pytest.warns(UserWarning, match="'pid' has another value in each row"):
      found = _hospitals(_table(pid=np.arange(_ROWS)))
    (note,) = found.notes
    assert "leave it out: drop=['pid']." in note
    assert not _hospitals(_table(pid=np.arange(_ROWS)), drop=['pid']).notes
    with pytest.warns(UserWarning, match=r"has '\?' in 10 of 30 rows"):
      _hospitals(_table(job=np.array(['a', 'b', '?'])[np.arange(_ROWS) // 10]))

  def test_types_of_pandas(self):
    rows = np.arange(_ROWS)
    table = _table(
      grade=pd.Categorical(np.array(['low', 'high'])[rows % 2]),
      stage=pd.Series(rows % 4, dtype='Int64').mask(rows == 1),
      smoker=pd.Series(rows % 2 == 0, dtype='boolean'),
      outcome=pd.Series(rows % 2, dtype='Int64'),
    )
    found = _hospitals(table, missing_values='fill')
    assert found.feature_names == (
      *('age', 'sex=f', 'sex=m', 'grade=high', 'grade=low'),
      *('stage', 'stage=missing', 'smoker'),
    )
    assert found.class_names == ('0', '1')

  @pytest.mark.parametrize('dtype', ['boolean', object])
  def test_booleans_with_gaps_are_filled_in_all_parts(self, dtype):
    rows = np.arange(_ROWS)
    smoker = pd.Series(rows % 2 == 0, dtype=dtype).mask(rows % 7 == 3)
    table = _table(smoker=smoker)
    found = _hospitals(table, missing_values='fill')
    *_, (name, mean, deviation), missing = found.features
    assert (name, missing) == ('smoker', ('smoker=missing', 0, 1))
    assert 0 < mean < 1
    levels = np.unique(
      np.round([(v - mean) / deviation for v in (0, mean, 1)], 4)
    )
    parts = [
      _arrays(found.data(i)[part])
      for i in range(3)
      for part in ('train', 'holdout')
    ]
    parts += found.tests()
    x = np.concatenate([x for x, _ in parts])
    np.testing.assert_allclose(np.unique(np.round(x[:, -2], 4)), levels)
    np.testing.assert_array_equal(x[:, -1] == 1, np.abs(x[:, -2]) < 1e-6)
    assert x[:, -1].sum() == (rows % 7 == 3).sum()
    with pytest.raises(ValueError, match="found 4 in 'smoker' of 30 rows"):
      _hospitals(table)
    dropped = _hospitals(table, missing_values='drop')
    assert dropped.features[-1] == ('smoker', 0, 1)

  def test_texts_of_numbers_are_texts_and_none_is_cut(self):
    rows = np.arange(_ROWS)
    texts = np.array(['007', '7', '10'], object)[rows % 3]
    assert _hospitals(_table(hospital=texts)).client_names == ('007', '10', '7')
    texts = np.array(['h\0x', 'h\0y'], object)[rows % 2]
    with pytest.raises(
      ValueError, match=r"found a NUL in the name 'h\\x00x'\."
    ):
      _hospitals(_table(hospital=texts))

  def test_refuses_what_only_dataframes_hold(self):
    days = pd.date_range('2024-01-01', periods=_ROWS)
    mixed = pd.Series([1, 'a'] * (_ROWS // 2), dtype=object)
    for name, options in (
      ('DataFrame', {'table': {'age': [1]}}),
      ('missing_values', {'missing_values': 'keep'}),
      ('client .* Did you mean hospital', {'client': 'hopital'}),
      ('which client', {'client': None}),
      ("'hospital' .* row 1", {'table': _table(hospital=1e30)}),
      ("'day' .* found dates", {'table': _table(day=days)}),
      ("'outcome' .* dates or times", {'table': _table(outcome=days)}),
      ("'hospital' .* int and str", {'table': _table(hospital=mixed)}),
      ("'age' .* complex", {'table': _table(age=1j)}),
      ("'age' .* list", {'table': _table(age=[[1]] * 30)}),
      ("30 in 'age' .*'drop' .*'fill'", {'table': _table(age=np.nan)}),
      ('holdout_fraction', {'holdout_fraction': 1.0}),
    ):
      with pytest.raises((TypeError, ValueError), match=name):
        _hospitals(**options)


def test_from_arrays():
  rows = np.arange(_ROWS)
  x = rows[:, np.newaxis].astype(np.float32)
  names = np.array(['b', 'a', 'c'])[rows % 3]
  found = client.from_arrays(x, rows % 2, client=names)
  assert found.client_names == ('a', 'b', 'c')
  parts = [_arrays(found.data('a')[part]) for part in ('train', 'holdout')]
  parts.append(found.test('a'))
  own = np.concatenate([x[:, 0] for x, _ in parts])
  np.testing.assert_array_equal(np.sort(own), rows[rows % 3 == 1])
  for inputs, labels in parts:
    np.testing.assert_array_equal(labels, inputs[:, 0] % 2)
  message = r"^client must name at least 2 clients, found only '0'\.$"
  with pytest.raises(ValueError, match=message):
    client.from_arrays(x, rows % 2, rows * 0)


def _client_data(transform=lambda dataset: dataset):
  """Three writers of ten examples each, named as in EMNIST."""
  rows = tf.reshape(tf.range(_ROWS, dtype=tf.int64), [3, 10])

  def create(name):
    own = rows[tf.strings.to_number(tf.strings.substr(name, 1, 1), tf.int32)]
    return tf.data.Dataset.from_tensor_slices(
      collections.OrderedDict(
        label=own % 4, pixels=tf.cast(own[:, tf.newaxis] % 256, tf.uint8)
      )
    )

  found = tff.simulation.datasets.ClientData.from_clients_and_tf_fn(
    ['f0', 'f1', 'f2'], create
  )
  return found.preprocess(transform)


def _as_pair(element):
  return element['pixels'], element['label']


def _as_other_names(element):
  return collections.OrderedDict(img=element['pixels'], cls=element['label'])


class TestBytes:
  def test_images_have_one_channel_as_with_the_launcher(self, tmp_path):
    x = np.arange(24 * 6, dtype=np.uint8).reshape(24, 2, 3)
    y, owners = np.arange(24) % 4, np.arange(24) % 2
    np.savez(tmp_path / 'own.npz', x=x, y=y, client=owners)
    task = tasks.build_task('arrays', data_file=str(tmp_path / 'own.npz'))
    with pytest.warns(UserWarning, match='255, and its images get an axis'):
      found = client.from_arrays(x, y, owners)
    assert found.notes == task.notes
    assert found.input_shape == (2, 3, 1) == task.data.x.shape[1:]
    images = task.examples(1).test.x
    np.testing.assert_array_equal(found.test(1)[0], images)
    assert 0.3 < images.max() <= 1
    # Other arrays are series as well as images, and stay as they are.
    with warnings.catch_warnings():
      warnings.simplefilter('error')
      series = client.from_arrays(x / np.float32(255), y, owners)
    assert series.input_shape == (2, 3)

  def test_images_of_tff(self):
    def as_image(element):
      return tf.reshape(element['pixels'], [1, 1]), element['label']

    found = client.from_client_data(_client_data(lambda d: d.map(as_image)))
    assert found.input_shape == (1, 1, 1) == found.test('f1')[0].shape[1:]


class TestFromClientData:
  def test_elements_of_all_forms(self):
    for transform, options in [
      (lambda d: d, {}),
      (lambda d: d.batch(4), {'num_classes': 4}),
      (lambda d: d.map(_as_pair).batch(4), {}),
      (lambda d: d.map(_as_pair).batch(5, drop_remainder=True), {}),
      (lambda d: d.map(_as_other_names), {'elements': ('img', 'cls')}),
    ]:
      found = client.from_client_data(_client_data(transform), **options)
      assert (found.num_clients, found.num_classes) == (3, 4)
      assert found.input_shape == (1,)
      parts = [_arrays(found.data('f1')[p]) for p in ('train', 'holdout')]
      parts.append(found.test('f1'))
      x, y = map(np.concatenate, zip(*parts, strict=True))
      np.testing.assert_allclose(np.sort(x[:, 0]) * 255, range(10, 20))
      np.testing.assert_allclose(y, np.round(x[:, 0] * 255) % 4)

  def test_reads_a_client_when_it_is_needed(self):
    read = []

    def create(name):
      read.append(name)
      return _client_data().create_tf_dataset_for_client(name)

    data = tff.simulation.datasets.TestClientData({'f0': [0]})
    data.create_tf_dataset_for_client = create
    found = client.from_client_data(data, num_classes=4)
    read.clear()
    found.data('f0')
    assert read == ['f0']

  def test_inputs_of_every_part_are_finite(self):
    def infinite(element):
      return element['pixels'] / 0, element['label']

    found = client.from_client_data(
      _client_data(lambda d: d.map(infinite)), num_classes=4
    )
    for part, read in (('test', found.test), ('train', found.data)):
      message = f'^The {part} part of client 1 must hold finite inputs, found '
      with pytest.raises(ValueError, match=message):
        read('f1')

  def test_refuses_what_has_no_classes(self):
    def texts(element):
      return element['pixels'], tf.strings.as_string(element['label'])

    for name, data, options in (
      ('client_data', [1], {}),
      ("client_ids .*'f00'. Did you", _client_data(), {'client_ids': ['f00']}),
      ("elements .*'label'", _client_data(), {'elements': ('x', 'y')}),
      ("client 'f0' .*integers", _client_data(lambda d: d.map(texts)), {}),
      ("'img', 'cls'", _client_data(lambda d: d.map(_as_other_names)), {}),
    ):
      with pytest.raises((TypeError, ValueError), match=name):
        client.from_client_data(data, **options)
