import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tff_fair import algorithms
from tff_fair import models

pytestmark = pytest.mark.usefixtures('default_runtime')

# More than go through a model at once; no example of class 1; and none at all.
_LABELS = ([0, 1, 2] * 80, [2, 0, 2, 2], [])
_IDS = pytest.mark.parametrize('num_clients', [None, 3])


def _model_fn():
  """Sensitive to training mode and to the moving statistics."""
  return linear_task.embedding_behind_batch_norm_model_fn(dropout_rate=0.5)


@functools.cache
def _weights():
  """Moving statistics are not the initial ones."""
  weights = models.StatelessModel(_model_fn).initial_weights
  mean, variance = weights.non_trainable
  return tff.learning.models.ModelWeights(
    trainable=weights.trainable, non_trainable=[mean + 1, variance + 2]
  )


@functools.cache
def _computation(num_clients, model_fn=_model_fn):
  return algorithms.build_class_centroids(model_fn, num_clients=num_clients)


def _clients():
  return [linear_task.labelled_client(y, i) for i, y in enumerate(_LABELS)]


def _found(num_clients, clients, weights=None):
  data = [linear_task.client_data(i, c) for i, c in enumerate(clients)]
  if num_clients is None:
    data = [d['train'] for d in data]
  return _computation(num_clients)(weights or _weights(), data)


def _expected(clients):
  """Sums and counts, one example after the other."""
  _, _, kernel, bias, *_ = _weights().trainable
  size = (linear_task.NUM_CLASSES, linear_task.EMBEDDING_SIZE)
  sums, counts = np.zeros(size), np.zeros(size[0], np.int32)
  for client in clients:
    for x, y in zip(client.x.astype(np.float64), client.y, strict=True):
      # 1 / sqrt(1 + 2 + .001), of the inputs less 1.
      sums[y] += (x - 1) / np.sqrt(3.001) @ kernel + bias
      counts[y] += 1
  return sums, counts


@_IDS
def test_sums_and_counts(num_clients):
  clients = _clients()
  found = _found(num_clients, clients)
  sums, counts = _expected(clients)
  np.testing.assert_array_equal(found['counts'], counts)
  np.testing.assert_array_equal(counts, [81, 80, 83])
  np.testing.assert_allclose(found['sums'], sums, rtol=1e-5, atol=1e-4)
  assert found['num_rejected_clients'] == 0
  # A client that is not finite is counted and left out.
  for value in (np.nan, np.inf):
    clients[0].x[239, 3] = value
    found = _found(num_clients, clients)
    sums, counts = _expected(clients[1:])
    assert found['num_rejected_clients'] == 1
    np.testing.assert_array_equal(found['counts'], counts)
    np.testing.assert_allclose(found['sums'], sums, rtol=1e-5, atol=1e-5)


def test_holdout_examples_do_not_count():
  (client, *_) = _clients()
  train = linear_task.labelled_client([0, 1], seed=7)
  train.holdout_x, train.holdout_y = client.x, client.y
  np.testing.assert_array_equal(_found(3, [train])['counts'], [1, 1, 0])
  for nobody in ([], _clients()[2:]):
    assert not np.any(_found(3, nobody)['counts'])
    assert not np.any(_found(3, nobody)['sums'])


def test_takes_the_weights_and_data_of_a_process():
  """The centroids of two classes are the embeddings of two examples."""
  process = algorithms.build_fed_avg(
    _model_fn, client_optimizer=linear_task.sgd(0.1)
  )
  client = linear_task.labelled_client([2, 0])
  weights = process.get_model_weights(process.initialize())
  found = _found(None, [client], weights)
  z = _model_fn()(client.x, training=False)['embedding'].numpy()
  linear_task.assert_close(found['sums'], np.array([z[1], np.zeros(3), z[0]]))


def test_the_model_must_have_an_embedding():
  linear_task.assert_refused(
    _computation,
    ('model_fn', linear_task.model_fn, "'embedding'.* found logits only"),
    ('model_fn', tf.keras.Sequential(), 'a function', TypeError),
    num_clients=None,
  )
