"""Data sets of one element, for those who read them and for the runtime."""

import collections
import pickle

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.runtime import element_dataset


def _dataset():
  return element_dataset.ElementDataset(
    collections.OrderedDict(x=np.ones([3, 2], np.float32), y=np.arange(3))
  )


def test_is_a_data_set_of_tensorflow():
  dataset = _dataset()
  assert isinstance(dataset, tf.data.Dataset)
  assert dataset.element_spec == collections.OrderedDict(
    x=tf.TensorSpec([3, 2], tf.float32), y=tf.TensorSpec([3], tf.int64)
  )
  assert dataset.cardinality() == 1
  sums = dataset.unbatch().map(lambda e: tf.reduce_sum(e['x'])).batch(5)
  np.testing.assert_array_equal(sums.get_single_element(), [2, 2, 2])
  (element,) = dataset
  np.testing.assert_array_equal(element['y'], [0, 1, 2])

  # Also if a function reads it first, and more than once.
  dataset = element_dataset.ElementDataset(np.int32(7))
  read = tf.function(lambda: dataset.get_single_element())
  assert read() == read() == dataset.get_single_element() == 7


def test_its_arrays_are_a_copy_that_nobody_changes():
  own = np.zeros(2)
  dataset = element_dataset.ElementDataset(own)
  own += 1
  np.testing.assert_array_equal(dataset.leaves[0], [0, 0])
  with pytest.raises(ValueError, match='read-only'):
    dataset.leaves[0][0] = 1


def test_arrives_whole_in_another_process():
  for dataset in (_dataset(), element_dataset.ElementDataset(np.int32(7))):
    found = pickle.loads(pickle.dumps(dataset))
    assert found.element_spec == dataset.element_spec
    assert found.nbytes == dataset.nbytes > 0
    for own, other in zip(found.leaves, dataset.leaves, strict=True):
      np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize(
  ('element', 'expected'),
  [
    ([('x', (np.float32, [None, 2])), ('y', (np.int64, [None]))], True),
    ([('x', (np.float32, [3, 2])), ('y', (np.int64, [3]))], True),
    ([('y', (np.int64, [None])), ('x', (np.float32, [None, 2]))], False),
    ([('x', (np.float32, [None, 2])), ('y', (np.int32, [None]))], False),
    ([('x', (np.float32, [4, 2])), ('y', (np.int64, [None]))], False),
  ],
)
def test_its_type(element, expected):
  element = [(name, tff.TensorType(*t)) for name, t in element]
  sequence_type = tff.SequenceType(tff.StructType(element))
  assert _dataset().is_of_type(sequence_type) == expected
