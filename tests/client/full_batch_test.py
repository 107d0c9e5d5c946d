import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tff_fair import client
from tff_fair import models

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
