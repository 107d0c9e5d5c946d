"""TripletFL with triplets that are mined within minibatches."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tff_fair import algorithms
from tff_fair import client

# On a line: a and b of class 0, c and d of class 1.
#   d(a, b) = 2, d(a, c) = 3, d(a, d) = 4, d(b, c) = 1, d(b, d) = 2, d(c, d) = 1
_EMBEDDINGS = np.array([[0.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0]])
_LABELS = [0, 0, 1, 1]
_LOSSES = {
  # Of the pairs (a, b), (b, a), (c, d), (d, c); the nearest negative that is
  # farther than the positive is at 3, none (so the farthest, at 2), 3 and 2:
  # [2 - 3 + m]_+, [2 - 2 + m]_+, [1 - 3 + m]_+, [1 - 2 + m]_+ with m = 1.5.
  'semihard': (0.5 + 1.5 + 0 + 0.5) / 4,
  # The nearest negatives are at 3, 1, 1 and 2:
  # [2 - 3 + m]_+, [2 - 1 + m]_+, [1 - 1 + m]_+, [1 - 2 + m]_+.
  'hard': (0.5 + 2.5 + 1.5 + 0.5) / 4,
}


def _metric_loss(mining, labels, embeddings):
  """The metric loss of a minibatch, and its gradient."""
  embeddings = tf.constant(embeddings, tf.float32)
  objective = client.mined_triplet_objective(
    mining, weight=2.0, margin=1.5, use_ce=False
  )

  def forward(x):
    return collections.OrderedDict(logits=tf.zeros([len(x), 3]), embedding=x)

  batch = collections.OrderedDict(
    x=embeddings, y=tf.constant(labels), index=tf.range(len(labels))
  )
  with tf.GradientTape() as tape:
    tape.watch(embeddings)
    loss, metrics = objective.compute(forward, batch, ())
  assert tuple(metrics) == objective.metric_names
  np.testing.assert_allclose(loss, 2 * metrics['triplet_loss'])
  return metrics['triplet_loss'], tape.gradient(loss, embeddings)


@pytest.mark.parametrize('mining', _LOSSES)
def test_the_loss_of_a_minibatch_by_hand(mining):
  loss, _ = _metric_loss(mining, _LABELS, _EMBEDDINGS)
  np.testing.assert_allclose(loss, _LOSSES[mining], rtol=1e-6)


@pytest.mark.parametrize('mining', _LOSSES)
def test_a_minibatch_without_triplets_has_no_metric_loss(mining):
  for labels in ([0, 0, 0, 0], [0, 1, 2], [0]):
    loss, gradient = _metric_loss(mining, labels, _EMBEDDINGS[: len(labels)])
    assert loss == 0, labels
    assert gradient is None or not np.any(gradient), labels


@pytest.mark.usefixtures('default_runtime')
def test_two_rounds():
  clients = [
    linear_task.labelled_client([0, 0, 1, 1, 2, 2]),
    linear_task.labelled_client([1, 1, 1, 1, 1], seed=1),
  ]
  process = algorithms.build_triplet_fl(
    linear_task.embedding_model_fn,
    num_clients=2,
    client_optimizer=linear_task.sgd(0.1),
    local_epochs=1,
    batch_size=6,
    mining='semihard',
  )
  metrics = linear_task.run(process, clients, [[0, 1], [0, 1]]).metrics
  clients = metrics['client_work']['clients']
  assert metrics['client_work']['num_rejected_clients'] == 0
  assert metrics['client_work']['triplet_loss'] > 0
  assert 'v1_share' not in metrics['client_work']
  assert np.all(np.isfinite(clients['loss']))
