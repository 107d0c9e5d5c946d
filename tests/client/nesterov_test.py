import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests import refusals
from tff_fair import client


def _steps(optimizer, gradients):
  weights = [tf.constant([1.0]), tf.constant([1.0])]
  specs = [tf.TensorSpec([1], tf.float32)] * 2
  state = optimizer.initialize(specs)
  for g in gradients:
    state, weights = optimizer.next(state, weights, [tf.constant([g]), None])
  return state, [w.numpy()[0] for w in weights]


def test_two_steps_by_hand():
  # v = 2, w = 1 - .1 (2 + .5 * 2) = .7; v = 5, w = .7 - .1 (4 + 2.5) = .05.
  optimizer = client.build_nesterov_sgd(0.1, 0.5)
  state, (trained, without_gradient) = _steps(optimizer, [2.0, 4.0])
  np.testing.assert_allclose(trained, 0.05, rtol=1e-5)
  assert without_gradient == 1.0
  assert dict(optimizer.get_hparams(state)) == {
    'learning_rate': 0.1,
    'momentum': 0.5,
  }
  state = optimizer.set_hparams(state, {'learning_rate': 0.2, 'momentum': 0.5})
  assert state['learning_rate'] == 0.2


def test_without_momentum_it_is_sgd():
  plain = tff.learning.optimizers.build_sgdm(0.1)
  _, found = _steps(client.build_nesterov_sgd(0.1, 0.0), [2.0, 4.0])
  assert found == _steps(plain, [2.0, 4.0])[1]
  refusals.check_values(
    lambda momentum: client.build_nesterov_sgd(0.1, momentum),
    {'momentum': [1.0, -0.1]},
  )
