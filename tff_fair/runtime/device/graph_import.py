"""A TensorFlow block of a computation as a function of this process.

TFF serialises a `tff.tensorflow.computation` as a graph with named inputs and
results. The graph is imported into the installed TensorFlow, which runs it on
any device.
"""

from collections.abc import Callable, Sequence
import functools

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import internals

# The name scope of operations that make one element of all of a data set's
# elements: of a single element, this very element.
WHOLE = 'all_elements_as_one'
_TAKES_ONE = 'DatasetToSingleElement'


class ImportedGraph:
  """One import of a block's graph, called with a flat list of tensors.

  Attributes:
    has_variables: Whether the block creates variables or tables. They belong to
      this import and are initialized at each call, so calls must not overlap.
    call_on_element: The block as a function of the components of an element, if
      its parameter is a data set of which it only takes the single element;
      else None.
  """

  def __init__(self, block: tff.framework.CompiledComputation) -> None:
    """Imports the block's graph."""
    proto = block.proto.tensorflow
    graph_def = tf.compat.v1.GraphDef()
    proto.graph_def.Unpack(graph_def)
    functions = internals.import_functions(graph_def)
    build = functools.partial(
      _build_function, graph_def, functions, proto.session_token_tensor_name
    )
    results = _tensor_names(proto.result)
    self._call = build(inputs=_tensor_names(proto.parameter), results=results)
    self.call_on_element = None
    taken = _single_element(graph_def, proto.parameter)
    if taken is not None:
      inputs = _replace_by_placeholders(graph_def, taken)
      given = {f'{taken.name}:{i}': name for i, name in enumerate(inputs)}
      self.call_on_element = build(
        inputs=inputs, results=[given.get(name, name) for name in results]
      )
    self.has_variables = bool(proto.initialize_op)
    if self.has_variables:
      self._initialize = build(operations=[proto.initialize_op])

  def __call__(self, *args: tf.Tensor) -> list[tf.Tensor]:
    """Runs the block."""
    if self.has_variables:
      self._initialize()
    return self._call(*args)


def _build_function(
  graph_def, functions, token, inputs=(), results=(), operations=()
) -> Callable[..., list[tf.Tensor]]:
  """A function that runs `operations` and computes `results`."""
  # `prune` of the whole graph's function would run loops at less than half the
  # speed.
  needed = _sub_graph(graph_def, [*results, *operations])
  present = {node.name for node in needed.node}

  def run(*args):
    for function in functions.values():
      function.add_to_graph(tf.compat.v1.get_default_graph())
    arguments = dict(zip(inputs, args, strict=True))
    if token:
      arguments[token] = tf.constant('')
    elements = tf.graph_util.import_graph_def(
      needed,
      input_map={
        name: arg
        for name, arg in arguments.items()
        if _node_name(name) in present
      },
      return_elements=[*results, *operations],
      name='',
    )
    with tf.control_dependencies(elements[len(results) :]):
      # A result that is an argument would be returned as the placeholder.
      return [
        tf.identity(arguments.get(name, element))
        for name, element in zip(results, elements, strict=False)
      ] or [tf.constant(0)]

  return tf.compat.v1.wrap_function(run, _input_specs(graph_def, inputs))


def _sub_graph(graph_def, names):
  """The nodes that a session would run for the tensors and operations."""
  nodes = {node.name: node for node in graph_def.node}
  pending, found = [_node_name(name) for name in names], set()
  while pending:
    name = pending.pop()
    if name not in found:
      found.add(name)
      pending.extend(_node_name(source) for source in nodes[name].input)
  return tf.compat.v1.GraphDef(
    node=[node for node in graph_def.node if node.name in found],
    versions=graph_def.versions,
  )


def _single_element(graph_def, parameter) -> tf.compat.v1.NodeDef | None:
  """The node that takes a data set's single element, if no other uses it."""
  if parameter.WhichOneof('binding') != 'sequence':
    return None
  dataset = _node_name(parameter.sequence.variant_tensor_name)
  users = [n for n in graph_def.node if dataset in map(_node_name, n.input)]
  if len(users) == 1 and _is_in_whole(users[0]):
    users = [node for node in graph_def.node if _is_in_whole(node)]
    users = [node for node in users if node.op == _TAKES_ONE]
  return users[0] if [user.op for user in users] == [_TAKES_ONE] else None


def _is_in_whole(node) -> bool:
  return WHOLE in node.name.split('/')


def _replace_by_placeholders(graph_def, node) -> list[str]:
  """Makes a node's outputs inputs of the graph, and returns their names."""
  types = node.attr['output_types'].list.type
  shapes = node.attr['output_shapes'].list.shape
  names = [f'{node.name}/{index}' for index in range(len(types))]
  for name, dtype, shape in zip(names, types, shapes, strict=True):
    placeholder = graph_def.node.add(name=name, op='Placeholder')
    placeholder.attr['dtype'].type = dtype
    placeholder.attr['shape'].shape.CopyFrom(shape)
  new_names = {f'{node.name}:{i}': name for i, name in enumerate(names)}
  new_names[node.name] = names[0]
  new_names[f'^{node.name}'] = f'^{names[0]}'
  for user in graph_def.node:
    user.input[:] = [new_names.get(source, source) for source in user.input]
  return [f'{name}:0' for name in names]


def _tensor_names(binding) -> list[str]:
  """The names of a binding's tensors, depth first."""
  kind = binding.WhichOneof('binding')
  if kind == 'struct':
    return [n for e in binding.struct.element for n in _tensor_names(e)]
  if kind == 'tensor':
    return [binding.tensor.tensor_name]
  if kind == 'sequence':
    return [binding.sequence.variant_tensor_name]
  return []  # A block without a parameter.


def _node_name(name: str) -> str:
  return name.removeprefix('^').split(':')[0]


def _input_specs(graph_def, names) -> Sequence[tf.TensorSpec]:
  """Specs of the placeholders with these names."""
  nodes = {node.name: node for node in graph_def.node}
  placeholders = [nodes[_node_name(name)] for name in names]
  return [
    tf.TensorSpec(
      tf.TensorShape(node.attr['shape'].shape),
      tf.dtypes.as_dtype(node.attr['dtype'].type),
    )
    for node in placeholders
  ]
