"""Asks TensorFlow's registry which kernels a GPU would run.

TensorFlow's wheel registers its GPU kernels on machines without a GPU, too.
"""

from collections.abc import Iterator
import functools
import itertools
from typing import Any

import tensorflow as tf

# Private. TensorFlow has no public list of its kernels.
from tensorflow.python.framework import kernels
import tensorflow_federated as tff

from tff_fair import internals
from tff_fair.runtime import secure_sums


def operations(computation: Any) -> Iterator[tf.Operation]:
  """Yields the operations that the device runtime runs on its device.

  Blocks that take or return data sets are left out: they stay on the CPU.
  """
  tree, _ = tff.tensorflow.replace_intrinsics_with_bodies(
    secure_sums.replace_secure_sums(computation).to_building_block()
  )
  blocks = []

  def collect(block):
    if isinstance(block, tff.framework.CompiledComputation):
      blocks.append(block)
    return block, False

  tree = tff.framework.to_call_dominant(tree)
  tff.framework.transform_postorder(tree, collect)
  for block in blocks:
    if not tff.types.contains(
      block.type_signature, lambda t: isinstance(t, tff.SequenceType)
    ):
      yield from _block_operations(block)


def function_operations(function: Any) -> Iterator[tf.Operation]:
  """The operations of a `tf.ConcreteFunction` and of what it calls."""
  graph_def = function.graph.as_graph_def()
  yield from _graph_operations(graph_def)


def kernel(operation: tf.Operation) -> Any:
  """Returns the `KernelDef` that a GPU has for an operation; None for none.

  A kernel of the default device runs where there is no other one.
  """
  for device in ('GPU', 'DEFAULT'):
    for found in _kernels(operation.type):
      if found.device_type == device and _is_for(found, operation.node_def):
        return found
  return None


def host_sizes(operation: tf.Operation) -> Iterator[int]:
  """Yields the sizes of inputs and outputs that a kernel has on the host."""
  names = kernel(operation).host_memory_arg
  definition = operation.op_def
  for arguments, tensors in (
    (definition.input_arg, operation.inputs),
    (definition.output_arg, operation.outputs),
  ):
    tensors = iter(tensors)
    for argument in arguments:
      number = _number(argument, operation.node_def)
      for tensor in itertools.islice(tensors, number):
        size = tensor.shape.num_elements()
        if argument.name in names and size is not None:
          yield size


def describe(operation: tf.Operation) -> str:
  """An operation and its dtypes, such as 'Cast(SrcT=bool, DstT=int32)'."""
  attributes = [
    f'{name}={",".join(tf.dtypes.as_dtype(t).name for t in _types(value))}'
    for name, value in operation.node_def.attr.items()
    if not name.startswith('_') and _types(value)
  ]
  return f'{operation.type}({", ".join(sorted(attributes))})'


def _block_operations(block):
  graph_def = tf.compat.v1.GraphDef()
  block.proto.tensorflow.graph_def.Unpack(graph_def)
  yield from _graph_operations(graph_def)


def _graph_operations(graph_def):
  functions = internals.import_functions(graph_def)
  by_name = {f.name.decode(): f.graph for f in functions.values()}
  with tf.Graph().as_default() as graph:
    for function in functions.values():
      function.add_to_graph(graph)
    tf.graph_util.import_graph_def(graph_def, name='')
  pending, seen = [graph], set()
  while pending:
    for operation in pending.pop().get_operations():
      yield operation
      called = set(_called(operation.node_def)) & set(by_name) - seen
      pending.extend(by_name[name] for name in called)
      seen |= called


def _called(node):
  """The names of the functions that a node calls."""
  for value in node.attr.values():
    for function in (value.func, *value.list.func):
      yield function.name


@functools.cache
def _kernels(name):
  return kernels.get_registered_kernels_for_op(name).kernel


def _is_for(found, node):
  """Whether a node with these dtypes, which names no label, gets a kernel."""
  return not found.label and all(
    set(_types(node.attr[constraint.name]))
    <= set(constraint.allowed_values.list.type)
    for constraint in found.constraint
  )


def _types(value) -> list[int]:
  return [value.type] if value.type else list(value.list.type)


def _number(argument, node) -> int:
  """How many tensors an argument of an operation stands for."""
  if argument.number_attr:
    return node.attr[argument.number_attr].i
  if argument.type_list_attr:
    return len(node.attr[argument.type_list_attr].list.type)
  return 1
