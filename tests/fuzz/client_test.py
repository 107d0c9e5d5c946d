"""The client work: who is dropped, and who is counted."""

import collections

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.fuzz import strategies
from tff_fair import client
from tff_fair import models

pytestmark = pytest.mark.full

ModelWeights = tff.learning.models.ModelWeights

_FEATURES, _C, _P = 2, 3, 2


def _model_fn():
  x = tf.keras.Input([_FEATURES])
  embedding = tf.keras.layers.Dense(_P, use_bias=False)(x)
  logits = tf.keras.layers.Dense(_C, use_bias=False)(embedding)
  return tf.keras.Model(x, {'logits': logits, 'embedding': embedding})


_MODEL = models.StatelessModel(_model_fn)


@st.composite
def _examples(draw):
  size = draw(st.integers(0, 5))
  return collections.OrderedDict(
    x=draw(strategies.arrays([size, _FEATURES])),
    y=draw(strategies.labels([size], _C)),
  )


def _update_by_means(weights, row, examples, seed, learning_rate):
  """An update that tells what a client's data are, without any training."""
  del weights, seed, learning_rate  # Unused.
  train = examples['train']
  size = tf.cast(tf.size(train['y']), tf.float32)
  mean = tf.math.divide_no_nan(tf.reduce_sum(train['x'], axis=0), size)
  first, second = _MODEL.initial_weights.trainable
  return client.ClientOutput(
    update=ModelWeights(
      [
        tf.broadcast_to(mean[:, tf.newaxis], first.shape),
        tf.zeros_like(second),
      ],
      [],
    ),
    update_weight=size,
    row=row + 1.0,
    metrics=collections.OrderedDict(mean=tf.reduce_sum(mean)),
    report=collections.OrderedDict(mean=tf.reduce_sum(mean)),
  )


@pytest.fixture(scope='module')
def work(default_runtime):
  """The frame around it, with a free rider, client 3."""
  return client.build_client_work(
    _MODEL,
    client.with_free_riders(
      _update_by_means, client.FreeRiders(client_ids=(3,), kind='zero')
    ),
    num_clients=4,
    seed=0,
    initial_row=np.float32(0),
  )


@strategies.costly
@given(
  parts=st.lists(_examples(), min_size=4, max_size=4),
  cohort=st.lists(st.integers(0, 3), unique=True, max_size=4),
  bad=st.lists(st.tuples(st.integers(0, 2), strategies.NOT_FINITE)),
)
def test_who_is_dropped_is_counted(work, parts, cohort, bad):
  for client_id, value in bad:
    parts[client_id]['x'][:1] = value
  data = [
    client.build_client_data(
      i,
      tuple(parts[i].values()),
      (np.zeros([0, _FEATURES]), []),
      check_finite=False,
    )
    for i in cohort
  ]
  weights = [_MODEL.initial_weights] * len(cohort)
  output = work.next(work.initialize(), weights, data)
  sizes = np.array([len(parts[i]['y']) for i in cohort], int)
  rides = np.array([i == 3 for i in cohort], bool)
  finite = np.array([np.isfinite(parts[i]['x']).all() for i in cohort], bool)
  finite |= rides
  kept = finite & (rides | (sizes > 0))
  found = output.measurements
  assert found['num_clients'] == len(cohort)
  assert found['num_rejected_clients'] == np.sum(~finite)
  assert found['num_empty_clients'] == np.sum((sizes == 0) & ~rides)
  assert found['num_examples'] == sizes[kept].sum()
  assert np.isfinite(found['mean'])
  for result, size, use, i in zip(
    output.result, sizes, kept, cohort, strict=True
  ):
    assert result.update_weight == (size if use else 0)
    assert np.isfinite(result.update.trainable[0]).all()
    if not use or i == 3:
      assert not np.any(result.update.trainable[0])
  rows = np.zeros(4)
  rows[np.array(cohort, int)[kept & ~rides]] = 1
  np.testing.assert_array_equal(output.state['table'], rows)
  clients = found['clients']
  order = np.argsort(clients['client_id'])
  np.testing.assert_array_equal(
    clients['rejected'][order], (~finite)[np.argsort(cohort)]
  )
