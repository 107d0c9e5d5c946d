"""Shared by the tests of methods that learn a metric.

Their clients are named by their labels: of several classes, two or one, all
alone in their class, some alone; of two classes and of three where only one
quadruplet can be drawn; without data, and with data that are not finite.
"""

import contextlib
from unittest import mock

import numpy as np
import tensorflow as tf

from tests.algorithms import fedquad_reference
from tests.algorithms import linear_task
from tff_fair.client import quadruplets

LABELS = {
  'several': [0, 1, 2, 1, 0, 2, 2, 0, 1, 0, 2, 1],
  'two': [0, 2, 2, 0, 0],
  'one': [1, 1, 1],
  'alone': [2, 0, 1],
  'mixed': [0, 0, 2, 0, 1, 2, 2],
  'forced_two': [2, 0, 2],
  'forced_three': [1, 2, 1, 0],
  'empty': [],
  'broken': [0, 0, 1, 2],
}
IDS = {name: i for i, name in enumerate(LABELS)}


def clients(*names):
  """Some of the clients, as a dictionary from ids to data."""
  found = {}
  for name in names:
    i = IDS[name]
    found[i] = linear_task.labelled_client(LABELS[name], seed=i)
    if name == 'forced_three':
      # Both negatives of class 1 look alike: it does not matter which is n1.
      found[i].x[3] = found[i].x[1]
    if name == 'broken':
      found[i].x[1, 2] = np.nan
  return found


def build_process(
  build,
  model_fn=linear_task.embedding_model_fn,
  *,
  learning_rate=0.05,
  **options,
):
  """A process for these clients, of three full batches a round."""
  return build(
    model_fn,
    **{
      'num_clients': len(LABELS),
      'client_optimizer': linear_task.sgd(learning_rate),
      'local_epochs': 3,
      'batch_size': 50,
      **options,
    },
  )


def reference(method, **options):
  """The reference of a method for these clients."""
  return fedquad_reference.Federation(
    linear_task.embedding_model_fn().get_weights(),
    method,
    **{'learning_rate': 0.05, 'local_epochs': 3, **options},
  )


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
  """Two rounds without cross-entropy keep the classifier bit for bit.

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
  data = [linear_task.labelled_client([0, 1, 2, 1, 0, 2], i) for i in range(2)]
  state = linear_task.run(process, data, [[0, 1], [1]]).state
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
