import functools

import numpy as np
import pytest

from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_SIZES = (5, 9, 12)
_START = linear_task.initial_model()


_build = functools.partial(
  linear_task.build_process,
  algorithms.build_q_fed_avg,
  num_clients=3,
  local_epochs=2,
)


def _loss(model, data):
  return np.mean(numpy_reference.cross_entropies(model, data.x, data.y))


def _round(model, clients, *, learning_rate, q):
  """Sums of Delta_i and of h_i, as in the paper."""
  numerator, denominator = numpy_reference.Linear(0.0, 0.0), 0.0
  for data in clients:
    trained = numpy_reference.train(
      model, data, learning_rate=learning_rate, epochs=2
    )
    loss = _loss(model, data)
    change = model.plus(trained, -1.0)  # w - w_i
    squares = np.sum(change.vector**2)
    numerator = numerator.plus(change, loss**q / learning_rate)
    denominator += q * loss ** (q - 1) * squares / learning_rate**2
    denominator += loss**q / learning_rate
  return model.plus(numerator, -1 / denominator)


def test_two_rounds_against_numpy():
  process = _build(q=2.0, decay=0.5)
  clients = linear_task.make_clients(_SIZES)
  output = linear_task.run(process, clients, [[0, 1, 2], [2, 0]])
  second = _round(_START, clients, learning_rate=0.1, q=2.0)
  cohort = [clients[2], clients[0]]
  third = _round(second, cohort, learning_rate=0.05, q=2.0)
  linear_task.assert_model(output.state.global_model_weights, third)
  found = linear_task.reports(output)['loss_before']
  expected = [_loss(second, clients[0]), _loss(second, clients[2])]
  np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.full
def test_q_0_is_uniform_fed_avg():
  clients = linear_task.make_clients(_SIZES)
  output = linear_task.run(_build(q=0), clients, [[0, 1, 2]])
  expected = numpy_reference.fed_avg_round(
    _START, clients, learning_rate=0.1, epochs=2, uniform=True
  )
  linear_task.assert_model(output.state.global_model_weights, expected)


@pytest.mark.full
def test_batch_norm_statistics_are_averaged():
  clients = linear_task.make_clients((4, 12))
  process = _build(
    linear_task.batch_norm_model_fn, num_clients=2, local_epochs=1, q=0
  )
  state = linear_task.run(process, clients, [[0, 1]]).state
  mean, _ = process.get_model_weights(state).non_trainable
  means = [c.x.mean(axis=0) / 2 for c in clients]
  np.testing.assert_allclose(mean, np.mean(means, axis=0), rtol=1e-4)
