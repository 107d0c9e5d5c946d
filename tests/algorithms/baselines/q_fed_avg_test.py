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
  return algorithms.build_q_fed_avg(linear_task.model_fn, **options)


def _loss(model, data):
  logits = model.logits(data.x)
  true = logits[np.arange(len(data.y)), data.y]
  return np.mean(np.log(np.exp(logits).sum(axis=1)) - true)


def _round(model, clients, *, learning_rate, q):
  """Sums of Delta_i and of h_i, as the paper has them."""
  numerator, denominator = numpy_reference.Linear(0.0, 0.0), 0.0
  for data in clients:
    trained = numpy_reference.train(
      model, data, learning_rate=learning_rate, epochs=2
    )
    loss = _loss(model, data)
    change = model.plus(trained, -1.0)  # w - w_i
    squares = np.sum(change.kernel**2) + np.sum(change.bias**2)
    numerator = numerator.plus(change, loss**q / learning_rate)
    denominator += q * loss ** (q - 1) * squares / learning_rate**2
    denominator += loss**q / learning_rate
  return model.plus(numerator, -1 / denominator)


@pytest.fixture(scope='module', name='decaying')
def _decaying():
  return _build(
    q=2.0,
    client_learning_rate_fn=lambda r: 0.1 * 0.5 ** tf.cast(r, tf.float32),
  )


def test_two_rounds_against_numpy(decaying):
  clients = linear_task.make_clients(_SIZES)
  output = linear_task.run(decaying, clients, [[0, 1, 2], [2, 0]])
  first = linear_task.initial_model()
  second = _round(first, clients, learning_rate=0.1, q=2.0)
  cohort = [clients[2], clients[0]]
  third = _round(second, cohort, learning_rate=0.05, q=2.0)
  linear_task.assert_model(output.state.global_model_weights, third)
  reports = output.metrics['client_work']['clients']
  order = np.argsort(reports['client_id'])
  np.testing.assert_allclose(
    reports['loss_before'][order],
    [_loss(second, clients[0]), _loss(second, clients[2])],
    rtol=1e-5,
  )


def test_q_0_is_uniform_fed_avg():
  clients = linear_task.make_clients(_SIZES)
  output = linear_task.run(_build(q=0), clients, [[0, 1, 2]])
  expected = numpy_reference.fed_avg_round(
    linear_task.initial_model(),
    clients,
    learning_rate=0.1,
    epochs=2,
    uniform=True,
  )
  linear_task.assert_model(output.state.global_model_weights, expected)


def test_bad_and_empty_clients_do_not_matter(decaying):
  clients = linear_task.make_clients((5, 6, 0))
  clients[1].x[0, 0] = np.nan
  together = linear_task.run(decaying, clients, [[0, 1, 2]])
  alone = linear_task.run(decaying, clients, [[0]])
  assert together.metrics['client_work']['num_rejected_clients'] == 1
  assert together.metrics['client_work']['num_empty_clients'] == 1
  assert together.metrics['aggregator']['num_aggregated'] == 1
  for a, b in zip(
    together.state.global_model_weights.trainable,
    alone.state.global_model_weights.trainable,
    strict=True,
  ):
    np.testing.assert_array_equal(a, b)
  nobody = linear_task.run(decaying, clients, [[1, 2]])
  linear_task.assert_model(
    nobody.state.global_model_weights, linear_task.initial_model()
  )


def test_batch_norm_statistics_are_averaged():
  clients = linear_task.make_clients((4, 12))
  process = algorithms.build_q_fed_avg(
    linear_task.batch_norm_model_fn,
    num_clients=2,
    client_optimizer=linear_task.sgd(0.1),
    batch_size=50,
    q=0,
  )
  state = linear_task.run(process, clients, [[0, 1]]).state
  mean, _ = process.get_model_weights(state).non_trainable
  means = [c.x.mean(axis=0) / 2 for c in clients]
  np.testing.assert_allclose(mean, np.mean(means, axis=0), rtol=1e-4)


def test_negative_q_is_refused():
  with pytest.raises(ValueError, match='q must be at least 0.0, found -0.5'):
    _build(q=-0.5)
