import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms

pytestmark = [pytest.mark.full, pytest.mark.usefixtures('default_runtime')]


def _deep_model_fn():
  """Three dense layers."""
  x = tf.keras.Input([linear_task.NUM_FEATURES])
  first = tf.keras.layers.Dense(
    linear_task.NUM_FEATURES,
    kernel_initializer=tf.initializers.Identity(2.0),
  )
  return tf.keras.Model(x, linear_task.embedding_model_fn()(first(x)))


_MODELS = {
  reference.ENCODER: linear_task.embedding_model_fn,
  reference.Network((4, 4, 3, 3)): _deep_model_fn,
}

_process = functools.partial(
  linear_task.build_process,
  algorithms.build_fed_rep,
  num_clients=6,
  local_epochs=2,
  # The steps of the head and of the body have a velocity each.
  client_optimizer=linear_task.sgd(0.1, momentum=0.9),
)


def _fed_rep(rounds, network, num_head_layers, head_epochs=3, uniform=False):
  w = linear_task.start(_MODELS[network])
  last = network.shapes[len(network.shapes) - 2 * num_head_layers :]
  size = len(w) - sum(map(np.prod, last))  # Of the body.
  heads = np.tile(w[size:], (6, 1))
  for clients in rounds:
    bodies, found = [], {'loss': [], 'head_loss': []}
    for i, data in clients.items():
      heads[i], _, of_head = reference.descend(
        lambda h, d=data, w=w: network.loss(tf.concat([w[:size], h], 0), d),
        *(heads[i], 0.1, head_epochs, 0.9),
      )
      body, _, of_body = reference.descend(
        lambda b, d=data, h=heads[i]: network.loss(tf.concat([b, h], 0), d),
        *(w[:size], 0.1, 2, 0.9),
      )
      bodies.append(body)
      found['head_loss'].append(of_head['loss'])
      found['loss'].append(of_body['loss'])
    sizes = [len(data.y) for data in clients.values()]
    body = reference.mean(bodies, None if uniform else sizes)
    w = np.concatenate([body, w[size:]])
    yield {
      'weights': w,
      'models': np.concatenate([np.tile(body, (6, 1)), heads], axis=1),
      'table/head': heads.copy(),
      **{f'client_work/clients/{k}': each for k, each in found.items()},
      **{
        f'client_work/{k}': np.average(each, weights=sizes)
        for k, each in found.items()
      },
    }


@pytest.mark.parametrize(
  ('network', 'options'),
  [
    (reference.ENCODER, {'num_head_layers': 1}),
    (
      reference.Network((4, 4, 3, 3)),
      {'num_head_layers': 2, 'head_epochs': 1, 'uniform': True},
    ),
  ],
)
def test_three_rounds(network, options):
  """Also of clients that have never taken part: they have the first head."""
  process = _process(model_fn=_MODELS[network], **{'head_epochs': 3, **options})
  *_, output = linear_task.assert_rounds(
    process,
    functools.partial(_fed_rep, network=network, **options),
    linear_task.rounds(),
  )
  table = process.client_model_table(output.state)
  linear_task.assert_equal(
    [rows[3] for rows in table.trainable],
    list(process.get_client_model_weights(output.state, 3).trainable),
  )


def test_without_epochs_heads_stay_as_they_are():
  process = _process(model_fn=linear_task.embedding_model_fn, head_epochs=0)
  clients = linear_task.make_clients((5, 9))
  state = process.initialize()
  output = linear_task.run(process, clients, [[0, 1]])
  assert 'head_loss' not in output.metrics['client_work']
  before, after = (s.client_work['table'] for s in (state, output.state))
  linear_task.assert_equal(after, before)


def test_a_layer_must_be_shared():
  linear_task.assert_refused(
    functools.partial(_process, model_fn=_deep_model_fn),
    ('num_head_layers', 3, 'at most 2 for this model, found 3'),
    ('num_head_layers', -1, 'at least 0, found -1'),
    ('head_epochs', -1, 'at least 0, found -1'),
  )
