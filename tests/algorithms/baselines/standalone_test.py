import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_SIZES = (5, 9, 12)


def _build(**options):
  options = {
    'num_clients': len(_SIZES),
    'client_optimizer': linear_task.sgd(0.1),
    'batch_size': 50,
    **options,
  }
  return algorithms.build_standalone(linear_task.model_fn, **options)


@functools.cache
def _default_process():
  return _build()


@functools.cache
def _process_with_momentum():
  return _build(client_optimizer=linear_task.sgd(0.1, momentum=0.9))


def _run(process, clients, cohorts):
  state = process.initialize()
  for cohort in cohorts:
    data = [linear_task.client_data(i, clients[i]) for i in cohort]
    output = process.next(state, data)
    state = output.state
  return output


def test_two_rounds_against_numpy():
  clients = linear_task.make_clients(_SIZES)
  process = _build(local_epochs=2)
  output = _run(process, clients, ([0, 1, 2], [2, 0]))
  start = linear_task.initial_model()
  for i, epochs in enumerate((4, 2, 4)):  # Client 1 was away for a round.
    expected = numpy_reference.train(
      start, clients[i], learning_rate=0.1, epochs=epochs
    )
    found = process.get_client_model_weights(output.state, i)
    linear_task.assert_model(found, expected)
  linear_task.assert_model(process.get_model_weights(output.state), start)
  counts = output.metrics['client_work']
  assert counts['num_clients'] == 2 and counts['num_examples'] == 17


def test_table_holds_all_client_models():
  process = _default_process()
  clients = linear_task.make_clients(_SIZES)
  state = _run(process, clients, [[0, 1, 2]]).state
  table = process.client_model_table(state)
  for i in range(len(_SIZES)):
    found = process.get_client_model_weights(state, i)
    for rows, row in zip(table.trainable, found.trainable, strict=True):
      np.testing.assert_array_equal(rows[i], row)


def test_rounds_are_one_continuous_training():
  """The momentum survives: four rounds of an epoch are a round of four."""
  clients = linear_task.make_clients(_SIZES)
  many, one = (
    _process_with_momentum(),
    _build(client_optimizer=linear_task.sgd(0.1, momentum=0.9), local_epochs=4),
  )
  # Client 1 misses a round, and goes on where it was.
  cohorts = ([0, 1, 2], [0, 1, 2], [2, 0], [1, 0, 2], [1])
  after_many = _run(many, clients, cohorts).state
  after_one = _run(one, clients, cohorts[:1]).state
  model, plain = linear_task.initial_model(), linear_task.initial_model()
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
  for i in range(len(_SIZES)):
    for a, b in zip(
      many.get_client_model_weights(after_many, i).trainable,
      one.get_client_model_weights(after_one, i).trainable,
      strict=True,
    ):
      np.testing.assert_allclose(a, b, atol=1e-6)


def test_learning_rate_by_round():
  clients = linear_task.make_clients(_SIZES)
  process = _build(
    client_learning_rate_fn=lambda r: 0.2 * 0.5 ** tf.cast(r, tf.float32)
  )
  state = _run(process, clients, ([0, 1], [0, 2])).state
  start = linear_task.initial_model()
  for i, learning_rates in enumerate(((0.2, 0.1), (0.2,), (0.1,))):
    model = start
    for learning_rate in learning_rates:
      model = numpy_reference.train(
        model, clients[i], learning_rate=learning_rate, epochs=1
      )
    linear_task.assert_model(process.get_client_model_weights(state, i), model)


def test_bad_and_empty_clients_keep_the_first_model():
  good, bad, empty = linear_task.make_clients((6, 6, 0))
  bad.x[0, 0] = np.inf
  process = _default_process()
  output = _run(process, (good, bad, empty), [[0, 1, 2]] * 2)
  counts = output.metrics['client_work']
  assert counts['num_rejected_clients'] == 1
  assert counts['num_empty_clients'] == 1
  for i in (1, 2):
    linear_task.assert_model(
      process.get_client_model_weights(output.state, i),
      linear_task.initial_model(),
      rtol=0,
    )


def test_a_client_recovers_from_a_bad_round():
  """Nothing of it is kept, the optimiser's state included."""
  clients = linear_task.make_clients(_SIZES)
  (bad,) = linear_task.make_clients((6,))
  bad.x[0, 0] = np.inf
  process = _process_with_momentum()
  state = process.initialize()
  for data in (clients[0], bad, clients[0]):
    state = process.next(state, [linear_task.client_data(0, data)]).state
  expected = _run(process, clients, [[0], [0]]).state
  for a, b in zip(
    process.get_client_model_weights(state, 0).trainable,
    process.get_client_model_weights(expected, 0).trainable,
    strict=True,
  ):
    np.testing.assert_allclose(a, b, atol=1e-6)


def test_batch_norm_statistics_stay_with_the_client():
  clients = linear_task.make_clients((8, 8))
  process = algorithms.build_standalone(
    linear_task.batch_norm_model_fn,
    num_clients=2,
    client_optimizer=linear_task.sgd(0.1),
    batch_size=50,
  )
  state = _run(process, clients, [[0, 1]]).state
  for i, data in enumerate(clients):
    mean, _ = process.get_client_model_weights(state, i).non_trainable
    np.testing.assert_allclose(mean, data.x.mean(axis=0) / 2, rtol=1e-4)
