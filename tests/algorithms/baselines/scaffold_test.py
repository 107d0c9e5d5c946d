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

ModelWeights = tff.learning.models.ModelWeights

# The last two have no data, and data that is not finite.
_SIZES = (5, 9, 12, 7, 0, 6)
_EMPTY, _BROKEN = 4, 5
_COHORTS = ([0, 1, 2], [2, _EMPTY, 3, _BROKEN], [1, 3, 0])


def _clients():
  clients = linear_task.make_clients(_SIZES)
  clients[_BROKEN].x[1, 2] = np.nan
  return clients


@functools.cache
def _process(decay=1.0, **options):
  def learning_rate_fn(round_number):
    return 0.1 * decay ** tf.cast(round_number, tf.float32)

  return algorithms.build_scaffold(
    linear_task.model_fn,
    **{
      'num_clients': len(_SIZES),
      'client_optimizer': linear_task.sgd(0.1),
      'client_learning_rate_fn': None if decay == 1.0 else learning_rate_fn,
      'local_epochs': 2,
      'batch_size': 50,
      **options,
    },
  )


def _zero():
  model = linear_task.initial_model()
  return model.plus(model, -1.0)


class _Scaffold:
  """The algorithm in NumPy, for full batches: an epoch is a step.

  The server's control variate is added up from round to round.
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
    """One round of those who count, a dictionary from ids to data."""
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
    data = [linear_task.client_data(i, clients[i]) for i in cohort]
    output = process.next(state, data)
    state = output.state
    expected.next({i: clients[i] for i in cohort if i not in (_EMPTY, _BROKEN)})
    linear_task.assert_model(process.get_model_weights(state), expected.model)
    for found, name in zip(
      state.client_work['table']['control'], ('kernel', 'bias'), strict=True
    ):
      values = [getattr(control, name) for control in expected.controls]
      np.testing.assert_allclose(found, values, rtol=1e-4, atol=1e-5)
    counts = output.metrics['client_work']
    assert counts['num_empty_clients'] == (_EMPTY in cohort)
    assert counts['num_rejected_clients'] == (_BROKEN in cohort)
  return expected


class TestNewControl:
  def test_example(self):
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

  def test_without_a_step_it_is_c_i_minus_c(self):
    weights = ModelWeights([tf.constant([1.0])], [])
    (found,) = scaffold.new_control(
      [tf.constant([0.3])], weights, weights, tf.constant(0.0)
    )
    np.testing.assert_allclose(found, [-0.3])


@pytest.mark.usefixtures('default_runtime')
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


@pytest.mark.usefixtures('default_runtime')
class TestRoundsAgainstNumpy:
  @pytest.mark.parametrize(
    'options', [{}, {'server_learning_rate': 0.3, 'decay': 0.5}], ids=str
  )
  def test_three_rounds(self, options):
    expected = _assert_rounds(_COHORTS, **options)
    # The absent count in c as those who have not changed.
    mean = np.mean([control.kernel for control in expected.controls], axis=0)
    np.testing.assert_allclose(mean, expected.control.kernel, atol=1e-12)
    assert np.abs(mean).max() > 0.01

  def test_variant_fedakd(self):
    """Of the same clients each round, for which c is what its script adds up.

    The distance is divided by one step, though there are two.
    """
    expected = _assert_rounds(
      [[0, 1, 3, _EMPTY, _BROKEN]] * 3, variant='fedakd'
    )
    controls = [expected.controls[i] for i in (0, 1, 3)]
    mean = numpy_reference.weighted_mean(controls, [5, 9, 7])
    np.testing.assert_allclose(mean.kernel, expected.control.kernel, atol=1e-12)


@pytest.mark.usefixtures('default_runtime')
@pytest.mark.parametrize(
  ('variant', 'num_steps'), [('original', (4, 6)), ('fedakd', (1, 1))]
)
def test_the_number_of_steps_is_that_of_minibatches(variant, num_steps):
  """In two epochs over 5 and over 9 examples, at most 4 of them at once."""
  process = _process(variant=variant, batch_size=4)
  clients = _clients()
  for i, number in enumerate(num_steps):
    state = linear_task.run(process, clients, [[i]]).state
    for start, found, controls in zip(
      process.get_model_weights(process.initialize()).trainable,
      process.get_model_weights(state).trainable,
      state.client_work['table']['control'],
      strict=True,
    ):
      np.testing.assert_allclose(
        controls[i] * number * 0.1, start - found, rtol=1e-4, atol=1e-6
      )


@pytest.mark.usefixtures('default_runtime')
def test_nobody_changes_nothing():
  process = _process()
  before = linear_task.run(process, _clients(), [[0, 1]]).state
  data = [linear_task.client_data(i, _clients()[i]) for i in (_EMPTY, _BROKEN)]
  for cohort in ([], data):
    after = process.next(before, cohort).state
    linear_task.assert_equal(
      process.get_model_weights(after), process.get_model_weights(before)
    )
    linear_task.assert_equal(
      after.client_work['table'], before.client_work['table']
    )


def _first_round(build, **options):
  """Weights and metrics after a round of all that a model may have."""
  clients = linear_task.make_clients((5, 9, 12))
  process = build(
    functools.partial(linear_task.embedding_behind_batch_norm_model_fn, 0.5),
    num_clients=3,
    client_optimizer=linear_task.sgd(0.1),
    local_epochs=2,
    batch_size=4,
    seed=3,
    focal_gamma=0.5,
    **options,
  )
  output = linear_task.run(process, clients, [[0, 2, 1]])
  weights = process.get_model_weights(output.state)
  return weights, output.metrics['client_work']


@pytest.mark.usefixtures('default_runtime')
def test_the_first_round_is_that_of_uniform_fed_avg():
  found = _first_round(algorithms.build_scaffold)
  expected = _first_round(algorithms.build_fed_avg, uniform=True)
  tf.nest.map_structure(
    functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6),
    found,
    expected,
  )


@pytest.mark.usefixtures('default_runtime')
def test_statistics_are_averaged_whatever_the_server_s_rate():
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


@pytest.mark.parametrize(
  'optimizer',
  [
    linear_task.sgd(0.1, momentum=0.9),
    client.with_weight_decay(linear_task.sgd(0.1), 1e-3),
    tff.learning.optimizers.build_adam(0.1),
    tff.learning.optimizers.build_adamw(0.1),
    tff.learning.optimizers.build_adagrad(0.1),
  ],
  ids=['momentum', 'weight decay', 'adam', 'adamw', 'adagrad'],
)
def test_other_optimizers_than_plain_sgd_are_refused(optimizer):
  with pytest.raises(
    ValueError, match='client_optimizer must be plain SGD for SCAFFOLD.*found'
  ):
    _process(client_optimizer=optimizer)


@pytest.mark.parametrize(
  ('options', 'error', 'message'),
  [
    (
      {'server_learning_rate': 0},
      ValueError,
      'server_learning_rate must be positive, found 0',
    ),
    (
      {'server_learning_rate': None},
      TypeError,
      'server_learning_rate must be a real number, found None',
    ),
    (
      {'variant': 'other'},
      ValueError,
      "variant must be one of 'original', 'fedakd', found 'other'",
    ),
  ],
  ids=str,
)
def test_bad_arguments(options, error, message):
  with pytest.raises(error, match=message):
    _process(**options)
