import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_SIZES = (5, 9, 12)
_START = linear_task.start()
_build = functools.partial(
  linear_task.build_process, algorithms.build_fed_avg, local_epochs=2
)


def _fed_avg(rounds, decay=1.0, uniform=False):
  w = _START
  for number, clients in enumerate(rounds):
    rate = 0.1 * decay**number
    trained = [
      reference.descend(
        functools.partial(reference.LINEAR.loss, data=data), w, rate, 2
      )
      for data in clients.values()
    ]
    sizes = [len(data.y) for data in clients.values()]
    losses = [metrics['loss'] for _, _, metrics in trained]
    w = reference.mean([v for v, *_ in trained], None if uniform else sizes)
    yield {
      'weights': w,
      'client_work/loss': np.average(losses, weights=sizes),
      'client_work/clients/loss': losses,
      'client_work/clients/num_examples': sizes,
      'client_work/num_examples': sum(sizes),
    }


@pytest.mark.parametrize(
  'options',
  [{'decay': 0.5}, pytest.param({'uniform': True}, marks=pytest.mark.full)],
  ids=str,
)
def test_three_rounds(options):
  linear_task.assert_rounds(
    _build(num_clients=6, **options),
    functools.partial(_fed_avg, **options),
    linear_task.rounds(),
  )


def _plain(data, batch_size=4):
  structured = linear_task.client_data(0, data)
  return structured['train'].unbatch().batch(batch_size)


def test_type_signature_shows_the_data():
  data_type = _build().next.type_signature.parameter[1]
  assert str(data_type) == '{<x=float32[?,4],y=int32[?]>*}@CLIENTS'
  data_type = _build(num_clients=3).next.type_signature.parameter[1]
  assert str(data_type).startswith('{<client_id=int32*,train=<x=float32[?,4]')


@pytest.mark.full
def test_of_plain_data_it_is_tff_s():
  """One full batch an epoch; without usable clients the model stays."""
  clients = [_plain(c) for c in linear_task.make_clients(_SIZES)]

  def model_fn():
    return tff.learning.models.from_keras_model(
      linear_task.model_fn(),
      loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      input_spec=clients[0].element_spec
      | {
        'x': tf.TensorSpec([None, linear_task.NUM_FEATURES]),
        'y': tf.TensorSpec([None], tf.int32),
      },
    )

  stock = tff.learning.algorithms.build_weighted_fed_avg(
    model_fn, client_optimizer_fn=linear_task.sgd(0.1)
  )
  ours = _build(local_epochs=1)
  full = [c.unbatch().batch(50) for c in clients]
  expected = stock.next(stock.initialize(), full).state
  state = ours.next(ours.initialize(), clients).state
  linear_task.assert_close(
    ours.get_model_weights(state).trainable,
    stock.get_model_weights(expected).trainable,
  )
  (bad,) = linear_task.make_clients((6,))
  bad.x[:] = np.inf
  for dropped in ([_plain(bad)], []):
    after = ours.next(state, dropped).state
    linear_task.assert_equal(
      after.global_model_weights, state.global_model_weights
    )


@pytest.mark.full
def test_minibatches_repeat_by_seed_and_change_by_round():
  (data,) = linear_task.make_clients((20,))

  def losses(seed):
    process = _build(
      num_clients=1,
      seed=seed,
      batch_size=3,
      server_optimizer=linear_task.sgd(0.0),
    )  # The model stays, so only the order of the examples can differ.
    state, found = process.initialize(), []
    for _ in range(2):
      output = linear_task.next_round(process, state, {0: data})
      state = output.state
      found.append(output.metrics['client_work']['loss'])
    return found

  first, second = losses(0)
  assert losses(0) == [first, second]
  assert first != second
  assert losses(1)[0] != first


@pytest.mark.full
def test_a_robust_rule_leaves_a_huge_update_out():
  clients = linear_task.make_clients(_SIZES)
  process = _build(num_clients=3, local_epochs=1, robust=True)
  start = process.initialize()
  for scale, number in ((1.0, 0), (1e18, 1)):
    clients[1].x[:] *= np.float32(scale)
    output = linear_task.next_round(process, start, dict(enumerate(clients)))
    moved = linear_task.weights(process, output.state) - _START
    # The first bound of a length.
    assert 0 < np.linalg.norm(moved) <= 1
    assert output.metrics['aggregator']['num_zeroed'] == number
    assert output.metrics['client_work']['num_clipped_clients'] == number


@pytest.mark.full
def test_statistics_stay_if_their_mean_is_not_finite():
  """Without a bound: a variance of 4e36 is finite, 200 times it is not."""
  clients = dict(enumerate(linear_task.make_clients((5, 200, 12))))
  process = _build(
    linear_task.batch_norm_model_fn,
    num_clients=3,
    local_epochs=1,
    batch_size=10,
    max_update_norm=None,
  )
  output = linear_task.next_round(process, process.initialize(), clients)
  before = process.get_model_weights(output.state)
  clients[1].x[:] *= np.float32(2e18)
  output = linear_task.next_round(process, output.state, clients)
  after = process.get_model_weights(output.state)
  assert output.metrics['client_work']['num_rejected_clients'] == 0
  linear_task.assert_equal(after.non_trainable, before.non_trainable)
  assert np.isfinite(linear_task.vector(after.trainable)).all()
