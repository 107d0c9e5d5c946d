"""Examples to check in the head: one weight w, two clients.

Their loss is `(w - a)^2 / 2`, with a = 0 and a = 4; w is 1 at first. A step of
learning rate .1 is `w <- .9 w + .1 a`. In a round of two steps, client 0 goes
to .9 and .81, client 1 to 1.3 and 1.57; their mean is 1.19. In the second round
they go from there to .9639 and 1.7239, with a mean of 1.3439.
"""

import collections
import functools
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tff_fair import algorithms
from tff_fair import client

pytestmark = [pytest.mark.full, pytest.mark.usefixtures('default_runtime')]

# Of each round.
_EXAMPLES = {
  'fed_avg': [{'weights': 1.19}, {'weights': 1.3439}],
  # Pulled by w - 1: .9 and .82, for its part 1.3 and 1.54.
  'fed_prox': [{'weights': 1.18}],
  # The personal models are FedProx's of the first round.
  'ditto': [{'weights': 1.19, 'models': [0.82, 1.54]}],
  'standalone': [
    {'weights': 1, 'models': [0.81, 1.57]},
    {'weights': 1, 'models': [0.81**2, 0.81 * 1.57 + 0.76]},
  ],
  # Updates of length 1 in opposite directions: their shortest mix is 0.
  'fed_mgda': [{'weights': 1}],
  # Both download at the same time: 1 - .19 / 2 + .57 / 2, and without a share.
  'round_robin_fed_avg': [{'weights': 1.19, 'models': [1.19, 1.19]}],
  'dssgd': [{'weights': 1.38, 'models': [1.38, 1.38]}],
  # (1 - .81) / .2 and (1 - 1.57) / .2. Then c = -.95, so that client 0 goes
  # from 1.19 by -.1 (w - 1.9) to 1.261 and 1.3249, and client 1 by
  # -.1 (w - 4 + 1.9) to 1.281 and 1.3629: c_i + .95 + (1.19 - y) / .2.
  'scaffold': [
    {'weights': 1.19, 'table/control': [0.95, -2.85]},
    {'weights': 1.3439, 'table/control': [1.2255, -2.7645]},
  ],
  # Pulled by w - 1 as in FedProx, to .82 and 1.54. The mean drift of .18 is
  # added to their mean of 1.18. G_i = -h_i / .2 = .9 and -2.7.
  'fed_dc': [
    {
      'weights': 1.36,
      'table/drift': [-0.18, 0.54],
      'table/gradient': [0.9, -2.7],
    },
    # Client 0 goes by -.1 (w + w - .18 - 1.36 - 1.8).
    {'weights': 1.7056, 'table/drift': [-0.0684, 0.594]},
  ],
}
_OPTIONS = {
  'fed_prox': {'proximal_weight': 1.0},
  'ditto': {'proximal_weight': 1.0},
  'round_robin_fed_avg': {'total_examples': 2},
  'dssgd': {'clip_value': None},
}


@pytest.mark.parametrize('name', _EXAMPLES)
def test_example(name):
  build = getattr(algorithms, f'build_{name}')
  with mock.patch.object(client, 'classification_objective', _quadratic):
    process = linear_task.build_process(
      functools.partial(build, **_OPTIONS.get(name, {})),
      _scalar_model,
      num_clients=2,
      local_epochs=2,
    )
  rounds = [
    {
      path: np.reshape(value, [1] if path == 'weights' else [2, 1])
      for path, value in values.items()
    }
    for values in _EXAMPLES[name]
  ]
  empty = np.zeros([0, 1]), np.zeros([0], int)
  data = {
    i: linear_task.Client(np.full([1, 1], a), np.array([0]), *empty)
    for i, a in enumerate((0.0, 4.0))
  }
  linear_task.assert_rounds(process, lambda _: rounds, [data] * len(rounds))


def _scalar_model():
  """One weight, initially 1; its logits are not used."""
  x = tf.keras.Input([1])
  dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer='ones')
  return tf.keras.Model(x, tf.keras.layers.Concatenate()([dense(x), x]))


def _quadratic(focal_gamma):
  """`(w - a)^2 / 2`, where the input of a client is a."""
  del focal_gamma  # Unused.

  def compute(forward, batch, context):
    del context  # Unused.
    (w,) = forward.trainable
    loss = tf.reduce_mean((w - batch['x']) ** 2) / 2
    return loss, collections.OrderedDict(accuracy=tf.constant(0.0))

  return client.Objective(compute)
