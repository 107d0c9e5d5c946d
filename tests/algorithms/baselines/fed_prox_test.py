import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import fedquad_reference
from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tff_fair import algorithms

_SIZES = (5, 9, 12)


def _build(model_fn=linear_task.embedding_model_fn, **options):
  options = {
    'client_optimizer': linear_task.sgd(0.1),
    'local_epochs': 4,
    'batch_size': 50,
    **options,
  }
  return algorithms.build_fed_prox(model_fn, **options)


def _reference(**options):
  return fedquad_reference.Federation(
    linear_task.embedding_model_fn().get_weights(),
    'fed_prox',
    **{'local_epochs': 4, **options},
  )


@pytest.mark.usefixtures('default_runtime')
@pytest.mark.parametrize('weight', [None, 2.0])
def test_two_rounds_against_numpy(weight):
  clients = linear_task.make_clients((*_SIZES, 0))
  broken = linear_task.make_clients(_SIZES)[1]
  broken.x[0, 0] = np.inf
  options = {} if weight is None else {'proximal_weight': weight}
  rounds = [
    dict(enumerate(clients)),
    {2: clients[2], 1: broken, 0: clients[0]},
  ]
  outputs = linear_task.assert_rounds(
    _build(num_clients=4, **options),
    _reference(weight=0.01 if weight is None else weight),
    rounds,
  )
  found = [output.metrics['client_work'] for output in outputs]
  assert [f['num_empty_clients'] for f in found] == [1, 0]
  assert [f['num_rejected_clients'] for f in found] == [0, 1]


@pytest.mark.usefixtures('default_runtime')
def test_plain_data_and_uniform_weights():
  clients = linear_task.make_clients(_SIZES)
  process = _build(uniform=True, proximal_weight=0.5)
  data = [linear_task.client_data(0, c)['train'] for c in clients]
  state = process.next(process.initialize(), data).state
  reference = _reference(weight=0.5)
  models = [
    fedquad_reference.train(reference.weights, c, reference.options)[0]
    for c in clients
  ]
  for found, *expected in zip(
    process.get_model_weights(state).trainable, *models, strict=True
  ):
    np.testing.assert_allclose(
      found, np.mean(expected, axis=0), rtol=1e-5, atol=1e-6
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


@pytest.mark.usefixtures('default_runtime')
@pytest.mark.parametrize(('mu', 'expected'), [(0.01, 0.949), (1.0, 0.85)])
def test_worked_example(mu, expected):
  """A first step that leads from 0 to 1, a second with a gradient of .5."""
  # The gradients of the two examples are -40 sigma(-40 w - c) / 2, which is
  # -10 - sigma(-2) at 0 and 0 at 1, and 2 sigma(2 w - 2) / 2.
  share = (20 + 2 / (1 + np.exp(2))) / 40
  c = np.log((1 - share) / share)
  x = np.float32([[40, c], [2, -2]])
  data = numpy_reference.Client(x, np.array([0, 1]), x, np.array([0, 1]))
  process = _build(
    _one_weight_model_fn, num_clients=1, local_epochs=2, proximal_weight=mu
  )
  state = linear_task.run(process, [data], [[0]]).state
  (w,) = process.get_model_weights(state).trainable
  # 1 - .1 (.5 + mu)
  assert w.item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.usefixtures('default_runtime')
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


@pytest.mark.usefixtures('default_runtime')
def test_weight_0_is_fed_avg_for_weights_without_a_gradient():
  """Weight decay must not shrink in the one what it leaves in the other."""
  clients = linear_task.make_clients(_SIZES)
  found = []
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


@pytest.mark.parametrize(
  ('options', 'error', 'message'),
  [
    (
      {'proximal_weight': -0.1},
      ValueError,
      'proximal_weight must be at least 0.0, found -0.1',
    ),
    (
      {'proximal_weight': np.nan},
      ValueError,
      'proximal_weight must be .*found nan',
    ),
    (
      {'proximal_weight': 'much'},
      TypeError,
      "proximal_weight must be a real .*found 'much'",
    ),
  ],
  ids=str,
)
def test_bad_arguments(options, error, message):
  with pytest.raises(error, match=message):
    _build(**options)
