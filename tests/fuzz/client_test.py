"""What clients compute, against NumPy on a linear model."""

import collections

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest
from scipy import special
import tensorflow as tf
import tensorflow_federated as tff

from tests.fuzz import strategies
from tff_fair import client
from tff_fair import models

pytestmark = pytest.mark.full

ModelWeights = tff.learning.models.ModelWeights

_FEATURES, _C, _P = 2, 3, 2
_SIZES = st.integers(0, 5)


def _model_fn():
  x = tf.keras.Input([_FEATURES])
  embedding = tf.keras.layers.Dense(_P, use_bias=False)(x)
  logits = tf.keras.layers.Dense(_C, use_bias=False)(embedding)
  return tf.keras.Model(x, {'logits': logits, 'embedding': embedding})


_MODEL = models.StatelessModel(_model_fn)
_WEIGHTS = st.tuples(
  strategies.arrays([_FEATURES, _P]), strategies.arrays([_P, _C])
)


@st.composite
def _examples(draw, sizes=_SIZES):
  size = draw(sizes)
  return collections.OrderedDict(
    x=draw(strategies.arrays([size, _FEATURES])),
    y=draw(strategies.labels([size], _C)),
  )


def _tensors(examples):
  return tf.nest.map_structure(tf.convert_to_tensor, examples)


def _weights(matrices):
  return ModelWeights([tf.constant(m) for m in matrices], [])


def _logits(matrices, x):
  first, second = map(np.float64, matrices)
  return x @ first @ second


def _cross_entropies(logits, labels):
  log_p = special.log_softmax(logits, axis=-1)
  return -log_p[np.arange(len(labels)), labels]


def _mean(values):
  return np.sum(values, axis=0) / max(len(values), 1)


def _close(found, expected, rtol=1e-4, atol=1e-3):
  np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)


_BATCHES = _examples(st.integers(1, 5))


@pytest.fixture(scope='module')
def train():
  """Two epochs of full batches with a rate that is given."""
  local = client.build_local_training(
    _MODEL,
    client.cross_entropy_objective(),
    tff.learning.optimizers.build_sgdm(1.0),
    local_epochs=2,
    batch_size=100,
  )

  @tf.function(
    input_signature=[
      [tf.TensorSpec(w.shape) for w in _MODEL.initial_weights.trainable],
      tf.TensorSpec([None, _FEATURES]),
      tf.TensorSpec([None], tf.int32),
      tf.TensorSpec([]),
    ]
  )
  def run(matrices, x, y, rate):
    examples = collections.OrderedDict(x=x, y=y)
    return local(
      ModelWeights(matrices, []), examples, [0, 0], learning_rate=rate
    )

  return run


class TestLocalTraining:
  @given(
    matrices=_WEIGHTS,
    examples=_examples(),
    rate=st.floats(0, 0.5, width=32),
  )
  def test_two_full_steps(self, train, matrices, examples, rate):
    result = train(list(matrices), *examples.values(), rate)
    weights, losses = list(map(np.float64, matrices)), []
    x, y = examples.values()
    for _ in range(2 if len(y) else 0):
      logits = _logits(weights, x)
      losses.append(_cross_entropies(logits, y).mean())
      slope = (special.softmax(logits, axis=1) - np.eye(_C)[y]) / len(y)
      first, second = weights
      weights = [
        first - rate * x.T @ slope @ second.T,
        second - rate * (x @ first).T @ slope,
      ]
    for found, expected in zip(result.weights.trainable, weights, strict=True):
      _close(found, expected, 1e-3, 1e-2)
    _close(result.metrics['loss'], _mean(losses), 1e-3, 1e-2)
    assert result.num_steps == len(losses)

  @given(examples=_BATCHES, bad=strategies.NOT_FINITE)
  def test_what_is_not_finite_shows(self, train, examples, bad):
    examples['x'][0, 0] = bad
    matrices = [np.ones([_FEATURES, _P]), np.ones([_P, _C])]
    result = train(
      [np.float32(m) for m in matrices], *examples.values(), np.float32(0.1)
    )
    assert np.isnan(result.metrics['loss'])


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


class TestClientWork:
  @strategies.costly
  @given(
    parts=st.lists(_examples(), min_size=4, max_size=4),
    cohort=st.lists(st.integers(0, 3), unique=True, max_size=4),
    bad=st.lists(st.tuples(st.integers(0, 2), strategies.NOT_FINITE)),
  )
  def test_who_is_dropped_is_counted(self, work, parts, cohort, bad):
    for client_id, value in bad:
      parts[client_id]['x'][:1] = value
    data = [
      client.build_client_data(
        i, tuple(parts[i].values()), (np.zeros([0, _FEATURES]), [])
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
