import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms
from tff_fair import client
from tff_fair.algorithms.baselines import scaffold

pytestmark = pytest.mark.usefixtures('default_runtime')

_process = functools.partial(
  linear_task.build_process,
  algorithms.build_scaffold,
  num_clients=6,
  local_epochs=2,
)


def _scaffold(rounds, decay=1.0, server_learning_rate=1.0, script=False):
  """The server's control variate is accumulated from round to round."""
  x, c = linear_task.start(), 0.0
  controls = np.zeros([6, len(x)])
  for number, clients in enumerate(rounds):
    rate, ids = 0.1 * decay**number, list(clients)
    trained = np.array(
      [
        reference.LINEAR.train(
          x,
          data,
          rate=rate,
          epochs=2,
          plus=functools.partial(tf.tensordot, c - controls[i], axes=1),
        )
        for i, data in clients.items()
      ]
    )
    # For the script there is one step, although there are two.
    num_steps = 1 if script else 2
    change = (x - trained) / (num_steps * rate) - c
    sizes = [len(data.y) for data in clients.values()] if script else None
    # In c, absent clients count as unchanged.
    share = 1 if script else len(ids) / 6
    c = c + share * reference.mean(change, sizes)
    controls[ids] += change
    x = x + server_learning_rate * reference.mean(trained - x, sizes)
    yield {'weights': x, 'table/control': controls.copy()}


@pytest.mark.parametrize(
  'options', [{}, {'server_learning_rate': 0.3, 'decay': 0.5}], ids=str
)
def test_three_rounds(options):
  linear_task.assert_rounds(
    _process(**options),
    functools.partial(_scaffold, **options),
    linear_task.rounds(),
    loose=['table/control'],
  )


@pytest.mark.full
def test_the_script_of_fedakd():
  """For the same clients in each round, c is the sum of its script."""
  linear_task.assert_rounds(
    _process(variant='fedakd'),
    functools.partial(_scaffold, script=True),
    linear_task.rounds([[0, 1, 3, 4, 5]] * 3),
    loose=['table/control'],
  )


def test_new_control_by_hand():
  # c = 0 and c_i = 0, then c - c_i = -.95 - .95.
  for shift, w, y, distance, expected in (
    (0, 1, 0.81, 0.2, 0.95),
    (-1.9, 1.19, 1.3249, 0.2, 1.2255),
    # Without a step it is c_i - c.
    (0.3, 1, 1, 0, -0.3),
  ):
    before, after = (
      tff.learning.models.ModelWeights([tf.constant([value], tf.float32)], [])
      for value in (w, y)
    )
    (found,) = scaffold.new_control(
      [tf.constant([shift], tf.float32)], before, after, np.float32(distance)
    )
    np.testing.assert_allclose(found, [expected], atol=1e-5)


@pytest.mark.full
@pytest.mark.parametrize(
  ('variant', 'num_steps'), [('original', (4, 6)), ('fedakd', (1, 1))]
)
def test_the_number_of_steps_is_that_of_minibatches(variant, num_steps):
  """In two epochs over 5 and over 9 examples, in minibatches of 4."""
  process = _process(variant=variant, batch_size=4)
  clients = linear_task.make_clients((5, 9))
  for i, number in enumerate(num_steps):
    state = linear_task.run(process, clients, [[i]]).state
    controls = linear_task.client_vectors(state.client_work['table']['control'])
    linear_task.assert_close(
      controls[i] * number * 0.1,
      linear_task.start() - linear_task.weights(process, state),
      rtol=1e-4,
    )


@pytest.mark.parametrize('name', ('scaffold', 'fed_dc'))
def test_needs_plain_sgd(name):
  build = functools.partial(
    linear_task.build_process,
    getattr(algorithms, f'build_{name}'),
    num_clients=6,
  )
  optimizers = tff.learning.optimizers
  for optimizer in (
    linear_task.sgd(0.1, momentum=0.9),
    client.with_weight_decay(linear_task.sgd(0.1), 1e-3),
    optimizers.build_adam(0.1),
    optimizers.build_adamw(0.1),
    optimizers.build_adagrad(0.1),
  ):
    linear_task.assert_refused(
      build, ('client_optimizer', optimizer, 'plain SGD for .*found')
    )
  if name == 'fed_dc':  # Without the correction, any is accepted.
    momentum = linear_task.sgd(0.1, momentum=0.9)
    for options in ({'grad_correction': False}, {'variant': 'fedakd'}):
      build(client_optimizer=momentum, **options)
