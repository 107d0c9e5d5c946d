import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_build = functools.partial(
  linear_task.build_process,
  algorithms.build_ditto,
  num_clients=6,
  local_epochs=2,
)


def _pulled_loss(v, data, centre, pull):
  distance = tf.reduce_sum((v - centre) ** 2)
  return reference.LINEAR.loss(v, data) + pull / 2 * distance


def _ditto(rounds, pull):
  w = linear_task.start()
  models = np.tile(w, (6, 1))
  for clients in rounds:
    losses = []
    for i, data in clients.items():
      loss = functools.partial(_pulled_loss, data=data, centre=w, pull=pull)
      models[i], _, metrics = reference.descend(loss, models[i], 0.2, 2)
      losses.append(metrics['loss'])
    w = reference.fed_avg(w, clients.values(), rate=0.1, epochs=2)
    yield {
      'weights': w,
      'models': models.copy(),
      'client_work/clients/personal_loss': losses,
    }


@pytest.mark.parametrize(
  'pull', [0.5, pytest.param(0.0, marks=pytest.mark.full)]
)
def test_three_rounds(pull):
  options = {'personal_optimizer': linear_task.sgd(0.2)}
  if not pull:  # The function replaces the optimiser's rate.
    options['personal_optimizer'] = linear_task.sgd(9.0)
    options['personal_learning_rate_fn'] = lambda _: tf.constant(0.2)
  process = _build(proximal_weight=pull, **options)
  outputs = linear_task.assert_rounds(
    process, functools.partial(_ditto, pull=pull), linear_task.rounds()
  )
  before, after = (output.state for output in outputs[-2:])
  table = process.client_model_table(after).trainable
  found = process.get_client_model_weights(after, 1).trainable
  linear_task.assert_equal([rows[1] for rows in table], found)
  if pull:
    _check_divergence(process, before, after)


def _check_divergence(process, before, after):
  """It is that of the personal models."""
  data = [
    linear_task.client_data(i, linear_task.make_clients(linear_task.SIZES)[i])
    for i in (1, 3, 0)
  ]
  found = process.divergence(before, after, data)
  personal = linear_task.client_weights(process, after)[[1, 3, 0]]
  distances = np.abs(personal - linear_task.weights(process, after))
  assert found['parameters_d_manhattan'] == pytest.approx(
    np.mean(distances.sum(axis=1)), rel=1e-5
  )


def test_a_client_whose_personal_model_diverges_is_dropped():
  process = _build(personal_optimizer=linear_task.sgd(1e38))
  clients = linear_task.make_clients((5, 9))
  output = linear_task.run(process, clients, [[0, 1]])
  assert output.metrics['client_work']['num_rejected_clients'] == 2
  for rows in process.client_model_table(output.state).trainable:
    linear_task.assert_equal(rows[0], rows[3])  # Client 3 was not there.
