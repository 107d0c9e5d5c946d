import collections
import functools
import math

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tff_fair import client
from tff_fair import models
from tff_fair.client import local_training

ModelWeights = tff.learning.models.ModelWeights
_sgd = tff.learning.optimizers.build_sgdm


def _scalar_model():
  """Logits (w * x, 0): one weight, so that a step can be done by hand."""
  x = tf.keras.Input([1])
  layer = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer='zeros')
  logits = tf.keras.layers.ZeroPadding1D((0, 1))(
    tf.keras.layers.Reshape([1, 1])(layer(x))
  )
  return tf.keras.Model(x, tf.keras.layers.Reshape([2])(logits))


def _batch_norm_model():
  x = tf.keras.Input([1])
  h = tf.keras.layers.BatchNormalization(momentum=0.5)(x)
  return tf.keras.Model(x, tf.keras.layers.Dense(2)(h))


def _examples(n, features=1):
  x = np.arange(1, n * features + 1, dtype=np.float32).reshape(n, features)
  return collections.OrderedDict(
    x=tf.constant(x), y=tf.constant(np.arange(n) % 2, tf.int32)
  )


def _build(
  model_fn,
  objective=None,
  optimizer=None,
  *,
  epochs=1,
  batch_size=32,
  **options,
):
  """A training, and the weights with which its model begins."""
  model = models.StatelessModel(model_fn)
  train = client.build_local_training(
    model,
    objective or client.classification_objective(),
    optimizer or _sgd(0.1),
    local_epochs=epochs,
    batch_size=batch_size,
    **options,
  )
  return train, tf.nest.map_structure(tf.constant, model.initial_weights)


def _train(model_fn, examples, *, seed=(0, 0), graph=False, **options):
  names = (
    *('objective', 'optimizer', 'epochs', 'batch_size'),
    *('drop_last', 'early_stopping'),
  )
  built = {name: options.pop(name) for name in names if name in options}
  train, weights = _build(model_fn, **built)
  train = tf.function(train) if graph else train
  return train(weights, examples, tf.constant(seed), **options)


def _weight(result):
  return float(result.weights.trainable[0])


def _one(x, y):
  return collections.OrderedDict(x=tf.constant([[x]]), y=tf.constant([y]))


def test_one_step_by_hand():
  # d/dw -ln softmax(w x)_0 = -(1 - p) x with p = 1/2, x = 2: w = rate * 1.
  result = _train(_scalar_model, _one(2.0, 0), learning_rate=0.5)
  assert _weight(result) == pytest.approx(0.5)
  for factor in (0.5, -2.0):
    result = _train(
      _scalar_model, _one(2.0, 0), gradient_mask=[tf.constant([[factor]])]
    )
    assert _weight(result) == pytest.approx(0.1 * factor)
  result = _train(_scalar_model, _one(2.0, 0), graph=True)
  assert _weight(result) == pytest.approx(0.1)
  assert float(result.metrics['loss']) == pytest.approx(math.log(2))
  assert float(result.metrics['accuracy']) == 1.0  # A tie: the lowest class.
  assert int(result.num_steps) == 1


def test_an_embedding_trains_where_the_mask_lets_it():
  x = tf.keras.Input([1])
  rows = tf.keras.layers.Embedding(3, 2, embeddings_initializer='zeros')(x)
  outputs = tf.keras.layers.Flatten()(rows)
  result = _train(
    lambda: tf.keras.Model(x, outputs),
    _one(1.0, 0),
    gradient_mask=[tf.constant([[1.0, 1.0], [1.0, 0.0], [1.0, 1.0]])],
  )
  # Row 1 has the gradient (-1/2, 1/2).
  (table,) = result.weights.trainable
  np.testing.assert_allclose(table, [[0, 0], [0.05, 0], [0, 0]], rtol=1e-6)


def test_metrics_are_means_over_examples_of_all_epochs():
  result = _train(_scalar_model, _one(2.0, 0), epochs=2)
  second = -math.log(1 / (1 + math.exp(-0.2)))  # p at w = .1, x = 2.
  expected = (math.log(2) + second) / 2
  assert float(result.metrics['loss']) == pytest.approx(expected)
  # At w = 0 the labels 0, 1, 0 are predicted as 0. In batches of 2 and 1 a mean
  # over batches would be 3/4 or 1/2.
  result = _train(
    _scalar_model, _examples(3), learning_rate=0.0, epochs=2, batch_size=2
  )
  assert float(result.metrics['accuracy']) == pytest.approx(2 / 3)


def test_full_batches_do_not_depend_on_the_seed_but_small_ones_do():
  examples = _examples(7)
  whole = [
    _weight(_train(_scalar_model, examples, seed=[s, 0])) for s in (0, 1)
  ]
  small = [
    _weight(_train(_scalar_model, examples, seed=[s, 0], batch_size=2))
    for s in (0, 0, 1)
  ]
  assert whole[0] == pytest.approx(whole[1], rel=1e-6)
  assert small[0] == small[1]
  assert small[0] != pytest.approx(small[2], rel=1e-6)


def test_every_epoch_sees_every_example_once_in_a_new_order():
  seen = tf.Variable(tf.zeros([0], tf.int32), shape=[None])

  def compute(forward, batch, context):
    del context
    seen.assign(tf.concat([seen, batch['index']], axis=0))
    return tf.reduce_mean(forward(batch['x'])['logits']), {}

  _train(
    _scalar_model,
    _examples(50),
    epochs=3,
    batch_size=8,
    objective=client.Objective(compute, ()),
  )
  epochs = seen.numpy().reshape(3, 50)
  for order in epochs:
    np.testing.assert_array_equal(np.sort(order), np.arange(50))
  assert np.any(epochs[0] != epochs[1]) and np.any(epochs[1] != epochs[2])
  assert np.any(epochs[0] != np.arange(50))


def test_number_of_steps():
  for model_fn, num_examples, num_steps in (
    (_scalar_model, 8, 2),
    (_scalar_model, 9, 3),  # The last short batch is kept,
    (_batch_norm_model, 10, 3),
    (_batch_norm_model, 9, 2),  # but not of one example with batch norm,
    (_batch_norm_model, 1, 1),  # unless it is all there is.
    (_batch_norm_model, 0, 0),
  ):
    result = _train(model_fn, _examples(num_examples), batch_size=4)
    assert int(result.num_steps) == num_steps
  # Without examples nothing changes.
  np.testing.assert_array_equal(result.weights.non_trainable[0], [0])
  assert float(result.metrics['loss']) == 0.0


@pytest.mark.usefixtures('default_runtime')
def test_the_only_minibatch_is_short_where_tff_traces():
  @tff.tensorflow.computation(np.int32)
  @tf.function(autograph=False)
  def num_batches(size):
    return local_training._num_batches(size, 4, 2)

  # Batch normalisation needs two examples, unless there is one.
  assert [num_batches(n) for n in (0, 1, 2, 5, 6)] == [0, 1, 1, 1, 2]


def test_the_last_minibatch_is_dropped_if_it_is_shorter():
  for num_examples, num_steps in ((8, 2), (9, 2), (11, 2), (3, 1), (0, 0)):
    result = _train(
      _scalar_model, _examples(num_examples), batch_size=4, drop_last=True
    )
    assert int(result.num_steps) == num_steps


def _falling(losses):
  """An objective whose loss at step k is the k-th."""

  def compute(forward, batch, context):
    del batch, context
    (w,) = forward.trainable  # Falls by the rate in each step.
    value = tf.gather(losses, tf.cast(-w[0, 0], tf.int32))
    return value + w[0, 0] - tf.stop_gradient(w[0, 0]), {}

  return client.Objective(compute, ())


@pytest.mark.parametrize(
  ('losses', 'patience', 'epochs'),
  [
    # Falls of less than 1/8 are the third and the fourth.
    ([1.0, 0.75, 0.6875, 0.625, 0.0, 0.0], 2, 4),
    # The third epoch falls; 1/8 is enough for that.
    ([1.0, 1.0, 0.875, 0.875, 1.5, 0.0], 2, 5),
    ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 1, 2),
    ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 5, 6),
    ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 6, 6),
  ],
)
def test_training_ends_when_the_loss_hardly_falls(losses, patience, epochs):
  options = {
    'objective': _falling(losses),
    'optimizer': _sgd(1.0),
    'epochs': 6,
  }
  result = _train(
    *(_scalar_model, _one(1.0, 0)),
    early_stopping=client.EarlyStopping(0.125, patience),
    **options,
  )
  assert int(result.num_epochs) == epochs == result.metrics['local_epochs']
  assert int(result.num_steps) == epochs
  assert _weight(result) == -epochs
  expected = np.mean(losses[:epochs])
  assert float(result.metrics['loss']) == pytest.approx(expected)
  result = _train(_scalar_model, _one(1.0, 0), **options)
  assert int(result.num_epochs) == 6 and 'local_epochs' not in result.metrics


def test_batch_norm_statistics_move():
  # Three epochs over x = 1, 3: mean 2, momentum .5: 2 * (1 - .5^3).
  examples = collections.OrderedDict(
    x=tf.constant([[1.0], [3.0]]), y=tf.constant([0, 1])
  )
  result = _train(_batch_norm_model, examples, epochs=3)
  np.testing.assert_allclose(result.weights.non_trainable[0], [1.75], rtol=1e-5)


def test_optimizer_state_is_carried_through_the_steps():
  # Momentum: two equal gradients g move by lr g, then lr (1 + .9) g.
  def compute(forward, batch, context):
    del context
    return tf.reduce_sum(forward(batch['x'])['logits'][:, 0]), {}

  objective = client.Objective(compute, ())
  result = _train(
    _scalar_model,
    _one(1.0, 0),
    epochs=2,
    optimizer=_sgd(0.1, momentum=0.9),
    objective=objective,
  )
  assert _weight(result) == pytest.approx(-0.1 * (1 + 1.9))


def test_client_seed_differs_by_each_of_its_parts():
  seeds = {
    tuple(
      local_training.client_seed(
        local_training.seed_words(seed), number, key
      ).numpy()
    )
    for seed, number, key in [
      (0, 0, 0),
      (1, 0, 0),
      (0, 1, 0),
      (0, 0, 1),
      (2**40, 0, 0),
    ]
  }
  assert len(seeds) == 5


def test_optimizer_state_goes_on_where_it_stopped():
  """Two calls of an epoch are one call of two, momentum included."""
  optimizer, data = _sgd(0.1, momentum=0.9), (_examples(4), tf.constant([0, 0]))
  train, weights = _build(_scalar_model, optimizer=optimizer, epochs=2)
  whole = train(weights, *data)
  train, weights = _build(_scalar_model, optimizer=optimizer)
  first = train(weights, *data)
  second = train(first.weights, *data, optimizer_state=first.optimizer_state)
  fresh = train(first.weights, *data)
  assert _weight(second) == pytest.approx(_weight(whole), rel=1e-6)
  assert _weight(fresh) != pytest.approx(_weight(whole), rel=1e-3)


def _embedding_model():
  """A classifier on an embedding, all weights 1."""
  x = tf.keras.Input([1])
  options = {'kernel_initializer': 'ones', 'bias_initializer': 'ones'}
  embedding = tf.keras.layers.Dense(2, **options)(x)
  logits = tf.keras.layers.Dense(2, **options)(embedding)
  return tf.keras.Model(
    x, collections.OrderedDict(logits=logits, embedding=embedding)
  )


def test_weights_that_the_objective_does_not_touch_stay():
  """Bit for bit, whatever the optimiser decays."""

  def compute(forward, batch, context):
    del context
    return tf.reduce_mean(forward(batch['x'])['embedding']), {}

  for optimizer in (
    _sgd(0.1, momentum=0.9),
    tff.learning.optimizers.build_adam(0.1),
    tff.learning.optimizers.build_adamw(0.1, weight_decay=0.1),
  ):
    train, weights = _build(
      _embedding_model,
      client.Objective(compute, ()),
      client.with_weight_decay(optimizer, 0.1),
      epochs=2,
      batch_size=2,
    )
    for mask in (None, [tf.ones_like(w) for w in weights.trainable]):
      result = train(weights, _examples(4), [0, 0], gradient_mask=mask)
      *encoder, kernel, bias = result.weights.trainable
      np.testing.assert_array_equal(kernel, np.ones([2, 2]))
      np.testing.assert_array_equal(bias, np.ones([2]))
      assert all(np.all(w.numpy() < 1) for w in encoder)


def _none_yet(width):
  return tf.Variable(tf.zeros([0, width], tf.int32), shape=[None, width])


def _record_preparations(prepare_each, seeds, context):
  """Trains three epochs of three steps each on five examples, in a graph.

  Args:
    prepare_each: How often the objective prepares.
    seeds: Of one training after the other.
    context: What the training hands to the objective.

  Returns:
    For each training, the seeds of the preparations, `[?, 2]`; the context of
    each step, which is (the context, the sum of y, the seed); and the steps'
    seeds, `[9, 2]`.
  """
  rows = prepared, contexts, own = _none_yet(2), _none_yet(4), _none_yet(2)

  def append(rows, row):
    rows.assign(tf.concat([rows, [row]], axis=0))

  def prepare(context, examples, seed):
    append(prepared, seed)
    sum_of_y = tf.reduce_sum(examples['y'])
    return tf.concat([[context, sum_of_y], seed], axis=0)

  def compute(forward, batch, context):
    append(contexts, context)
    append(own, forward.seed)
    return tf.reduce_mean(forward(batch['x'])['logits']), {}

  train, weights = _build(
    _scalar_model,
    client.Objective(compute, (), prepare=prepare, prepare_each=prepare_each),
    epochs=3,
    batch_size=2,
  )
  train = tf.function(train)
  examples = collections.OrderedDict(x=_examples(5)['x'], y=tf.range(5))
  trainings = []
  for seed in seeds:
    for variable in rows:
      variable.assign(variable[:0])
    train(weights, examples, tf.constant(seed), tf.constant(context))
    trainings.append([variable.numpy() for variable in rows])
  return trainings


@pytest.mark.parametrize(
  ('prepare_each', 'times'), [('epoch', 3), ('round', 1)]
)
def test_an_objective_prepares_once_an_epoch_or_a_round(prepare_each, times):
  first, again, other = _record_preparations(
    prepare_each, [(0, 0), (0, 0), (0, 1)], 7
  )
  prepared, contexts, own = first
  assert len(prepared) == times and len(contexts) == len(own) == 9
  # It sees the context and all examples; the steps until the next have it.
  np.testing.assert_array_equal(contexts[:, :2], [[7, 10]] * 9)
  np.testing.assert_array_equal(
    contexts[:, 2:], np.repeat(prepared, 9 // times, axis=0)
  )
  # No seed comes twice, nor is one with which the loop or a step draws.
  fold_in = tf.random.experimental.stateless_fold_in
  loop = [[0, 0], *(fold_in([0, 0], number).numpy() for number in range(3))]
  seeds = {tuple(seed) for seed in (*prepared, *own, *loop)}
  assert len(seeds) == times + 9 + 4
  # They are functions of the training's, all of them.
  np.testing.assert_array_equal(again[0], prepared)
  assert not seeds & {tuple(seed) for seed in other[0]}


def test_what_epochs_prepare_does_not_depend_on_each_other():
  """Each starts from the context that came, not from what the last made."""
  seen = []

  def prepare(context, examples, seed):
    del examples, seed
    return context + 1

  def compute(forward, batch, context):
    seen.append(int(context))
    return tf.reduce_mean(forward(batch['x'])['logits']), {}

  _train(
    _scalar_model,
    _examples(4),
    objective=client.Objective(compute, (), prepare=prepare),
    epochs=3,
    batch_size=2,
    context=5,
  )
  assert seen == [6] * 6


def _each(model_fn, batches, *, one_by_one=False):
  """The outputs that `forward.each` gives in a step, and the statistics.

  Args:
    model_fn: Of the model.
    batches: Arrays of the same shape.
    one_by_one: Whether to call `forward` instead, on one after the other.

  Returns:
    A list of OrderedDicts, and the non-trainable weights after the step.
  """
  outputs = []

  def compute(forward, batch, context):
    del batch, context
    arrays = [tf.constant(x, tf.float32) for x in batches]
    if one_by_one:
      outputs.extend(forward(x) for x in arrays)
    else:
      outputs.extend(forward.each(arrays))
    return tf.reduce_mean(outputs[0]['logits']), {}

  result = _train(
    model_fn,
    _examples(1),
    objective=client.Objective(compute, ()),
    optimizer=_sgd(0.0),
  )
  return outputs, result.weights.non_trainable


def test_each_gives_what_one_pass_each_gives():
  tf.keras.utils.set_random_seed(0)
  batches = np.random.default_rng(0).normal(size=[3, 4, 1])
  for model_fn, names in [
    (_scalar_model, ['logits']),
    (_embedding_model, ['logits', 'embedding']),
  ]:
    together, _ = _each(model_fn, batches)
    apart, _ = _each(model_fn, batches, one_by_one=True)
    assert len(together) == 3
    for found, expected in zip(together, apart, strict=True):
      assert list(found) == list(expected) == names
      for name in names:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6)


def test_each_batch_has_another_dropout_mask():
  def model_fn(batch_norm):
    x = h = tf.keras.Input([100])
    if batch_norm:
      h = tf.keras.layers.BatchNormalization()(h)
    return tf.keras.Model(x, tf.keras.layers.Dropout(0.5)(h))

  x = np.random.default_rng(0).normal(size=[2, 100])
  for batch_norm in (False, True):
    outputs, _ = _each(functools.partial(model_fn, batch_norm), [x, x])
    first, second = (output['logits'].numpy() == 0 for output in outputs)
    # Half of the entries differ if the masks are independent.
    assert 0.3 < np.mean(first != second) < 0.7


class TestGradientMask:
  _INITIAL = models.StatelessModel(linear_task.embedding_model_fn)
  _INITIAL = _INITIAL.initial_weights.trainable

  def _masked(self, mask, **options):
    """The trainable weights after training some random examples."""
    x = np.random.default_rng(0).normal(size=[7, linear_task.NUM_FEATURES])
    examples = _examples(7)
    examples['x'] = tf.constant(x, tf.float32)
    result = _train(
      linear_task.embedding_model_fn, examples, gradient_mask=mask, **options
    )
    return [w.numpy() for w in result.weights.trainable]

  def test_holds_in_every_step_and_epoch(self):
    mask = [np.zeros_like(w) for w in self._INITIAL]
    mask[0][1], mask[3][2] = 1, 1
    found = self._masked(
      mask, epochs=3, batch_size=2, optimizer=_sgd(0.1, momentum=0.9)
    )
    for m, w, start in zip(mask, found, self._INITIAL, strict=True):
      np.testing.assert_array_equal(w != start, m > 0)
