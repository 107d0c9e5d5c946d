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
  linear_task.build_process, algorithms.build_standalone, num_clients=3
)
_MOMENTUM = linear_task.sgd(0.1, momentum=0.9)


def test_three_rounds_against_numpy():
  """With a learning rate by round; client 1 is absent in the second."""
  clients = linear_task.make_clients(_SIZES)
  process = _build(learning_rate=0.2, decay=0.5, local_epochs=2)
  output = linear_task.run(process, clients, ([0, 1, 2], [2, 0], [1, 2]))
  state, rates = output.state, (0.2, 0.1, 0.05)
  table = process.client_model_table(state).trainable
  for i, rounds in enumerate(((0, 1), (0, 2), (0, 1, 2))):
    model = _START
    for number in rounds:
      model = numpy_reference.train(
        model, clients[i], learning_rate=rates[number], epochs=2
      )
    found = process.get_client_model_weights(state, i)
    linear_task.assert_model(found, model)
    linear_task.assert_equal([rows[i] for rows in table], found.trainable)
  linear_task.assert_model(process.get_model_weights(state), _START)
  counts = output.metrics['client_work']
  assert counts['num_clients'] == 2 and counts['num_examples'] == 21


@pytest.mark.full
def test_rounds_are_one_continuous_training():
  """The momentum is kept: four rounds of an epoch are a round of four."""
  clients = linear_task.make_clients(_SIZES)
  many, one = (
    _build(client_optimizer=_MOMENTUM),
    _build(client_optimizer=_MOMENTUM, local_epochs=4),
  )
  # Client 1 misses a round, and resumes where it was.
  cohorts = ([0, 1, 2], [0, 1, 2], [2, 0], [1, 0, 2], [1])
  after_many = linear_task.run(many, clients, cohorts).state
  after_one = linear_task.run(one, clients, cohorts[:1]).state
  model, plain = _START, _START
  velocity = numpy_reference.Linear(0.0, 0.0)
  for _ in range(4):
    gradient = numpy_reference.focal_gradient(
      model, clients[1].x, clients[1].y, gamma=0.0
    )
    velocity = gradient.plus(velocity, 0.9)
    model = model.plus(velocity, -0.1)
    plain = numpy_reference.train(
      plain, clients[1], learning_rate=0.1, epochs=1
    )
  assert np.abs(model.kernel - plain.kernel).max() > 0.01
  linear_task.assert_model(many.get_client_model_weights(after_many, 1), model)
  linear_task.assert_close(
    linear_task.client_weights(many, after_many),
    linear_task.client_weights(one, after_one),
  )


@pytest.mark.full
def test_a_client_recovers_from_a_bad_round():
  """Nothing of it is kept, not even in the optimiser's state."""
  clients = linear_task.make_clients(_SIZES)
  (bad,) = linear_task.make_clients((6,))
  bad.x[0, 0] = np.inf
  process = _build(client_optimizer=_MOMENTUM)
  state = process.initialize()
  for data in (clients[0], bad, clients[0]):
    state = linear_task.next_round(process, state, {0: data}).state
  expected = linear_task.run(process, clients, [[0], [0]]).state
  linear_task.assert_close(
    process.get_client_model_weights(state, 0).trainable,
    process.get_client_model_weights(expected, 0).trainable,
  )


@pytest.mark.full
def test_batch_norm_statistics_stay_with_the_client():
  clients = linear_task.make_clients((8, 8))
  process = _build(linear_task.batch_norm_model_fn, num_clients=2)
  state = linear_task.run(process, clients, [[0, 1]]).state
  for i, data in enumerate(clients):
    mean, _ = process.get_client_model_weights(state, i).non_trainable
    np.testing.assert_allclose(mean, data.x.mean(axis=0) / 2, rtol=1e-4)
