import collections
import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tests.algorithms import reward_reference
from tff_fair import algorithms
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms.baselines import fed_sac
from tff_fair.client import local_training

pytestmark = pytest.mark.usefixtures('default_runtime')

_SIZES = (5, 9, 12, 7)
_RATE = 0.3
_HIDDEN = 6
_NETWORK = reward_reference.Network(
  (linear_task.NUM_FEATURES, _HIDDEN, linear_task.NUM_CLASSES)
)
# 100 exp(2 (c - .9)) is 20, 45, 100 and 67.
_CONTRIBUTIONS = (0.1, 0.5, 0.9, 0.7)
# 100 exp(20 (c - .9)) is 1.83, 100, 4.98 and 0.25.
_SHARP = {
  'variant': 'fedakd',
  'contributions': (0.7, 0.9, 0.75, 0.6),
  'contribution_sharpness': 20.0,
  'mid_round': 1,
}


@functools.cache
def _initial_weights(seed=4):
  """Trained a little, so that most neurons are needed."""
  rng = np.random.default_rng(seed)
  start = [0.7 * rng.normal(size=shape) for shape in _NETWORK.shapes]
  (data,) = linear_task.make_clients((80,), holdout=0, seed=5)
  trained = _NETWORK.train(
    linear_task.vector(start), data, learning_rate=0.3, epochs=15
  )
  return [w.astype(np.float32) for w in _NETWORK.split(trained)]


def _model_fn(weights=None):
  """One hidden layer without activation."""
  weights = _initial_weights() if weights is None else weights
  x = tf.keras.Input([linear_task.NUM_FEATURES])
  h = tf.keras.layers.Dense(len(weights[1]))(x)
  model = tf.keras.Model(x, tf.keras.layers.Dense(len(weights[3]))(h))
  model.set_weights(weights)
  return model


@functools.cache
def _validation():
  (data,) = linear_task.make_clients((80,), holdout=0, seed=5)
  return data.x, data.y


_build = functools.partial(
  linear_task.build_process,
  algorithms.build_fed_sac,
  model_fn=_model_fn,
  learning_rate=_RATE,
  num_clients=len(_SIZES),
  validation=_validation(),
  contributions=_CONTRIBUTIONS,
)


_process = functools.cache(_build)


def _clients(*ids, sizes=_SIZES):
  clients = linear_task.make_clients(sizes)
  return linear_task.pick(clients, ids or range(len(sizes)))


def _reference(
  validation=None, contributions=_CONTRIBUTIONS, weights=None, **options
):
  weights = _initial_weights() if weights is None else weights
  return reward_reference.FedSac(
    reward_reference.Training(_NETWORK, _RATE),
    linear_task.vector(weights),
    validation or _validation(),
    contributions,
    **options,
  )


def _masks(state):
  return np.asarray(state.client_work['table']['mask'])


def _assert_state(process, state, expected, personal=True):
  np.testing.assert_array_equal(_masks(state), expected.masks)
  weights = linear_task.weights(process, state)
  linear_task.assert_close(weights, expected.weights)
  if personal:
    found = linear_task.client_weights(process, state)
    linear_task.assert_close(found, expected.models)


def _assert_rounds(process, expected, rounds, personal=True):
  """Runs both, and compares them before and after every round.

  Returns:
    The last state, and the masks before each round and at the end.
  """
  state, masks = process.initialize(), []
  for clients in rounds:
    _assert_state(process, state, expected, personal)
    masks.append(expected.masks)
    output = linear_task.next_round(process, state, clients)
    state = output.state
    expected.next(clients)
    report = output.metrics['client_work']['clients']
    for client_id, number in zip(
      report['client_id'], report['num_neurons'], strict=True
    ):
      used = len(clients[client_id].y) and np.isfinite(clients[client_id].x)
      assert number == (np.sum(masks[-1][client_id]) if np.all(used) else 0)
  _assert_state(process, state, expected, personal)
  return state, [*masks, expected.masks]


class TestFunctions:
  _IMPORTANCES = np.array([40.0, 5, 30, 10, 15])

  def test_budgets_and_least_important_by_hand(self):
    budgets = fed_sac.allocation_budgets((0.4, 0.5, 0.6), 2.0)
    np.testing.assert_allclose(budgets, [67.032005, 81.873075, 100], atol=1e-6)
    found = fed_sac.least_important(self._IMPORTANCES, budgets)
    np.testing.assert_array_equal(
      found, [[0, 1, 1, 1, 1], [0, 1, 1, 1, 1], [1, 1, 1, 1, 1]]
    )
    # 5, 10, 15, 30 and 40 sum to 5, 15, 30, 60 and 100; at least one neuron.
    found = fed_sac.least_important(
      self._IMPORTANCES, np.array([4.0, 5, 14.9, 15, 30, 59.9, 60])
    )
    np.testing.assert_array_equal(np.sum(found, axis=1), [1, 1, 1, 2, 3, 3, 4])

  def test_most_important_by_hand(self):
    found = fed_sac.most_important(
      self._IMPORTANCES, np.array([0.3, 1.9, 2.0, 4.99, 5.0, 100.0])
    )
    np.testing.assert_array_equal(np.sum(found, axis=1), [1, 1, 2, 4, 5, 5])
    np.testing.assert_array_equal(found[2], [1, 0, 1, 0, 0])

  def test_of_equal_importances_the_first(self):
    found = fed_sac.least_important(np.full(4, 25.0), np.array([50.0, 74.0]))
    np.testing.assert_array_equal(found, [[1, 1, 0, 0]] * 2)
    found = fed_sac.most_important(np.full(4, 25.0), np.array([2.5, 1.0]))
    np.testing.assert_array_equal(found, [[1, 1, 0, 0], [1, 0, 0, 0]])

  def test_a_budget_of_100_holds_everything_despite_rounding(self):
    rng = np.random.default_rng(0)
    above = 0
    for _ in range(100):
      importances = rng.exponential(size=97)
      importances = 100 * (importances / importances.sum())
      above += np.cumsum(np.sort(importances))[-1] > 100
      found = fed_sac.least_important(importances, np.array([100.0]))
      np.testing.assert_array_equal(found, np.ones((1, 97)))
    assert above  # Some would have been cut.

  def test_extreme_budgets(self):
    found = fed_sac.allocation_budgets((0.0, 1.0), 1e4)
    np.testing.assert_array_equal(found, [0, 100])
    np.testing.assert_array_equal(fed_sac.allocation_budgets((0,), 2.0), [100])

  def test_importances(self):
    model = models.StatelessModel(_model_fn)
    x, y = _validation()

    def loss_fn(weights):
      outputs, _ = model(weights, x, training=False)
      losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        y, outputs['logits']
      )
      return tf.reduce_mean(losses)

    weights = tf.nest.map_structure(tf.constant, model.initial_weights)
    found = fed_sac.importances(models.Neurons(model), loss_fn, weights)
    expected = _reference().importances
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert np.sum(found) == pytest.approx(100)
    assert np.sum(expected > 1) > 4
    # Neurons that do not matter are equally important.
    found = fed_sac.importances(
      models.Neurons(model), lambda _: tf.constant(1.0), weights
    )
    np.testing.assert_allclose(found, np.full(_HIDDEN, 100 / _HIDDEN))


def test_rounds_against_numpy():
  """Importances are those of the rounds 0, 2 and 4."""
  _, masks = _assert_rounds(
    _process(importance_every=2),
    _reference(importance_every=2),
    [_clients(), _clients(0, 1), _clients(1, 3), _clients()],
  )
  first, second, third, fourth, fifth = masks
  assert first.sum() < 4 * _HIDDEN
  np.testing.assert_array_equal(first, second)
  np.testing.assert_array_equal(third, fourth)
  assert np.any(second != third) and np.any(fourth != fifth)
  numbers = third.sum(axis=1)
  assert numbers[0] < numbers[3] < numbers[2] == _HIDDEN


@pytest.mark.full
def test_the_variant_against_numpy():
  process = _process(**_SHARP)
  assert not hasattr(process, 'get_client_model_weights')
  _, masks = _assert_rounds(
    process, _reference(**_SHARP), [_clients()] * 3, personal=False
  )
  # Only in the second round.
  np.testing.assert_array_equal(
    [mask.sum(axis=1) for mask in masks],
    [[6] * 4, [1, 6, 4, 1], [6] * 4, [6] * 4],
  )


@pytest.mark.full
def test_only_the_first_1000_validation_examples_count():
  (data,) = linear_task.make_clients((1200,), holdout=0, seed=5)
  data.x[1000:] *= 10
  data.y[1000:] = 0
  process = _build(validation=(data.x, data.y))
  expected = _reference((data.x[:1000], data.y[:1000]))
  np.testing.assert_array_equal(_masks(process.initialize()), expected.masks)
  assert np.any(_reference((data.x, data.y)).masks != expected.masks)


@pytest.mark.full
def test_masks_are_renewed_with_the_weights():
  process = _process(importance_every=2)
  state = process.initialize()
  weights = tff.learning.models.ModelWeights(_initial_weights(8), [])
  expected = _reference(weights=weights.trainable)
  renewed = process.set_model_weights(state, weights)
  _assert_state(process, renewed, expected)
  assert np.any(_masks(renewed) != _masks(state))
  # In a round without importances the masks stay, and the models move.
  later = linear_task.next_round(process, state, _clients()).state
  moved = process.set_model_weights(later, weights)
  np.testing.assert_array_equal(_masks(moved), _masks(later))
  linear_task.assert_close(
    linear_task.client_weights(process, moved),
    expected.weights * expected.entries(_masks(moved)),
  )


def _trained(weights, data, client_optimizer, **options):
  """The weights of client 1 after the first round, trained alone."""
  model = models.StatelessModel(lambda: _model_fn(weights))
  train = client.build_local_training(
    model, client.classification_objective(), client_optimizer, **options
  )
  examples = collections.OrderedDict(
    x=tf.constant(data.x), y=tf.constant(data.y, tf.int32)
  )
  return train(
    model.initial_weights,
    examples,
    local_training.client_seed(local_training.seed_words(0), 0, 1),
  ).weights.trainable


@pytest.mark.full
def test_a_submodel_is_trained_like_a_smaller_network():
  """With Adam, weight decay and minibatches."""
  options = {
    'client_optimizer': linear_task.decaying_optimizer('adam'),
    'batch_size': 4,
    'local_epochs': 3,
  }
  process = _build(**options)
  state = process.initialize()
  kept = _masks(state)[1].astype(bool)
  assert 0 < kept.sum() < _HIDDEN
  kernel, bias, more, last = _initial_weights()
  small = [kernel[:, kept], bias[kept], more[kept], last]
  expected = _trained(small, _clients()[1], **options)
  state = linear_task.next_round(process, state, _clients(1)).state
  found = process.get_model_weights(state).trainable
  np.testing.assert_array_equal(found[0][:, ~kept], kernel[:, ~kept])
  # Nothing of the output layer is masked: weights of silent neurons decay.
  linear_task.assert_close(
    [found[0][:, kept], found[1][kept], found[2][kept], found[3]], expected
  )


@pytest.mark.full
def test_equal_contributions_are_fed_avg_with_equal_weights():
  options = {
    'client_optimizer': linear_task.decaying_optimizer('adam'),
    'batch_size': 4,
    'num_clients': 4,
  }
  process = _build(contributions=[0.3] * 4, **options)
  average = algorithms.build_fed_avg(_model_fn, uniform=True, **options)
  state, expected = (
    linear_task.run(p, _clients(), ([0, 1, 2, 3], [3, 1])).state
    for p in (process, average)
  )
  linear_task.assert_close(
    linear_task.weights(process, state), linear_task.weights(average, expected)
  )
  np.testing.assert_array_equal(_masks(state), np.ones((4, _HIDDEN)))


def _batch_norm_model_fn():
  x = tf.keras.Input([linear_task.NUM_FEATURES])
  h = tf.keras.layers.BatchNormalization(momentum=0.5)(x)
  h = tf.keras.layers.Dense(3, kernel_initializer='ones')(h)
  return tf.keras.Model(x, tf.keras.layers.Dense(3)(h))


@pytest.mark.full
def test_global_statistics_are_plain_means_and_clients_keep_theirs():
  process, clients = _build(model_fn=_batch_norm_model_fn), _clients()
  state = linear_task.run(process, clients, [[0, 1, 2]]).state
  means = [0.5 * clients[i].x.mean(axis=0) for i in (0, 1, 2)]
  found = process.get_model_weights(state).non_trainable[0]
  linear_task.assert_close(found, np.mean(means, axis=0))
  own = process.client_model_table(state).non_trainable[0]
  linear_task.assert_close(own, np.array([*means, np.zeros(4)]))


def test_bad_arguments():
  linear_task.assert_refused(
    _build,
    ('validation', None, 'a pair of inputs an', TypeError),
    ('contributions', 0.5, 'a sequence of ', TypeError),
    ('contributions', (0.5, 1), 'an entry for each of the 4 cli'),
    ('contributions', (0, 1, 2, 0), 'at most'),
    ('contributions', (0, 1, 0, -1), 'at least'),
    ('contributions', (0, 1, 0, np.nan), 'finite, found nan'),
    ('model_fn', linear_task.model_fn, 'build a model with a hidden dense la'),
  )
