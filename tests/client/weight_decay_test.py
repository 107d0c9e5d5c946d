import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client

_optimizers = tff.learning.optimizers


def _step(optimizer, weight, gradient):
  state = optimizer.initialize(tf.TensorSpec([], tf.float32))
  return optimizer.next(state, tf.constant(weight), tf.constant(gradient))[1]


def test_coupled_with_sgd():
  # 2 - .1 * (.5 + .01 * 2)
  optimizer = client.with_weight_decay(_optimizers.build_sgdm(0.1), 0.01)
  np.testing.assert_allclose(_step(optimizer, 2.0, 0.5), 1.948, rtol=1e-6)


def test_coupled_with_adam_enters_the_moments():
  # Adam's first step has length lr, with the sign of gradient + decay * w.
  optimizer = client.with_weight_decay(_optimizers.build_adam(0.1), 1.0)
  np.testing.assert_allclose(_step(optimizer, 2.0, -0.5), 1.9, rtol=1e-5)


def test_hyper_parameters_are_those_of_the_optimizer():
  optimizer = client.with_weight_decay(_optimizers.build_sgdm(0.1, 0.9), 0.01)
  state = optimizer.initialize(tf.TensorSpec([], tf.float32))
  hparams = optimizer.get_hparams(state)
  assert dict(hparams) == {'learning_rate': 0.1, 'momentum': 0.9}
  hparams['learning_rate'] = 0.2
  assert optimizer.set_hparams(state, hparams)['learning_rate'] == 0.2


def test_sparse_gradients_decay_too():
  optimizer = client.with_weight_decay(_optimizers.build_sgdm(0.1), 0.01)
  weight = tf.constant([[2.0], [4.0]])
  with tf.GradientTape() as tape:
    tape.watch(weight)
    loss = tf.reduce_sum(tf.gather(weight, [1]))
  gradient = tape.gradient(loss, weight)
  assert isinstance(gradient, tf.IndexedSlices)
  state = optimizer.initialize(tf.TensorSpec([2, 1], tf.float32))
  _, found = optimizer.next(state, weight, gradient)
  # 2 - .1 * (0 + .02) and 4 - .1 * (1 + .04)
  np.testing.assert_allclose(found, [[1.998], [3.896]], rtol=1e-6)


def test_weights_without_a_gradient_stay_bit_for_bit():
  """None stands for a weight on which the loss does not depend."""
  for optimizer in (
    _optimizers.build_sgdm(0.1),
    _optimizers.build_sgdm(0.1, momentum=0.9),
    _optimizers.build_adam(0.1),
  ):
    _check_weights_without_a_gradient(optimizer)


def _check_weights_without_a_gradient(optimizer):
  decayed = client.with_weight_decay(optimizer, 0.01)
  specs = [tf.TensorSpec([2], tf.float32)] * 2
  weights = [tf.constant([2.0, -4.0]), tf.constant([2.0, -4.0])]
  state = decayed.initialize(specs)
  for _ in range(3):
    gradients = [None, tf.zeros([2])]
    state, weights = decayed.next(state, weights, gradients)
  np.testing.assert_array_equal(weights[0], [2, -4])
  # A gradient of 0 is another thing: this weight decays.
  assert np.all(np.abs(weights[1]) < [2, 4])
  # Nor does the optimiser remember anything of the first.
  kept = [value for value in tf.nest.flatten(state) if np.shape(value)]
  for of_first in kept[::2]:
    np.testing.assert_array_equal(of_first, [0, 0])
