"""The bound on the norm of what a client sends, worked by hand."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tff_fair import client
from tff_fair import models

ModelWeights = tff.learning.models.ModelWeights


def _update(weights, statistics=()):
  return ModelWeights(
    [tf.constant(w, tf.float32) for w in weights],
    [tf.constant(s, tf.float32) for s in statistics],
  )


def test_a_longer_update_is_scaled_and_a_shorter_one_unchanged():
  # Length 13; the statistics' is 25, and their bound a square.
  update = _update([[3.0, 4.0], [[12.0]]], [[7.0], [24.0]])
  for bound, weights, statistics, expected in (
    (13.0, 1, 1, False),
    (12.99, 12.99 / 13, 1, True),
    (6.5, 0.5, 1, True),
    (5.0, 5 / 13, 1, True),
    (2.5, 2.5 / 13, 0.25, True),
    (None, 1, 1, False),
  ):
    found, clipped = client.bound_update(update, bound)
    assert bool(clipped) == expected
    for part, scale in (('trainable', weights), ('non_trainable', statistics)):
      for value, before in zip(
        getattr(found, part), getattr(update, part), strict=True
      ):
        assert value.dtype == tf.float32
        if scale == 1:
          np.testing.assert_array_equal(value, before)
        np.testing.assert_allclose(value, scale * before, rtol=1e-6)


@pytest.mark.parametrize('large', (1e18, 1e30, 3.4e38))
def test_the_norm_does_not_overflow(large):
  found, clipped = client.bound_update([tf.fill([4], large)], 2.0)
  assert clipped
  np.testing.assert_allclose(found[0], np.ones(4), rtol=1e-6)


def test_an_update_that_is_not_finite_stays_so():
  for bad in (np.nan, np.inf, -np.inf):
    found, _ = client.bound_update([tf.constant([1.0, bad])], 2.0)
    assert not np.isfinite(found[0]).all()


_MODEL = models.StatelessModel(linear_task.model_fn)


def _send_features(weights, row, examples, seed, learning_rate):
  """The update is the client's mean example, in the first column."""
  del seed, learning_rate  # Unused.
  kernel, bias = map(tf.zeros_like, weights.trainable)
  mean = tf.reduce_mean(examples['train']['x'], axis=0)
  return client.ClientOutput(
    update=ModelWeights([kernel + mean[:, tf.newaxis] * [1, 0, 0], bias], []),
    update_weight=tf.constant(1.0),
    row=row,
    metrics=collections.OrderedDict(),
    report=collections.OrderedDict(
      score=tf.constant(1.5), number=tf.constant(2)
    ),
    # As if the method excluded client 5, which has data,
    active=client.has_examples(examples) & tf.not_equal(examples['key'], 5),
    # and had bounded the update of client 3.
    clipped=tf.equal(examples['key'], 3),
  )


@pytest.mark.usefixtures('default_runtime')
def test_clipped_clients_are_counted_one_by_one():
  rows = ([0, 3, 4, 0], [0, 0, 1e30, 0], [np.nan, 1e30, 0, 0], [1, 0, 0, 0])
  nothing = np.zeros([0, 4], np.float32), np.zeros([0], np.int32)
  data = [
    client.build_client_data(
      i, (np.float32([x]), np.int32([0])), nothing, check_finite=False
    )
    for i, x in enumerate(rows)
  ]
  data.append(client.build_client_data(4, nothing, nothing))
  one = np.ones([1, 4], np.float32), np.int32([0])
  data.append(client.build_client_data(5, one, nothing))
  work = client.build_client_work(
    _MODEL, _send_features, num_clients=6, seed=0, max_update_norm=5.0
  )
  weights = [_MODEL.initial_weights] * len(data)
  output = work.next(work.initialize(), weights, data)
  found = [r.update.trainable[0][:, 0] for r in output.result]
  zeros = [0] * 4
  expected = [rows[0], [0, 0, 5, 0], zeros, rows[3], zeros, zeros]
  np.testing.assert_allclose(found, expected, rtol=1e-6)
  measured = output.measurements
  order = np.argsort(measured['clients']['client_id'])
  clipped = measured['clients']['clipped'][order]
  assert clipped.dtype == np.int32
  np.testing.assert_array_equal(clipped, [0, 1, 0, 1, 0, 0])
  assert measured['num_clipped_clients'] == 2
  assert measured['num_rejected_clients'] == 1
  assert measured['num_empty_clients'] == 1
  # The third is rejected, the fifth has no data, the last is excluded: they
  # report nothing.
  reports = measured['clients']
  np.testing.assert_array_equal(reports['number'][order], [2, 2, 0, 2, 0, 0])
  missing = np.nan
  np.testing.assert_array_equal(
    reports['score'][order], [1.5, 1.5, missing, 1.5, missing, missing]
  )
