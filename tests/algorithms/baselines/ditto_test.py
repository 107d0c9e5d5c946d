import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_SIZES = (5, 9, 12, 7)


_build = functools.partial(
  linear_task.build_process,
  algorithms.build_ditto,
  num_clients=len(_SIZES),
  personal_optimizer=linear_task.sgd(0.2),
  local_epochs=2,
  proximal_weight=0.5,
)


@pytest.mark.parametrize(
  'proximal_weight', [0.5, pytest.param(0.0, marks=pytest.mark.full)]
)
def test_three_rounds_against_numpy(proximal_weight):
  """Client 3 never takes part."""
  clients = linear_task.make_clients(_SIZES)
  options = {'proximal_weight': proximal_weight}
  if not proximal_weight:  # The function replaces the optimiser's rate.
    options['personal_optimizer'] = linear_task.sgd(9.0)
    options['personal_learning_rate_fn'] = lambda _: tf.constant(0.2)
  process = _build(**options)
  cohorts = ([0, 1, 2], [2, 0], [1, 2])
  state = linear_task.run(process, clients, cohorts).state
  model = linear_task.initial_model()
  personal = [model] * len(_SIZES)
  for cohort in cohorts:
    for i in cohort:
      personal[i] = numpy_reference.train(
        personal[i],
        clients[i],
        learning_rate=0.2,
        epochs=2,
        pull=(model, proximal_weight),
      )
    model = numpy_reference.fed_avg_round(
      model, [clients[i] for i in cohort], learning_rate=0.1, epochs=2
    )
  linear_task.assert_model(process.get_model_weights(state), model)
  table = process.client_model_table(state).trainable
  assert table[0].shape == (4, 4, 3)
  for i, expected in enumerate(personal):
    found = process.get_client_model_weights(state, i)
    linear_task.assert_model(found, expected)
    linear_task.assert_equal([rows[i] for rows in table], found.trainable)


@pytest.mark.full
def test_personal_batch_norm_statistics_stay_with_the_client():
  clients = linear_task.make_clients((8, 8))
  process = _build(
    model_fn=linear_task.batch_norm_model_fn, num_clients=2, local_epochs=1
  )
  state = linear_task.run(process, clients, [[0, 1]]).state
  for i, data in enumerate(clients):
    mean, _ = process.get_client_model_weights(state, i).non_trainable
    np.testing.assert_allclose(mean, data.x.mean(axis=0) / 2, rtol=1e-4)


@pytest.mark.full
def test_the_divergence_is_that_of_the_personal_models():
  process = _build()
  clients = linear_task.make_clients(_SIZES)
  data = [linear_task.client_data(i, clients[i]) for i in (0, 2)]
  before = process.initialize()
  for _ in range(2):
    after = process.next(before, data).state
    found = process.divergence(before, after, data)
    personal = linear_task.client_weights(process, after)[[0, 2]]
    distances = np.abs(personal - linear_task.weights(process, after))
    assert found['parameters_d_manhattan'] == pytest.approx(
      np.mean(distances.sum(axis=1)), rel=1e-5
    )
    before = after


def test_a_client_whose_personal_model_diverges_is_dropped():
  process = _build(personal_optimizer=linear_task.sgd(1e38))
  clients = linear_task.make_clients(_SIZES)
  output = linear_task.run(process, clients, [[0, 1]])
  assert output.metrics['client_work']['num_rejected_clients'] == 2
  for rows in process.client_model_table(output.state).trainable:
    linear_task.assert_equal(rows[0], rows[3])  # Client 3 was not there.
