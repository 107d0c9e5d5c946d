import functools

import numpy as np
import pytest

from tests.algorithms import fedquad_reference
from tests.algorithms import linear_task
from tests.algorithms import metric_task
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_build = functools.partial(
  metric_task.build_process, algorithms.build_fed_prox, learning_rate=0.1
)
_reference = functools.partial(
  metric_task.reference, 'fed_prox', learning_rate=0.1
)
_CLIENTS = metric_task.clients('several', 'two', 'mixed', 'empty', 'broken')


@pytest.mark.parametrize(
  'weight', [None, pytest.param(2.0, marks=pytest.mark.full)]
)
def test_two_rounds_against_numpy(weight):
  options = {} if weight is None else {'proximal_weight': weight}
  outputs = linear_task.assert_rounds(
    _build(**options),
    _reference(weight=0.01 if weight is None else weight),
    [_CLIENTS, metric_task.clients('mixed', 'several')],
  )
  found = [output.metrics['client_work'] for output in outputs]
  assert [f['num_empty_clients'] for f in found] == [1, 0]
  assert [f['num_rejected_clients'] for f in found] == [1, 0]


@pytest.mark.full
def test_plain_data_and_uniform_weights():
  clients = metric_task.clients('several', 'two', 'mixed').values()
  process = _build(num_clients=None, uniform=True, proximal_weight=0.5)
  data = [linear_task.client_data(0, c)['train'] for c in clients]
  state = process.next(process.initialize(), data).state
  reference = _reference(weight=0.5)
  models = [
    fedquad_reference.train(reference.weights, c, reference.options)[0]
    for c in clients
  ]
  linear_task.assert_close(
    process.get_model_weights(state).trainable,
    [np.mean(rows, axis=0) for rows in zip(*models, strict=True)],
  )


@pytest.mark.full
def test_weight_0_is_fed_avg_bit_for_bit():
  linear_task.assert_is_fed_avg(
    algorithms.build_fed_prox, 'adam', proximal_weight=0
  )
