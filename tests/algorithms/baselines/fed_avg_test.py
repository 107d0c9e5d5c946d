import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_SIZES = (5, 9, 12)


def _build(**options):
  options = {
    'client_optimizer': linear_task.sgd(0.1),
    'local_epochs': 2,
    'batch_size': 50,
    **options,
  }
  return algorithms.build_fed_avg(linear_task.model_fn, **options)


def _plain(data, batch_size=4):
  structured = linear_task.client_data(0, data)
  return structured['train'].unbatch().batch(batch_size)


@pytest.mark.parametrize('uniform', [False, True])
def test_two_rounds_against_numpy(uniform):
  clients = linear_task.make_clients(_SIZES)
  process = _build(uniform=uniform)
  state, model = process.initialize(), linear_task.initial_model()
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
  stock_state = stock.next(stock.initialize(), clients).state
  ours = _build(local_epochs=1)
  state = ours.next(ours.initialize(), clients).state
  for a, b in zip(
    ours.get_model_weights(state).trainable,
    stock.get_model_weights(stock_state).trainable,
    strict=True,
  ):
    np.testing.assert_allclose(a, b, atol=1e-6)


def test_ids_add_reports_and_do_not_change_the_training():
  data = linear_task.make_clients(_SIZES)
  with_ids, without = _build(num_clients=5), _build()
  clients = [
    linear_task.client_data(i, c) for i, c in zip((4, 0, 2), data, strict=True)
  ]
  output = with_ids.next(with_ids.initialize(), clients)
  reports = output.metrics['client_work']['clients']
  order = np.argsort(reports['client_id'])
  np.testing.assert_array_equal(reports['client_id'][order], [0, 2, 4])
  np.testing.assert_array_equal(reports['num_examples'][order], [9, 12, 5])
  plain = without.next(without.initialize(), [_plain(c) for c in data])
  for a, b in zip(
    output.state.global_model_weights.trainable,
    plain.state.global_model_weights.trainable,
    strict=True,
  ):
    np.testing.assert_allclose(a, b, atol=1e-6)


def test_minibatches_repeat_by_seed_and_change_by_round():
  data = linear_task.make_clients((20,))
  clients = [linear_task.client_data(0, data[0])]

  def losses(seed):
    process = _build(
      num_clients=1,
      seed=seed,
      batch_size=3,
      server_optimizer=linear_task.sgd(0.0),
    )  # The model stays, so only the order of the examples can differ.
    state, found = process.initialize(), []
    for _ in range(2):
      output = process.next(state, clients)
      state = output.state
      found.append(output.metrics['client_work']['loss'])
    return found

  first, second = losses(0)
  assert losses(0) == [first, second]
  assert first != second
  assert losses(1)[0] != first


def test_learning_rate_by_round():
  clients = [_plain(c) for c in linear_task.make_clients((6,))]
  decayed = _build(
    client_learning_rate_fn=lambda r: 0.1 * 0.5 ** tf.cast(r, tf.float32)
  )
  second = _build(client_optimizer=linear_task.sgd(0.05))
  after_one = decayed.next(decayed.initialize(), clients).state
  after_two = decayed.next(after_one, clients).state
  start = second.set_model_weights(
    second.initialize(), after_one.global_model_weights
  )
  expected = second.next(start, clients).state
  for a, b in zip(
    after_two.global_model_weights.trainable,
    expected.global_model_weights.trainable,
    strict=True,
  ):
    np.testing.assert_allclose(a, b, atol=1e-6)


def test_bad_and_empty_clients_are_dropped_and_counted():
  good, bad, empty = linear_task.make_clients((6, 6, 0))
  bad.x[0, 0] = np.nan
  process = _build(num_clients=3)
  clients = [
    linear_task.client_data(i, c) for i, c in enumerate((good, bad, empty))
  ]
  together = process.next(process.initialize(), clients)
  alone = process.next(process.initialize(), clients[:1])
  counts = together.metrics['client_work']
  assert counts['num_clients'] == 3
  assert counts['num_rejected_clients'] == 1
  assert counts['num_empty_clients'] == 1
  assert counts['num_examples'] == 6
  assert counts['loss'] == alone.metrics['client_work']['loss']
  reports = counts['clients']
  order = np.argsort(reports['client_id'])
  np.testing.assert_array_equal(reports['rejected'][order], [0, 1, 0])
  for a, b in zip(
    together.state.global_model_weights.trainable,
    alone.state.global_model_weights.trainable,
    strict=True,
  ):
    np.testing.assert_array_equal(a, b)


def test_nobody_usable_keeps_the_model():
  (bad,) = linear_task.make_clients((6,))
  bad.x[:] = np.inf
  process = _build()
  state = process.initialize()
  for clients in ([_plain(bad)], []):
    output = process.next(state, clients)
    linear_task.assert_model(
      output.state.global_model_weights, linear_task.initial_model()
    )


def test_batch_norm_statistics_are_averaged_like_weights():
  clients = linear_task.make_clients((4, 12))
  process = algorithms.build_fed_avg(
    linear_task.batch_norm_model_fn,
    client_optimizer=linear_task.sgd(0.1),
    batch_size=50,
  )
  output = process.next(process.initialize(), [_plain(c) for c in clients])
  mean, variance = process.get_model_weights(output.state).non_trainable
  share = np.array([[0.25], [0.75]])
  means = np.stack([c.x.mean(axis=0) for c in clients])
  variances = np.stack([c.x.var(axis=0) for c in clients])
  np.testing.assert_allclose(mean, (share * means / 2).sum(axis=0), rtol=1e-4)
  np.testing.assert_allclose(
    variance, (share * (1 + variances) / 2).sum(axis=0), rtol=1e-4
  )


def test_model_aggregator_replaces_the_mean():
  clients = [_plain(c) for c in linear_task.make_clients(_SIZES)]
  process = _build(
    model_aggregator=tff.aggregators.clipping_factory(
      0.0, tff.aggregators.MeanFactory()
    )
  )
  output = process.next(process.initialize(), clients)
  linear_task.assert_model(
    output.state.global_model_weights, linear_task.initial_model()
  )
  assert 'clipped_count' in output.metrics['aggregator']


def test_type_signature_shows_the_data():
  data_type = _build().next.type_signature.parameter[1]
  assert str(data_type) == '{<x=float32[?,4],y=int32[?]>*}@CLIENTS'
  data_type = _build(num_clients=3).next.type_signature.parameter[1]
  assert str(data_type).startswith('{<client_id=int32*,train=<x=float32[?,4]')
