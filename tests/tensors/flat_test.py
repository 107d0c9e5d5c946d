import collections

import numpy as np
import tensorflow as tf

from tff_fair.tensors import flat

_STRUCTURE = collections.OrderedDict(
  a=np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), b=[np.float32(5.0)]
)


def test_flatten_is_row_major_in_the_order_of_variables():
  np.testing.assert_array_equal(flat.flatten(_STRUCTURE), [1, 2, 3, 4, 5])


def test_unflatten_undoes_flatten():
  specs = tf.nest.map_structure(
    lambda t: tf.TensorSpec(t.shape, t.dtype), _STRUCTURE
  )
  back = flat.unflatten(flat.flatten(_STRUCTURE), specs)
  tf.nest.map_structure(np.testing.assert_array_equal, back, _STRUCTURE)


def test_rows():
  rows = tf.nest.map_structure(
    lambda t: tf.stack([t, 10 * t, 100 * t]), _STRUCTURE
  )
  matrix = flat.flatten_rows(rows)
  assert matrix.shape == [3, 5]
  np.testing.assert_array_equal(matrix[1], [10, 20, 30, 40, 50])
  like = tf.nest.map_structure(lambda t: t[0], rows)
  back = flat.unflatten(matrix, like)
  tf.nest.map_structure(np.testing.assert_array_equal, back, rows)


def test_no_rows():
  rows = tf.nest.map_structure(
    lambda t: tf.zeros([0, *np.shape(t)]), _STRUCTURE
  )
  assert flat.flatten_rows(rows).shape == [0, 5]
