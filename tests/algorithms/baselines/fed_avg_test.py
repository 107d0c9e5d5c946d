import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_SIZES = (5, 9, 12)
_START = linear_task.initial_model()


_build = functools.partial(
  linear_task.build_process, algorithms.build_fed_avg, local_epochs=2
)


def _plain(data, batch_size=4):
  structured = linear_task.client_data(0, data)
  return structured['train'].unbatch().batch(batch_size)


@pytest.mark.parametrize(
  'uniform', [False, pytest.param(True, marks=pytest.mark.full)]
)
def test_two_rounds_against_numpy(uniform):
  clients = linear_task.make_clients(_SIZES)
  process = _build(uniform=uniform)
  state, model = process.initialize(), _START
  for cohort in ([0, 1, 2], [2, 0]):
    output = process.next(state, [_plain(clients[i]) for i in cohort])
    state = output.state
    model = numpy_reference.fed_avg_round(
      model,
      [clients[i] for i in cohort],
      learning_rate=0.1,
      epochs=2,
      uniform=uniform,
    )
  linear_task.assert_model(process.get_model_weights(state), model)
  assert output.metrics['client_work']['num_clients'] == 2
  assert output.metrics['client_work']['num_examples'] == 17


@pytest.mark.full
def test_equals_stock_fed_avg():
  """Plain data, one full batch an epoch: TFF's process gives the same model."""
  clients = [_plain(c, 50) for c in linear_task.make_clients(_SIZES)]

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
  found, expected = (
    p.get_model_weights(p.next(p.initialize(), clients).state).trainable
    for p in (ours, stock)
  )
  linear_task.assert_close(found, expected)


@pytest.mark.full
def test_ids_add_reports_and_do_not_change_the_training():
  data = linear_task.make_clients(_SIZES)
  with_ids, without = _build(num_clients=5), _build()
  output = linear_task.next_round(
    with_ids, with_ids.initialize(), dict(zip((4, 0, 2), data, strict=True))
  )
  reports = linear_task.reports(output)
  np.testing.assert_array_equal(reports['client_id'], [0, 2, 4])
  np.testing.assert_array_equal(reports['num_examples'], [9, 12, 5])
  plain = without.next(without.initialize(), [_plain(c) for c in data])
  linear_task.assert_close(
    output.state.global_model_weights.trainable,
    plain.state.global_model_weights.trainable,
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


def test_learning_rate_by_round():
  (data,) = linear_task.make_clients((6,))
  process = _build(decay=0.5)
  state, expected = process.initialize(), _START
  for learning_rate in (0.1, 0.05):
    state = process.next(state, [_plain(data)]).state
    expected = numpy_reference.train(
      expected, data, learning_rate=learning_rate, epochs=2
    )
  linear_task.assert_model(process.get_model_weights(state), expected)


def test_clients_that_are_not_finite_or_empty_are_dropped_and_counted():
  good, bad, empty = linear_task.make_clients((6, 6, 0))
  bad.x[0, 0] = np.nan
  process = _build(num_clients=3)
  together = linear_task.run(process, (good, bad, empty), [[0, 1, 2]])
  alone = linear_task.run(process, (good,), [[0]])
  counts = together.metrics['client_work']
  assert counts['num_clients'] == 3 and counts['num_examples'] == 6
  assert counts['num_rejected_clients'] == counts['num_empty_clients'] == 1
  assert counts['loss'] == alone.metrics['client_work']['loss']
  rejected = linear_task.reports(together)['rejected']
  np.testing.assert_array_equal(rejected, [0, 1, 0])
  linear_task.assert_equal(
    together.state.global_model_weights, alone.state.global_model_weights
  )


@pytest.mark.full
def test_without_usable_clients_the_model_stays():
  """Of plain data."""
  (bad,) = linear_task.make_clients((6,))
  bad.x[:] = np.inf
  process = _build()
  for clients in ([_plain(bad)], []):
    output = process.next(process.initialize(), clients)
    linear_task.assert_model(output.state.global_model_weights, _START)


@pytest.mark.full
def test_batch_norm_statistics_are_averaged_like_weights():
  clients = linear_task.make_clients((4, 12))
  process = _build(linear_task.batch_norm_model_fn, local_epochs=1)
  output = process.next(process.initialize(), [_plain(c) for c in clients])
  mean, variance = process.get_model_weights(output.state).non_trainable
  share = np.array([[0.25], [0.75]])
  means = np.stack([c.x.mean(axis=0) for c in clients])
  variances = np.stack([c.x.var(axis=0) for c in clients])
  np.testing.assert_allclose(mean, (share * means / 2).sum(axis=0), rtol=1e-4)
  np.testing.assert_allclose(
    variance, (share * (1 + variances) / 2).sum(axis=0), rtol=1e-4
  )


@pytest.mark.full
def test_model_aggregator_replaces_the_mean():
  clients = [_plain(c) for c in linear_task.make_clients(_SIZES)]
  process = _build(
    model_aggregator=tff.aggregators.clipping_factory(
      0.0, tff.aggregators.MeanFactory()
    )
  )
  output = process.next(process.initialize(), clients)
  linear_task.assert_model(output.state.global_model_weights, _START)
  assert 'clipped_count' in output.metrics['aggregator']


def test_type_signature_shows_the_data():
  data_type = _build().next.type_signature.parameter[1]
  assert str(data_type) == '{<x=float32[?,4],y=int32[?]>*}@CLIENTS'
  data_type = _build(num_clients=3).next.type_signature.parameter[1]
  assert str(data_type).startswith('{<client_id=int32*,train=<x=float32[?,4]')
