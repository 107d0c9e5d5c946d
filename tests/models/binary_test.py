"""A binary classifier with a single logit, against logistic regression."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tff_fair import algorithms
from tff_fair import metrics
from tff_fair import models

_KERNEL = np.array([[0.5], [-0.25], [0.75], [-1.0]], np.float32)
_RATE, _EPOCHS = 0.5, 3


def _model_fn(activation=None, embedding=False):
  x = tf.keras.Input([4])
  dense = tf.keras.layers.Dense(
    1,
    activation=activation,
    kernel_initializer=tf.constant_initializer(_KERNEL),
  )
  if embedding:
    h = tf.keras.layers.Dense(4, kernel_initializer='identity')(x)
    return tf.keras.Model(x, {'logits': dense(h), 'embedding': h})
  return tf.keras.Model(x, dense(x))


def _clients(sizes=(6, 9, 12)):
  rng = np.random.default_rng(0)
  clients = []
  for size in sizes:
    x = rng.normal(size=[size + 8, 4]).astype(np.float32)
    y = (x @ [1.0, 2, -1, 1] + rng.normal(size=size + 8) > 0).astype(np.int64)
    clients.append(linear_task.Client(x[:size], y[:size], x[size:], y[size:]))
  return clients


# Logistic regression, `P(y = 1) = 1 / (1 + exp(-(x w + b)))`: w, then b.
_START = np.append(_KERNEL, 0.0)


def _logits(w, x):
  return x @ w[:4] + w[4]


def _error(w, x, y):
  return np.mean((_logits(w, x) > 0) != y)


def _trained(data):
  """Gradient descent on the mean of `-ln P(y)`, all examples in a step."""
  w = _START
  for _ in range(_EPOCHS):
    p = 1 / (1 + np.exp(-_logits(w, data.x)))
    slope = (p - data.y) / len(data.y)
    w = w - _RATE * np.append(data.x.T @ slope, slope.sum())
  return w


_build = functools.partial(
  linear_task.build_process,
  model_fn=_model_fn,
  learning_rate=_RATE,
  local_epochs=_EPOCHS,
  num_clients=3,
)


def test_a_logit_for_each_class():
  x = np.random.default_rng(0).normal(size=[5, 4]).astype(np.float32)
  z = x @ _KERNEL
  for activation in (None, 'sigmoid'):
    model = models.StatelessModel(functools.partial(_model_fn, activation))
    assert (model.num_logits, model.num_classes) == (1, 2)
    for call in (model, tf.function(model, autograph=False)):
      outputs, _ = call(model.initial_weights, x, training=False)
      np.testing.assert_allclose(
        outputs['logits'], np.concatenate([0 * z, z], axis=1), atol=1e-6
      )


def test_evaluation():
  (data,) = _clients([40])
  signs = np.where(data.y, 1, -1)
  losses = np.log1p(np.exp(-signs * _logits(_START, data.x)))
  for activation in (None, 'sigmoid'):
    model = _model_fn(activation)
    weights = models.StatelessModel(_model_fn).initial_weights
    evaluator = metrics.Evaluator(model, [(data.x, data.y)])
    scores = evaluator.evaluate_global(weights)
    assert 0.2 < scores.accuracy[0] < 0.8
    error = _error(_START, data.x, data.y)
    np.testing.assert_allclose(scores.accuracy[0], 1 - error)
    np.testing.assert_allclose(scores.loss, losses.mean(), rtol=1e-5)


@pytest.mark.full
@pytest.mark.usefixtures('default_runtime')
def test_a_round_of_fed_avg():
  clients = _clients()
  trained = [_trained(data) for data in clients]
  expected = np.average(trained, axis=0, weights=[6, 9, 12])
  found = []
  for activation in (None, 'sigmoid'):
    process = _build(
      algorithms.build_fed_avg,
      model_fn=functools.partial(_model_fn, activation),
    )
    output = linear_task.next_round(
      process, process.initialize(), dict(enumerate(clients))
    )
    found.append(process.get_model_weights(output.state))
  linear_task.assert_close(linear_task.vector(found[0].trainable), expected)
  linear_task.assert_equal(*found)
