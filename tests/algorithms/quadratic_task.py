"""Two clients that minimise `(w - a)^2 / 2`, for examples worked by hand."""

import collections
from unittest import mock

import numpy as np
import tensorflow as tf

from tests.algorithms import linear_task
from tff_fair import client


def build_process(build):
  """A process for them, with two steps a round and a learning rate of .1.

  Args:
    build: The builder of a method that minimises `classification_objective`.
  """
  with mock.patch.object(client, 'classification_objective', _quadratic):
    return build(
      _scalar_model,
      num_clients=2,
      client_optimizer=linear_task.sgd(0.1),
      local_epochs=2,
    )


def make_data():
  """Their data, with a = 0 and a = 4."""
  empty = np.zeros([0, 1], np.float32), np.zeros([0], np.int32)
  return [
    client.build_client_data(i, (np.full([1, 1], a, np.float32), [0]), empty)
    for i, a in enumerate((0.0, 4.0))
  ]


def _scalar_model():
  """One weight, initially 1; its logits are not used."""
  x = tf.keras.Input([1])
  dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer='ones')
  return tf.keras.Model(x, tf.keras.layers.Concatenate()([dense(x), x]))


def _quadratic(focal_gamma):
  """`(w - a)^2 / 2`, where all inputs of a client are a."""
  del focal_gamma  # Unused.

  def compute(forward, batch, context):
    del context  # Unused.
    (w,) = forward.trainable
    loss = tf.reduce_mean((w - batch['x']) ** 2) / 2
    return loss, collections.OrderedDict(accuracy=tf.constant(0.0))

  return client.Objective(compute)
