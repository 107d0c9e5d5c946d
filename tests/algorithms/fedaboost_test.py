import math

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tff_fair import algorithms
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import fedaboost

_SIZES = (5, 9, 12, 7, 11)


def _build(**options):
  options = {
    'num_clients': len(_SIZES),
    'client_optimizer': linear_task.sgd(0.1),
    'local_epochs': 2,
    'batch_size': 50,
    **options,
  }
  return algorithms.build_fedaboost(linear_task.model_fn, **options)


def _next(process, state, clients, cohort):
  data = [linear_task.client_data(i, clients[i]) for i in cohort]
  return process.next(state, data)


def _reports(output):
  """The clients' reports by name, in the order of ids."""
  reports = output.metrics['client_work']['clients']
  order = np.argsort(reports['client_id'])
  return {name: value[order] for name, value in reports.items()}


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

  @pytest.mark.parametrize(
    ('error', 'alpha', 'weight', 'gamma'),
    [
      (0.6, 1.791759, 0.245560, 0.245560),
      (0.25, 3.295837, 0.25, 0.0),
      (0.95, -1.845827, 0.254657, 0.254657),
    ],
  )
  def test_worked_example(self, error, alpha, weight, gamma):
    found = self._boost(error, alpha)
    np.testing.assert_allclose(found, (weight, gamma), rtol=1e-5)

  def test_threshold_itself_is_not_above(self):
    assert self._boost(0.3, 2.0) == (0.25, 0.0)

  def test_eta_zero_leaves_the_weight(self):
    assert self._boost(0.9, 2.0, boost_rate=0.0) == (0.25, 0.25)

  def test_plus_sign_is_samme(self):
    found = self._boost(0.6, 1.791759, weight_sign=1)
    assert found[0] == pytest.approx(0.25 * math.exp(0.01791759), rel=1e-5)

  def test_gamma_always_grows_on_request(self):
    assert self._boost(0.1, 2.0, gamma_mode='always') == (0.25, 0.25)

  def test_gamma_is_capped(self):
    assert self._boost(0.9, 0.0, gamma=4.9) == (0.25, 5.0)

  @pytest.mark.parametrize(('alpha', 'bound'), [(-13.8, 1e6), (13.8, 1e-12)])
  def test_weight_is_bounded(self, alpha, bound):
    weight, _ = self._boost(0.9, alpha, boost_rate=100.0)
    assert weight == pytest.approx(bound)


@pytest.mark.usefixtures('default_runtime')
class TestAgainstNumpy:
  @pytest.mark.parametrize('boosting', [True, False])
  @pytest.mark.parametrize('boost_rate', [0.0, 0.5])
  def test_three_rounds_with_changing_cohorts(self, boosting, boost_rate):
    clients = linear_task.make_clients(_SIZES)
    clients[3].holdout_x = clients[3].holdout_x[:0]  # Judged on its training
    clients[3].holdout_y = clients[3].holdout_y[:0]  # part instead.
    process = _build(
      boosting=boosting, boost_rate=boost_rate, error_threshold=0.2
    )
    state, model = process.initialize(), linear_task.initial_model()
    weight, gamma = np.full(5, 1 / 3), np.zeros(5)  # m_0 = 3
    for cohort in ([0, 1, 3], [1, 2], [4, 3, 1, 2]):
      output = _next(process, state, clients, cohort)
      state = output.state
      model, alphas = numpy_reference.fedaboost_round(
        model,
        {i: clients[i] for i in cohort},
        weight,
        gamma,
        learning_rate=0.1,
        epochs=2,
        boost_rate=boost_rate,
        threshold=0.2,
        boosting=boosting,
      )
      reports = _reports(output)
      expected = [alphas[i] for i in sorted(cohort)]
      np.testing.assert_allclose(reports['alpha'], expected, rtol=1e-5)
      np.testing.assert_array_equal(
        reports['aggregated'], np.greater(expected, 0)
      )
      table = state.client_work['table']
      np.testing.assert_allclose(table['weight'], weight, rtol=1e-5)
      np.testing.assert_allclose(table['gamma'], gamma, rtol=1e-5)
    linear_task.assert_model(process.get_model_weights(state), model)
    if boosting:
      assert np.count_nonzero(gamma) >= 3  # The run did boost.

  def test_without_boosting_equal_alphas_recover_uniform_fed_avg(self):
    clients = linear_task.make_clients((5, 9, 12))
    model = linear_task.initial_model()
    for c in clients:  # The same holdout, with 2 of 10 wrong for every model.
      c.holdout_x = clients[0].holdout_x
      c.holdout_y = model.logits(c.holdout_x).argmax(axis=1)
      c.holdout_y[:2] = (c.holdout_y[:2] + 1) % 3
    process = _build(
      boosting=False,
      class_count='global',
      client_optimizer=linear_task.sgd(1e-4),
    )
    fed_avg = algorithms.build_fed_avg(
      linear_task.model_fn,
      num_clients=5,
      client_optimizer=linear_task.sgd(1e-4),
      local_epochs=2,
      batch_size=50,
      uniform=True,
    )
    ours = _next(process, process.initialize(), clients, range(3))
    alphas = _reports(ours)['alpha']
    assert alphas[0] == alphas[1] == alphas[2] > 0
    theirs = _next(fed_avg, fed_avg.initialize(), clients, range(3))
    for a, b in zip(
      ours.state.global_model_weights.trainable,
      theirs.state.global_model_weights.trainable,
      strict=True,
    ):
      np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)


@pytest.mark.usefixtures('default_runtime')
class TestEdgeCases:
  def test_weights_start_at_one_by_the_first_cohort(self):
    clients = linear_task.make_clients(_SIZES)
    process = _build(boost_rate=0.0)
    state = _next(process, process.initialize(), clients, [0, 1]).state
    np.testing.assert_array_equal(state.client_work['table']['weight'], 0.5)
    state = _next(process, state, clients, [0, 1, 2, 3]).state
    np.testing.assert_array_equal(state.client_work['table']['weight'], 0.5)

  def test_weights_start_at_one_by_the_number_of_clients_on_request(self):
    process = _build(weight_init='k')
    table = process.initialize().client_work['table']
    np.testing.assert_allclose(table['weight'], 0.2)

  def _hopeless(self, sizes):
    """Labels of which the model, as it moves little, gets none right."""
    clients = linear_task.make_clients(sizes)
    model = linear_task.initial_model()
    for c in clients:
      for x, y in ((c.x, c.y), (c.holdout_x, c.holdout_y)):
        y[:] = (model.logits(x).argmax(axis=1) + 1) % 3
    return clients

  def test_no_positive_alpha_keeps_the_model(self):
    process = _build(client_optimizer=linear_task.sgd(1e-4))
    output = _next(
      process, process.initialize(), self._hopeless((4, 12)), [0, 1]
    )
    assert np.all(_reports(output)['alpha'] < 0)
    assert output.metrics['aggregator']['fallback'] == 1
    linear_task.assert_model(
      output.state.global_model_weights, linear_task.initial_model(), rtol=0
    )

  def test_no_positive_alpha_falls_back_to_fed_avg_on_request(self):
    clients = self._hopeless((4, 12))
    process = _build(
      client_optimizer=linear_task.sgd(1e-4),
      fallback='fed_avg',
      boosting=False,
    )
    output = _next(process, process.initialize(), clients, [0, 1])
    assert output.metrics['aggregator']['fallback'] == 1
    expected = numpy_reference.fed_avg_round(
      linear_task.initial_model(), clients, learning_rate=1e-4, epochs=2
    )
    linear_task.assert_model(
      output.state.global_model_weights, expected, rtol=1e-7
    )

  @pytest.mark.parametrize(
    ('single_class', 'num_classes'), [('exclude', 1), ('floor2', 2)]
  )
  def test_one_class_client(self, single_class, num_classes):
    # An odd holdout: an error of exactly 1/2 would give alpha = 0.
    clients = linear_task.make_clients(_SIZES, holdout=9)
    _one_class(clients[1])
    process = _build(single_class=single_class, error_threshold=0.0)
    output = _next(process, process.initialize(), clients, [0, 1])
    reports = _reports(output)
    assert reports['num_classes'][1] == num_classes
    assert reports['error_before'][1] > 0
    assert reports['gamma'][1] > 0  # Grows in either case.
    if single_class == 'exclude':
      assert reports['alpha'][1] == 0 and reports['aggregated'][1] == 0
      assert reports['weight'][1] == 0.5
    else:
      assert reports['alpha'][1] != 0
      assert reports['weight'][1] != 0.5

  def test_global_class_count(self):
    clients = linear_task.make_clients(_SIZES)
    _one_class(clients[1])
    process = _build(class_count='global')
    output = _next(process, process.initialize(), clients, [0, 1])
    np.testing.assert_array_equal(_reports(output)['num_classes'], [3, 3])

  def test_a_single_good_client_gives_its_model(self):
    clients = linear_task.make_clients((12,))
    process = _build(boosting=False)
    output = _next(process, process.initialize(), clients, [0])
    assert _reports(output)['alpha'][0] > 0
    expected = numpy_reference.train(
      linear_task.initial_model(), clients[0], learning_rate=0.1, epochs=2
    )
    linear_task.assert_model(output.state.global_model_weights, expected)

  def test_nan_client_is_rejected_and_its_row_kept(self):
    clients = linear_task.make_clients((12, 9))
    clients[1].x[0, 0] = np.nan
    process = _build(error_threshold=0.0, boost_rate=0.5)
    together = _next(process, process.initialize(), clients, [0, 1])
    assert together.metrics['client_work']['num_rejected_clients'] == 1
    reports = _reports(together)
    assert np.isnan(reports['alpha'][1]) and np.isnan(reports['gamma'][1])
    np.testing.assert_array_equal(reports['aggregated'], [1, 0])
    table = together.state.client_work['table']
    assert table['weight'][1] == 0.5 and table['gamma'][1] == 0
    assert table['gamma'][0] > 0
    linear_task.assert_model(
      together.state.global_model_weights,
      numpy_reference.train(
        linear_task.initial_model(),
        clients[0],
        learning_rate=0.1,
        epochs=2,
        gamma=float(table['gamma'][0]),
      ),
    )

  def test_client_without_data_is_counted_and_left_out(self):
    clients = linear_task.make_clients((12, 0), holdout=10)
    process = _build()
    output = _next(process, process.initialize(), clients, [0, 1])
    assert output.metrics['client_work']['num_empty_clients'] == 1
    assert output.metrics['aggregator']['num_aggregated'] == 1
    table = output.state.client_work['table']
    assert table['gamma'][1] == 0

  def test_layers_that_fail_on_an_empty_batch_do_not_see_one(self):
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

  def test_batch_norm_statistics_are_those_of_the_aggregated(self):
    clients = linear_task.make_clients((12, 9))
    _one_class(clients[1])
    process = algorithms.build_fedaboost(
      linear_task.batch_norm_model_fn,
      num_clients=2,
      client_optimizer=linear_task.sgd(0.1),
      batch_size=50,
    )
    output = _next(process, process.initialize(), clients, [0, 1])
    np.testing.assert_array_equal(_reports(output)['aggregated'], [1, 0])
    mean, _ = process.get_model_weights(output.state).non_trainable
    np.testing.assert_allclose(mean, clients[0].x.mean(axis=0) / 2, rtol=1e-4)

  def test_rule_can_be_replaced(self):
    clients = linear_task.make_clients((12,))
    process = _build(
      model_aggregator=tff.aggregators.clipping_factory(
        0.0, tff.aggregators.MeanFactory()
      )
    )
    output = _next(process, process.initialize(), clients, [0])
    linear_task.assert_model(
      output.state.global_model_weights, linear_task.initial_model()
    )


@pytest.mark.parametrize(
  ('options', 'error', 'message'),
  [
    (
      {'boost_rate': -1.0},
      ValueError,
      'boost_rate must be at least 0.0, found -1.0',
    ),
    (
      {'error_threshold': 1.5},
      ValueError,
      'error_threshold must be at most 1.0, found 1.5',
    ),
    ({'error_clip': 0.7}, ValueError, 'error_clip must be between 0 and'),
    (
      {'initial_gamma': 6.0},
      ValueError,
      'initial_gamma must be at most 5.0, found 6.0',
    ),
    (
      {'max_gamma': -1.0},
      ValueError,
      'max_gamma must be at least 0.0, found -1.0',
    ),
    ({'focal_weight': 0.0}, ValueError, 'focal_weight must be positive'),
    ({'class_count': 'all'}, ValueError, "class_count must be one of .*'all'"),
    ({'single_class': 'x'}, ValueError, 'single_class must be one of'),
    ({'fallback': 'x'}, ValueError, 'fallback must be one of'),
    ({'weight_sign': 0}, ValueError, 'weight_sign must be one of'),
    ({'weight_init': 'x'}, ValueError, 'weight_init must be one of'),
    ({'gamma_mode': 'x'}, ValueError, 'gamma_mode must be one of'),
    (
      {'boost_rate': 'fast'},
      TypeError,
      "boost_rate must be a real number, found 'fast'",
    ),
  ],
)
def test_bad_arguments(options, error, message):
  with pytest.raises(error, match=message):
    _build(**options)
