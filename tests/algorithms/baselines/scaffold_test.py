import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tests.algorithms import quadratic_task
from tff_fair import algorithms
from tff_fair import client
from tff_fair.algorithms.baselines import scaffold

pytestmark = pytest.mark.usefixtures('default_runtime')

ModelWeights = tff.learning.models.ModelWeights

# The last two have no data, and data that is not finite.
_SIZES = (5, 9, 12, 7, 0, 6)
_EMPTY, _BROKEN = 4, 5
_COHORTS = ([0, 1, 2], [2, _EMPTY, 3, _BROKEN], [1, 3, 0])


def _clients():
  clients = linear_task.make_clients(_SIZES)
  clients[_BROKEN].x[1, 2] = np.nan
  return clients


_process = functools.partial(
  linear_task.build_process,
  algorithms.build_scaffold,
  num_clients=len(_SIZES),
  local_epochs=2,
)


def _zero():
  model = linear_task.initial_model()
  return model.plus(model, -1.0)


class _Scaffold:
  """The algorithm in NumPy, for full batches: an epoch is a step.

  The server's control variate is accumulated from round to round.
  """

  def __init__(self, decay=1.0, server_learning_rate=1.0, variant='original'):
    self.model = linear_task.initial_model()
    self.control = _zero()
    self.controls = [_zero() for _ in _SIZES]
    self._server_learning_rate = server_learning_rate
    self._decay = decay
    self._original = variant == 'original'
    self._num_rounds = 0

  def next(self, clients):
    """One round of the clients that count, a dictionary from ids to data."""
    rate = 0.1 * self._decay**self._num_rounds
    updates, changes, weights = [], [], []
    for i, data in clients.items():
      y = self.model
      for _ in range(2):
        gradient = numpy_reference.focal_gradient(y, data.x, data.y, 0.0)
        gradient = gradient.plus(self.controls[i], -1.0).plus(self.control)
        y = y.plus(gradient, -rate)
      num_steps = 2 if self._original else 1
      new = self.controls[i].plus(self.control, -1.0)
      new = new.plus(self.model.plus(y, -1.0), 1 / (num_steps * rate))
      updates.append(y.plus(self.model, -1.0))
      changes.append(new.plus(self.controls[i], -1.0))
      weights.append(1 if self._original else len(data.y))
      self.controls[i] = new
    share = len(clients) / len(_SIZES) if self._original else 1.0
    self.model = self.model.plus(
      numpy_reference.weighted_mean(updates, weights),
      self._server_learning_rate,
    )
    self.control = self.control.plus(
      numpy_reference.weighted_mean(changes, weights), share
    )
    self._num_rounds += 1


def _assert_rounds(cohorts, **options):
  """Both give the same weights and control variates in every round."""
  clients = _clients()
  process, expected = _process(**options), _Scaffold(**options)
  state = process.initialize()
  for cohort in cohorts:
    output = linear_task.next_round(
      process, state, linear_task.pick(clients, cohort)
    )
    state = output.state
    counted = [i for i in cohort if i not in (_EMPTY, _BROKEN)]
    expected.next(linear_task.pick(clients, counted))
    linear_task.assert_model(process.get_model_weights(state), expected.model)
    linear_task.assert_close(
      linear_task.client_vectors(state.client_work['table']['control']),
      np.array([control.vector for control in expected.controls]),
      rtol=1e-4,
      atol=1e-5,
    )
    counts = output.metrics['client_work']
    assert counts['num_empty_clients'] == (_EMPTY in cohort)
    assert counts['num_rejected_clients'] == (_BROKEN in cohort)
  return expected


def test_new_control_by_hand():
  # c = 0 and c_i = 0, then c - c_i = -.95 - .95 and -.95 + 2.85.
  for shift, w, y, expected in (
    (0, 1, 0.81, 0.95),
    (0, 1, 1.57, -2.85),
    (-1.9, 1.19, 1.3249, 1.2255),
    (1.9, 1.19, 1.3629, -2.7645),
  ):
    before, after = (
      ModelWeights([tf.constant([value], tf.float32)], []) for value in (w, y)
    )
    (found,) = scaffold.new_control(
      [tf.constant([shift], tf.float32)], before, after, tf.constant(0.2)
    )
    np.testing.assert_allclose(found, [expected], atol=1e-5)
  # Without a step it is c_i - c.
  (found,) = scaffold.new_control(
    [tf.constant([0.3])], before, before, tf.constant(0.0)
  )
  np.testing.assert_allclose(found, [-0.3])


@pytest.mark.full
def test_example_of_two_quadratics():
  process = quadratic_task.build_process(algorithms.build_scaffold)
  data = quadratic_task.make_data()
  state = process.initialize()
  for w, controls in ((1.19, (0.95, -2.85)), (1.3439, (1.2255, -2.7645))):
    state = process.next(state, data).state
    found = process.get_model_weights(state).trainable[0]
    np.testing.assert_allclose(found, [[w]], rtol=1e-5)
    (found,) = state.client_work['table']['control']
    np.testing.assert_allclose(found.ravel(), controls, rtol=1e-5)


@pytest.mark.parametrize(
  'options', [{}, {'server_learning_rate': 0.3, 'decay': 0.5}], ids=str
)
def test_three_rounds_against_numpy(options):
  expected = _assert_rounds(_COHORTS, **options)
  # In c, absent clients count as unchanged.
  mean = np.mean([control.kernel for control in expected.controls], axis=0)
  np.testing.assert_allclose(mean, expected.control.kernel, atol=1e-12)
  assert np.abs(mean).max() > 0.01


@pytest.mark.full
def test_variant_fedakd_against_numpy():
  """For the same clients in each round, c is the sum of its script.

  The distance is divided by one step, although there are two.
  """
  expected = _assert_rounds([[0, 1, 3, _EMPTY, _BROKEN]] * 3, variant='fedakd')
  controls = [expected.controls[i] for i in (0, 1, 3)]
  mean = numpy_reference.weighted_mean(controls, [5, 9, 7])
  np.testing.assert_allclose(mean.kernel, expected.control.kernel, atol=1e-12)


@pytest.mark.full
@pytest.mark.parametrize(
  ('variant', 'num_steps'), [('original', (4, 6)), ('fedakd', (1, 1))]
)
def test_the_number_of_steps_is_that_of_minibatches(variant, num_steps):
  """In two epochs over 5 and over 9 examples, in minibatches of 4."""
  process = _process(variant=variant, batch_size=4)
  start = linear_task.initial_model().vector
  for i, number in enumerate(num_steps):
    state = linear_task.run(process, _clients(), [[i]]).state
    controls = linear_task.client_vectors(state.client_work['table']['control'])
    linear_task.assert_close(
      controls[i] * number * 0.1,
      start - linear_task.weights(process, state),
      rtol=1e-4,
    )


@pytest.mark.full
def test_the_first_round_is_that_of_uniform_fed_avg():
  found, expected = (
    linear_task.regularised_rounds(build, 'plain', **options)
    for build, options in (
      (algorithms.build_scaffold, {}),
      (algorithms.build_fed_avg, {'uniform': True}),
    )
  )
  # Weights and metrics; the tables of the clients differ.
  linear_task.assert_close(found[0][:2], expected[0][:2])


@pytest.mark.full
def test_statistics_do_not_depend_on_the_server_learning_rate():
  process = algorithms.build_scaffold(
    linear_task.batch_norm_model_fn,
    num_clients=2,
    client_optimizer=linear_task.sgd(0.1),
    server_learning_rate=0.1,
  )
  clients = linear_task.make_clients((8, 12))
  state = linear_task.run(process, clients, [[0, 1]]).state
  mean, _ = process.get_model_weights(state).non_trainable
  expected = np.mean([data.x.mean(axis=0) / 2 for data in clients], axis=0)
  np.testing.assert_allclose(mean, expected, rtol=1e-4, atol=1e-6)


def test_bad_arguments():
  plain = 'plain SGD for SCAFFOLD.*found'
  optimizers = tff.learning.optimizers
  linear_task.assert_refused(
    _process,
    ('client_optimizer', linear_task.sgd(0.1, momentum=0.9), plain),
    (
      'client_optimizer',
      client.with_weight_decay(linear_task.sgd(0.1), 1e-3),
      plain,
    ),
    ('client_optimizer', optimizers.build_adam(0.1), plain),
    ('client_optimizer', optimizers.build_adamw(0.1), plain),
    ('client_optimizer', optimizers.build_adagrad(0.1), plain),
  )
