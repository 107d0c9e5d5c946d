import functools
import math

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import fedaboost

pytestmark = pytest.mark.usefixtures('default_runtime')

_START = linear_task.start()
_right = reference.LINEAR.right
_build = functools.partial(
  linear_task.build_process,
  algorithms.build_fedaboost,
  num_clients=6,
  local_epochs=2,
  error_threshold=0.2,
)


def _alpha(error, num_classes):
  """Equation 6; nothing is better than chance for one class."""
  if num_classes < 2:
    return 0.0
  error = np.clip(error, 1e-6, 1 - 1e-6)
  return np.log((1 - error) / error) + np.log(num_classes - 1)


def _error(w, data):
  """On the holdout, or the training part of a client without one."""
  if len(data.holdout_y):
    return 1 - _right(w, data.holdout_x, data.holdout_y).mean()
  return 1 - _right(w, data.x, data.y).mean()


def _fedaboost(rounds, boost_rate, boosting=True, class_count='local'):
  w, weight, gamma = _START, np.full(6, 1 / 4), np.zeros(6)
  for clients in rounds:
    models, alphas = [], []
    for i, data in clients.items():
      num_classes = len(set(data.y) | set(data.holdout_y))
      if class_count == 'global':
        num_classes = 3
      before = _error(w, data)
      if boosting and before > 0.2:
        weight[i] *= np.exp(-boost_rate * _alpha(before, num_classes))
        gamma[i] = min(gamma[i] + weight[i], 5.0)
      focus = gamma[i] if boosting else 0.0
      models.append(
        reference.LINEAR.train(w, data, rate=0.1, epochs=2, gamma=focus)
      )
      alphas.append(_alpha(_error(models[-1], data), num_classes))
    positive = np.maximum(alphas, 0)
    if positive.any():
      w = reference.mean(models, positive)
    yield {
      'weights': w,
      'client_work/clients/alpha': np.array(alphas),
      'client_work/clients/aggregated': positive > 0,
      'aggregator/num_aggregated': np.sum(positive > 0),
      'table/weight': weight.copy()[:, np.newaxis],
      'table/gamma': gamma.copy()[:, np.newaxis],
    }


def _clients(sizes, **options):
  return dict(enumerate(linear_task.make_clients(sizes, **options)))


def _rounds(*cohorts):
  rounds = linear_task.rounds(cohorts)
  for clients in rounds:
    if 3 in clients:  # Judged on its training part instead.
      clients[3].holdout_x = clients[3].holdout_x[:0]
      clients[3].holdout_y = clients[3].holdout_y[:0]
    if 1 in clients:  # Of two classes.
      for y in (clients[1].y, clients[1].holdout_y):
        y[y == 2] = 1
  return rounds


def _first_round(process, clients):
  return linear_task.next_round(process, process.initialize(), clients)


def _one_class(client):
  client.y[:] = 1
  client.holdout_y[:] = 1


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
  'options',
  [
    {'boost_rate': 0.5},
    pytest.param(
      {'boost_rate': 0.5, 'boosting': False, 'class_count': 'global'},
      marks=pytest.mark.full,
    ),
  ],
  ids=str,
)
def test_three_rounds(options):
  """Four clients are there at first, although one has no data."""
  outputs = linear_task.assert_rounds(
    _build(**options),
    functools.partial(_fedaboost, **options),
    _rounds([0, 1, 3, 4], [1, 2, 5], [0, 3, 1, 2]),
  )
  boosted = np.count_nonzero(outputs[-1].state.client_work['table']['gamma'])
  assert boosted >= 3 if options.get('boosting', True) else not boosted
  reports = linear_task.reports(outputs[1])
  assert np.isnan(reports['alpha'][2]) and np.isnan(reports['gamma'][2])
  assert reports['aggregated'][2] == 0


def _weights_after(process, clients):
  return linear_task.weights(process, _first_round(process, clients).state)


@pytest.mark.full
def test_the_softmax_of_clipped_alphas():
  clients = _clients((5, 9, 12))
  # So narrow a bound makes the alphas equal, whatever the errors.
  process = _build(weighting='softmax', alpha_clip=1e-6, boosting=False)
  linear_task.assert_close(
    _weights_after(process, clients),
    reference.fed_avg(
      _START, clients.values(), rate=0.1, epochs=2, uniform=True
    ),
  )
  process = _build(
    weighting='softmax', alpha_clip=1.0, boosting=False, class_count='global'
  )
  models = [
    reference.LINEAR.train(_START, data, rate=0.1, epochs=2)
    for data in clients.values()
  ]
  alphas = [
    np.clip(_alpha(_error(model, data), 3), -1, 1)
    for model, data in zip(models, clients.values(), strict=True)
  ]
  assert len({*alphas}) > 1
  linear_task.assert_close(
    _weights_after(process, clients), reference.mean(models, np.exp(alphas))
  )


def test_bounds_of_alpha_and_the_initial_weight():
  clients = _clients((5, 9, 12))
  process = _build(
    initial_weight=0.25, alpha_clip=0.5, boost_rate=2.0, class_count='global'
  )
  reports = linear_task.reports(_first_round(process, clients))
  before = [_error(_START, data) for data in clients.values()]
  boosted = np.greater(before, 0.2)
  alphas = np.clip([_alpha(e, 3) for e in before], -0.5, 0.5)
  expected = np.where(boosted, 0.25 * np.exp(-2 * alphas), 0.25)
  np.testing.assert_allclose(reports['weight'], expected, rtol=1e-5)
  assert boosted.any() and np.abs(reports['alpha']).max() <= 0.5


@pytest.mark.full
def test_without_a_positive_alpha_it_is_fed_avg():
  """Every label is wrong for the model, which moves little."""
  clients = _clients((4, 12))
  for c in clients.values():
    for x, y in ((c.x, c.y), (c.holdout_x, c.holdout_y)):
      y[:] = (reference.LINEAR.logits(_START, x).argmax(axis=1) + 1) % 3
  process = _build(learning_rate=1e-4, fallback='fed_avg', boosting=False)
  output = _first_round(process, clients)
  assert np.all(linear_task.reports(output)['alpha'] < 0)
  assert output.metrics['aggregator']['fallback'] == 1
  expected = reference.fed_avg(_START, clients.values(), rate=1e-4, epochs=2)
  found = linear_task.weights(process, output.state)
  linear_task.assert_close(found, expected, rtol=1e-7)


@pytest.mark.full
@pytest.mark.parametrize(
  ('single_class', 'num_classes'), [('exclude', 1), ('floor2', 2)]
)
def test_one_class_client(single_class, num_classes):
  # An odd holdout: an error of exactly 1/2 would give alpha = 0.
  clients = _clients((5, 9), holdout=9)
  _one_class(clients[1])
  process = _build(single_class=single_class, error_threshold=0.0)
  reports = linear_task.reports(_first_round(process, clients))
  assert reports['num_classes'][1] == num_classes
  assert reports['gamma'][1] > 0  # Grows in either case.
  excluded = single_class == 'exclude'
  assert (reports['alpha'][1] == 0) == excluded
  assert (reports['weight'][1] == 0.5) == excluded
  if excluded:
    assert reports['aggregated'][1] == 0


@pytest.mark.full
def test_batch_norm_statistics_are_those_of_the_aggregated_clients():
  clients = _clients((12, 9))
  _one_class(clients[1])
  process = _build(linear_task.batch_norm_model_fn, local_epochs=1)
  output = _first_round(process, clients)
  reports = linear_task.reports(output)
  np.testing.assert_array_equal(reports['aggregated'], [1, 0])
  mean, _ = process.get_model_weights(output.state).non_trainable
  np.testing.assert_allclose(mean, clients[0].x.mean(axis=0) / 2, rtol=1e-4)


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


def test_the_first_gamma_is_within_its_bound():
  linear_task.assert_refused(
    _build, ('initial_gamma', 6.0, 'at most 5.0, found 6.0')
  )
