import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tff_fair import client
from tff_fair import models
from tff_fair.client import full_batch

_MODEL = models.StatelessModel(linear_task.model_fn)


def _examples(data):
  return collections.OrderedDict(
    x=tf.constant(data.x), y=tf.constant(data.y, tf.int32)
  )


def _loss(model, data):
  logits = model.logits(data.x)
  true = logits[np.arange(len(data.y)), data.y]
  return np.mean(np.log(np.exp(logits).sum(axis=1)) - true)


@pytest.mark.parametrize('batch_size', [3, 7, 200])
def test_against_numpy(batch_size):
  (data,) = linear_task.make_clients([7])
  model = linear_task.initial_model()
  gradient, metrics = client.mean_gradient(
    _MODEL, _MODEL.initial_weights, _examples(data), batch_size
  )
  expected = numpy_reference.focal_gradient(model, data.x, data.y, 0.0)
  np.testing.assert_allclose(gradient[0], expected.kernel, atol=1e-6)
  np.testing.assert_allclose(gradient[1], expected.bias, atol=1e-6)
  loss = client.mean_loss(
    _MODEL, _MODEL.initial_weights, _examples(data), batch_size
  )
  np.testing.assert_allclose(loss, _loss(model, data), rtol=1e-6)
  assert metrics['loss'] == loss
  right = model.logits(data.x).argmax(axis=1) == data.y
  np.testing.assert_allclose(metrics['accuracy'], right.mean(), rtol=1e-6)


def test_no_examples():
  (data,) = linear_task.make_clients([0])
  gradient, metrics = client.mean_gradient(
    _MODEL, _MODEL.initial_weights, _examples(data)
  )
  assert all(np.all(g == 0) for g in gradient)
  assert metrics == {'loss': 0, 'accuracy': 0}


def test_inference_mode():
  """Moving statistics, here mean 0 and variance 1, not those of the batch."""
  model = models.StatelessModel(linear_task.batch_norm_model_fn)
  weights = model.initial_weights
  (data,) = linear_task.make_clients([7])
  kernel = np.eye(linear_task.NUM_FEATURES, linear_task.NUM_CLASSES)
  *others, _, bias = weights.trainable
  weights.trainable[:] = [*others, kernel.astype(np.float32), bias]
  linear = numpy_reference.Linear(kernel / np.sqrt(1.001), 0.0)
  np.testing.assert_allclose(
    client.mean_loss(model, weights, _examples(data)),
    _loss(linear, data),
    rtol=1e-5,
  )


# None, fewer than a batch of 4, exactly a batch, more, and just two batches.
_SIZES = {0: [], 3: [3], 4: [4], 7: [4, 3], 8: [4, 4], 9: [4, 4, 1]}


def _squares(x):
  return x**2


@pytest.mark.parametrize('wrap', [lambda fn: fn, tf.function])
@pytest.mark.parametrize('size', list(_SIZES))
def test_mapping_is_in_place_whatever_the_batches(size, wrap):
  x = np.arange(2 * size, dtype=np.float32).reshape(size, 2)
  run = wrap(lambda x: full_batch.map_over_batches(_squares, x, [2], 4))
  found = run(tf.constant(x))
  assert found.dtype == tf.float32
  np.testing.assert_array_equal(found, x**2)


@pytest.mark.parametrize('output_shape', [[], [1], [2, 3]])
def test_mapping_to_outputs_of_other_shapes(output_shape):
  """One trace serves every number of examples."""
  scales = np.arange(1, 1 + np.prod(output_shape), dtype=np.float32)
  scales = scales.reshape(output_shape)

  def fn(batch):
    return tf.tensordot(tf.reduce_sum(batch, axis=1), scales, axes=0)

  run = tf.function(
    lambda x: full_batch.map_over_batches(fn, x, output_shape, 4),
    input_signature=[tf.TensorSpec([None, 2], tf.float32)],
  )
  assert run.get_concrete_function().structured_outputs.shape.as_list() == [
    None,
    *output_shape,
  ]
  for size in _SIZES:
    x = np.arange(2 * size, dtype=np.float32).reshape(size, 2)
    expected = np.multiply.outer(x.sum(axis=1), scales)
    np.testing.assert_array_equal(run(x), expected)


@pytest.mark.parametrize('size', [size for size in _SIZES if size])
def test_mapping_takes_no_more_than_a_batch_at_once(size):
  taken = []

  def fn(batch):
    taken.append(len(batch))
    return batch

  full_batch.map_over_batches(fn, tf.zeros([size, 2]), [2], 4)
  assert taken == _SIZES[size]
