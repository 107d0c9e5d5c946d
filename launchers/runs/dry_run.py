"""Computes the needs of a run without training: parameters, bytes, memory.

All of it follows from types, shapes and numbers of examples. The bytes are
exact, the memory of a client that trains is an estimate.
"""

from collections.abc import Mapping
import math
from typing import Any

import numpy as np
import tensorflow as tf

from tff_fair.launchers.runs import attackers
from tff_fair.launchers.runs import building
from tff_fair.launchers.runs import data_description
from tff_fair.launchers.runs import messages
from tff_fair.launchers.runs import private_training

# Examples that pass through the model for each example of a batch.
_TUPLE_SIZES = {'fedquad': 4, 'quadruplet_fl': 4, 'triplet_fl': 3}
# Layers whose output is their input in another shape.
_LAYERS = tf.keras.layers
_VIEWS = (_LAYERS.InputLayer, _LAYERS.Flatten, _LAYERS.Reshape)
# Clients whose sum is accumulated in one piece.
_GROUP_SIZE = 8


def to_text(settings: Mapping[str, Any]) -> str:
  """Builds the task and the process of a run, and counts.

  Raises:
    RunError, or an error of `tasks`: As of `building.build_task`.
  """
  task = building.build_task(settings)
  task = building.build(building.with_groups, settings, task)
  # Of the right shapes, with other numbers.
  ones = np.ones([task.num_clients, task.data.x.shape[-1]], np.float32)
  prepared = task, {'mean': ones, 'std': ones}, [0.5] * task.num_clients
  process = building.build(building.build_process, settings, *prepared)
  arguments = building.builder_arguments(settings, *prepared)
  model = task.model_fn()
  calls = building.build_cohorts(settings, task)(1)
  size = max(map(len, calls))
  clients = size * len(calls)
  sent = messages.count_messages(process.next, size)
  state = messages.count_bytes(process.initialize.type_signature.result.member)
  sums = math.ceil(size / _GROUP_SIZE)
  server = 2 * state + size * sent.gathered + sums * sent.summed
  example = task.data.x[:0].itemsize * math.prod(task.data.x.shape[1:])
  example += task.data.y.itemsize
  most = max(len(split.train) + len(split.holdout) for split in task.splits)
  tuples = _TUPLE_SIZES.get(settings['algorithm'], 1)
  client = sent.row + sent.up + example * most
  client += _training_bytes(model, arguments, settings['batch_size'] * tuples)
  memory = settings['device_memory_gb']
  fit = max(0, int((memory * 1e9 - server) // client))
  rows = {
    'trainable parameters': f'{_count(model.trainable_variables):,}',
    'other parameters': f'{_count(model.non_trainable_variables):,}',
    'down, to all clients in a round': format_bytes(clients * sent.down),
    'up, from all clients in a round': format_bytes(clients * sent.up),
    'down, to each client': format_bytes(sent.down),
    'up, from each client': format_bytes(sent.up),
    'state of the server': format_bytes(state),
    'memory of the server in a round': format_bytes(server),
    'memory of a client, an estimate': format_bytes(client),
    f'clients that fit into {memory:g} GB at once': f'{fit:,}',
  }
  notes = list(task.notes)
  if found := attackers.draw(settings, task):
    notes.append(attackers.note(settings, task, found))
  accounting = building.build(private_training.build_accounting, settings, task)
  if accounting is not None:
    rounds = settings['rounds']
    title = f'epsilon after {rounds} rounds, at delta {accounting.delta:.2g}'
    rows[title] = f'{accounting.epsilon(rounds):.4g}'
  names, numbers = max(map(len, rows)), max(map(len, rows.values()))
  return '\n'.join(
    [
      *notes,
      f'{settings["algorithm"]} on {data_description.describe(settings)}:'
      f' {task.num_clients} clients, {clients} in a round. Nothing is trained.',
      *(f'  {n:{names}}  {number:>{numbers}}' for n, number in rows.items()),
    ]
  )


def format_bytes(number: float) -> str:
  """Formats bytes with their unit, a power of 1,000."""
  units = ['B', 'kB', 'MB', 'GB', 'TB']
  while number >= 999.95 and len(units) > 1:
    number, units = number / 1000, units[1:]
  return f'{number:.{int(units[0] != "B")}f} {units[0]}'


def _training_bytes(model, arguments, batch) -> int:
  """Weights twice, gradients, the optimiser, and activations of a batch.

  The forward pass keeps the outputs of all layers, the backward pass makes a
  gradient of each.
  """
  specs = [tf.TensorSpec(w.shape, w.dtype) for w in model.trainable_variables]
  names = {'client_optimizer', 'personal_optimizer'} & {*arguments}
  with tf.Graph().as_default():  # Allocates nothing.
    states = [tf.nest.flatten(arguments[n].initialize(specs)) for n in names]
    optimizer = max(_bytes(map(tf.convert_to_tensor, s)) for s in states)
  # Records are cut to the longest of a batch, at most to the input's length.
  longest = model.inputs[0].shape[1]
  layers = model._flatten_layers(include_self=False)
  outputs = [
    layer.get_output_at(call)
    for layer in layers
    if not isinstance(layer, (*_VIEWS, tf.keras.Model))
    for call in range(len(layer.inbound_nodes))
  ]
  shapes = [t.shape[1:] for t in tf.nest.flatten([model.inputs, outputs * 2])]
  elements = sum(math.prod(n or longest for n in shape) for shape in shapes)
  weights = 2 * _bytes(model.variables) + _bytes(model.trainable_variables)
  return weights + optimizer + 4 * batch * elements


def _count(variables) -> int:
  return sum(v.shape.num_elements() for v in variables)


def _bytes(variables) -> int:
  return sum(v.shape.num_elements() * v.dtype.size for v in variables)
