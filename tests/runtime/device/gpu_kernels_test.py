"""Every operation of every process has a GPU kernel, shown without a GPU."""

import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tests.runtime.device import gpu_kernels
from tff_fair import algorithms
from tff_fair import models
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.runs import building
from tff_fair.launchers.runs import training

pytestmark = pytest.mark.full

# What has no GPU kernel and stays on the host, and why.
_ON_HOST = {'Const(dtype=string)': 'the text of an error message'}
# Entries of a value that a round must not copy to the host. Integers of 32 bits
# are computed there: shapes, counts, labels, places of examples and clients.
_LARGE = 500

_RECORDS = {'vocabulary_size': 9, 'num_sexes': 2, 'num_postal_buckets': 5}

# Options that reach other operations than the defaults.
_OPTIONS = (
  'cffl --upload_rate=0.4 --pretrain --ties=preclip --isolation=cascade'
  ' --after_isolation=standalone --clip_mode=norm --free_riders=1',
  'cffl --upload_rate=0.4 --ties=keep --scenario=class'
  ' --own_share=aggregation --free_riders=1 --free_rider_kind=gaussian',
  'corefed --alignment=client --include_positive',
  'fedaboost --class_count=global --fallback=fed_avg --single_class=floor2',
  'fedakd --order=up_down --granularity=single_step',
  'fedquad --nouse_ce --squared --resample=once',
  'fed_avg --client_optimizer=adam --server_optimizer=yogi --robust'
  ' --learning_rate_decay=0.9 --client_weight_decay=0.1',
  'fed_avg --client_optimizer=adamw --server_optimizer=adagrad --focal_gamma=2',
)
# The other methods, with their defaults.
_PLAIN = [
  name
  for name, method in methods.METHODS.items()
  if not method.needs_groups
  and not any(options.startswith(f'{name} ') for options in _OPTIONS)
]
# A model of each kind of layers; perceptrons are in the rounds.
_MODELS = {
  'cnn_cifar_gn': (32, 32, 3),
  'cnn_corefed': (32, 32, 3),
  'cnn_fedakd_deep': (32, 32, 3),
  'gru_ehr': (13, 4),
}


def _build(options):
  """The task and the process of a run."""
  flags = ['--num_clients=3', *f'--algorithm={options}'.split()]
  method = methods.METHODS[options.partition(' ')[0]]
  if 'validation' in method.arguments:
    flags.append('--split=server')
  settings = settings_lib.resolve(
    train_flags.parse(flags), train_flags.FLAG_NAMES
  )
  task = training.build_task(settings)
  statistics = building.gather_statistics(settings, task)
  contributions = [0.3, 0.5, 0.9]
  return task, building.build_process(settings, task, statistics, contributions)


def _check(operations):
  """Fails for what is not in the table."""
  found, missing, large = 0, set(), set()
  for operation in operations:
    found += 1
    if gpu_kernels.kernel(operation) is None:
      missing.add(gpu_kernels.describe(operation))
    elif max(gpu_kernels.host_sizes(operation), default=0) >= _LARGE:
      large.add(gpu_kernels.describe(operation))
  assert found
  assert missing <= set(_ON_HOST)
  assert not large


@pytest.mark.usefixtures('default_runtime')
@pytest.mark.parametrize('options', (*_PLAIN, *_OPTIONS))
def test_rounds(options):
  _, process = _build(options)
  for computation in (process.initialize, process.next):
    _check(gpu_kernels.operations(computation))


@pytest.mark.usefixtures('default_runtime')
def test_rounds_with_groups_of_people():
  process = algorithms.build_fair_fed(
    linear_task.binary_model_fn,
    num_clients=3,
    client_optimizer=tff.learning.optimizers.build_sgdm(0.1),
  )
  _check(gpu_kernels.operations(process.next))


@pytest.mark.usefixtures('default_runtime')
@pytest.mark.parametrize('name', _MODELS)
def test_training_and_evaluation_of_models(name):
  def model_fn():
    more = _RECORDS if name == 'gru_ehr' else {}
    return getattr(models, name)(_MODELS[name], **more)

  process = algorithms.build_fed_avg(
    model_fn, client_optimizer=tff.learning.optimizers.build_sgdm(0.1)
  )
  _check(gpu_kernels.operations(process.next))
  centroids = algorithms.build_class_centroids(model_fn)
  _check(gpu_kernels.operations(centroids))
  model = model_fn()
  predict = tf.function(lambda x: model(x, training=False), autograph=False)
  _check(
    gpu_kernels.function_operations(
      predict.get_concrete_function(tf.TensorSpec(model.input.shape))
    )
  )


@pytest.mark.usefixtures('default_runtime')
def test_statistics_before_round_0():
  task, _ = _build('fed_rdn')
  gather = algorithms.build_channel_statistics(task.model_fn, num_clients=3)
  _check(gpu_kernels.operations(gather))


def test_what_is_found():
  """The table would not show it if nothing were ever missing."""

  @tf.function
  def inner(x):
    return tf.raw_ops.NthElement(input=x, n=1)

  @tf.function
  def outer(x, order):
    while tf.reduce_sum(x) < 3:
      x += inner(x)
    return x, tf.math.invert_permutation(order)

  function = outer.get_concrete_function(
    tf.TensorSpec([4]), tf.TensorSpec([_LARGE], tf.int32)
  )
  operations = list(gpu_kernels.function_operations(function))
  missing = {
    gpu_kernels.describe(operation)
    for operation in operations
    if gpu_kernels.kernel(operation) is None
  }
  assert missing == {'NthElement(T=float32)'}
  [permutation] = [op for op in operations if op.type == 'InvertPermutation']
  assert list(gpu_kernels.host_sizes(permutation)) == [_LARGE, _LARGE]
