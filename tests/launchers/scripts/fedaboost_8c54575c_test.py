"""Rounds by hand, in NumPy, with what the public script does."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms
from tff_fair.launchers.scripts import fedaboost_8c54575c as script

pytestmark = [pytest.mark.full, pytest.mark.usefixtures('default_runtime')]

_START = linear_task.start()
_LINEAR = reference.LINEAR
_RATE, _EPOCHS, _BATCH, _BOUND = 0.3, 4, 3, 0.4
_process = functools.partial(
  linear_task.build_process,
  num_clients=6,
  learning_rate=_RATE,
  local_epochs=_EPOCHS,
  batch_size=_BATCH,
  max_gradient_norm=_BOUND,
)


def _train(w, number, i, data, *, threshold, patience, gamma=0.0):
  """The model, and the number of epochs."""
  stalled, before, num_epochs = 0, np.inf, 0
  orders = reference.orders(0, number, i, _EPOCHS, len(data.y))
  for order in orders:
    losses = []
    num_epochs += 1
    for first in range(0, len(order) - _BATCH + 1, _BATCH):
      rows = order[first : first + _BATCH]
      part = linear_task.Client(data.x[rows], data.y[rows], None, None)
      loss = functools.partial(_LINEAR.loss, data=part, gamma=gamma)
      g = reference.gradient(loss, w)
      losses.append(float(loss(w)))
      w = w - _RATE * g / max(1, np.linalg.norm(g) / _BOUND)
    stalled = stalled + 1 if before - np.mean(losses) < threshold else 0
    if stalled >= patience:
      break
    before = np.mean(losses)
  return w, num_epochs


def _error(w, data):
  """1 - macro-F1 on the first 8 of 10."""
  predicted = _LINEAR.logits(w, data.holdout_x[:8]).argmax(axis=1)
  found = []
  for c in {*predicted} | {*data.holdout_y[:8]}:
    is_c, called_c = data.holdout_y[:8] == c, predicted == c
    found.append(2 * np.sum(is_c & called_c) / (is_c.sum() + called_c.sum()))
  return 1 - np.mean(found)


def _alpha(error, bound):
  error = np.clip(error, 1e-6, 1 - 1e-6)
  return np.clip(np.log((1 - error) / error) + np.log(2), -bound, bound)


def _fedaboost(rounds, threshold, patience):
  w, weight, gamma = _START, np.full(6, 0.1), np.zeros(6)
  for number, clients in enumerate(rounds):
    models, alphas, epochs = [], [], []
    for i, data in clients.items():
      before = _error(w, data)
      if before > 0.3:
        weight[i] *= np.exp(-0.5 * _alpha(before, 5))
        gamma[i] = min(gamma[i] + weight[i], 0.15)
      trained, count = _train(
        *(w, number, i, data),
        threshold=threshold,
        patience=patience,
        gamma=gamma[i],
      )
      models.append(trained)
      epochs.append(count)
      alphas.append(_alpha(_error(trained, data), 3))
    w = reference.mean(models, np.exp(alphas))
    yield {
      'weights': w,
      'client_work/clients/alpha': np.array(alphas),
      'client_work/clients/local_epochs': np.array(epochs),
      'table/weight': weight.copy()[:, np.newaxis],
      'table/gamma': gamma.copy()[:, np.newaxis],
    }


@pytest.mark.parametrize(
  ('threshold', 'patience'),
  [(0.05, 5), (0.1, 2)],
  ids=str,
)
def test_fedaboost(threshold, patience):
  outputs = linear_task.assert_rounds(
    _process(
      script.build_fedaboost,
      boost_rate=0.5,
      max_gamma=0.15,
      stop_threshold=threshold,
      stop_patience=patience,
    ),
    functools.partial(_fedaboost, threshold=threshold, patience=patience),
    linear_task.rounds(),
  )
  gamma = outputs[-1].state.client_work['table']['gamma']
  assert np.max(gamma) == np.float32(0.15) and np.min(gamma) == 0
  # A patience of five is longer than the training.
  epochs = outputs[-1].metrics['client_work']['local_epochs']
  assert (epochs == _EPOCHS) == (patience == 5)


def _fed_avg(rounds):
  w = _START
  for number, clients in enumerate(rounds):
    found = [
      _train(w, number, i, data, threshold=0.1, patience=2)
      for i, data in clients.items()
    ]
    sizes = [len(data.y) for data in clients.values()]
    w = reference.mean([model for model, _ in found], sizes)
    epochs = np.average([count for _, count in found], weights=sizes)
    assert 3 <= epochs < _EPOCHS
    yield {'weights': w, 'client_work/local_epochs': epochs}


def test_fed_avg():
  linear_task.assert_rounds(
    _process(script.build_fed_avg, stop_threshold=0.1),
    _fed_avg,
    linear_task.rounds(),
  )


def test_without_its_differences_it_is_fed_avg():
  plain = linear_task.build_process(
    algorithms.build_fed_avg,
    num_clients=6,
    learning_rate=_RATE,
    local_epochs=_EPOCHS,
    batch_size=_BATCH,
  )
  process = _process(
    script.build_fed_avg,
    stop_patience=_EPOCHS,
    max_gradient_norm=1e6,
    drop_last=False,
  )
  clients = linear_task.rounds()[0]
  found, expected = (
    linear_task.weights(p, linear_task.next_round(p, s, clients).state)
    for p, s in ((p, p.initialize()) for p in (process, plain))
  )
  linear_task.assert_close(found, expected, rtol=1e-6)


def _ditto(rounds):
  """Full batches; the personal optimiser has momentum."""
  w, personal, velocity = _START, np.tile(_START, (6, 1)), np.zeros((6, 15))
  for clients in rounds:
    models = []
    for i, data in clients.items():
      trained = _LINEAR.train(w, data, rate=_RATE, epochs=2)
      personal[i], velocity[i], _ = reference.descend(
        lambda v, data=data, trained=trained: (
          _LINEAR.loss(v, data) + 0.25 * tf.reduce_sum((v - trained) ** 2)
        ),
        *(personal[i], 0.1, 2),
        momentum=0.9,
        velocity=velocity[i],
      )
      models.append(trained)
    w = reference.mean(models, [len(data.y) for data in clients.values()])
    yield {'weights': w, 'models': personal.copy()}


def test_ditto():
  process = linear_task.build_process(
    script.build_ditto,
    num_clients=6,
    learning_rate=_RATE,
    local_epochs=2,
    personal_optimizer=linear_task.sgd(0.1, momentum=0.9),
    proximal_weight=0.5,
    max_gradient_norm=1e6,
  )
  linear_task.assert_rounds(process, _ditto, linear_task.rounds())
