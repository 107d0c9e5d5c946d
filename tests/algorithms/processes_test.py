"""What a process gives away, and what it says of itself."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tff_fair import algorithms
from tff_fair import summary

pytestmark = [pytest.mark.full, pytest.mark.usefixtures('default_runtime')]

_SIZES = (8, 12, 10)


def test_processes_states_and_outputs_are_described():
  process = algorithms.build_fedaboost(
    linear_task.batch_norm_model_fn,
    num_clients=len(_SIZES),
    client_optimizer=linear_task.sgd(0.25),
    boost_rate=0.5,
  )
  title, *facts = repr(process).split('\n  ')
  assert title.startswith('fedaboost process: ') and '3 clients' in title
  assert {
    'aggregation: SammeAlphaFactory()',
    'client_optimizer: SGD(learning_rate=0.25)',
    'local_epochs: 1',
    'boost_rate: 0.5',
  } <= {*facts}
  assert 'boost_rate' in process._repr_html_()
  clients = linear_task.make_clients(_SIZES)
  output = linear_task.run(process, clients, [[0, 1, 2]])
  state = repr(summary.describe(output.state))
  assert state.startswith('State after round 1: ')
  assert state.endswith('; weight, gamma of 3 clients')
  found = summary.describe(output)
  assert 'num_clients 3' in repr(found) and f'state: {state}' in repr(found)
  assert '<th>alpha</th>' in found._repr_html_()


def test_of_plain_data_fed_avg_is_tff_s():
  """One full batch an epoch; without usable clients the model stays."""

  def plain(data):
    structured = linear_task.client_data(0, data)['train']
    return structured.unbatch().batch(50)

  clients = [plain(data) for data in linear_task.make_clients(_SIZES)]

  def model_fn():
    return tff.learning.models.from_keras_model(
      linear_task.model_fn(),
      loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      input_spec=clients[0].element_spec,
    )

  stock = tff.learning.algorithms.build_weighted_fed_avg(
    model_fn, client_optimizer_fn=linear_task.sgd(0.1)
  )
  ours = linear_task.build_process(algorithms.build_fed_avg)
  data_type = ours.next.type_signature.parameter[1]
  assert str(data_type) == '{<x=float32[?,4],y=int32[?]>*}@CLIENTS'
  expected = stock.next(stock.initialize(), clients).state
  state = ours.next(ours.initialize(), clients).state
  linear_task.assert_close(
    ours.get_model_weights(state).trainable,
    stock.get_model_weights(expected).trainable,
  )
  (bad,) = linear_task.make_clients((6,))
  bad.x[:] = np.inf
  for dropped in ([plain(bad)], []):
    after = ours.next(state, dropped).state
    linear_task.assert_equal(
      after.global_model_weights, state.global_model_weights
    )
