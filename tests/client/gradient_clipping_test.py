import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests import refusals
from tff_fair import client

_SGD = tff.learning.optimizers.build_sgdm(0.1)
_WEIGHTS = [tf.constant([2.0, 1.0]), tf.constant([4.0]), tf.constant([5.0])]
# Of length 5; the last weight has none.
_GRADIENTS = [tf.constant([3.0, 0.0]), tf.constant([4.0]), None]


def _step(optimizer):
  specs = [tf.TensorSpec(w.shape, w.dtype) for w in _WEIGHTS]
  return optimizer.next(optimizer.initialize(specs), _WEIGHTS, _GRADIENTS)[1]


def test_the_norm_is_that_of_all_weights_and_decay_is_not_clipped():
  found = _step(client.with_gradient_clipping(_SGD, 1.0))
  for a, b in zip(found, ([1.94, 1.0], [3.92], [5.0]), strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-6)
  decaying = client.with_weight_decay(_SGD, 0.5)
  found = _step(client.with_gradient_clipping(decaying, 1.0))
  for a, b in zip(found, ([1.84, 0.95], [3.72], [5.0]), strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_bound_that_no_gradient_reaches():
  found = _step(client.with_gradient_clipping(_SGD, 5.5))
  for a, b in zip(found, _step(_SGD), strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-6)


def test_hyper_parameters_are_those_of_the_optimizer():
  optimizer = client.with_gradient_clipping(_SGD, 1.0)
  state = optimizer.initialize(tf.TensorSpec([], tf.float32))
  hparams = optimizer.get_hparams(state)
  hparams['learning_rate'] = 0.2
  assert optimizer.set_hparams(state, hparams)['learning_rate'] == 0.2
  refusals.check_values(
    lambda max_norm: client.with_gradient_clipping(_SGD, max_norm),
    {'max_norm': [0, -1.0]},
  )
