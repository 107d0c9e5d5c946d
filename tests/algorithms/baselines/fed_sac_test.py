import dataclasses
import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms
from tff_fair import models
from tff_fair.algorithms.baselines import fed_sac
from tff_fair.launchers.scripts import fedakd_6bd41ca1

pytestmark = [pytest.mark.full, pytest.mark.usefixtures('default_runtime')]

_SIZES = (5, 9, 12, 7, 0, 6)
_RATE = 0.3
_HIDDEN = 6
_NETWORK = reference.Network(
  (linear_task.NUM_FEATURES, _HIDDEN, linear_task.NUM_CLASSES)
)
# 100 exp(2 (c - .9)) is 20, 45, 100 and 67, ...
_CONTRIBUTIONS = (0.1, 0.5, 0.9, 0.7, 0.9, 0.9)
# 100 exp(20 (c - .9)) is 1.83, 100, 4.98 and 0.25, ...
_SHARP = {
  'contributions': (0.7, 0.9, 0.75, 0.6, 0.9, 0.9),
  'contribution_sharpness': 20.0,
}


@functools.cache
def _validation(size=80):
  (data,) = linear_task.make_clients((size,), holdout=0, seed=5)
  return data


@functools.cache
def _initial_weights(seed=4):
  """Trained a little, so that most neurons are needed."""
  rng = np.random.default_rng(seed)
  start = [0.7 * rng.normal(size=shape) for shape in _NETWORK.shapes]
  trained = _NETWORK.train(
    linear_task.vector(start), _validation(), rate=0.3, epochs=15
  )
  return [np.float32(w) for w in _NETWORK.split(trained)]


def _model_fn():
  """One hidden layer without activation."""
  x = tf.keras.Input([linear_task.NUM_FEATURES])
  h = tf.keras.layers.Dense(_HIDDEN)(x)
  model = tf.keras.Model(x, tf.keras.layers.Dense(linear_task.NUM_CLASSES)(h))
  model.set_weights(_initial_weights())
  return model


def _build(**options):
  validation = options.pop('validation', _validation())
  return linear_task.build_process(
    options.pop('build', algorithms.build_fed_sac),
    **{
      'model_fn': _model_fn,
      'learning_rate': _RATE,
      'num_clients': len(_SIZES),
      'validation': (validation.x, validation.y),
      'contributions': _CONTRIBUTIONS,
      **options,
    },
  )


def _rounds(*cohorts):
  clients = linear_task.make_clients(_SIZES)
  clients[5].x[0, 0] = np.nan
  return [linear_task.pick(clients, cohort) for cohort in cohorts]


def _entries(masks):
  """The masks of all weights, [m, d], from the masks of the neurons."""
  head = np.ones((len(masks), (_HIDDEN + 1) * linear_task.NUM_CLASSES))
  # The kernel, row by row, and the bias have a column for each neuron.
  return np.hstack([np.tile(masks, linear_task.NUM_FEATURES + 1), head])


def _importances(w, validation):
  without = w * _entries(1 - np.eye(_HIDDEN))
  whole, *losses = (float(_NETWORK.loss(v, validation)) for v in [w, *without])
  rises = np.maximum(0.0, np.array(losses) - whole)
  if not rises.any():
    return np.full(_HIDDEN, 100 / _HIDDEN)
  return 100 * rises / rises.sum()


def _budgets(contributions, beta):
  return 100 * np.exp(beta * np.subtract(contributions, max(contributions)))


def _within_budgets(importances, budgets):
  """The least important neurons whose sum is within the budget; at least 1."""
  order = np.lexsort([importances])
  counts = np.sum(
    np.cumsum(importances[order]) <= budgets[:, np.newaxis] + 1e-9, axis=1
  )
  masks = np.zeros((len(budgets), _HIDDEN))
  for mask, count in zip(masks, counts, strict=True):
    mask[order[: max(1, count)]] = 1
  return masks


def _masks_at_first(w=None, validation=None):
  w = linear_task.vector(_initial_weights()) if w is None else w
  importances = _importances(w, validation or _validation())
  return _within_budgets(importances, _budgets(_CONTRIBUTIONS, 2.0))


def _fed_sac(rounds, importance_every):
  w, masks = linear_task.vector(_initial_weights()), _masks_at_first()
  for number, clients in enumerate(rounds, 1):
    held = _entries(masks[list(clients)])
    numbers = masks[list(clients)].sum(axis=1)
    sent = np.array(
      [
        _trained(w * mask, data, mask)
        for mask, data in zip(held, clients.values(), strict=True)
      ]
    )
    # Of each entry the mean over its holders, or the old value.
    holders = held.sum(axis=0)
    mean = np.sum(sent * held, axis=0) / np.maximum(holders, 1)
    w = np.where(holders > 0, mean, w)
    if number % importance_every == 0:
      masks = _masks_at_first(w)
    yield {
      'weights': w,
      'models': w * _entries(masks),
      'table/mask': masks,
      'client_work/clients/num_neurons': numbers,
    }


def _trained(w, data, mask):
  slope = reference.gradient(lambda v: _NETWORK.loss(v, data), w)
  return w - _RATE * mask * slope


def _script(rounds):
  """FedAKD's: masks in one round, of the most important neurons."""
  w = linear_task.vector(_initial_weights())
  masks = np.ones((len(_SIZES), _HIDDEN))
  for number, clients in enumerate(rounds, 1):
    held = _entries(masks[list(clients)])
    sent = [
      mask * _trained(w, data, mask)
      for mask, data in zip(held, clients.values(), strict=True)
    ]
    w = np.mean(sent, axis=0)
    masks = np.ones((len(_SIZES), _HIDDEN))
    if number == 1:  # The build's `mid_round`.
      order = np.lexsort([-_importances(w, _validation())])
      budgets = _budgets(
        _SHARP['contributions'], _SHARP['contribution_sharpness']
      )
      for mask, budget in zip(masks, budgets, strict=True):
        mask[order[int(np.clip(np.floor(budget), 1, _HIDDEN)) :]] = 0
    yield {'weights': w, 'table/mask': masks}


def _masks(state):
  return np.asarray(state.client_work['table']['mask'])


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
    found = fedakd_6bd41ca1.most_important(
      self._IMPORTANCES, np.array([0.3, 1.9, 2.0, 4.99, 5.0, 100.0])
    )
    np.testing.assert_array_equal(np.sum(found, axis=1), [1, 1, 2, 4, 5, 5])
    np.testing.assert_array_equal(found[2], [1, 0, 1, 0, 0])

  def test_of_equal_importances_the_first(self):
    found = fed_sac.least_important(np.full(4, 25.0), np.array([50.0, 74.0]))
    np.testing.assert_array_equal(found, [[1, 1, 0, 0]] * 2)
    found = fedakd_6bd41ca1.most_important(
      np.full(4, 25.0), np.array([2.5, 1.0])
    )
    np.testing.assert_array_equal(found, [[1, 1, 0, 0], [1, 0, 0, 0]])

  def test_a_budget_of_100_holds_everything_despite_rounding(self):
    importances = np.full(9, 100 / 9)  # Rounded, their sum is above 100.
    assert np.cumsum(importances)[-1] > 100
    found = fed_sac.least_important(importances, np.array([100.0]))
    np.testing.assert_array_equal(found, np.ones((1, 9)))

  def test_neurons_that_do_not_matter_are_equally_important(self):
    model = models.StatelessModel(_model_fn)
    weights = tf.nest.map_structure(tf.constant, model.initial_weights)
    found = fed_sac.importances(
      models.Neurons(model), lambda _: tf.constant(1.0), weights
    )
    np.testing.assert_allclose(found, np.full(_HIDDEN, 100 / _HIDDEN))


def test_four_rounds():
  """Importances are those of the rounds 0, 2 and 4."""
  process = _build(importance_every=2)
  first = _masks(process.initialize())
  np.testing.assert_array_equal(first, _masks_at_first())
  outputs = linear_task.assert_rounds(
    process,
    functools.partial(_fed_sac, importance_every=2),
    _rounds([0, 1, 2, 3], [0, 1, 4, 5], [1, 3], [0, 1, 2, 3]),
  )
  masks = [first, *(_masks(output.state) for output in outputs)]
  changed = [bool(np.any(a != b)) for a, b in itertools.pairwise(masks)]
  assert changed == [False, True, False, True]
  numbers = masks[2].sum(axis=1)
  assert numbers[0] < numbers[3] < numbers[2] == _HIDDEN


def test_the_script_of_fedakd():
  process = _build(build=fedakd_6bd41ca1.build_fed_sac, mid_round=1, **_SHARP)
  assert not hasattr(process, 'get_client_model_weights')
  outputs = linear_task.assert_rounds(
    process, _script, _rounds([0, 1, 2, 3, 4, 5], [0, 1, 2, 3], [0, 1, 2, 3])
  )
  numbers = [_masks(o.state).sum(axis=1)[:4].tolist() for o in outputs]
  assert numbers == [[1, 6, 4, 1], [6] * 4, [6] * 4]


def test_only_the_first_1000_validation_examples_count():
  data = dataclasses.replace(_validation(1200))
  data.x[1000:] *= 10
  data.y[1000:] = 0
  found = _masks(_build(validation=data).initialize())
  part = dataclasses.replace(data, x=data.x[:1000], y=data.y[:1000])
  np.testing.assert_array_equal(found, _masks_at_first(validation=part))
  assert np.any(_masks_at_first(validation=data) != found)


def test_masks_are_renewed_with_the_weights():
  process = _build(importance_every=2)
  state = process.initialize()
  weights = tff.learning.models.ModelWeights(_initial_weights(8), [])
  w = linear_task.vector(weights.trainable)
  renewed = process.set_model_weights(state, weights)
  np.testing.assert_array_equal(_masks(renewed), _masks_at_first(w))
  assert np.any(_masks(renewed) != _masks(state))
  # In a round without importances the masks stay, and the models move.
  (clients,) = _rounds([0, 1, 2, 3])
  later = linear_task.next_round(process, state, clients).state
  moved = process.set_model_weights(later, weights)
  np.testing.assert_array_equal(_masks(moved), _masks(later))
  linear_task.assert_close(
    linear_task.client_weights(process, moved), w * _entries(_masks(moved))
  )


def test_contributions_and_neurons():
  linear_task.assert_refused(
    _build,
    ('contributions', (0.5, 1), 'an entry for each of the 6 cli'),
    ('contributions', (0, 1, 2, 0, 0, 0), 'at most'),
    ('contributions', (0, 1, 0, -1, 0, 0), 'at least'),
    ('model_fn', linear_task.model_fn, 'build a model with a hidden dense la'),
  )
