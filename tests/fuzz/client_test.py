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
from tests.fuzz.strategies import fuzzes
from tests.fuzz.strategies import refused
from tff_fair import client
from tff_fair import models
from tff_fair.client import client_data
from tff_fair.client import free_riders
from tff_fair.client import full_batch
from tff_fair.client import local_training
from tff_fair.tensors import client_table

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
  @fuzzes(client.build_client_data, client.gather_examples, client.has_examples)
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

  @pytest.mark.parametrize(
    ('client_id', 'x', 'y'),
    [
      *(
        (bad, np.ones([1, 2]), [0]) for bad in [*strategies.NO_COUNT[1:], 2**31]
      ),
      (0, np.ones([1, 2]), [0.5]),
      (0, np.ones([1, 2]), [np.nan]),
      (0, np.ones([1, 2]), ['a']),
      (0, np.ones([1, 2]), [2**31]),
      (0, np.ones([1, 2]), [-(2**40)]),
      (0, np.ones([1, 2]), [[0]]),
      (0, np.ones([1, 2]), 0),
      (0, np.ones([2, 2]), [0]),
      (0, 1.0, [0]),
      (0, [['a', 'b']], [0]),
      (0, [[1j, 0]], [0]),
    ],
  )
  def test_what_is_no_client(self, client_id, x, y):
    with refused():
      client.build_client_data(client_id, (x, y), (np.ones([0, 2]), []))

  @fuzzes(client.client_data_type)
  @given(st.lists(st.integers(1, 5), max_size=3), st.booleans())
  def test_the_data_have_the_stated_type(self, shape, with_id):
    spec = tf.TensorSpec([None, *shape], tf.float32)
    found = client.client_data_type(spec, 4 if with_id else None)
    examples = (np.ones([2, *shape]), [0, 1])
    data = client.build_client_data(0, examples, examples)
    element = tf.nest.map_structure(
      lambda t: tff.TensorType(t.dtype.as_numpy_dtype, [None, *t.shape[1:]]),
      data['train'].element_spec,
    )
    train = found['train'] if with_id else found
    assert train.element.is_equivalent_to(tff.to_type(element))
    assert isinstance(found, tff.StructType) == with_id

  @fuzzes(client.ClientDataSource)
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

  @fuzzes(client.count_classes)
  @given(_examples())
  def test_count_classes(self, examples):
    found = client.count_classes(examples['y'], _C)
    assert found == len(np.unique(examples['y']))


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
  @fuzzes(
    client_table.write_rows, client_table.read_row, client_table.choose_rows
  )
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

  @given(st.lists(st.integers(0, 3), min_size=2, max_size=4))
  def test_an_id_that_occurs_twice_is_named(self, ids):
    ids = [*ids, ids[0]]
    message = 'A client must take part once a round, found the ids'
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
      client_table.write_rows(np.zeros([4, 1]), ids, np.ones([len(ids), 1]))

  @fuzzes(
    client_table.build_table, client_table.zeros, client_table.gathered_type
  )
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
  @fuzzes(
    client.mean_loss,
    client.mean_gradient,
    client.logits_of_examples,
    full_batch.mean_over_batches,
    full_batch.map_over_batches,
  )
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

  @fuzzes(client.batch_losses, client.fisher_trace)
  @strategies.costly
  @given(_WEIGHTS, _examples(), st.integers(1, 6), st.integers(0, 4))
  def test_minibatches(self, matrices, examples, batch_size, number):
    weights, tensors = _weights(matrices), _tensors(examples)
    found = client.batch_losses(_MODEL, weights, tensors, batch_size, number)
    each = _cross_entropies(_logits(matrices, examples['x']), examples['y'])
    starts = range(0, number * batch_size, batch_size)
    _close(found, [_mean(each[i : i + batch_size]) for i in starts])
    trace = client.fisher_trace(_MODEL, weights, tensors, batch_size)
    expected = 0.0
    for i in range(0, len(each), batch_size):
      batch = tf.nest.map_structure(lambda t: t[i : i + batch_size], tensors)  # noqa: B023
      gradient, _ = client.mean_gradient(_MODEL, weights, batch)
      expected += sum(np.sum(np.square(g)) for g in gradient)
    _close(trace, expected, 1e-3)

  @fuzzes(client.mean_embedding, client.embed_examples, client.class_sums)
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

  @pytest.mark.parametrize('bad', strategies.NO_COUNT)
  def test_batches_have_a_size(self, bad):
    examples = collections.OrderedDict(
      x=tf.ones([1, _FEATURES]), y=tf.constant([0])
    )
    weights = _MODEL.initial_weights
    for call in (
      lambda: client.mean_loss(_MODEL, weights, examples, bad),
      lambda: client.mean_gradient(_MODEL, weights, examples, bad),
      lambda: client.batch_losses(_MODEL, weights, examples, bad, 2),
      lambda: client.fisher_trace(_MODEL, weights, examples, bad),
      lambda: full_batch.map_over_batches(tf.abs, examples['x'], [2], bad),
    ):
      with refused():
        call()

  @fuzzes(client.check_embedding)
  def test_a_model_without_embedding_is_named(self):
    def logits_only():
      x = tf.keras.Input([2])
      return tf.keras.Model(x, tf.keras.layers.Dense(2)(x))

    client.check_embedding('The method', _MODEL)
    with refused():
      client.check_embedding('A method', models.StatelessModel(logits_only))


class _Forward:
  """A linear model in the place of the local loop's."""

  def __init__(self, matrices):
    self.trainable = [tf.constant(m) for m in matrices]

  def __call__(self, x):
    embedding = x @ self.trainable[0]
    return {'embedding': embedding, 'logits': embedding @ self.trainable[1]}

  def each(self, batches):
    return [self(x) for x in batches]


def _minimised(objective, matrices, examples, context=()):
  """The loss and the metrics, and the gradients."""
  forward = _Forward(matrices)
  batch = {**_tensors(examples), 'index': tf.range(len(examples['y']))}
  with tf.GradientTape() as tape:
    tape.watch(forward.trainable)
    loss, metrics = objective.compute(forward, batch, context)
  assert set(metrics) == set(objective.metric_names)
  gradients = tape.gradient(
    loss, forward.trainable, unconnected_gradients='zero'
  )
  assert all(np.isfinite(g).all() for g in gradients)
  return float(loss), metrics, gradients


_BATCHES = _examples(st.integers(1, 5))


class TestObjectives:
  @fuzzes(
    client.cross_entropy_objective,
    client.classification_objective,
    client.classification,
    client.cross_entropy,
    client.focal_objective,
  )
  @given(_WEIGHTS, _BATCHES, st.floats(0, 4, width=32))
  def test_classifiers(self, matrices, examples, gamma):
    x, y = examples.values()
    each = _cross_entropies(_logits(matrices, x), y)
    loss, metrics, _ = _minimised(
      client.cross_entropy_objective(), matrices, examples
    )
    _close(loss, each.mean())
    assert 0 <= metrics['accuracy'] <= 1
    clipped = np.clip(-each, np.log(1e-7), np.log1p(-1e-7))
    focal = np.mean(-((-np.expm1(clipped)) ** gamma) * clipped)
    expected = focal if gamma else each.mean()
    found, _, _ = _minimised(
      client.classification_objective(gamma), matrices, examples
    )
    _close(found, expected)
    objective = client.focal_objective(2.0)
    _close(_minimised(objective, matrices, examples, gamma)[0], 2 * focal)

  @fuzzes(client.distillation_objective)
  @given(_WEIGHTS, _WEIGHTS, _BATCHES, st.floats(0, 3), st.floats(0.5, 10))
  def test_distillation(self, matrices, teacher, examples, weight, temperature):
    objective = client.distillation_objective(
      weight, temperature=temperature, focal_gamma=0
    )
    x, y = examples.values()
    wanted = np.float32(_logits(teacher, x))
    loss, _, _ = _minimised(objective, matrices, examples, wanted)
    logits = _logits(matrices, x)
    log_p = special.log_softmax(logits / temperature, axis=1)
    log_q = special.log_softmax(wanted / temperature, axis=1)
    apart = temperature**2 * np.sum(np.exp(log_q) * (log_q - log_p), axis=1)
    expected = np.mean(_cross_entropies(logits, y) + weight * apart)
    _close(loss, expected, 1e-3)

  @fuzzes(client.linear_objective, client.proximal_objective)
  @given(_WEIGHTS, _WEIGHTS, _BATCHES, st.floats(0, 3))
  def test_terms_of_the_weights(self, matrices, others, examples, factor):
    base = client.cross_entropy_objective()
    loss, _, slope = _minimised(base, matrices, examples)
    shift = [tf.constant(m) for m in others]
    found, _, shifted = _minimised(
      client.linear_objective(base), matrices, examples, (shift, ())
    )
    # The term shows in the gradient alone.
    _close(found, loss)
    proximal = client.proximal_objective(base, factor)
    near, _, pulled = _minimised(proximal, matrices, examples, shift)
    away = [np.float64(m) - o for m, o in zip(matrices, others, strict=True)]
    squares = sum(np.sum(np.square(a)) for a in away)
    _close(near, loss + factor / 2 * squares)
    for g, s, p, o, a in zip(slope, shifted, pulled, others, away, strict=True):
      _close(s, g + o)
      _close(p, g + factor * a)

  @fuzzes(
    client.quadruplet_objective,
    client.classic_quadruplet_objective,
    client.triplet_objective,
    client.supervised_contrastive_objective,
    client.model_contrastive_objective,
  )
  @strategies.costly
  @given(
    _WEIGHTS,
    _BATCHES,
    st.one_of(st.just(0.0), st.floats(0.1, 3)),
    st.booleans(),
    strategies.SEEDS,
  )
  def test_metric_learning(self, matrices, examples, weight, use_ce, seed):
    plain, _, _ = _minimised(
      client.cross_entropy_objective(), matrices, examples
    )
    options = dict(weight=weight, use_ce=use_ce)
    sampled = dict(options, resample='epoch')
    size = len(examples['y'])
    z = tf.constant(examples['x'] @ matrices[0])
    received = {'received': z, 'previous': -z, 'has_previous': size > 1}
    cases = [
      (
        client.quadruplet_objective(
          _C, margins=(1, 0.5), squared=False, **sampled
        ),
        None,
      ),
      (
        client.classic_quadruplet_objective(_C, margins=(1, 0.5), **sampled),
        None,
      ),
      (client.triplet_objective(_C, margin=1.0, **sampled), None),
      (client.supervised_contrastive_objective(temperature=0.5, **options), ()),
      (
        client.model_contrastive_objective(weight=weight, temperature=0.5),
        received,
      ),
    ]
    for objective, context in cases:
      if context is None and weight:
        context = objective.prepare((), _tensors(examples), seed)
      loss, metrics, _ = _minimised(objective, matrices, examples, context)
      if not weight:
        assert loss == plain
        continue
      (name,) = (n for n in objective.metric_names if n.endswith('_loss'))
      metric = float(metrics[name])
      assert metric >= -1e-5
      has_ce = use_ce or isinstance(context, dict)
      _close(loss, has_ce * plain + weight * metric)

  @pytest.mark.parametrize('bad', strategies.NEGATIVE)
  def test_numbers_out_of_range(self, bad):
    sampled = dict(use_ce=True, resample='once')
    base = client.cross_entropy_objective()
    for call in (
      lambda: client.classification_objective(bad),
      lambda: client.classification([0], tf.ones([1, 2]), bad),
      lambda: client.distillation_objective(bad, temperature=1, focal_gamma=0),
      lambda: client.distillation_objective(1, temperature=bad, focal_gamma=0),
      lambda: client.distillation_objective(0, temperature=1, focal_gamma=bad),
      lambda: client.proximal_objective(base, bad),
      lambda: client.focal_objective(bad),
      lambda: client.quadruplet_objective(
        _C, weight=bad, margins=(1, 1), squared=False, **sampled
      ),
      lambda: client.classic_quadruplet_objective(
        _C, weight=bad, margins=(1, 1), **sampled
      ),
      lambda: client.triplet_objective(_C, weight=bad, margin=1, **sampled),
      lambda: client.supervised_contrastive_objective(
        weight=bad, temperature=1, use_ce=True
      ),
      lambda: client.model_contrastive_objective(weight=1, temperature=bad),
    ):
      with refused():
        call()

  def test_no_other_resampling(self):
    with refused():
      client.triplet_objective(
        _C, weight=1, margin=1, use_ce=True, resample='never'
      )


@fuzzes(client.sample_quadruplets, client.Quadruplets)
@given(_examples(st.integers(0, 7)), strategies.SEEDS)
def test_quadruplets(examples, seed):
  y = examples['y']
  drawn = client.sample_quadruplets(y, _C, seed)
  positive, first, second, v1, v2 = (part.numpy() for part in drawn)
  rank = np.arange(len(y))
  others = np.array([np.sum(y == label) > 1 for label in y], bool)
  num_classes = len(np.unique(y))
  np.testing.assert_array_equal(v1, others & (num_classes > 1))
  np.testing.assert_array_equal(v2, others & (num_classes > 2))
  assert np.all((y[positive] == y)[v1] & (positive != rank)[v1])
  assert np.all((y[first] != y)[v1])
  assert np.all(((y[second] != y) & (y[second] != y[first]))[v2])
  np.testing.assert_array_equal(positive[~v1], rank[~v1])
  np.testing.assert_array_equal(second[~v2], first[~v2])
  again = client.sample_quadruplets(y, _C, seed)
  for one, other in zip(drawn, again, strict=True):
    np.testing.assert_array_equal(one, other)


class TestOptimizers:
  @fuzzes(client.with_weight_decay)
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

  @pytest.mark.parametrize('bad', strategies.NEGATIVE)
  def test_no_other_decay(self, bad):
    with refused():
      client.with_weight_decay(tff.learning.optimizers.build_sgdm(1.0), bad)

  @fuzzes(client.initial_optimizer_state)
  @given(st.lists(strategies.arrays([2]), min_size=1, max_size=3))
  def test_first_state(self, weights):
    adam = tff.learning.optimizers.build_adam(0.1)
    state = client.initial_optimizer_state(adam, ModelWeights(weights, []))
    assert all(isinstance(t, tf.Tensor) for t in tf.nest.flatten(state))
    moments = state['accumulator']
    assert [m.shape for m in moments] == [w.shape for w in weights]
    assert not np.any(moments)

  @fuzzes(local_training.client_seed)
  @given(
    st.lists(
      st.tuples(
        st.integers(0, 2**62 - 1), st.integers(0, 9), st.integers(0, 9)
      ),
      unique=True,
      min_size=2,
      max_size=4,
    )
  )
  def test_seeds_differ(self, parts):
    seeds = [tuple(local_training.client_seed(*p).numpy()) for p in parts]
    assert len(set(seeds)) == len(parts)

  @pytest.mark.parametrize('bad', [-1, 2**62, 1.5, '1', None, True])
  def test_no_other_seed(self, bad):
    with refused():
      local_training.client_seed(bad, 0, 0)


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
  @fuzzes(client.build_local_training, client.LocalResult)
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

  @pytest.mark.parametrize('name', ['local_epochs', 'batch_size'])
  @pytest.mark.parametrize('bad', strategies.NO_COUNT)
  def test_no_other_counts(self, name, bad):
    legal = dict(local_epochs=1, batch_size=1)
    with refused():
      client.build_local_training(
        _MODEL,
        client.cross_entropy_objective(),
        tff.learning.optimizers.build_sgdm(1.0),
        **{**legal, name: bad},
      )


class TestFreeRiders:
  @fuzzes(client.FreeRiders)
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

  @pytest.mark.parametrize(
    'bad',
    [
      *({'client_ids': (i,)} for i in (-1, 0.5, '0', None)),
      *({'bound': b} for b in strategies.NOT_POSITIVE),
      {'kind': 'loud'},
    ],
    ids=str,
  )
  def test_no_others(self, bad):
    with refused():
      client.FreeRiders(**{'client_ids': (0,), **bad})


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
  @fuzzes(
    client.build_client_work,
    client.with_free_riders,
    client.ClientOutput,
    client_table.build_gather,
    client_data.build_gather_client,
  )
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
