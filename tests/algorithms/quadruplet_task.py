"""Shared by the tests of methods that learn a metric."""

import contextlib
from unittest import mock

import numpy as np
import tensorflow as tf

from tests.algorithms import linear_task
from tff_fair.client import quadruplets


@contextlib.contextmanager
def next_quadruplets():
  """Processes built in this context take the next examples as quadruplets.

  Nothing is drawn, as in the reference. Masked slots refer to example 0.
  """
  with mock.patch.object(
    quadruplets, 'sample_quadruplets', side_effect=_next_quadruplets
  ) as sample:
    yield
  sample.assert_called()


def assert_trains_the_encoder_alone(build, optimizer):
  """Two rounds without cross-entropy leave the classifier, bit for bit.

  Args:
    build: The method's builder.
    optimizer: As for `linear_task.decaying_optimizer`.
  """
  process = build(
    linear_task.embedding_model_fn,
    num_clients=2,
    client_optimizer=linear_task.decaying_optimizer(optimizer),
    local_epochs=2,
    batch_size=4,
    use_ce=False,
  )
  first = linear_task.embedding_model_fn().get_weights()
  clients = [
    linear_task.labelled_client([0, 1, 2, 1, 0, 2], i) for i in range(2)
  ]
  state = linear_task.run(process, clients, [[0, 1], [1]]).state
  kernel, _, *classifier = process.get_model_weights(state).trainable
  linear_task.assert_equal(classifier, first[2:])
  assert np.abs(kernel - first[0]).max() > 1e-3


def _next_quadruplets(labels, num_classes, seed):
  del num_classes, seed  # Unused.
  size = tf.size(labels)
  places = tf.range(size)
  ahead = tf.math.floormod(places[tf.newaxis] - places[:, tf.newaxis], size)

  def first(fits):
    """For each example the next one that fits; 0 and False without one."""
    key = tf.where(fits, ahead, size)
    key = tf.pad(key, [[0, 0], [0, 1]], constant_values=size)
    exists = tf.reduce_any(fits, axis=1)
    index = tf.argmin(key, axis=1, output_type=tf.int32)
    return tf.where(exists, index, 0), exists

  def other_than(rows):
    return tf.not_equal(rows[:, tf.newaxis], labels[tf.newaxis])

  others = other_than(labels)
  same = tf.logical_not(others) & (ahead > 0)
  positive, has_positive = first(same)
  negative_1, has_negative_1 = first(others)
  third = others & other_than(tf.gather(labels, negative_1))
  negative_2, has_negative_2 = first(third)
  mask_1 = has_positive & has_negative_1
  mask_2 = mask_1 & has_negative_2
  return quadruplets.Quadruplets(
    positive=tf.where(mask_1, positive, 0),
    negative_1=tf.where(mask_1, negative_1, 0),
    negative_2=tf.where(mask_2, negative_2, 0),
    mask_1=mask_1,
    mask_2=mask_2,
  )
