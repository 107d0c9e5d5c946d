"""The device and the native runtime give the same types and values."""

import collections
import functools

import attrs
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import image_task
from tests.algorithms import linear_task
from tff_fair import algorithms
from tff_fair import models
from tff_fair import runtime

ROUNDS = 3
NUM_FEATURES, NUM_CLASSES = linear_task.NUM_FEATURES, linear_task.NUM_CLASSES
CLIENTS = linear_task.make_clients([7, 5, 12], holdout=4)
SPEC = collections.OrderedDict(
  x=tf.TensorSpec([None, NUM_FEATURES], tf.float32),
  y=tf.TensorSpec([None], tf.int32),
)
sgd = tff.learning.optimizers.build_sgdm
learning = tff.learning.algorithms


def _plain(batch_size=4):
  return [
    tf.data.Dataset.from_tensor_slices(
      collections.OrderedDict(x=data.x, y=data.y.astype(np.int32))
    ).batch(batch_size)
    for data in CLIENTS
  ]


def _with_ids():
  return [linear_task.client_data(i, data) for i, data in enumerate(CLIENTS)]


def _images():
  return [
    linear_task.client_data(i, image_task.as_images(data))
    for i, data in enumerate(CLIENTS)
  ]


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


def _reconstruction_model():
  x = tf.keras.Input([NUM_FEATURES])
  hidden = tf.keras.layers.Dense(4, kernel_initializer='ones')
  head = tf.keras.layers.Dense(NUM_CLASSES, kernel_initializer='ones')
  return tff.learning.models.ReconstructionModel.from_keras_model_and_layers(
    keras_model=tf.keras.Model(x, head(hidden(x))),
    global_layers=[hidden],
    local_layers=[head],
    input_spec=SPEC,
  )


def _fed_recon():
  return learning.build_fed_recon(
    _reconstruction_model,
    loss_fn=_loss,
    metrics_fn=_metrics,
    client_optimizer_fn=sgd(0.1),
    reconstruction_optimizer_fn=sgd(0.1),
    server_optimizer_fn=sgd(1.0),
    dataset_split_fn=(
      tff.learning.models.ReconstructionModel.simple_dataset_split_fn
    ),
  )


def _fed_avg(**arguments):
  return learning.build_weighted_fed_avg(
    _tff_model, client_optimizer_fn=sgd(0.1), **arguments
  )


def _fed_avg_with_clipping():
  # Without noise: TFF draws it from op seeds, so it never repeats.
  return learning.build_unweighted_fed_avg(
    _tff_model,
    client_optimizer_fn=sgd(0.1),
    model_aggregator=tff.learning.dp_aggregator(0.0, len(CLIENTS)),
  )


def _ours(build, **arguments):
  return build(
    linear_task.model_fn,
    client_optimizer=sgd(0.1, momentum=0.9),
    local_epochs=2,
    batch_size=3,
    **arguments,
  )


def _cffl(**arguments):
  return _ours(
    algorithms.build_cffl,
    num_clients=len(CLIENTS),
    validation=_validation(),
    pretrain=True,
    **arguments,
  )


def _embedding_model_fn():
  return models.mlp_cffl_adult((NUM_FEATURES,), NUM_CLASSES)


def _with_embedding(build, **arguments):
  return build(
    _embedding_model_fn,
    client_optimizer=sgd(0.1),
    batch_size=3,
    **arguments,
  )


def _compared(name, **arguments):
  """FedAKD, or one that its paper compares it with."""
  return _with_embedding(
    getattr(algorithms, f'build_{name}'),
    num_clients=len(CLIENTS),
    **arguments,
  )


def _validation():
  return CLIENTS[0].holdout_x, CLIENTS[0].holdout_y


def _corefed(**arguments):
  return _with_embedding(
    algorithms.build_corefed, num_clients=len(CLIENTS), **arguments
  )


def _fed_mdfg():
  return algorithms.build_fed_mdfg(
    linear_task.model_fn,
    num_clients=len(CLIENTS),
    client_optimizer=sgd(0.1),
    batch_size=3,
  )


def _fed_rdn():
  rows = np.array([[0.1], [0.2], [np.nan]], np.float32)
  return algorithms.build_fed_rdn(
    image_task.model_fn,
    num_clients=len(CLIENTS),
    client_optimizer=sgd(0.1),
    statistics=collections.OrderedDict(mean=rows, std=rows),
    batch_size=3,
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
  'our_fed_avg': (lambda: _ours(algorithms.build_fed_avg), _plain),
  'our_fedaboost': (
    lambda: _ours(algorithms.build_fedaboost, num_clients=len(CLIENTS)),
    _with_ids,
  ),
  'our_ditto': (
    lambda: _ours(algorithms.build_ditto, num_clients=len(CLIENTS)),
    _with_ids,
  ),
  'our_cffl': (lambda: _cffl(upload_rate=1.0), _with_ids),
  'our_cffl_with_sparse_uploads': (lambda: _cffl(upload_rate=0.4), _with_ids),
  'our_corefed': (_corefed, _with_ids),
  'our_corefed_with_alignment_at_clients': (
    lambda: _corefed(alignment='client'),
    _with_ids,
  ),
  'our_q_fed_avg': (lambda: _ours(algorithms.build_q_fed_avg), _plain),
  'our_fed_mgda': (lambda: _ours(algorithms.build_fed_mgda), _plain),
  'our_fed_mdfg': (_fed_mdfg, _with_ids),
  'our_fed_rdn': (_fed_rdn, _images),
  'our_fed_prox': (lambda: _ours(algorithms.build_fed_prox), _plain),
  'our_fedquad': (lambda: _with_embedding(algorithms.build_fedquad), _plain),
  'our_triplet_fl': (
    lambda: _with_embedding(algorithms.build_triplet_fl),
    _plain,
  ),
  'our_quadruplet_fl': (
    lambda: _with_embedding(algorithms.build_quadruplet_fl),
    _plain,
  ),
  'our_supcon_fl': (
    lambda: _with_embedding(algorithms.build_supcon_fl),
    _plain,
  ),
  'our_moon': (
    lambda: _with_embedding(algorithms.build_moon, num_clients=len(CLIENTS)),
    _with_ids,
  ),
  **{
    f'our_{name}': (functools.partial(_compared, name, **arguments), _with_ids)
    for name, arguments in {
      'fedakd': {'order': 'up_down'},
      'scaffold': {},
      'cgsv': {},
      'fed_ave': {'validation': _validation()},
      'fed_sac': {
        'validation': _validation(),
        'contributions': (0.3, 0.5, 0.9),
      },
      'pfed_ck': {'num_clusters': 2},
      'fed_dc': {},
      'fed_as': {},
      'fed_mpr': {},
    }.items()
  },
  'our_standalone': (
    lambda: _ours(algorithms.build_standalone, num_clients=len(CLIENTS)),
    _with_ids,
  ),
  'our_dssgd': (
    lambda: _ours(
      algorithms.build_dssgd, num_clients=len(CLIENTS), upload_rate=0.4
    ),
    _with_ids,
  ),
  'weighted_fed_avg': (_fed_avg, _plain),
  'unweighted_fed_avg': (
    lambda: learning.build_unweighted_fed_avg(
      _tff_model,
      client_optimizer_fn=sgd(0.1),
      server_optimizer_fn=tff.learning.optimizers.build_adam(0.01),
    ),
    _plain,
  ),
  'weighted_fed_prox': (
    lambda: learning.build_weighted_fed_prox(
      _tff_model, 0.1, client_optimizer_fn=sgd(0.1)
    ),
    _plain,
  ),
  'weighted_mime_lite': (
    lambda: learning.build_weighted_mime_lite(_tff_model, sgd(0.1, 0.9)),
    _plain,
  ),
  'fed_eval': (lambda: learning.build_fed_eval(_tff_model), _plain),
  'fed_kmeans': (
    lambda: learning.build_fed_kmeans(2, (NUM_FEATURES,), random_seed=(1, 2)),
    _points,
  ),
  'fed_recon': (_fed_recon, _plain),
  'robust_aggregator': (
    lambda: _fed_avg(model_aggregator=tff.learning.robust_aggregator()),
    _plain,
  ),
  'dp_aggregator': (_fed_avg_with_clipping, _plain),
  'compression_aggregator': (
    lambda: _fed_avg(model_aggregator=tff.learning.compression_aggregator()),
    _plain,
  ),
  'federated_select': (_selecting, _keys),
  'client_placed_result': (_client_placed, _numbers),
}


def _run(process, data, context):
  """Everything the process gives out in a few rounds."""
  with tff.framework.get_context_stack().install(context):
    state = process.initialize()
    results = [state]
    for _ in range(ROUNDS):
      output = process.next(state, data)
      results.append(output)
      if isinstance(output, tuple):  # <state, something>
        state = output[0]
      else:
        state = getattr(output, 'state', output)
    if hasattr(process, 'get_model_weights'):
      results.append(process.get_model_weights(state))
  return results


def _assert_equal(a, b):
  """Same Python types all the way down, and values equal to 1e-5."""
  assert type(a) is type(b)
  if isinstance(a, (list, tuple)):
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
      _assert_equal(x, y)
  elif isinstance(a, dict):
    assert list(a) == list(b)
    _assert_equal(list(a.values()), list(b.values()))
  elif attrs.has(type(a)):
    fields = [field.name for field in attrs.fields(type(a))]
    _assert_equal(
      [getattr(a, f) for f in fields], [getattr(b, f) for f in fields]
    )
  elif isinstance(a, bytes):
    assert a == b
  else:
    assert isinstance(a, (np.ndarray, np.generic))
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope='module')
def contexts():
  """One context of each kind, used in turn."""
  kinds = ('device', 'native')
  yield [runtime.create_execution_context(kind) for kind in kinds]
  runtime.set_execution_context('device', device='cpu')  # Ends the worker.


@pytest.mark.parametrize('name', PROCESSES)
def test_three_rounds(name, contexts):
  build, make_data = PROCESSES[name]
  tf.keras.utils.set_random_seed(0)
  process, data = build(), make_data()
  on_device, on_worker = [_run(process, data, c) for c in contexts]
  _assert_equal(on_device, on_worker)


def test_class_centroids(contexts):
  computation = algorithms.build_class_centroids(_embedding_model_fn)
  weights = models.StatelessModel(_embedding_model_fn).initial_weights
  results = []
  for context in contexts:
    with tff.framework.get_context_stack().install(context):
      results.append(computation(weights, _plain()))
  _assert_equal(*results)
