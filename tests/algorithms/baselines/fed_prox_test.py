import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import fedquad_reference
from tests.algorithms import linear_task
from tests.algorithms import metric_task
from tests.algorithms import numpy_reference
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_build = functools.partial(
  metric_task.build_process, algorithms.build_fed_prox, learning_rate=0.1
)
_reference = functools.partial(
  metric_task.reference, 'fed_prox', learning_rate=0.1
)
_CLIENTS = metric_task.clients('several', 'two', 'mixed', 'empty', 'broken')


@pytest.mark.parametrize(
  'weight', [None, pytest.param(2.0, marks=pytest.mark.full)]
)
def test_two_rounds_against_numpy(weight):
  options = {} if weight is None else {'proximal_weight': weight}
  outputs = linear_task.assert_rounds(
    _build(**options),
    _reference(weight=0.01 if weight is None else weight),
    [_CLIENTS, metric_task.clients('mixed', 'several')],
  )
  found = [output.metrics['client_work'] for output in outputs]
  assert [f['num_empty_clients'] for f in found] == [1, 0]
  assert [f['num_rejected_clients'] for f in found] == [1, 0]


@pytest.mark.full
def test_plain_data_and_uniform_weights():
  clients = metric_task.clients('several', 'two', 'mixed').values()
  process = _build(num_clients=None, uniform=True, proximal_weight=0.5)
  data = [linear_task.client_data(0, c)['train'] for c in clients]
  state = process.next(process.initialize(), data).state
  reference = _reference(weight=0.5)
  models = [
    fedquad_reference.train(reference.weights, c, reference.options)[0]
    for c in clients
  ]
  linear_task.assert_close(
    process.get_model_weights(state).trainable,
    [np.mean(rows, axis=0) for rows in zip(*models, strict=True)],
  )


def _one_weight_model_fn():
  """Logits `w x_0 + x_1` and 0."""
  x = tf.keras.Input([2])
  first = tf.keras.layers.Lambda(lambda x: x[:, :1])(x)
  w = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer='zeros')

  def logits(inputs):
    product, x = inputs
    return tf.pad(product + x[:, 1:], [[0, 0], [0, 1]])

  return tf.keras.Model(x, tf.keras.layers.Lambda(logits)([w(first), x]))


@pytest.mark.full
def test_worked_example():
  """A first step from 0 to 1, and a second with a gradient of .5."""
  # The gradients of the two examples are -40 sigma(-40 w - c) / 2, which is
  # -10 - sigma(-2) at 0 and 0 at 1, and 2 sigma(2 w - 2) / 2.
  share = (20 + 2 / (1 + np.exp(2))) / 40
  c = np.log((1 - share) / share)
  x = np.float32([[40, c], [2, -2]])
  data = numpy_reference.Client(x, np.array([0, 1]), x, np.array([0, 1]))
  for mu, expected in ((0.01, 0.949), (1.0, 0.85)):
    process = _build(
      _one_weight_model_fn, num_clients=1, local_epochs=2, proximal_weight=mu
    )
    state = linear_task.run(process, [data], [[0]]).state
    (w,) = process.get_model_weights(state).trainable
    # 1 - .1 (.5 + mu)
    assert w.item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.full
def test_weight_0_is_fed_avg_bit_for_bit():
  linear_task.assert_is_fed_avg(
    algorithms.build_fed_prox, 'adam', proximal_weight=0
  )


def _two_heads_model_fn():
  """Logits do not depend on the weights that give the embedding."""
  x = tf.keras.Input([linear_task.NUM_FEATURES])
  embedding = tf.keras.layers.Dense(2, kernel_initializer='ones')(x)
  logits = linear_task.model_fn()(x)
  return tf.keras.Model(x, {'logits': logits, 'embedding': embedding})


@pytest.mark.full
def test_weight_0_is_fed_avg_for_weights_without_a_gradient():
  """Weight decay must treat them alike in both."""
  clients, found = linear_task.make_clients((5, 9, 12)), []
  for build, options in (
    (algorithms.build_fed_avg, {}),
    (algorithms.build_fed_prox, {'proximal_weight': 0.0}),
  ):
    process = build(
      _two_heads_model_fn,
      num_clients=len(clients),
      client_optimizer=linear_task.decaying_optimizer('sgd'),
      **options,
    )
    state = linear_task.run(process, clients, [[0, 1, 2]]).state
    found.append(process.get_model_weights(state))
  linear_task.assert_equal(*found)


def test_bad_arguments():
  linear_task.assert_refused(
    _build,
    ('proximal_weight', -0.1, 'at least 0.0, found -0.1'),
    ('proximal_weight', np.nan, 'found nan'),
    ('proximal_weight', 'much', "a real .*found 'much'", TypeError),
  )
