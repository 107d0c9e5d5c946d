import functools
import math

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tff_fair import algorithms
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import fedaboost

pytestmark = pytest.mark.usefixtures('default_runtime')

_SIZES = (5, 9, 12, 7, 11)
_START = linear_task.initial_model()


_build = functools.partial(
  linear_task.build_process,
  algorithms.build_fedaboost,
  num_clients=len(_SIZES),
  local_epochs=2,
)


def _next(process, clients, cohort, state=None):
  state = process.initialize() if state is None else state
  data = [linear_task.client_data(i, clients[i]) for i in cohort]
  return process.next(state, data)


def _table(output, name):
  return output.state.client_work['table'][name]


def _one_class(client):
  client.y[:] = 1
  client.holdout_y[:] = 1
  return client


class TestBoostedRow:
  """The paper's equation 8 and the growth of gamma."""

  def _boost(self, error, alpha, weight=0.25, gamma=0.0, **options):
    row = fedaboost.boosted_row(
      {'weight': tf.constant(weight), 'gamma': tf.constant(gamma)},
      tf.constant(error),
      tf.constant(alpha),
      **{
        'boost_rate': 0.01,
        'error_threshold': 0.3,
        'max_gamma': 5.0,
        **options,
      },
    )
    return float(row['weight']), float(row['gamma'])

  def test_worked_example(self):
    for error, alpha, weight, gamma in (
      (0.6, 1.791759, 0.245560, 0.245560),
      (0.25, 3.295837, 0.25, 0.0),
      (0.95, -1.845827, 0.254657, 0.254657),
    ):
      found = self._boost(error, alpha)
      np.testing.assert_allclose(found, (weight, gamma), rtol=1e-5)

  def test_options(self):
    # The threshold itself is not above.
    assert self._boost(0.3, 2.0) == (0.25, 0.0)
    assert self._boost(0.9, 2.0, boost_rate=0.0) == (0.25, 0.25)
    weight, _ = self._boost(0.6, 1.791759, weight_sign=1)  # SAMME's sign.
    assert weight == pytest.approx(0.25 * math.exp(0.01791759), rel=1e-5)
    assert self._boost(0.1, 2.0, gamma_mode='always') == (0.25, 0.25)
    weight, gamma = self._boost(0.6, 1.791759, gamma=1.5, gamma_mode='constant')
    assert weight == pytest.approx(0.245560, rel=1e-5) and gamma == 1.5

  def test_bounds(self):
    assert self._boost(0.9, 0.0, gamma=4.9) == (0.25, 5.0)
    for alpha, bound in ((-13.8, 1e6), (13.8, 1e-12)):
      weight, _ = self._boost(0.9, alpha, boost_rate=100.0)
      assert weight == pytest.approx(bound)


@pytest.mark.parametrize(
  ('boosting', 'boost_rate'),
  [
    (True, 0.5),
    pytest.param(True, 0.0, marks=pytest.mark.full),
    pytest.param(False, 0.5, marks=pytest.mark.full),
  ],
)
def test_three_rounds_against_numpy(boosting, boost_rate):
  clients = linear_task.make_clients(_SIZES)
  # Judged on its training part instead.
  clients[3].holdout_x = clients[3].holdout_x[:0]
  clients[3].holdout_y = clients[3].holdout_y[:0]
  process = _build(
    boosting=boosting, boost_rate=boost_rate, error_threshold=0.2
  )
  state, model = process.initialize(), _START
  weight, gamma = np.full(5, 1 / 3), np.zeros(5)  # m_0 = 3
  for cohort in ([0, 1, 3], [1, 2], [4, 3, 1, 2]):
    output = _next(process, clients, cohort, state)
    state = output.state
    model, alphas = numpy_reference.fedaboost_round(
      model,
      linear_task.pick(clients, cohort),
      weight,
      gamma,
      learning_rate=0.1,
      epochs=2,
      boost_rate=boost_rate,
      threshold=0.2,
      boosting=boosting,
    )
    reports = linear_task.reports(output)
    expected = [alphas[i] for i in sorted(cohort)]
    np.testing.assert_allclose(reports['alpha'], expected, rtol=1e-5)
    np.testing.assert_array_equal(
      reports['aggregated'], np.greater(expected, 0)
    )
    np.testing.assert_allclose(_table(output, 'weight'), weight, rtol=1e-5)
    np.testing.assert_allclose(_table(output, 'gamma'), gamma, rtol=1e-5)
  linear_task.assert_model(process.get_model_weights(state), model)
  if boosting:
    assert np.count_nonzero(gamma) >= 3  # The run did boost.


@pytest.mark.full
@pytest.mark.parametrize('weight_init', ['m0', 'k'])
def test_the_scripts_reading_against_numpy(weight_init):
  clients = linear_task.make_clients(_SIZES)
  process = _build(
    boost_rate=0.5,
    error_threshold=0.2,
    initial_gamma=1.5,
    class_count='cohort',
    gamma_mode='constant',
    weight_init=weight_init,
  )
  state, model = process.initialize(), _START
  first = {'m0': 1 / 3, 'k': 1 / 5}[weight_init]
  weight, gamma = np.full(5, first), np.full(5, 1.5)
  # ln(k - 1) is ln 2, and 0, and ln 3; alone, a client has alpha 0.
  for cohort in ([0, 1, 3], [1, 2], [4, 3, 1, 2], [2]):
    output = _next(process, clients, cohort, state)
    state, reports = output.state, linear_task.reports(output)
    np.testing.assert_array_equal(reports['num_classes'], len(cohort))
    np.testing.assert_array_equal(_table(output, 'gamma'), 1.5)
    if len(cohort) == 1:
      np.testing.assert_array_equal(reports['alpha'], 0)
      continue
    model, alphas = numpy_reference.fedaboost_round(
      model,
      linear_task.pick(clients, cohort),
      weight,
      gamma,
      learning_rate=0.1,
      epochs=2,
      boost_rate=0.5,
      threshold=0.2,
      script=True,
    )
    expected = [alphas[i] for i in sorted(cohort)]
    np.testing.assert_allclose(reports['alpha'], expected, rtol=1e-5)
    np.testing.assert_allclose(_table(output, 'weight'), weight, rtol=1e-5)
  linear_task.assert_model(process.get_model_weights(state), model)
  assert (weight != first).any()


@pytest.mark.full
def test_without_boosting_equal_alphas_recover_uniform_fed_avg():
  clients = linear_task.make_clients((5, 9, 12))
  for c in clients:  # The same holdout, with 2 of 10 wrong for every model.
    c.holdout_x = clients[0].holdout_x
    c.holdout_y = _START.logits(c.holdout_x).argmax(axis=1)
    c.holdout_y[:2] = (c.holdout_y[:2] + 1) % 3
  process = _build(boosting=False, class_count='global', learning_rate=1e-4)
  fed_avg = linear_task.build_process(
    algorithms.build_fed_avg,
    num_clients=5,
    learning_rate=1e-4,
    local_epochs=2,
    uniform=True,
  )
  ours = _next(process, clients, range(3))
  alphas = linear_task.reports(ours)['alpha']
  assert alphas[0] == alphas[1] == alphas[2] > 0
  linear_task.assert_close(
    ours.state.global_model_weights.trainable,
    _next(fed_avg, clients, range(3)).state.global_model_weights.trainable,
    rtol=1e-6,
    atol=1e-7,
  )


@pytest.mark.full
def test_weights_start_at_one_by_the_first_cohort_or_by_all_clients():
  clients = linear_task.make_clients(_SIZES)
  process = _build(boost_rate=0.0)
  output = _next(process, clients, [0, 1])
  np.testing.assert_array_equal(_table(output, 'weight'), 0.5)
  output = _next(process, clients, [0, 1, 2, 3], output.state)
  np.testing.assert_array_equal(_table(output, 'weight'), 0.5)
  table = _build(weight_init='k').initialize().client_work['table']
  np.testing.assert_allclose(table['weight'], 0.2)


@pytest.mark.full
@pytest.mark.parametrize('fallback', ['keep', 'fed_avg'])
def test_no_positive_alpha(fallback):
  """Every label is wrong for the model, which moves little."""
  clients = linear_task.make_clients((4, 12))
  for c in clients:
    for x, y in ((c.x, c.y), (c.holdout_x, c.holdout_y)):
      y[:] = (_START.logits(x).argmax(axis=1) + 1) % 3
  process = _build(learning_rate=1e-4, fallback=fallback, boosting=False)
  output = _next(process, clients, [0, 1])
  assert np.all(linear_task.reports(output)['alpha'] < 0)
  assert output.metrics['aggregator']['fallback'] == 1
  expected = _START
  if fallback == 'fed_avg':
    expected = numpy_reference.fed_avg_round(
      _START, clients, learning_rate=1e-4, epochs=2
    )
  linear_task.assert_model(
    output.state.global_model_weights, expected, rtol=1e-7
  )


@pytest.mark.full
@pytest.mark.parametrize(
  ('single_class', 'num_classes'), [('exclude', 1), ('floor2', 2)]
)
def test_one_class_client(single_class, num_classes):
  # An odd holdout: an error of exactly 1/2 would give alpha = 0.
  clients = linear_task.make_clients(_SIZES, holdout=9)
  _one_class(clients[1])
  process = _build(single_class=single_class, error_threshold=0.0)
  output = _next(process, clients, [0, 1])
  reports = linear_task.reports(output)
  assert reports['num_classes'][1] == num_classes
  assert reports['error_before'][1] > 0
  assert reports['gamma'][1] > 0  # Grows in either case.
  excluded = single_class == 'exclude'
  assert (reports['alpha'][1] == 0) == excluded
  assert (reports['weight'][1] == 0.5) == excluded
  if excluded:
    assert reports['aggregated'][1] == 0


def test_clients_that_are_not_finite_or_empty_have_no_part():
  """The only other client gives its model."""
  clients = linear_task.make_clients((12, 9, 0))
  clients[1].x[0, 0] = np.nan
  process = _build(error_threshold=0.0, boost_rate=0.5)
  output = _next(process, clients, [0, 1, 2])
  assert output.metrics['client_work']['num_rejected_clients'] == 1
  assert output.metrics['client_work']['num_empty_clients'] == 1
  assert output.metrics['aggregator']['num_aggregated'] == 1
  reports = linear_task.reports(output)
  assert np.isnan(reports['alpha'][1]) and np.isnan(reports['gamma'][1])
  np.testing.assert_array_equal(reports['aggregated'][:2], [1, 0])
  gamma = _table(output, 'gamma')
  np.testing.assert_allclose(_table(output, 'weight')[1:], 1 / 3)
  np.testing.assert_array_equal(gamma[1:], 0)
  assert gamma[0] > 0
  expected = numpy_reference.train(
    _START, clients[0], learning_rate=0.1, epochs=2, gamma=float(gamma[0])
  )
  linear_task.assert_model(output.state.global_model_weights, expected)


@pytest.mark.full
def test_convolutions_do_not_see_empty_batches():
  process = algorithms.build_fedaboost(
    lambda: models.cnn_femnist((4, 4, 1), 3),
    num_clients=2,
    client_optimizer=linear_task.sgd(0.1),
  )
  x, y = np.ones([6, 4, 4, 1]), np.arange(6) % 3
  data = [
    client.build_client_data(0, (x, y), (x, y)),
    client.build_client_data(1, (x[:0], y[:0]), (x[:0], y[:0])),
  ]
  output = process.next(process.initialize(), data)
  assert output.metrics['client_work']['num_empty_clients'] == 1


@pytest.mark.full
def test_batch_norm_statistics_are_those_of_the_aggregated_clients():
  clients = linear_task.make_clients((12, 9))
  _one_class(clients[1])
  process = _build(linear_task.batch_norm_model_fn, local_epochs=1)
  output = _next(process, clients, [0, 1])
  reports = linear_task.reports(output)
  np.testing.assert_array_equal(reports['aggregated'], [1, 0])
  mean, _ = process.get_model_weights(output.state).non_trainable
  np.testing.assert_allclose(mean, clients[0].x.mean(axis=0) / 2, rtol=1e-4)


def test_bad_arguments():
  linear_task.assert_refused(
    _build,
    ('initial_gamma', 6.0, 'at most 5.0, found 6.0'),
  )
