"""The workloads that `benchmarks.run` times.

A workload is a function of a `Setup`. It returns its implementations, name ->
function that runs one round; the first is the reference. The first round also
initialises the state. The data are random: times depend only on their shapes.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from benchmarks import peer
from tff_fair import algorithms
from tff_fair import client
from tff_fair import models
from tff_fair import runtime
from tff_fair.tensors import client_table as table_lib

Implementations = dict[str, Callable[[], None]]

_NUM_CLASSES = 10
_RATE = 0.1
_TABLE_ROWS, _TABLE_COLUMNS, _TABLE_COHORT = 100, 1_000_000, 20
_REUSE_CLIENTS, _REUSE_COHORT = 100, 20
_STATE_FLOATS, _STATE_CLIENTS = 25_000_000, 2
_MANY_CLIENTS, _MANY_COHORT, _MANY_EXAMPLES = 3000, 500, 20
_PFL_COHORT = 50
_IMAGE = [32, 32, 3]

# Workload -> explanation of its times.
NOTES = {
  'tiny': (
    'the round is so small that the difference of the medians is what it costs'
    ' to distribute it'
  ),
}


@dataclasses.dataclass(frozen=True)
class Setup:
  """The data and model of a workload.

  Attributes:
    names: The implementations to compare, the reference first: 'device',
      'native' and 'cluster' are ours on these runtimes; 'stock' is TFF's on
      TFF's worker; others are peers.
    contexts: Kind of runtime -> context, for the runtimes of these names.
  """

  names: tuple[str, ...]
  contexts: Mapping[str, tff.framework.SyncContext]

  @property
  def runtimes(self) -> list[str]:
    """The names of what runs here, on a runtime."""
    return _on_a_runtime(self.names)

  @property
  def peers(self) -> list[str]:
    """The names of simulators, each in a process of its own."""
    return [name for name in self.names if name in peer.NAMES]

  def context(self, name: str) -> tff.framework.SyncContext:
    """Returns the context of an implementation."""
    return self.contexts[_runtime(name)]


def build_setup(
  names: Sequence[str], options: Mapping[str, Mapping[str, Any]]
) -> Setup:
  """Creates the contexts, one for each kind of runtime, with its options.

  That of the reference becomes TFF's default context, too: the one that TFF
  makes hangs at the end of Python if it is never used.
  """
  kinds = [_runtime(name) for name in _on_a_runtime(names)]
  contexts = {
    kind: runtime.create_execution_context(kind, **options.get(kind, {}))
    for kind in set(kinds)
  }
  tff.framework.set_default_context(contexts[kinds[0]])
  return Setup(tuple(names), contexts)


def _on_a_runtime(names):
  return [name for name in names if name not in peer.NAMES]


def _runtime(name: str) -> str:
  return 'native' if name == 'stock' else name


def a(setup: Setup) -> Implementations:
  """FedAvg: a perceptron, 10 clients of 600 examples, 2 epochs."""
  return _fed_avg(setup, _mlp_task())


def b(setup: Setup) -> Implementations:
  """FedAvg: a convolutional net, 20 clients of 500 images, 1 epoch."""
  shape = [32, 32, 3]
  examples = _examples(20, 500, shape)
  return _fed_avg(setup, _Task(lambda: _cnn(shape), examples, batch_size=50))


def cross_device(setup: Setup) -> Implementations:
  """A's perceptron, 500 of 3,000 clients of 20 examples a round, batch 10.

  FedAvg on the runtimes, with clients that are at hand; with clients that are
  made of arrays in each round; FeDABoost, and SCAFFOLD with a row for each of
  the 3,000 clients.
  """
  examples = _examples(_MANY_CLIENTS, _MANY_EXAMPLES, [784])
  model_fn = functools.partial(_mlp, [784], 128, 64)
  task = _Task(model_fn, examples, batch_size=10, cohort=_MANY_COHORT)
  rounds = functools.partial(_cohorts, setup.context('device'), task=task)
  return {
    **_with_peers(setup, task, 'cross_device'),
    'made_anew': rounds(anew=True),
    'fedaboost': rounds(algorithms.build_fedaboost, _split),
    'scaffold': rounds(algorithms.build_scaffold),
  }


def pfl_cifar10(setup: Setup) -> Implementations:
  """The benchmark of pfl-research: 50 of 1,000 clients of 50 images a round.

  One epoch, batch 10, a convolutional net with dropout. All clients have as
  many examples, so the mean is the one without weights.
  """
  examples = _examples(1000, 50, _IMAGE)
  task = _Task(_cnn_pfl, examples, batch_size=10, cohort=_PFL_COHORT)
  return _with_peers(setup, task, 'pfl_cifar10')


def blazefl(setup: Setup) -> Implementations:
  """The benchmark of BlazeFL: all of 100 clients of 500 images, 5 epochs."""
  examples = _examples(100, 500, _IMAGE)
  task = _Task(_cnn_blazefl, examples, local_epochs=5, batch_size=50)
  return _with_peers(setup, task, 'blazefl')


def table(setup: Setup) -> Implementations:
  """A round that only reads and writes 20 rows of a large client table.

  On TFF's worker a round takes about ten seconds and several GB.
  """
  return _same_computation(setup, _table_rounds)


def state(setup: Setup) -> Implementations:
  """A round that only sends 100 MB: to two clients, and their sum back."""
  return _same_computation(setup, _state_rounds)


def data(setup: Setup) -> Implementations:
  """A round that only sums the clients' data: 10 clients of 3,000 x 784."""
  arrays = [x for x, _ in _examples(10, 3000, [784])]
  return _same_computation(setup, lambda context: _data_rounds(context, arrays))


def fedaboost(setup: Setup) -> Implementations:
  """FeDABoost and FedAvg, both trained on the same part of A's data."""
  context, task = setup.context('device'), _mlp_task()
  trained = [_split(*examples)[0] for examples in task.examples]
  return {
    'fed_avg': _ours(context, dataclasses.replace(task, examples=trained)),
    'fedaboost': _fedaboost(context, task, num_clients=len(trained)),
  }


def cffl(setup: Setup) -> Implementations:
  """CFFL and FedAvg: the model of A, 20 clients, 6,000 examples to validate."""
  context = setup.context('device')
  task = dataclasses.replace(_mlp_task(), examples=_examples(20, 600, [784]))
  validation = _examples(1, 6000, [784])[0]
  build = functools.partial(_cffl, context, task, validation, num_clients=20)
  return {
    'fed_avg': _ours(context, task),
    'cffl': build(upload_rate=1.0),
    'cffl_sparse': build(upload_rate=0.1),
  }


def cffl_absent(setup: Setup) -> Implementations:
  """CFFL with 100 participants, of whom the same 10 are always present."""
  shape = [784]
  task = _Task(lambda: _mlp(shape, 128), _examples(10, 600, shape))
  validation = _examples(1, 600, shape)[0]
  return _on_runtimes(
    setup, lambda context: _cffl(context, task, validation, num_clients=100)
  )


def corefed_cnn(setup: Setup) -> Implementations:
  """CoRe-Fed and FedAvg: its CIFAR-10 model, 20 of 100 clients a round."""
  return _reuse(setup, models.cnn_corefed, [32, 32, 3], num_examples=500)


def corefed_mlp(setup: Setup) -> Implementations:
  """CoRe-Fed and FedAvg: its perceptron, 20 of 100 clients a round."""
  return _reuse(setup, models.mlp_corefed, [28, 28, 1], num_examples=600)


def fedquad(setup: Setup) -> Implementations:
  """FedQuad, its baselines and FedAvg: its model, 4 clients, 1 epoch.

  MOON's first round, which has no previous model, is not counted.
  """
  examples = _examples(4, 256, [32, 32, 3])
  return _with_fed_avg(
    setup,
    _Task(models.cnn_fedquad, examples, batch_size=128),
    fedquad=algorithms.build_fedquad,
    triplet_fl=algorithms.build_triplet_fl,
    supcon_fl=algorithms.build_supcon_fl,
    moon=algorithms.build_moon,
  )


def fedakd(setup: Setup) -> Implementations:
  """FedAKD and FedAvg: its CIFAR-10 model, 10 clients, 1 epoch.

  With random labels hardly any example is used for distillation; with
  `all_data` all of them are, which gives the longest possible round.
  """
  examples = _examples(10, 320, [32, 32, 3])
  task = _Task(models.cnn_fedakd, examples, batch_size=32)
  return _with_fed_avg(
    setup,
    task,
    fedakd=algorithms.build_fedakd,
    fedakd_all_data=functools.partial(
      algorithms.build_fedakd, variant='all_data'
    ),
    cgsv=algorithms.build_cgsv,
  )


def population(setup: Setup) -> Implementations:
  """The cost of absent clients: cohorts of 10 out of few and out of many."""
  task = _Task(lambda: _mlp([64], 32), _examples(10, 100, [64]))
  return {
    f'of_{size}': _fedaboost(setup.context('device'), task, size)
    for size in (100, 10_000)
  }


def tiny(setup: Setup) -> Implementations:
  """A FeDABoost round of 15 parameters: what a round costs without work."""
  examples = [(x, y % 3) for x, y in _examples(10, 8, [4])]
  task = _Task(lambda: _mlp([4], num_classes=3), examples, batch_size=8)
  return _on_runtimes(
    setup, lambda context: _fedaboost(context, task, len(examples))
  )


def of_size(
  setup: Setup, num_clients: int, num_examples: int, num_weights: int
) -> tuple[Implementations, int]:
  """FedAvg: a perceptron on 64 numbers of about so many weights, batch 20.

  Returns:
    The implementation on `device`, and the number of weights.
  """
  inputs, outputs = 64, _NUM_CLASSES
  # Weights and biases of a unit: from the inputs, and to the outputs.
  of_a_unit = inputs + 1 + outputs
  units = max(1, round((num_weights - outputs) / of_a_unit))
  task = _Task(
    lambda: _mlp([inputs], units),
    _examples(num_clients, num_examples, [inputs]),
    batch_size=20,
  )
  rounds = _ours(setup.context('device'), task, num_clients=num_clients)
  return {'device': rounds}, units * of_a_unit + outputs


class _Rounds:
  """Runs a round per call, and keeps the state between calls."""

  def __init__(
    self,
    context: tff.framework.SyncContext,
    initialize: Callable[[], Any],
    next_round: Callable[[Any], Any],
  ):
    self._context = context
    self._initialize = initialize
    self._next_round = next_round
    self._state = None

  @property
  def traffic(self) -> tuple[int, int] | None:
    """Bytes that the context has sent to workers and received from them."""
    if not hasattr(self._context, 'bytes_sent'):
      return None
    return self._context.bytes_sent, self._context.bytes_received

  def __call__(self) -> None:
    with tff.framework.get_context_stack().install(self._context):
      if self._state is None:
        self._state = self._initialize()
      self._state = self._next_round(self._state)


@dataclasses.dataclass(frozen=True)
class _Task:
  """A model, the clients' examples `(x, y)`, and how they train.

  Attributes:
    cohort: Number of clients that train in a round; None for all.
  """

  model_fn: Callable[[], tf.keras.Model]
  examples: list[tuple[np.ndarray, np.ndarray]]
  local_epochs: int = 1
  batch_size: int = 16
  cohort: int | None = None

  @property
  def cohort_size(self) -> int:
    return self.cohort or len(self.examples)


def _mlp_task() -> _Task:
  examples = _examples(10, 600, [784])
  return _Task(lambda: _mlp([784], 128, 64), examples, local_epochs=2)


def _with_fed_avg(setup, task, **builders) -> Implementations:
  """FedAvg, and methods whose builders take the same arguments."""
  context, num_clients = setup.context('device'), len(task.examples)
  return {
    name: _ours(context, task, build, num_clients=num_clients)
    for name, build in {
      'fed_avg': algorithms.build_fed_avg,
      **builders,
    }.items()
  }


def _on_runtimes(setup, build, stock=None, peers=None) -> Implementations:
  """Builds on all runtimes, and by `stock` what is called so, if anything.

  What runs, `peers` too, has the order of the names: the reference is first.
  """
  builders = {
    name: stock if name == 'stock' else build for name in setup.runtimes
  }
  found = {
    name: builder(setup.context(name))
    for name, builder in builders.items()
    if builder
  } | (peers or {})
  return {name: found[name] for name in setup.names if name in found}


def _same_computation(setup, build) -> Implementations:
  """Builds a computation, for which `stock` and `native` are the same."""
  names = ('stock' if name == 'native' else name for name in setup.names)
  names = tuple(dict.fromkeys(names))
  return _on_runtimes(dataclasses.replace(setup, names=names), build, build)


def _fed_avg(setup, task) -> Implementations:
  """Builds FedAvg on a task, ours and TFF's."""
  return _on_runtimes(
    setup, lambda context: _ours(context, task), lambda c: _stock(c, task)
  )


def _with_peers(setup, task, workload) -> Implementations:
  """Builds FedAvg with a cohort a round: ours, TFF's, and that of peers."""
  build = functools.partial(_cohorts, task=task)
  return _on_runtimes(
    setup,
    build,
    functools.partial(build, stock=True),
    _peers(setup, task, workload) if setup.peers else None,
  )


def _peers(setup, task, workload) -> Implementations:
  """The peers of a workload, with the same examples."""
  x, y = map(np.stack, zip(*task.examples, strict=True))
  trained = (task.cohort_size, task.local_epochs, task.batch_size, _RATE)
  return {
    name: peer.Peer(f'{name}_rounds.py', {'x': x, 'y': y}, (workload, *trained))
    for name in setup.peers
  }


def _ours(
  context,
  task,
  build=algorithms.build_fed_avg,
  num_clients=None,
  split=lambda x, y: ((x, y), (x[:0], y[:0])),
  **options,
) -> _Rounds:
  """A method of ours; the clients' ids are spread evenly over all ids."""
  if num_clients is None:  # The form of FedAvg's data without ids.
    data = [
      tf.data.Dataset.from_tensors(_element(x, y)) for x, y in task.examples
    ]
  else:
    options['num_clients'] = num_clients
    step = num_clients // len(task.examples)
    data = [
      client.build_client_data(i * step, *split(x, y))
      for i, (x, y) in enumerate(task.examples)
    ]
  process = build(
    task.model_fn,
    client_optimizer=_sgd(),
    local_epochs=task.local_epochs,
    batch_size=task.batch_size,
    **options,
  )
  return _training(context, process, data)


def _training(context, process, data) -> _Rounds:
  """Returns rounds in which all clients take part."""
  return _Rounds(
    context, process.initialize, lambda state: process.next(state, data).state
  )


def _stock(context, task) -> _Rounds:
  """TFF's FedAvg, built as in TFF's tutorials."""
  return _training(context, *_stock_process(task))


def _stock_process(task):
  """TFF's process, and its clients' data sets."""
  data = [
    tf.data.Dataset.from_tensor_slices(_element(x, y))
    .shuffle(len(y))
    .repeat(task.local_epochs)
    .batch(task.batch_size)
    for x, y in task.examples
  ]

  def model_fn():
    return tff.learning.models.from_keras_model(
      task.model_fn(),
      loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      input_spec=data[0].element_spec,
      metrics=[tf.keras.metrics.SparseCategoricalAccuracy()],
    )

  process = tff.learning.algorithms.build_weighted_fed_avg(
    model_fn, client_optimizer_fn=_sgd()
  )
  return process, data


def _cohorts(
  context,
  build=algorithms.build_fed_avg,
  split=lambda x, y: ((x, y), (x[:0], y[:0])),
  *,
  task,
  anew=False,
  stock=False,
) -> _Rounds:
  """Rounds of another part of the clients each, made before or in a round."""

  def make(i):
    return client.build_client_data(i, *split(*task.examples[i]))

  if stock:
    process, clients = _stock_process(task)
  else:
    process = build(
      task.model_fn,
      num_clients=len(task.examples),
      client_optimizer=_sgd(),
      local_epochs=task.local_epochs,
      batch_size=task.batch_size,
    )
    clients = [] if anew else list(map(make, range(len(task.examples))))
  rng = np.random.default_rng(0)

  def next_round(state):
    cohort = rng.choice(len(task.examples), task.cohort_size, replace=False)
    data = [make(int(i)) if anew else clients[i] for i in cohort]
    return process.next(state, data).state

  return _Rounds(context, process.initialize, next_round)


def _cffl(context, task, validation, num_clients, upload_rate=1.0) -> _Rounds:
  """CFFL; labels are random, so that no client should be isolated."""
  return _ours(
    context,
    task,
    algorithms.build_cffl,
    num_clients,
    validation=validation,
    upload_rate=upload_rate,
    threshold_absolute=0.0,
  )


def _fedaboost(context, task, num_clients) -> _Rounds:
  return _ours(context, task, algorithms.build_fedaboost, num_clients, _split)


def _reuse(setup, model_fn, shape, num_examples) -> Implementations:
  """Cohorts vary, so that CoRe-Fed reuses updates of absent clients."""
  nothing = np.zeros([0, *shape]), np.zeros([0])
  parts = [
    client.build_client_data(0, examples, nothing)
    for examples in _examples(_REUSE_COHORT, num_examples, shape)
  ]

  def rounds(build):
    process = build(
      model_fn,
      num_clients=_REUSE_CLIENTS,
      client_optimizer=_sgd(),
      batch_size=50,
    )
    rng = np.random.default_rng(0)

    def next_round(state):
      cohort = rng.choice(_REUSE_CLIENTS, _REUSE_COHORT, replace=False)
      data = [
        collections.OrderedDict(part, client_id=ids[i])
        for i, part in zip(cohort, parts, strict=True)
      ]
      return process.next(state, data).state

    return _Rounds(setup.context('device'), process.initialize, next_round)

  ids = [
    tf.data.Dataset.from_tensors(np.int32(i)) for i in range(_REUSE_CLIENTS)
  ]
  return {
    'fed_avg': rounds(algorithms.build_fed_avg),
    'corefed': rounds(algorithms.build_corefed),
  }


def _table_rounds(context) -> _Rounds:
  initialize, next_round = _table_computations()
  rng = np.random.default_rng(0)

  def next_table(table):
    ids = rng.choice(_TABLE_ROWS, _TABLE_COHORT, replace=False)
    return next_round(table, list(ids.astype(np.int32)))

  return _Rounds(context, initialize, next_table)


def _table_computations() -> tuple[tff.Computation, tff.Computation]:
  """The initial table, and `<table@SERVER, {id}@CLIENTS> -> table@SERVER`."""

  @tff.tensorflow.computation
  def build():
    return table_lib.build_table(tf.zeros([_TABLE_COLUMNS]), _TABLE_ROWS)

  table_type = build.type_signature.result

  select_rows = table_lib.build_select(table_type)

  @tff.tensorflow.computation(table_lib.row_type(table_type), np.int32)
  def work(row, client_id):
    return collections.OrderedDict(client_id=client_id, row=row + 1)

  result_type = work.type_signature.result
  gather = table_lib.build_gather(result_type)

  @tff.tensorflow.computation(table_type, table_lib.gathered_type(result_type))
  def write(table, results):
    return table_lib.write_rows(table, results['client_id'], results['row'])

  @tff.federated_computation
  def initialize():
    return tff.federated_eval(build, tff.SERVER)

  @tff.federated_computation(
    initialize.type_signature.result, tff.FederatedType(np.int32, tff.CLIENTS)
  )
  def next_round(table, client_ids):
    rows = select_rows(table, client_ids)
    results = tff.federated_map(work, (rows, client_ids))
    return tff.federated_map(write, (table, gather(results)))

  return initialize, next_round


def _state_rounds(context) -> _Rounds:
  """A state whose halves two clients send back, to be summed."""

  @tff.tensorflow.computation
  def build():
    return table_lib.zeros([_STATE_FLOATS]) + 1

  state_type = build.type_signature.result

  @tff.tensorflow.computation(state_type, np.int32)
  def work(state, client_id):
    del client_id  # Says only that there is a client.
    return state / _STATE_CLIENTS

  @tff.federated_computation(
    tff.FederatedType(state_type, tff.SERVER),
    tff.FederatedType(np.int32, tff.CLIENTS),
  )
  def next_round(state, client_ids):
    sent = tff.federated_broadcast(state)
    return tff.federated_sum(tff.federated_map(work, (sent, client_ids)))

  ids = [np.int32(i) for i in range(_STATE_CLIENTS)]
  return _Rounds(context, build, lambda state: next_round(state, ids))


def _data_rounds(context, arrays) -> _Rounds:
  """The sum over all clients' examples, from data sets of one element."""
  data = [tf.data.Dataset.from_tensors(x) for x in arrays]

  @tff.tensorflow.computation(
    tff.SequenceType(tff.TensorType(np.float32, [None, *arrays[0].shape[1:]]))
  )
  def work(dataset):
    return dataset.reduce(0.0, lambda total, x: total + tf.reduce_sum(x))

  @tff.federated_computation(
    tff.FederatedType(work.type_signature.parameter, tff.CLIENTS)
  )
  def next_round(data):
    return tff.federated_sum(tff.federated_map(work, data))

  return _Rounds(context, lambda: None, lambda _: next_round(data))


def _examples(num_clients, num_examples, shape):
  """Random examples for each client."""
  rng = np.random.default_rng(0)
  return [
    (
      rng.standard_normal([num_examples, *shape], np.float32),
      rng.integers(_NUM_CLASSES, size=num_examples, dtype=np.int32),
    )
    for _ in range(num_clients)
  ]


def _split(x, y):
  """The training part, and the holdout part: a tenth."""
  end = len(y) - len(y) // 10
  return (x[:end], y[:end]), (x[end:], y[end:])


def _element(x, y):
  return collections.OrderedDict(x=x, y=y)


def _sgd():
  return tff.learning.optimizers.build_sgdm(_RATE)


def _mlp(shape, *widths, num_classes=_NUM_CLASSES) -> tf.keras.Model:
  layers = tf.keras.layers
  hidden = [layers.Dense(width, 'relu') for width in widths]
  return tf.keras.Sequential(
    [layers.Input(shape), *hidden, layers.Dense(num_classes)]
  )


def _cnn(shape) -> tf.keras.Model:
  layers = tf.keras.layers
  return tf.keras.Sequential(
    [
      layers.Input(shape),
      layers.Conv2D(32, 5, padding='same', activation='relu'),
      layers.MaxPool2D(),
      layers.Conv2D(64, 5, padding='same', activation='relu'),
      layers.MaxPool2D(),
      layers.Flatten(),
      layers.Dense(512, 'relu'),
      layers.Dense(_NUM_CLASSES),
    ]
  )


def _cnn_pfl() -> tf.keras.Model:
  """The `simple_cnn` of pfl-research's benchmarks: 1,626,442 weights."""
  layers = tf.keras.layers
  return tf.keras.Sequential(
    [
      layers.Input(_IMAGE),
      layers.Conv2D(32, 3, activation='relu'),
      layers.Conv2D(64, 3, activation='relu'),
      layers.MaxPool2D(),
      layers.Dropout(0.25),
      layers.Flatten(),
      layers.Dense(128, 'relu'),
      layers.Dropout(0.5),
      layers.Dense(_NUM_CLASSES),
    ]
  )


def _cnn_blazefl() -> tf.keras.Model:
  """The net of PyTorch's tutorial on CIFAR-10: 62,006 weights."""
  layers = tf.keras.layers
  return tf.keras.Sequential(
    [
      layers.Input(_IMAGE),
      layers.Conv2D(6, 5, activation='relu'),
      layers.MaxPool2D(),
      layers.Conv2D(16, 5, activation='relu'),
      layers.MaxPool2D(),
      layers.Flatten(),
      layers.Dense(120, 'relu'),
      layers.Dense(84, 'relu'),
      layers.Dense(_NUM_CLASSES),
    ]
  )
