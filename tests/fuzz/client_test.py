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
from tff_fair.client import free_riders
from tff_fair.tensors import client_table

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


class TestClientData:
  @given(_examples(), st.integers(1, 7))
  def test_examples_come_back_from_any_batching(self, examples, batch_size):
    x, y = examples.values()
    data = client.build_client_data(3, (x, y), (x[:1], y[:1]))
    for part, size in (('train', len(y)), ('holdout', min(len(y), 1))):
      batched = data[part].unbatch().batch(batch_size)
      for dataset in (data[part], batched):
        found = client.gather_examples(dataset)
        np.testing.assert_array_equal(found['x'], x[:size])
        np.testing.assert_array_equal(found['y'], y[:size])
    assert data['client_id'].get_single_element() == 3
    assert client.has_examples({'train': examples}) == (len(y) > 0)

  @given(
    st.lists(st.integers(0, 99), unique=True, min_size=1, max_size=5),
    st.integers(0, 2**32 - 1),
    st.integers(1, 1000),
    st.data(),
  )
  def test_clients_of_a_round(self, ids, seed, round_number, data):
    def client_data(client_id):
      nothing = (np.zeros([0, 1]), [])
      return client.build_client_data(client_id, nothing, nothing)

    k = data.draw(st.integers(1, len(ids)))
    source = client.ClientDataSource(client_data, ids, seed=seed)
    drawn, again = (
      [
        int(part['client_id'].get_single_element())
        for part in source.round_data(round_number, k)
      ]
      for _ in range(2)
    )
    assert len(set(drawn)) == k and set(drawn) <= set(ids)
    assert drawn == again


@st.composite
def _rows(draw):
  """A table of four rows, some ids and new rows for them."""
  ids = draw(st.lists(st.integers(0, 3), unique=True, max_size=4))
  table = [draw(strategies.arrays([4, 2])), draw(strategies.labels([4], 9))]
  rows = [
    draw(strategies.arrays([len(ids), 2])),
    draw(strategies.labels([len(ids)], 9)),
  ]
  return table, np.array(ids, np.int32), rows


class TestClientTable:
  @given(_rows())
  def test_rows_are_read_as_they_were_written(self, parts):
    table, ids, rows = parts
    written = client_table.write_rows(table, ids, rows)
    others = np.setdiff1d(range(4), ids)
    for before, new, after in zip(table, rows, written, strict=True):
      np.testing.assert_array_equal(tf.gather(after, ids), new)
      np.testing.assert_array_equal(after.numpy()[others], before[others])
      mask = np.isin(range(4), others)
      np.testing.assert_array_equal(
        client_table.choose_rows(mask, before, after), after
      )
    for position, client_id in enumerate(ids):
      found = client_table.read_row(written, client_id)
      for part, new in zip(found, rows, strict=True):
        np.testing.assert_array_equal(part, new[position])

  @given(
    st.integers(0, 3),
    strategies.arrays([2], strategies.ANYTHING),
    strategies.arrays([], st.integers(-9, 9), np.int32),
  )
  def test_a_table_has_equal_rows(self, number, first, second):
    row = collections.OrderedDict(a=first, b=second)
    table = client_table.build_table(row, number)
    for name, value in row.items():
      assert table[name].dtype == value.dtype
      shape = [number, *value.shape]
      np.testing.assert_array_equal(table[name], np.broadcast_to(value, shape))
      zeros = client_table.zeros(shape, value.dtype)
      np.testing.assert_array_equal(zeros, np.zeros(shape))
    row_type = tff.types.to_type(
      tf.nest.map_structure(lambda v: tff.TensorType(v.dtype, v.shape), row)
    )
    gathered_type = client_table.gathered_type(row_type)
    assert gathered_type['a'] == tff.TensorType(np.float32, [None, 2])
    assert gathered_type['b'] == tff.TensorType(np.int32, [None])


class TestFullBatch:
  @strategies.costly
  @given(_WEIGHTS, _examples(), st.integers(1, 6))
  def test_means(self, matrices, examples, batch_size):
    x, y = examples.values()
    weights, tensors = _weights(matrices), _tensors(examples)
    logits = _logits(matrices, x)
    _close(client.logits_of_examples(_MODEL, weights, tensors['x']), logits)
    each = _cross_entropies(logits, y)
    loss = client.mean_loss(_MODEL, weights, tensors, batch_size)
    _close(loss, _mean(each))
    gradient, metrics = client.mean_gradient(
      _MODEL, weights, tensors, batch_size
    )
    slope = special.softmax(logits, axis=1) - np.eye(_C)[y]
    slope /= max(len(y), 1)
    first, second = map(np.float64, matrices)
    _close(gradient[0], x.T @ slope @ second.T, 1e-3)
    _close(gradient[1], (x @ first).T @ slope, 1e-3)
    _close(metrics['loss'], loss)

  @strategies.costly
  @given(_WEIGHTS, _examples())
  def test_embeddings(self, matrices, examples):
    weights, tensors = _weights(matrices), _tensors(examples)
    z = np.float64(examples['x']) @ matrices[0]
    _close(client.embed_examples(_MODEL, weights, tensors['x']), z)
    found = client.mean_embedding(
      _MODEL, weights, tensors['x'], normalize=False
    )
    _close(found, _mean(z))
    unit = client.mean_embedding(_MODEL, weights, tensors['x'], normalize=True)
    assert np.linalg.norm(unit) <= 1 + 1e-6
    sums, counts = client.class_sums(_MODEL, weights, tensors)
    own = np.eye(_C)[examples['y']]
    _close(sums, own.T @ z)
    np.testing.assert_array_equal(counts, own.sum(axis=0))


_BATCHES = _examples(st.integers(1, 5))


class TestOptimizers:
  @given(
    strategies.arrays([3]),
    strategies.arrays([3]),
    st.floats(0, 2),
    st.floats(0, 2),
  )
  def test_a_decayed_step(self, weights, gradient, decay, rate):
    sgd = tff.learning.optimizers.build_sgdm(rate)
    optimizer = client.with_weight_decay(sgd, decay)
    state = optimizer.initialize(tf.TensorSpec([3], tf.float32))
    _, found = optimizer.next(
      state, tf.constant(weights), tf.constant(gradient)
    )
    _close(found, weights - rate * (gradient + decay * weights))

  @given(st.lists(strategies.arrays([2]), min_size=1, max_size=3))
  def test_first_state(self, weights):
    adam = tff.learning.optimizers.build_adam(0.1)
    state = client.initial_optimizer_state(adam, ModelWeights(weights, []))
    assert all(isinstance(t, tf.Tensor) for t in tf.nest.flatten(state))
    moments = state['accumulator']
    assert [m.shape for m in moments] == [w.shape for w in weights]
    assert not np.any(moments)


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


class TestFreeRiders:
  @given(
    st.sampled_from(free_riders.KINDS),
    st.floats(1e-6, 1e6),
    strategies.SEEDS,
    st.lists(st.integers(0, 9), unique=True, max_size=4),
  )
  def test_noise(self, kind, bound, seed, ids):
    riders = client.FreeRiders(client_ids=tuple(ids), kind=kind, bound=bound)
    like = [tf.ones([5]), tf.ones([2, 2]), tf.ones([])]
    noise = riders.noise(like, seed)
    assert [n.shape for n in noise] == [t.shape for t in like]
    values = np.concatenate([n.numpy().ravel() for n in noise])
    assert np.abs(values).max() <= np.float32(bound)
    assert values.any() == (kind != 'zero')
    included = [bool(riders.include(i)) for i in range(10)]
    assert included == [i in ids for i in range(10)]


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
