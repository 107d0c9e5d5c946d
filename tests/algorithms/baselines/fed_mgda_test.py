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
    'local_epochs': 2,
    'batch_size': 50,
    **options,
  }
  return algorithms.build_fed_mgda(linear_task.model_fn, **options)


def _unit_update(model, data, learning_rate):
  """`(w - w_i) / |w - w_i|`, of the linear model."""
  trained = numpy_reference.train(
    model, data, learning_rate=learning_rate, epochs=2
  )
  change = model.plus(trained, -1.0)
  length = np.sqrt(np.sum(change.kernel**2) + np.sum(change.bias**2))
  return numpy_reference.Linear(change.kernel / length, change.bias / length)


@pytest.fixture(scope='module', name='free')
def _free():
  return _build(
    client_learning_rate_fn=lambda r: 0.1 * 0.5 ** tf.cast(r, tf.float32)
  )


def test_two_clients_move_along_the_middle(free):
  """Of two vectors of length 1, the shortest mix is half of each."""
  clients = linear_task.make_clients(_SIZES)
  output = linear_task.run(free, clients, [[0, 2], [1, 2]])
  model = linear_task.initial_model()
  for cohort, rate in (((0, 2), 0.1), ((1, 2), 0.05)):
    units = [_unit_update(model, clients[i], rate) for i in cohort]
    for unit in units:
      model = model.plus(unit, -rate / 2)
  linear_task.assert_model(output.state.global_model_weights, model)
  assert output.metrics['aggregator']['descent_violation'] < 1e-9


def test_without_deviation_it_is_fed_avg_of_unit_updates():
  clients = linear_task.make_clients(_SIZES)
  output = linear_task.run(_build(deviation=0.0), clients, [[0, 1, 2]])
  start = linear_task.initial_model()
  expected = start
  for data in clients:
    share = len(data.y) / sum(_SIZES)
    expected = expected.plus(_unit_update(start, data, 0.1), -0.1 * share)
  linear_task.assert_model(output.state.global_model_weights, expected)


def test_bad_and_empty_clients_do_not_matter(free):
  clients = linear_task.make_clients((5, 6, 0))
  clients[1].x[0, 0] = np.nan
  together = linear_task.run(free, clients, [[0, 1, 2]])
  alone = linear_task.run(free, clients, [[0]])
  assert together.metrics['client_work']['num_rejected_clients'] == 1
  assert together.metrics['aggregator']['num_aggregated'] == 1
  for a, b in zip(
    together.state.global_model_weights.trainable,
    alone.state.global_model_weights.trainable,
    strict=True,
  ):
    np.testing.assert_array_equal(a, b)
  nobody = linear_task.run(free, clients, [[1, 2]])
  linear_task.assert_model(
    nobody.state.global_model_weights, linear_task.initial_model()
  )


def test_bad_deviation():
  with pytest.raises(ValueError, match='deviation must be at most 1.0, found'):
    _build(deviation=1.5)
