import asyncio
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
    reward_reference.vector(start), data, learning_rate=0.3, epochs=15
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


def _build(model_fn=_model_fn, **options):
  options = {
    'num_clients': len(_SIZES),
    'client_optimizer': linear_task.sgd(_RATE),
    'batch_size': 50,
    'validation': _validation(),
    'contributions': _CONTRIBUTIONS,
    **options,
  }
  return algorithms.build_fed_sac(model_fn, **options)


_process = functools.cache(_build)


def _clients(sizes=_SIZES):
  return dict(enumerate(linear_task.make_clients(sizes)))


def _some(ids, clients=None):
  clients = clients or _clients()
  return {i: clients[i] for i in ids}


def _reference(validation=None, contributions=_CONTRIBUTIONS, **options):
  return reward_reference.FedSac(
    reward_reference.Training(_NETWORK, _RATE),
    reward_reference.vector(_initial_weights()),
    validation or _validation(),
    contributions,
    **options,
  )


def _next(process, state, clients):
  # The order in which clients come must not matter.
  data = [linear_task.client_data(i, clients[i]) for i in reversed(clients)]
  return process.next(state, data)


def _masks(state):
  return np.asarray(state.client_work['table']['mask'])


def _models(process, state):
  return reward_reference.rows(process.client_model_table(state).trainable)


def _weights(process, state):
  return reward_reference.vector(process.get_model_weights(state).trainable)


def _close(found, expected):
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def _assert_state(process, state, expected, personal):
  np.testing.assert_array_equal(_masks(state), expected.masks)
  _close(_weights(process, state), expected.weights)
  if personal:
    _close(_models(process, state), expected.models)


def _assert_rounds(process, expected, rounds, personal=True):
  """Runs both, and compares them before and after every round."""
  state, masks = process.initialize(), []
  for clients in rounds:
    _assert_state(process, state, expected, personal)
    masks.append(expected.masks)
    output = _next(process, state, clients)
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


def _trained(weights, data, client_optimizer, **options):
  """The weights of client 1 after the first round, trained on their own."""
  model = models.StatelessModel(lambda: _model_fn(weights))
  train = client.build_local_training(
    model, client.classification_objective(), client_optimizer, **options
  )
  examples = collections.OrderedDict(
    x=tf.constant(data.x), y=tf.constant(data.y, tf.int32)
  )
  return train(
    model.initial_weights, examples, local_training.client_seed(0, 0, 1)
  ).weights.trainable


class TestFunctions:
  _IMPORTANCES = np.array([40.0, 5, 30, 10, 15])

  def test_the_example(self):
    budgets = fed_sac.allocation_budgets((0.4, 0.5, 0.6), 2.0)
    np.testing.assert_allclose(budgets, [67.032005, 81.873075, 100], atol=1e-6)
    found = fed_sac.least_important(self._IMPORTANCES, budgets)
    np.testing.assert_array_equal(
      found, [[0, 1, 1, 1, 1], [0, 1, 1, 1, 1], [1, 1, 1, 1, 1]]
    )

  def test_the_reference_on_the_example(self):
    budgets = reward_reference.submodel_reputations((0.4, 0.5, 0.6), 2.0)
    np.testing.assert_allclose(budgets, [67.032005, 81.873075, 100], atol=1e-6)
    found = reward_reference.neuron_masks(self._IMPORTANCES, budgets)
    np.testing.assert_array_equal(found.sum(axis=1), [4, 4, 5])
    mean = reward_reference.entrywise_mean(
      np.array([[2.0, 1], [7, 1]]), np.array([[1, 0], [0, 0]]), np.full(2, 9.0)
    )
    np.testing.assert_array_equal(mean, [2, 9])

  def test_a_prefix_may_end_at_the_budget(self):
    found = fed_sac.least_important(
      self._IMPORTANCES, np.array([4.0, 5, 14.9, 15, 30, 59.9, 60])
    )
    # 5, 10, 15, 30 and 40 sum to 5, 15, 30, 60 and 100; never nobody.
    np.testing.assert_array_equal(np.sum(found, axis=1), [1, 1, 1, 2, 3, 3, 4])

  def test_of_equal_importances_the_first(self):
    found = fed_sac.least_important(np.full(4, 25.0), np.array([50.0, 74.0]))
    np.testing.assert_array_equal(found, [[1, 1, 0, 0]] * 2)
    found = fed_sac.most_important(np.full(4, 25.0), np.array([2.5, 1.0]))
    np.testing.assert_array_equal(found, [[1, 1, 0, 0], [1, 0, 0, 0]])

  def test_100_holds_everything_in_spite_of_rounding(self):
    rng = np.random.default_rng(0)
    above = 0
    for _ in range(100):
      importances = rng.exponential(size=97)
      importances = 100 * (importances / importances.sum())
      above += np.cumsum(np.sort(importances))[-1] > 100
      found = fed_sac.least_important(importances, np.array([100.0]))
      np.testing.assert_array_equal(found, np.ones((1, 97)))
    assert above  # Some would have been cut.

  def test_the_most_important(self):
    found = fed_sac.most_important(
      self._IMPORTANCES, np.array([0.3, 1.9, 2.0, 4.99, 5.0, 100.0])
    )
    np.testing.assert_array_equal(np.sum(found, axis=1), [1, 1, 2, 4, 5, 5])
    np.testing.assert_array_equal(found[2], [1, 0, 1, 0, 0])

  def test_large_exponents_do_not_overflow(self):
    found = fed_sac.allocation_budgets((0.0, 1.0), 1e4)
    np.testing.assert_array_equal(found, [0, 100])

  def test_one_client_has_100(self):
    np.testing.assert_array_equal(fed_sac.allocation_budgets((0,), 2.0), [100])

  def test_importances_against_numpy(self):
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

  def test_neurons_that_do_not_matter_are_equally_important(self):
    model = models.StatelessModel(_model_fn)
    weights = tf.nest.map_structure(tf.constant, model.initial_weights)
    found = fed_sac.importances(
      models.Neurons(model), lambda _: tf.constant(1.0), weights
    )
    np.testing.assert_allclose(found, np.full(_HIDDEN, 100 / _HIDDEN))


@pytest.mark.usefixtures('default_runtime')
class TestAgainstNumpy:
  def test_rounds(self):
    # Importances are of the rounds 0, 2 and 4.
    _, masks = _assert_rounds(
      _process(importance_every=2),
      _reference(importance_every=2),
      [
        _clients(),
        _some([0, 1]),
        _some([1, 3]),
        _clients(),
      ],
    )
    first, second, third, fourth, fifth = masks
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(third, fourth)
    assert np.any(second != third) and np.any(fourth != fifth)
    numbers = third.sum(axis=1)
    assert numbers[0] < numbers[3] < numbers[2] == _HIDDEN

  def test_the_variant(self):
    process = _process(**_SHARP)
    assert not hasattr(process, 'get_client_model_weights')
    clients = _clients()
    _, masks = _assert_rounds(
      process, _reference(**_SHARP), [clients] * 3, personal=False
    )
    numbers = [mask.sum(axis=1) for mask in masks]
    # Only of the second round.
    np.testing.assert_array_equal(
      numbers, [[6] * 4, [1, 6, 4, 1], [6] * 4, [6] * 4]
    )

  def test_the_variant_s_round_may_be_the_first(self):
    options = {**_SHARP, 'mid_round': 0}
    _, masks = _assert_rounds(
      _build(**options), _reference(**options), [_some([0, 2, 3])], False
    )
    assert masks[0].sum() < 24 and masks[1].sum() == 24

  def test_dropped_clients_do_not_count(self):
    clients = _clients((5, 0, 12, 7))
    clients[3].x[0, 0] = np.inf
    process = _process(importance_every=2)
    expected = _reference(importance_every=2)
    state, _ = _assert_rounds(process, expected, [clients] * 2)
    assert np.all(np.isfinite(_weights(process, state)))

  def test_the_first_1000_validation_examples_count(self):
    (data,) = linear_task.make_clients((1200,), holdout=0, seed=5)
    data.x[1000:] *= 10
    data.y[1000:] = 0
    process = _build(validation=(data.x, data.y))
    expected = _reference((data.x[:1000], data.y[:1000]))
    np.testing.assert_array_equal(_masks(process.initialize()), expected.masks)
    assert np.any(_reference((data.x, data.y)).masks != expected.masks)


@pytest.mark.usefixtures('default_runtime')
class TestMasks:
  def test_exist_before_the_first_round(self):
    process = _process(importance_every=2)
    state, expected = process.initialize(), _reference()
    _assert_state(process, state, expected, personal=True)
    assert expected.masks.sum() < 4 * _HIDDEN

  def test_are_renewed_with_the_weights(self):
    process = _process(importance_every=2)
    state = process.initialize()
    weights = tff.learning.models.ModelWeights(_initial_weights(8), [])
    expected = reward_reference.FedSac(
      reward_reference.Training(_NETWORK, _RATE),
      reward_reference.vector(weights.trainable),
      _validation(),
      _CONTRIBUTIONS,
    )
    renewed = process.set_model_weights(state, weights)
    _assert_state(process, renewed, expected, personal=True)
    assert np.any(_masks(renewed) != _masks(state))
    # In a round without importances the masks stay, and the models move.
    later = _next(process, state, _clients()).state
    moved = process.set_model_weights(later, weights)
    np.testing.assert_array_equal(_masks(moved), _masks(later))
    entries = expected.entries(_masks(moved))
    _close(_models(process, moved), expected.weights * entries)

  def test_entries_that_nobody_holds_keep_their_value(self):
    process = _process(importance_every=2)
    state = process.initialize()
    before = _weights(process, state)
    after = _weights(process, _next(process, state, _some([0, 1])).state)
    held = _reference().entries(_masks(state)[:2]).any(axis=0)
    np.testing.assert_array_equal(after[~held], before[~held])
    # Of the hidden layer; of the other, silent neurons' weights do not move.
    hidden = slice(0, (linear_task.NUM_FEATURES + 1) * _HIDDEN)
    moved = after[hidden] != before[hidden]
    np.testing.assert_array_equal(moved, held[hidden])
    assert 0 < moved.sum() < moved.size

  @pytest.mark.parametrize('optimizer', ['sgd', 'adam'])
  def test_a_submodel_is_trained_like_a_smaller_network(self, optimizer):
    """With momentum, decay of weights, and minibatches."""
    options = {
      'client_optimizer': linear_task.decaying_optimizer(optimizer),
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
    state = _next(process, state, _some([1])).state
    found = process.get_model_weights(state).trainable
    _close(found[0][:, kept], expected[0])
    _close(found[1][kept], expected[1])
    np.testing.assert_array_equal(found[0][:, ~kept], kernel[:, ~kept])
    # Of the output layer nothing is masked: what comes from a silent neuron
    # only decays.
    _close(found[2][kept], expected[2])
    _close(found[3], expected[3])

  def test_equal_contributions_are_fed_avg_with_equal_weights(self):
    options = {
      'client_optimizer': linear_task.decaying_optimizer('adam'),
      'batch_size': 4,
      'num_clients': 4,
    }
    process = _build(contributions=[0.3] * 4, **options)
    average = algorithms.build_fed_avg(_model_fn, uniform=True, **options)
    state, other = process.initialize(), average.initialize()
    for ids in ([0, 1, 2, 3], [3, 1]):
      state = _next(process, state, _some(ids)).state
      other = _next(average, other, _some(ids)).state
      _close(_weights(process, state), _weights(average, other))
    np.testing.assert_array_equal(_masks(state), np.ones((4, _HIDDEN)))


@pytest.mark.usefixtures('default_runtime')
class TestStatistics:
  def _model_fn(self):
    x = tf.keras.Input([linear_task.NUM_FEATURES])
    h = tf.keras.layers.BatchNormalization(momentum=0.5)(x)
    h = tf.keras.layers.Dense(3, kernel_initializer=tf.initializers.Ones())(h)
    return tf.keras.Model(x, tf.keras.layers.Dense(3)(h))

  def test_the_global_ones_are_plain_means_and_clients_keep_their_own(self):
    process = _build(self._model_fn)
    clients = _clients()
    state = _next(process, process.initialize(), _some([0, 1, 2])).state
    means = [0.5 * clients[i].x.mean(axis=0) for i in (0, 1, 2)]
    found = process.get_model_weights(state).non_trainable[0]
    _close(found, np.mean(means, axis=0))
    own = process.client_model_table(state).non_trainable[0]
    _close(own, [*means, np.zeros(4)])


@pytest.mark.usefixtures('default_runtime')
def test_goes_on_from_a_saved_state(tmp_path):
  process = _process(importance_every=2)
  states = [process.initialize()]
  for ids in ([0, 1, 2, 3], [2, 1], [0, 3]):
    states.append(_next(process, states[-1], _some(ids)).state)
  managed = tff.program.FileProgramStateManager(tmp_path)

  async def save_and_load():
    await managed.save(states[1], 1)
    return await managed.load(1, process.initialize())

  state = asyncio.run(save_and_load())
  for ids in ([2, 1], [0, 3]):
    state = _next(process, state, _some(ids)).state
  linear_task.assert_equal(state, states[-1])


@pytest.mark.parametrize(
  ('options', 'error', 'message'),
  [
    ({'validation': None}, TypeError, 'validation must be a pair of inputs an'),
    ({'contributions': 0.5}, TypeError, 'contributions must be a sequence of '),
    ({'contributions': (0.5, 1)}, ValueError, 'an entry for each of the 4 cli'),
    ({'contributions': (0, 1, 2, 0)}, ValueError, 'of contributions must be a'),
    ({'contributions': (0, 1, 0, -1)}, ValueError, 'contributions must be at '),
    (
      {'contributions': (0, 1, 0, np.nan)},
      ValueError,
      'contributions must be finite, found nan',
    ),
    (
      {'contribution_sharpness': -1.0},
      ValueError,
      'contribution_sharpness must be at least 0.0, found -1.0',
    ),
    ({'importance_every': 0}, ValueError, 'importance_every must be at least'),
    ({'mid_round': -1}, ValueError, 'mid_round must be at least 0, found -1'),
    ({'variant': 'x'}, ValueError, "variant must be one of 'original', 'feda"),
    (
      {'model_fn': linear_task.model_fn},
      ValueError,
      'model_fn must build a model with a hidden dense layer or convolution',
    ),
  ],
)
def test_bad_arguments(options, error, message):
  with pytest.raises(error, match=message):
    _build(**options)
