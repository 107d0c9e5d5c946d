import functools

import numpy as np
import pytest

from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_SIZES = (5, 9, 12)


_build = functools.partial(
  linear_task.build_process,
  algorithms.build_fed_mgda,
  num_clients=3,
  local_epochs=2,
)


def _unit_update(model, data, learning_rate):
  """`(w - w_i) / |w - w_i|`, of the linear model."""
  trained = numpy_reference.train(
    model, data, learning_rate=learning_rate, epochs=2
  )
  change = model.plus(trained, -1.0).vector
  return numpy_reference.Linear.of(change / np.linalg.norm(change))


def test_two_clients_move_along_the_middle():
  """Of two vectors of length 1, the shortest mix is half of each."""
  clients = linear_task.make_clients(_SIZES)
  process = _build(decay=0.5)
  output = linear_task.run(process, clients, [[0, 2], [1, 2]])
  model = linear_task.initial_model()
  for cohort, rate in (((0, 2), 0.1), ((1, 2), 0.05)):
    units = [_unit_update(model, clients[i], rate) for i in cohort]
    for unit in units:
      model = model.plus(unit, -rate / 2)
  linear_task.assert_model(output.state.global_model_weights, model)
  assert output.metrics['aggregator']['descent_violation'] < 1e-9


@pytest.mark.full
def test_without_deviation_it_is_fed_avg_of_unit_updates():
  clients = linear_task.make_clients(_SIZES)
  output = linear_task.run(_build(deviation=0.0), clients, [[0, 1, 2]])
  start = linear_task.initial_model()
  expected = start
  for data in clients:
    share = len(data.y) / sum(_SIZES)
    expected = expected.plus(_unit_update(start, data, 0.1), -0.1 * share)
  linear_task.assert_model(output.state.global_model_weights, expected)
