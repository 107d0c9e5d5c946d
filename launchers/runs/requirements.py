"""Requirements of a run: bytes of its state, messages and training.

All of it follows from types, shapes and numbers of examples: nothing is
trained. State and messages are exact. The memory of a client that trains is an
estimate, see `Training`.
"""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import math
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.launchers.runs import messages as messages_lib
from tff_fair.launchers.runs import processes
from tff_fair.launchers.runs import training

# Examples that pass through the model for each example of a batch.
_TUPLE_SIZES = {'fedquad': 4, 'quadruplet_fl': 4, 'triplet_fl': 3}
# Layers whose output is their input in another shape.
_VIEWS = (
  tf.keras.layers.InputLayer,
  tf.keras.layers.Flatten,
  tf.keras.layers.Reshape,
)
# Arguments of builders; a method has one of them or both.
_CLIENT_OPTIMIZERS = ('client_optimizer', 'personal_optimizer')
# Clients whose sum is accumulated in one piece.
_GROUP_SIZE = 8
_FLOAT_BYTES = 4


@dataclasses.dataclass(frozen=True)
class Training:
  """The bytes of one client that trains: an estimate.

  The formula is the sum of all attributes. It neglects what the kernels need to
  work, values inside a layer (the gates of a recurrent one), and the memory of
  TensorFlow itself. It counts as if all parts were needed at the same time.

  Attributes:
    row: Its row of the client table.
    weights: All weights, before and after a step.
    gradients: One for each trainable weight.
    optimizer: The state of the clients' optimiser.
    upload: Its update, new row and report.
    examples: The training and the validation part of the largest client.
    activations: The inputs of a batch, and twice the outputs of all layers for
      it: the forward pass keeps them, the backward pass makes a gradient of
      each.
  """

  row: int
  weights: int
  gradients: int
  optimizer: int
  upload: int
  examples: int
  activations: int

  @property
  def total(self) -> int:
    """The sum of all."""
    return sum(dataclasses.astuple(self))


@dataclasses.dataclass(frozen=True)
class Requirements:
  """The requirements of a run.

  Attributes:
    trainable: Number of trainable parameters of the model.
    non_trainable: Number of the others.
    state: Part of the server's state -> its bytes, without the client table.
    table: Bytes of the client table.
    num_clients: Number of all clients, the rows of the table.
    cohort_size: Number of clients that train in one call of `next`.
    num_calls: Calls of `next` in a round.
    messages: Those of a call.
    data: Bytes of the data of all clients.
    validation: Bytes of the examples on which the server validates.
    training: The memory of one client.
    batch_size: Examples of its batch.
    notes: Sentences for the user about the data.
  """

  trainable: int
  non_trainable: int
  state: Mapping[str, int]
  table: int
  num_clients: int
  cohort_size: int
  num_calls: int
  messages: messages_lib.Messages
  data: int
  validation: int
  training: Training
  batch_size: int
  notes: Sequence[str]

  @property
  def whole_state(self) -> int:
    """Bytes of the state with the table."""
    return sum(self.state.values()) + self.table

  @property
  def num_sums(self) -> int:
    """Sums over clients that arrive in a call of `next`."""
    return math.ceil(self.cohort_size / _GROUP_SIZE)

  @property
  def received(self) -> int:
    """Bytes that arrive from the clients in a call of `next`."""
    gathered = self.cohort_size * self.messages.gathered
    return gathered + self.num_sums * self.messages.summed

  @property
  def server(self) -> int:
    """Bytes that the server needs while clients train.

    The state before and after the round, the values from the clients, and the
    validation examples.
    """
    return 2 * self.whole_state + self.received + self.validation

  def clients_at_once(self, memory: float, with_state: bool) -> int:
    """The number of clients that can train at the same time on a device.

    Args:
      memory: Bytes of the device.
      with_state: Whether the device also holds what the server needs;
        otherwise it holds the broadcast.

    Returns:
      `(memory - server or broadcast) / training.total`, rounded down; 0 if not
      a single one can.
    """
    used = self.server if with_state else self.messages.broadcast
    return max(0, int((memory - used) // self.training.total))


def of_run(settings: Mapping[str, Any]) -> Requirements:
  """Builds the task and the process of a run, and counts.

  Args:
    settings: The result of `launchers.options.settings.resolve`.

  Returns:
    What it needs.

  Raises:
    training.RunError: If a setting does not fit the data.
    tasks.DataNotFoundError: If a data file cannot be found.
    tasks.DataDamagedError: If a data file is damaged.
  """
  task = training.build_task(settings)
  prepared = _stand_ins(settings, task)
  process = training.build_process(settings, task, *prepared)
  arguments = processes.builder_arguments(settings, task, *prepared)
  model = task.model_fn()
  calls = training.build_cohorts(settings, task)(1)
  cohort_size = max(map(len, calls))
  state_type = process.initialize.type_signature.result.member
  state, table = _state_bytes(state_type)
  messages = messages_lib.count_messages(process.next, cohort_size)
  example = task.data.x[:0].itemsize * math.prod(task.data.x.shape[1:])
  example += task.data.y.itemsize
  sizes = [len(s.train) + len(s.holdout) for s in task.splits]
  validation = 0
  if processes.needs(settings, 'validation'):
    validation = example * len(task.validation.y)
  return Requirements(
    trainable=_count(model.trainable_variables),
    non_trainable=_count(model.non_trainable_variables),
    state=state,
    table=table,
    num_clients=task.num_clients,
    cohort_size=cohort_size,
    num_calls=len(calls),
    messages=messages,
    data=example * sum(sizes),
    validation=validation,
    training=_training(
      model,
      arguments,
      algorithm=settings['algorithm'],
      row=table // task.num_clients,
      upload=messages.upload,
      examples=example * max(sizes),
    ),
    batch_size=settings['batch_size'],
    notes=task.notes,
  )


def _stand_ins(settings, task):
  """Statistics and contributions of the right shapes, with other numbers."""
  statistics = contributions = None
  if processes.needs(settings, 'statistics'):
    shape = task.num_clients, task.data.x.shape[-1]
    ones = np.ones(shape, np.float32)
    statistics = {'mean': ones, 'std': ones}
  if processes.needs(settings, 'contributions'):
    contributions = [0.5] * task.num_clients
  return statistics, contributions


def _state_bytes(state_type) -> tuple[dict[str, int], int]:
  """The parts of the state, and the table."""
  names = tff.structure.name_list(state_type)
  parts = {
    name: messages_lib.count_bytes(getattr(state_type, name)) for name in names
  }
  work, table = state_type.client_work, 0
  if 'table' in tff.structure.name_list(work):
    table = messages_lib.count_bytes(work.table)
  parts['client_work'] -= table
  return parts, table


def _training(model, arguments, algorithm, **bytes_of) -> Training:
  """The estimate for a client; `bytes_of` are the parts that are known."""
  specs = [tf.TensorSpec(w.shape, w.dtype) for w in model.trainable_variables]
  trainable = _variable_bytes(model.trainable_variables)
  batch = arguments['batch_size'] * _TUPLE_SIZES.get(algorithm, 1)
  # Records are cut to the longest of a batch, at most to the input's length.
  longest = model.inputs[0].shape[1]
  inputs = _elements(model.inputs, longest)
  outputs = sum(_elements(o, longest) for o in _layer_outputs(model))
  return Training(
    weights=2 * _variable_bytes(model.variables),
    gradients=trainable,
    optimizer=max(
      _optimizer_bytes(arguments[name], specs)
      for name in _CLIENT_OPTIMIZERS
      if name in arguments
    ),
    activations=_FLOAT_BYTES * batch * (inputs + 2 * outputs),
    **bytes_of,
  )


def _optimizer_bytes(optimizer, specs) -> int:
  with tf.Graph().as_default():  # Allocates nothing.
    state = tf.nest.flatten(optimizer.initialize(specs))
    return _variable_bytes(map(tf.convert_to_tensor, state))


def _layer_outputs(model) -> Iterator[Any]:
  """The outputs of all layers of a Keras model that are computed."""
  for layer in model.layers:
    if isinstance(layer, tf.keras.Model):
      yield from _layer_outputs(layer)
    elif not isinstance(layer, _VIEWS):
      for call in range(len(layer.inbound_nodes)):
        yield layer.get_output_at(call)


def _elements(outputs, unknown: int) -> int:
  """Numbers in outputs of Keras layers for one example."""
  shapes = [tensor.shape[1:] for tensor in tf.nest.flatten(outputs)]
  return sum(math.prod(size or unknown for size in shape) for shape in shapes)


def _count(variables) -> int:
  return sum(v.shape.num_elements() for v in variables)


def _variable_bytes(variables) -> int:
  return sum(v.shape.num_elements() * v.dtype.size for v in variables)
