import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests import refusals
from tff_fair import client
from tff_fair import models

_RATE = 0.5
_X = np.array([[1, 0], [0, 2], [1, 1]], np.float32)
_Y = np.array([0, 1, 1], np.int32)
_START = np.array([[0.2, -0.1], [0.3, 0.1]], np.float32)


def _model_fn():
  x = tf.keras.Input([2])
  return tf.keras.Model(x, tf.keras.layers.Dense(2, use_bias=False)(x))


@pytest.fixture(scope='module', name='model')
def _model():
  return models.StatelessModel(_model_fn)


def _build(model, **changes):
  arguments = {
    'optimizer': tff.learning.optimizers.build_sgdm(_RATE),
    'epochs': 2,
    'batch_size': 3,
    **changes,
  }
  return client.build_fine_tuning(model, **arguments)


def _trained(fine_tune, x=_X, y=_Y, number=0, key=0):
  weights = tff.learning.models.ModelWeights([_START], [])
  (found,) = fine_tune(weights, x, y, number, key).trainable
  return found.numpy()


def _descent(rates):
  """Steps of gradient descent on the mean cross-entropy of all examples."""
  weights = _START.astype(float)
  for rate in rates:
    scores = np.exp(_X @ weights)
    errors = scores / scores.sum(axis=1, keepdims=True) - np.eye(2)[_Y]
    weights = weights - rate * _X.T @ errors / 3
  return weights


def test_epochs_are_those_of_local_training(model):
  fine_tune = _build(model)
  np.testing.assert_allclose(_trained(fine_tune), _descent([_RATE] * 2), 1e-5)
  # A client without examples keeps the model that it received.
  found = _trained(fine_tune, _X[:0], _Y[:0])
  np.testing.assert_array_equal(found, _START)


def test_the_learning_rate_is_that_of_the_round(model):
  fine_tune = _build(
    model,
    epochs=1,
    learning_rate_fn=lambda number: 0.25 ** tf.cast(number, tf.float32),
  )
  for number in (0, 2):
    found = _trained(fine_tune, number=number)
    np.testing.assert_allclose(found, _descent([0.25**number]), 1e-5)


def test_shuffles_follow_from_seed_round_and_client(model):
  fine_tune = _build(model, batch_size=1)
  places = [(number, key) for number in range(4) for key in range(4)]
  found = [_trained(fine_tune, number=n, key=k) for n, k in places]
  for (number, key), weights in zip(places, found, strict=True):
    again = _trained(fine_tune, number=number, key=key)
    np.testing.assert_array_equal(again, weights)
  # Three examples have six orders.
  assert len({weights.tobytes() for weights in found}) > 4
  other = _build(model, batch_size=1, seed=1)
  assert any(
    (_trained(other, number=n, key=k) != weights).any()
    for (n, k), weights in zip(places, found, strict=True)
  )


def test_refuses(model):
  refusals.check_values(
    lambda **changes: _build(model, **changes),
    {'epochs': [0, 1.5], 'batch_size': [0], 'seed': [-1]},
  )
