"""Tests of the losses of metric learning, by hand and against NumPy."""

import functools
import json
import math

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_addons as tfa

from tff_fair import losses

# Anchor, positive and two negatives of the specification's example.
_ROLES = ([[1.0, 0.0]], [[1.0, 2.0]], [[2.0, 2.0]], [[0.0, 0.0]])
# Embeddings of the contrastive example, two of each class.
_PAIRS = ([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [-0.6, 0.8]], [0, 0, 1, 1])

_PER_ANCHOR = {
  'triplet': (losses.triplet_loss, 3),
  'quadruplet': (losses.quadruplet_loss, 4),
  'squared': (functools.partial(losses.quadruplet_loss, squared=True), 4),
  'classic': (losses.classic_quadruplet_loss, 4),
}


def _norm(u, v, power=1):
  return np.linalg.norm(np.subtract(u, v), axis=-1) ** power


def _hinge(near, far, margin):
  return np.maximum(near - far + margin, 0)


# The losses once more, each anchor's with the default margins.
_NUMPY = {
  'triplet': lambda a, p, n: _hinge(_norm(a, p), _norm(a, n), 1),
  'quadruplet': lambda a, p, n, m: (
    _hinge(_norm(a, p), _norm(a, n), 1) + _hinge(_norm(a, p), _norm(a, m), 0.5)
  ),
  'squared': lambda a, p, n, m: (
    _hinge(_norm(a, p, 2), _norm(a, n, 2), 1)
    + _hinge(_norm(a, p, 2), _norm(a, m, 2), 0.5)
  ),
  'classic': lambda a, p, n, m: (
    _hinge(_norm(a, p, 2), _norm(a, n, 2), 1)
    + _hinge(_norm(a, p, 2), _norm(n, m, 2), 0.5)
  ),
}


def _random(*shape, seed=0, dtype=np.float64):
  return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def _slopes(fn, x):
  """Central differences of a function of one array."""
  slopes = np.zeros_like(x)
  for index in np.ndindex(*x.shape):
    step = np.zeros_like(x)
    step[index] = 1e-6
    slopes[index] = (fn(x + step) - fn(x - step)) / 2e-6
  return slopes


def _value_and_gradient(fn, x):
  x = tf.constant(x)
  with tf.GradientTape() as tape:
    tape.watch(x)
    value = fn(x)
  return value.numpy(), tape.gradient(value, x).numpy()


class TestDistances:
  def test_by_hand(self):
    u, v = [[1.0, 0.0], [1.0, 2.0]], [2.0, 2.0]
    np.testing.assert_allclose(losses.distances(u, v), [5**0.5, 1])
    np.testing.assert_allclose(losses.distances(u, v, squared=True), [5, 1])

  def test_no_shorter_than_the_floor_unless_squared(self):
    near = tf.constant([[3.0], [1e-7]])
    np.testing.assert_allclose(losses.distances(near, [[3.0], [0.0]]), 1e-6)
    assert float(losses.distances([3.0], [3.0], squared=True)) == 0

  @pytest.mark.parametrize('squared', [False, True])
  def test_equal_vectors_pull_nowhere(self, squared):
    _, gradient = _value_and_gradient(
      lambda u: losses.distances(u, [1.0, 2.0], squared=squared), [1.0, 2.0]
    )
    np.testing.assert_array_equal(gradient, [0, 0])


class TestLossesOfTuples:
  def test_quadruplet_loss_of_the_worked_example(self):
    # [2 - 2.236068 + 1]_+ + [2 - 1 + .5]_+ and [4 - 5 + 1]_+ + [4 - 1 + .5]_+.
    loss = losses.quadruplet_loss(*_ROLES)
    np.testing.assert_allclose(loss, [2.263932], rtol=1e-6)
    loss = losses.quadruplet_loss(*_ROLES, squared=True)
    np.testing.assert_allclose(loss, [3.5], rtol=1e-6)

  def test_each_margin_belongs_to_its_negative(self):
    options = {'margins': (0.5, 1.0)}
    loss = losses.quadruplet_loss(*_ROLES, **options)
    np.testing.assert_allclose(loss, [0.263932 + 2], rtol=1e-6)
    loss = losses.quadruplet_loss(*_ROLES, squared=True, **options)
    np.testing.assert_allclose(loss, [0 + 4], rtol=1e-6)
    # |a - p|^2 = 4, |a - n1|^2 = 5, |n1 - n2|^2 = 8.
    loss = losses.classic_quadruplet_loss(*_ROLES, margins=(1.5, 5.0))
    np.testing.assert_allclose(loss, [0.5 + 1], rtol=1e-6)

  def test_triplet_loss_by_hand(self):
    # Distances .5 and 1.2: .5 - 1.2 + 1, and nothing at a margin of .6.
    triplet = ([[0.0, 0.0]], [[0.3, 0.4]], [[0.0, -1.2]])
    np.testing.assert_allclose(losses.triplet_loss(*triplet), [0.3], rtol=1e-6)
    np.testing.assert_allclose(
      losses.triplet_loss(*triplet, margin=2.0), [1.3], rtol=1e-6
    )
    assert losses.triplet_loss(*triplet, margin=0.6).numpy() == [0]

  def test_classic_quadruplet_loss_by_hand(self):
    # Distances a-p .5, a-n1 1.2, n1-n2 .6: [.25 - 1.44 + 1]_+ + .25 - .36 + .5.
    roles = [[[0.0, 0.0]], [[0.3, 0.4]], [[0.0, -1.2]], [[0.6, -1.2]]]
    loss = losses.classic_quadruplet_loss(*roles)
    np.testing.assert_allclose(loss, [0.39], rtol=1e-6)

  @pytest.mark.parametrize('name', list(_PER_ANCHOR))
  def test_values_and_gradients_of_numpy(self, name):
    fn, number = _PER_ANCHOR[name]
    # So near each other that some hinges are active and some are not.
    roles = 0.5 * _random(number, 20, 3)
    value, gradient = _value_and_gradient(
      lambda x: tf.reduce_sum(fn(*tf.unstack(x))), roles
    )
    each = _NUMPY[name](*roles)
    assert np.any(each > 0)
    np.testing.assert_allclose(fn(*roles), each, atol=1e-12)
    np.testing.assert_allclose(value, each.sum())
    expected = _slopes(lambda x: _NUMPY[name](*x).sum(), roles)
    np.testing.assert_allclose(gradient, expected, atol=1e-7)

  @pytest.mark.parametrize('name', list(_PER_ANCHOR))
  def test_a_triplet_that_is_far_enough_costs_nothing(self, name):
    fn, number = _PER_ANCHOR[name]
    far = [[[0.0, 0.0]], [[0.1, 0.0]], [[5.0, 0.0]], [[-5.0, 0.0]]]
    value, gradient = _value_and_gradient(
      lambda x: fn(*tf.unstack(x)), far[:number]
    )
    assert value == [0]
    np.testing.assert_array_equal(gradient, np.zeros([number, 1, 2]))

  @pytest.mark.parametrize('name', list(_PER_ANCHOR))
  def test_equal_embeddings_have_a_finite_gradient(self, name):
    fn, number = _PER_ANCHOR[name]
    value, gradient = _value_and_gradient(
      lambda x: fn(*tf.unstack(x)), np.ones([number, 2, 3], np.float32)
    )
    # Only the margins are left.
    margin = 1 if name == 'triplet' else 1.5
    np.testing.assert_allclose(value, [margin] * 2, rtol=1e-6)
    np.testing.assert_array_equal(gradient, np.zeros([number, 2, 3]))

  @pytest.mark.parametrize('wrap', [lambda fn: fn, tf.function])
  @pytest.mark.parametrize('name', list(_PER_ANCHOR))
  def test_masked_slots_have_neither_value_nor_gradient(self, name, wrap):
    fn, number = _PER_ANCHOR[name]
    # None, the first alone, both; all hinges would be active.
    mask_1, mask_2 = [False, True, True], [False, False, True]
    options = {'mask_1': mask_1, 'mask_2': mask_2, 'margins': (100.0, 50.0)}
    if number == 3:
      options = {'mask': mask_1, 'margin': 100.0}
    roles = _random(number, 3, 4, dtype=np.float32)
    each = wrap(lambda x: fn(*tf.unstack(x), **options))
    with tf.GradientTape() as tape:
      roles = tf.constant(roles)
      tape.watch(roles)
      value = each(roles)
    gradient = tape.gradient(value, roles).numpy()
    used = np.ones([number, 3], bool)
    used[:, 0] = False
    used[3:, 1] = False  # The second negative of the first alone.
    np.testing.assert_array_equal(gradient[~used], 0)
    assert np.all(np.any(gradient[used] != 0, axis=-1))
    assert value[0] == 0 and value[1] > 0
    # Whatever the masked slots hold, the values are the same.
    other = np.where(used[..., np.newaxis], roles, 7 * roles + 1)
    np.testing.assert_array_equal(each(tf.constant(other)), value)

  @pytest.mark.parametrize('name', ['quadruplet', 'squared', 'classic'])
  def test_each_mask_keeps_its_own_term(self, name):
    fn, number = _PER_ANCHOR[name]
    roles = _random(number, 5, 3)
    options = {'margins': (100.0, 50.0)}
    first, second, both = (
      fn(*roles, mask_1=[v1] * 5, mask_2=[v2] * 5, **options)
      for v1, v2 in [(True, False), (False, True), (True, True)]
    )
    power = 1 if name == 'quadruplet' else 2
    a, p, n1, n2 = roles
    near = _norm(a, p, power)
    np.testing.assert_allclose(first, near - _norm(a, n1, power) + 100)
    other = _norm(n1, n2, 2) if name == 'classic' else _norm(a, n2, power)
    np.testing.assert_allclose(second, near - other + 50)
    np.testing.assert_allclose(both, first + second)
    np.testing.assert_array_equal(fn(*roles, **options), both)

  def test_the_triplet_loss_of_another_library_on_a_batch_without_choice(self):
    """Two examples of one class and one of another: each pair is forced.

    TensorFlow Addons means over all examples of the batch, as FedQuad over all
    its anchors. The example that is alone in its class has the positive
    distance 0 there and no term here, so both agree where its negatives are
    further off than the margin, and else differ by its hinge.
    """
    for distance in (1.5, 0.4):
      embeddings = tf.constant([[0.0, 0.0], [0.9, 0.0], [0.0, distance]])
      labels = tf.constant([0, 0, 1])
      each = losses.triplet_loss(
        embeddings,
        tf.gather(embeddings, [1, 0, 2]),
        tf.gather(embeddings, [2, 2, 2]),
        mask=[True, True, False],
      )
      # .9 - distance + 1 and .9 - |(.9, distance)| + 1.
      expected = [1.9 - distance, 1.9 - math.hypot(0.9, distance), 0]
      np.testing.assert_allclose(each, expected, rtol=1e-6)
      alone = max(0, 1 - distance)
      addons = tfa.losses.triplet_hard_loss(
        labels, embeddings, margin=1.0, distance_metric='L2'
      )
      np.testing.assert_allclose(addons, (np.sum(each) + alone) / 3, rtol=1e-6)


def _supcon(embeddings, labels, temperature):
  """Of each example that has a positive, one term after the other."""
  z = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
  s = z @ z.T / temperature
  indices = range(len(labels))
  each = []
  for i in indices:
    others = [a for a in indices if a != i]
    positives = [p for p in others if labels[p] == labels[i]]
    if positives:
      log_sum = np.log(sum(np.exp(s[i, a]) for a in others))
      each.append(np.mean([log_sum - s[i, p] for p in positives]))
  return each


class TestSupervisedContrastiveLoss:
  def test_by_hand(self):
    embeddings, labels = _PAIRS
    loss = losses.supervised_contrastive_loss(
      labels, embeddings, temperature=0.5
    )
    each = _supcon(np.array(embeddings), labels, 0.5)
    expected = [0.233257, 0.627123, 0.627123, 0.233257]
    np.testing.assert_allclose(each, expected, atol=1e-6)
    np.testing.assert_allclose(loss, 0.430190, atol=1e-6)
    loss = losses.supervised_contrastive_loss(
      labels[:3], embeddings[:3], temperature=0.5
    )
    # The third has no positive and is no part of the mean.
    np.testing.assert_allclose(loss, 0.348458, atol=1e-6)

  def test_the_default_temperature(self):
    z = np.array(_PAIRS[0])
    found = losses.supervised_contrastive_loss(_PAIRS[1], z)
    np.testing.assert_allclose(found, np.mean(_supcon(z, _PAIRS[1], 0.07)))

  @pytest.mark.parametrize('labels', [[0, 1, 0, 2, 1, 0, 3], [5] * 7])
  @pytest.mark.parametrize('temperature', [0.07, 2.0])
  def test_values_and_gradients_of_numpy(self, labels, temperature):
    x = 3 * _random(7, 4)
    value, gradient = _value_and_gradient(
      lambda z: losses.supervised_contrastive_loss(
        labels, z, temperature=temperature
      ),
      x,
    )
    each = _supcon(x, labels, temperature)
    np.testing.assert_allclose(value, np.mean(each))
    expected = _slopes(lambda z: np.mean(_supcon(z, labels, temperature)), x)
    np.testing.assert_allclose(gradient, expected, atol=1e-7)

  @pytest.mark.parametrize('n', [0, 1, 3])
  def test_without_positives_it_is_0_and_pulls_nowhere(self, n):
    value, gradient = _value_and_gradient(
      lambda z: losses.supervised_contrastive_loss(range(n), z),
      _random(n, 2, dtype=np.float32),
    )
    assert value == 0
    np.testing.assert_array_equal(gradient, np.zeros([n, 2]))

  def test_two_of_a_class_alone_cost_nothing(self):
    # There is no other example that the positive could be told from.
    loss = losses.supervised_contrastive_loss([4, 4], [[1.0, 0.0], [0.0, 1.0]])
    assert float(loss) == 0

  def test_equal_embeddings_cost_the_log_of_the_others(self):
    value, gradient = _value_and_gradient(
      lambda z: losses.supervised_contrastive_loss([0, 0, 1, 1], z),
      np.full([4, 3], 2.0, np.float32),
    )
    np.testing.assert_allclose(value, math.log(3), rtol=1e-6)
    np.testing.assert_allclose(gradient, np.zeros([4, 3]), atol=1e-6)

  def test_small_temperatures_do_not_overflow(self):
    # Logarithms of e^(.8 / T) to e^(-.6 / T), and of e^0 to e^(-.6 / T).
    value, gradient = _value_and_gradient(
      lambda z: losses.supervised_contrastive_loss(
        [0, 1, 0], z, temperature=1e-5
      ),
      np.array([[1, 0], [0.8, 0.6], [-0.6, 0.8]], np.float32),
    )
    np.testing.assert_allclose(value, 1e5, rtol=1e-6)
    assert np.all(np.isfinite(gradient)) and np.any(gradient != 0)

  def test_a_zero_embedding_has_cosine_0_and_a_finite_gradient(self):
    value, gradient = _value_and_gradient(
      lambda z: losses.supervised_contrastive_loss(
        [0, 0, 1], z, temperature=1.0
      ),
      np.array([[0, 0], [1, 0], [0, 1]], np.float32),
    )
    # Every cosine is 0.
    np.testing.assert_allclose(value, math.log(2), rtol=1e-6)
    assert np.all(np.isfinite(gradient))

  def test_lengths_do_not_matter(self):
    z, labels = np.array(_PAIRS[0]), _PAIRS[1]
    lengths = np.array([[0.01], [1], [10], [1e4]])
    np.testing.assert_allclose(
      losses.supervised_contrastive_loss(labels, lengths * z),
      losses.supervised_contrastive_loss(labels, z),
    )


class TestModelContrastiveLoss:
  @staticmethod
  def _with_cosine(cosine):
    return [cosine, (1 - cosine**2) ** 0.5]

  def test_by_hand(self):
    # ln(1 + exp(-(.9 - .5) / .5)), and the other way round.
    loss = losses.model_contrastive_loss(
      [[1.0, 0.0], [2.0, 0.0]],
      [self._with_cosine(0.9), self._with_cosine(0.5)],
      [self._with_cosine(0.5), self._with_cosine(0.9)],
    )
    np.testing.assert_allclose(loss, [0.371101, 1.171101], atol=1e-6)

  def test_the_temperature(self):
    loss = losses.model_contrastive_loss(
      [[1.0, 0.0]],
      [self._with_cosine(0.9)],
      [self._with_cosine(0.5)],
      temperature=0.1,
    )
    np.testing.assert_allclose(loss, [math.log1p(math.exp(-4))], rtol=1e-5)

  def test_equal_models_cost_ln_2(self):
    z, other = _random(2, 5, 3)
    loss = losses.model_contrastive_loss(z, other, other)
    np.testing.assert_allclose(loss, [math.log(2)] * 5)

  def test_small_temperatures_do_not_overflow(self):
    value, gradient = _value_and_gradient(
      lambda z: losses.model_contrastive_loss(
        z, [[0.0, 1.0]], [[1.0, 0.0]], temperature=1e-5
      ),
      [[1.0, 0.0]],
    )
    np.testing.assert_allclose(value, [1e5], rtol=1e-6)
    # Uphill is away from the received model's, along the circle.
    np.testing.assert_allclose(gradient, [[0, -1e5]], rtol=1e-5)

  def test_a_zero_embedding_has_a_finite_gradient(self):
    value, gradient = _value_and_gradient(
      lambda z: losses.model_contrastive_loss(z, [[0.0, 1.0]], [[0.0, 0.0]]),
      [[0.0, 0.0]],
    )
    np.testing.assert_allclose(value, [math.log(2)], rtol=1e-6)
    assert np.all(np.isfinite(gradient))


@pytest.mark.parametrize('dtype', [tf.float32, tf.float64])
def test_pure_functions_keep_the_dtype(dtype):
  x = tf.cast(_random(4, 5, 3), dtype)
  found = [fn(*x[:number]) for fn, number in _PER_ANCHOR.values()]
  found += [losses.distances(x[0], x[1])]
  found += [losses.supervised_contrastive_loss([0, 0, 1, 1, 1], x[0])]
  found += [losses.model_contrastive_loss(*x[:3])]
  assert [value.dtype for value in found] == [dtype] * 7


# Keras losses with other than the default parameters, their pure functions of
# (y_true, y_pred), and y_true and the shape of y_pred that they are tried on.
_MASKS = [[1, 1], [1, 0], [0, 0]]


def _quadruplets(fn, **options):
  def pure(y_true, y_pred):
    masks = tf.cast(y_true, tf.bool)
    roles = tf.unstack(y_pred, axis=1)
    return fn(*roles, mask_1=masks[:, 0], mask_2=masks[:, 1], **options)

  return pure


_KERAS = {
  'triplet': (
    losses.TripletLoss(2.0),
    lambda y_true, y_pred: losses.triplet_loss(
      *tf.unstack(y_pred, axis=1),
      margin=2.0,
      mask=tf.cast(tf.reshape(y_true, [-1]), tf.bool),
    ),
    [[1], [1], [0]],
    [3, 3, 2],
  ),
  'quadruplet': (
    losses.QuadrupletLoss((4.0, 3.0)),
    _quadruplets(losses.quadruplet_loss, margins=(4.0, 3.0)),
    _MASKS,
    [3, 4, 2],
  ),
  'squared': (
    losses.QuadrupletLoss((4.0, 3.0), squared=True),
    _quadruplets(losses.quadruplet_loss, margins=(4.0, 3.0), squared=True),
    _MASKS,
    [3, 4, 2],
  ),
  'classic': (
    losses.ClassicQuadrupletLoss((4.0, 3.0)),
    _quadruplets(losses.classic_quadruplet_loss, margins=(4.0, 3.0)),
    _MASKS,
    [3, 4, 2],
  ),
  'contrastive': (
    losses.SupervisedContrastiveLoss(0.5),
    lambda y_true, y_pred: losses.supervised_contrastive_loss(
      y_true, y_pred, temperature=0.5
    ),
    [[0], [0], [1]],
    [3, 2],
  ),
}


@pytest.mark.parametrize('name', list(_KERAS))
class TestKerasLosses:
  def test_are_the_means_of_the_pure_functions(self, name):
    loss, pure, y_true, shape = _KERAS[name]
    y_pred = tf.constant(_random(*shape))
    each = pure(y_true, y_pred)
    assert np.any(each > 0)
    np.testing.assert_allclose(loss(y_true, y_pred), np.mean(each))
    assert loss(y_true, y_pred).dtype == tf.float64

  def test_take_arrays(self, name):
    loss, pure, y_true, shape = _KERAS[name]
    y_pred = _random(*shape, dtype=np.float32)
    np.testing.assert_allclose(
      loss(np.array(y_true), y_pred), np.mean(pure(y_true, y_pred)), rtol=1e-6
    )

  def test_train_in_fit(self, name):
    loss, pure, y_true, shape = _KERAS[name]
    x = _random(*shape, dtype=np.float32)
    kernel = tf.constant([[1.0, 0.5], [0.0, 1.0]])
    layer = tf.keras.layers.Dense(2, use_bias=False)
    model = tf.keras.Sequential([tf.keras.Input(shape[1:]), layer])
    model.set_weights([kernel])
    model.compile(tf.keras.optimizers.SGD(0.1), loss)
    history = model.fit(x, np.array(y_true), verbose=0)
    value, gradient = _value_and_gradient(
      lambda w: tf.reduce_mean(pure(y_true, x @ w)), kernel
    )
    assert np.any(gradient != 0)
    np.testing.assert_allclose(history.history['loss'], [value], rtol=1e-5)
    np.testing.assert_allclose(
      layer.get_weights()[0], kernel - 0.1 * gradient, rtol=1e-5, atol=1e-6
    )

  def test_are_rebuilt_from_their_config(self, name):
    loss, _, y_true, shape = _KERAS[name]
    config = loss.get_config()
    y_pred = tf.constant(_random(*shape))
    # As it is, and from a file.
    for stored in (config, json.loads(json.dumps(config))):
      rebuilt = type(loss).from_config(stored)
      assert rebuilt.get_config() == config
      assert rebuilt(y_true, y_pred) == loss(y_true, y_pred)
    named = type(loss)(reduction='none', name='mine')
    rebuilt = type(loss).from_config(named.get_config())
    assert (rebuilt.reduction, rebuilt.name) == ('none', 'mine')


def test_keras_losses_of_tuples_weigh_anchors():
  roles = tf.stack(tf.constant(_ROLES), axis=1)
  loss = losses.QuadrupletLoss()
  twice = loss([[1, 1], [1, 0]], tf.repeat(roles, 2, axis=0))
  np.testing.assert_allclose(twice, (2.263932 + 0.763932) / 2, rtol=1e-6)
  weighed = loss([[1, 1], [1, 0]], tf.repeat(roles, 2, axis=0), [0.0, 1.0])
  np.testing.assert_allclose(weighed, 0.763932 / 2, rtol=1e-6)


def test_keras_losses_have_the_papers_defaults():
  triplet = losses.TripletLoss().get_config()
  assert triplet['margin'] == 1.0
  quadruplet = losses.QuadrupletLoss().get_config()
  assert quadruplet['margins'] == (1.0, 0.5) and not quadruplet['squared']
  assert losses.ClassicQuadrupletLoss().get_config()['margins'] == (1.0, 0.5)
  contrastive = losses.SupervisedContrastiveLoss().get_config()
  assert contrastive['temperature'] == 0.07


@pytest.mark.parametrize(
  ('loss', 'number'),
  [
    (losses.TripletLoss(), 3),
    (losses.QuadrupletLoss(), 4),
    (losses.ClassicQuadrupletLoss(), 4),
  ],
)
@pytest.mark.parametrize('shape', [[2, 5], [2, 2, 5], [2, 5, 5], [2, 4, 5, 1]])
def test_embeddings_of_a_wrong_shape_are_refused(loss, number, shape):
  y_true = tf.ones([2, 2] if number == 4 else [2])
  with pytest.raises(ValueError) as error:
    loss(y_true, tf.zeros(shape))
  assert str(error.value) == (
    f'y_pred of {type(loss).__name__} must have the shape [?, {number}, p],'
    f' found {shape}.'
  )


@pytest.mark.parametrize(
  ('loss', 'y_true', 'y_pred'),
  [
    (losses.TripletLoss(), [2, 2], [2, 3, 5]),
    (losses.QuadrupletLoss(), [2], [2, 4, 5]),
    (losses.QuadrupletLoss(), [2, 1], [2, 4, 5]),
    (losses.QuadrupletLoss(), [2, 3], [2, 4, 5]),
    (losses.ClassicQuadrupletLoss(), [2, 3], [2, 4, 5]),
    (losses.SupervisedContrastiveLoss(), [3, 2], [3, 5]),
  ],
)
def test_masks_and_labels_of_a_wrong_shape_are_refused(loss, y_true, y_pred):
  name = type(loss).__name__
  with pytest.raises(
    ValueError, match=rf'^y_true of {name} must have the shape .*, found .*\.$'
  ):
    loss(tf.ones(y_true, tf.int32), tf.ones(y_pred))


def test_contrastive_embeddings_of_a_wrong_shape_are_refused():
  with pytest.raises(
    ValueError, match=r'^y_pred of SupervisedContrastiveLoss must .*\.$'
  ):
    losses.SupervisedContrastiveLoss()([0, 1], tf.ones([2, 4, 5]))


@pytest.mark.parametrize('margins', [(1.0,), (1.0, 0.5, 0.2)])
@pytest.mark.parametrize(
  'loss', [losses.QuadrupletLoss, losses.ClassicQuadrupletLoss]
)
def test_other_than_two_margins_are_refused(loss, margins):
  with pytest.raises(ValueError, match=r'^margins must be two .*, found .*\.$'):
    loss(margins)


@pytest.mark.parametrize('temperature', [0.0, -1.0, math.nan])
def test_a_temperature_that_is_not_positive_is_refused(temperature):
  with pytest.raises(
    ValueError,
    match=rf'^temperature must be (positive|finite), found {temperature}\.$',
  ):
    losses.SupervisedContrastiveLoss(temperature)


@pytest.mark.parametrize(
  'loss', [losses.triplet_loss, losses.model_contrastive_loss]
)
def test_one_row_is_not_stretched_to_all(loss):
  rows = tf.ones([3, 2])
  with pytest.raises(ValueError, match=r'the same shape, found \(3, 2\), \(3'):
    loss(rows, rows, rows[:1])


def test_one_label_is_not_stretched_to_all():
  with pytest.raises(ValueError, match='labels must have an entry for each'):
    losses.supervised_contrastive_loss([0], tf.ones([3, 2]))


@pytest.mark.parametrize('margin', [-1.0, math.nan])
def test_a_margin_of_triplets_that_is_no_distance_is_refused(margin):
  with pytest.raises(ValueError, match=r'^margin must be .*, found '):
    losses.TripletLoss(margin)
