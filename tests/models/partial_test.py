import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tff_fair import models


@pytest.fixture(scope='module', name='model')
def _model():
  return models.StatelessModel(linear_task.embedding_behind_batch_norm_model_fn)


def test_joined_is_the_inverse_of_parted(model):
  trained = [i % 2 == 1 for i in range(len(model.initial_weights.trainable))]
  partial = models.PartialModel(model, trained)
  parted = partial.parted(model.initial_weights)
  linear_task.assert_equal(
    parted.trainable, model.initial_weights.trainable[1::2]
  )
  linear_task.assert_equal(partial.joined(parted), model.initial_weights)
  other = [w + 1 for w in parted.trainable]
  replaced = partial.replaced(model.initial_weights, other)
  for i, (found, w) in enumerate(
    zip(replaced.trainable, model.initial_weights.trainable, strict=True)
  ):
    np.testing.assert_array_equal(found, w + i % 2)
  linear_task.assert_equal(
    replaced.non_trainable, model.initial_weights.non_trainable
  )


def test_it_computes_what_the_model_does(model):
  trained = [False] * (len(model.initial_weights.trainable) - 1) + [True]
  partial = models.PartialModel(model, trained)
  assert partial.has_batch_norm
  parted = tf.nest.map_structure(
    tf.constant, partial.parted(model.initial_weights)
  )
  x = tf.random.stateless_normal([6, linear_task.NUM_FEATURES], [1, 2])
  seed = tf.constant([3, 4])
  outputs, rest = partial(parted, x, training=True, seed=seed)
  expected, statistics = model(
    model.initial_weights, x, training=True, seed=seed
  )
  linear_task.assert_equal(outputs, expected)
  linear_task.assert_equal(rest[-len(statistics) :], statistics)
  linear_task.assert_equal(
    rest[: -len(statistics)], model.initial_weights.trainable[:-1]
  )
