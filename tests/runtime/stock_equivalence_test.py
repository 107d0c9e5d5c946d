"""TFF's processes, and parts of TFF that ours do not use, on both runtimes.

The device and the native runtime return the same types and values.
"""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tests.runtime import equivalence

pytestmark = pytest.mark.full

NUM_FEATURES, NUM_CLASSES = linear_task.NUM_FEATURES, linear_task.NUM_CLASSES
CLIENTS = equivalence.CLIENTS
SPEC = collections.OrderedDict(
  x=tf.TensorSpec([None, NUM_FEATURES], tf.float32),
  y=tf.TensorSpec([None], tf.int32),
)
sgd = tff.learning.optimizers.build_sgdm
learning = tff.learning.algorithms


def _points():
  return [tf.data.Dataset.from_tensor_slices(data.x) for data in CLIENTS]


def _loss():
  return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def _metrics():
  return [tf.keras.metrics.SparseCategoricalAccuracy()]


def _tff_model():
  return tff.learning.models.from_keras_model(
    linear_task.model_fn(), loss=_loss(), input_spec=SPEC, metrics=_metrics()
  )


def _selecting():
  """Each client sums the rows of a server's table that it asks for."""
  table_type = tff.TensorType(np.float32, [5, 2])
  keys_type = tff.TensorType(np.int32, [2])

  @tff.tensorflow.computation
  def zeros():
    return tf.ones([5, 2])

  @tff.tensorflow.computation(table_type, np.int32)
  def pick(table, key):
    return tf.gather(table, key)

  @tff.tensorflow.computation(tff.SequenceType(tff.TensorType(np.float32, [2])))
  def total(rows):
    return rows.reduce(tf.zeros([2]), tf.add)

  @tff.tensorflow.computation(table_type, tff.TensorType(np.float32, [2]))
  def add(table, row):
    return table + row

  @tff.federated_computation
  def initialize():
    return tff.federated_eval(zeros, tff.SERVER)

  @tff.federated_computation(
    tff.FederatedType(table_type, tff.SERVER),
    tff.FederatedType(keys_type, tff.CLIENTS),
  )
  def next_fn(table, keys):
    end = tff.federated_value(5, tff.SERVER)
    rows = tff.federated_select(keys, end, table, pick)
    mean = tff.federated_mean(tff.federated_map(total, rows))
    return tff.federated_map(add, (table, mean))

  return tff.templates.IterativeProcess(initialize, next_fn)


def _keys():
  return [np.array(k, np.int32) for k in ([0, 3], [4, 4], [1, 2])]


def _client_placed():
  """A process whose result is placed at clients."""
  state_type = tff.FederatedType(np.float32, tff.SERVER)
  data_type = tff.FederatedType(tff.SequenceType(np.float32), tff.CLIENTS)

  @tff.tensorflow.computation(np.float32, tff.SequenceType(np.float32))
  def work(state, numbers):
    total = numbers.reduce(state, tf.add)
    return collections.OrderedDict(total=total, both=(state, [total]))

  @tff.federated_computation
  def initialize():
    return tff.federated_value(1.5, tff.SERVER)

  @tff.federated_computation(state_type, data_type)
  def next_fn(state, data):
    result = tff.federated_map(work, (tff.federated_broadcast(state), data))
    return tff.federated_sum(result.total), result

  return tff.templates.IterativeProcess(initialize, next_fn)


def _numbers():
  return [[1.0, 2.0], [], [4.0]]


PROCESSES = {
  'weighted_mime_lite': (
    lambda: learning.build_weighted_mime_lite(_tff_model, sgd(0.1, 0.9)),
    equivalence.plain,
  ),
  'fed_eval': (lambda: learning.build_fed_eval(_tff_model), equivalence.plain),
  'fed_kmeans': (
    lambda: learning.build_fed_kmeans(2, (NUM_FEATURES,), random_seed=(1, 2)),
    _points,
  ),
  'compression_aggregator': (
    lambda: learning.build_weighted_fed_avg(
      _tff_model,
      client_optimizer_fn=sgd(0.1),
      model_aggregator=tff.learning.compression_aggregator(),
    ),
    equivalence.plain,
  ),
  'federated_select': (_selecting, _keys),
  'client_placed_result': (_client_placed, _numbers),
}


@pytest.mark.parametrize('name', PROCESSES)
def test_two_rounds(name, contexts):
  build, make_data = PROCESSES[name]
  tf.keras.utils.set_random_seed(0)
  equivalence.assert_same_rounds(build(), make_data(), contexts)
