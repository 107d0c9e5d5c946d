"""Everything that relies on private parts of TensorFlow, TFF and Keras.

The functions here use private names, or behaviour that is not documented. The
project pins the versions. `tests/internals_test.py` tests each assumption and
says what to look at if an upgrade breaks it.
"""

import collections
from collections.abc import Iterable, Iterator, Sequence
import contextlib
import itertools
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

# Private. Gives a function library and its variables names that are unique in
# the process, as SavedModels need; `tf.graph_util.import_graph_def` does not.
from tensorflow.python.saved_model import function_deserialization
import tensorflow_federated as tff

# Private. What executors return, with a method `compute`.
from tensorflow_federated.python.core.impl.executors import executor_value_base

ExecutorValue = executor_value_base.ExecutorValue

# Intrinsics for which TFF has no public constant.
FEDERATED_SELECT = 'federated_select'
SEQUENCE_REDUCE = 'sequence_reduce'
_SECURE_PREFIX = b'federated_secure_'

# Keras layers that draw random numbers keep their generator here.
_RANDOM_GENERATOR = '_random_generator'
# The arguments of a layer's call, in a functional model.
_NODE_ARGUMENTS = '_flat_arguments'
# Operations that pass a tensor on, perhaps in another shape.
_VIEWS = frozenset({'Reshape', 'Squeeze', 'ExpandDims'})

# An object and the name of one of its attributes.
Slot = tuple[Any, str]

_import_numbers = itertools.count()


def import_functions(graph_def: tf.compat.v1.GraphDef) -> dict[str, Any]:
  """Imports a graph's function library under new names.

  Args:
    graph_def: A graph. Its library is emptied, and its nodes are changed to
      call the imported functions.

  Returns:
    Name in the library -> function, to be added to the graph that imports
    `graph_def`.
  """
  suffix = f'_import_{next(_import_numbers)}'
  functions = function_deserialization.load_function_def_library(
    graph_def.library, load_shared_name_suffix=suffix
  )
  graph_def.library.Clear()
  for node in graph_def.node:
    function_deserialization.fix_node_def(node, functions, suffix)
  return functions


def error_line(error: tf.errors.OpError) -> str:
  """The line of TensorFlow's message that says what went wrong.

  The rest of the message lists graph nodes with generated names. The error of a
  `tf.py_function` ends with empty lines.
  """
  lines = error.message.split('\n\t [[')[0].splitlines()
  return next(filter(str.strip, reversed(lines)), type(error).__name__)


def read_only_array(tensor: tf.Tensor) -> np.ndarray:
  """An eager tensor as an array that can never be made writeable.

  Args:
    tensor: An eager tensor of rank 1 or higher; not of strings.

  Returns:
    A view of the tensor's memory on the CPU, without a copy; a copy if the
    tensor is on another device.
  """
  on_cpu = 'CPU' in tensor.device
  memory = memoryview(tensor if on_cpu else tensor.numpy())
  return np.asarray(memory.toreadonly())


def has_secure_intrinsics(
  computation: tff.framework.ConcreteComputation,
) -> bool:
  """Returns whether a computation has secure sums or secure selections."""
  # Searching for their names is much cheaper than taking the tree apart.
  proto = tff.framework.serialize_computation(computation)
  return _SECURE_PREFIX in proto.SerializeToString()


class CallView(NamedTuple):
  """A computation as `tff.program.NativeFederatedContext` sees it.

  Attributes:
    computation: The computation.
    type_signature: Its type, changed as `hide_clients` says.
  """

  computation: tff.Computation
  type_signature: tff.FunctionType


def hide_clients(computation: tff.Computation) -> CallView:
  """Stops TFF's program context from taking clients' values apart.

  If a client's value is a structure, the context takes the list of clients for
  such a structure and loses clients. It passes tensors on unchanged, so the
  view has a tensor type in place of each type at clients.

  Args:
    computation: The computation to be invoked.

  Returns:
    What to pass to `NativeFederatedContext.invoke`; it arrives at the inner
    context.
  """
  signature = computation.type_signature
  return CallView(
    computation,
    tff.FunctionType(_without_clients(signature.parameter), signature.result),
  )


def _without_clients(type_spec: tff.Type | None) -> tff.Type | None:
  if isinstance(type_spec, tff.StructType):
    return tff.StructType(
      [
        (name, _without_clients(part))
        for name, part in tff.structure.iter_elements(type_spec)
      ]
    )
  if (
    isinstance(type_spec, tff.FederatedType)
    and type_spec.placement is tff.CLIENTS
  ):
    return tff.TensorType(np.int32)
  return type_spec


def layers_of(model: tf.keras.Model) -> list[Any]:
  """The model and all layers in it, always in the same order."""
  for layer in model._flatten_layers():
    # After a symbolic call, recurrent layers with dropout keep the mask in a
    # dict by graphs, and `submodules` fails to sort its keys.
    if hasattr(layer, 'reset_dropout_mask'):
      layer.reset_dropout_mask()
      layer.reset_recurrent_dropout_mask()
  return [model, *model.submodules]


def variable_slots(
  layers: Iterable[Any], variables: Iterable[tf.Variable]
) -> list[list[Slot]]:
  """Finds the attributes through which Keras layers read their variables.

  Args:
    layers: Layers or models.
    variables: Their variables.

  Returns:
    For each variable the slots that hold it; an empty list if none does.
  """
  by_id = collections.defaultdict(list)
  for layer in layers:
    for attribute, value in vars(layer).items():
      if isinstance(value, tf.Variable):
        by_id[id(value)].append((layer, attribute))
  return [by_id[id(variable)] for variable in variables]


def random_slots(layers: Iterable[Any]) -> list[list[Slot]]:
  """The slots of the layers' random generators, as in `variable_slots`."""
  return [
    [(layer, _RANDOM_GENERATOR)]
    for layer in layers
    if hasattr(layer, _RANDOM_GENERATOR)
  ]


def draws_always(layer: Any) -> bool:
  """Returns whether a model calls a random layer with `training=True`."""
  return hasattr(layer, _RANDOM_GENERATOR) and any(
    node.call_kwargs.get('training') is True for node in layer.inbound_nodes
  )


def constant_slots(layers: Iterable[Any]) -> list[tuple[Slot, Any]]:
  """The slots of eager tensors, which a graph in a graph cannot capture.

  Layers hold them as attributes (Keras's `Normalization`), functional models as
  arguments of operations (the 1 of `x + 1`).

  Args:
    layers: Layers or models.

  Returns:
    The slots with what they hold: an eager tensor, or a list with some.
  """
  found = []
  for layer in layers:
    for attribute, value in vars(layer).items():
      if _is_constant(value):
        found.append(((layer, attribute), value))
    for node in getattr(layer, 'inbound_nodes', ()):
      arguments = getattr(node, _NODE_ARGUMENTS)
      if any(map(_is_constant, arguments)):
        found.append(((node, _NODE_ARGUMENTS), arguments))
  return found


def in_this_graph(held: Any) -> Any:
  """Converts the content of a slot of `constant_slots` to constants."""
  if isinstance(held, list):
    return [in_this_graph(v) if _is_constant(v) else v for v in held]
  return tf.constant(held.numpy())


class LazyDataset(tf.data.Dataset):
  """A data set of TensorFlow that is made when it is first used.

  Subclasses have `element_spec`, and `_build` makes the data set.
  """

  # What the initializer of `tf.data.Dataset` sets.
  _PARTS = ('_variant_tensor_attr', '_graph_attr', '_options_attr')

  def __init__(self) -> None:
    """Makes nothing yet."""

  def __getattr__(self, name: str) -> Any:
    """Makes the data set, on the CPU and outside of functions."""
    if name not in self._PARTS:
      raise AttributeError(name)
    with tf.init_scope(), tf.device('/device:CPU:0'):
      super().__init__(self._build()._variant_tensor)
    return getattr(self, name)

  def _inputs(self) -> list[tf.data.Dataset]:
    return []


def _is_constant(value) -> bool:
  return isinstance(value, tf.__internal__.EagerTensor) and (
    value.dtype not in (tf.resource, tf.variant)
  )


def captures(graph: tf.Graph) -> Sequence[tuple[Any, tf.Tensor]]:
  """The captured values of a function, and their placeholder tensors."""
  return getattr(graph, 'captures', [])


def eager_reads(graph: tf.Graph, start: int) -> list[str]:
  """Names of the operations that read the captures that are eager tensors.

  Args:
    graph: The graph of a function.
    start: Number of captures to leave out, the first ones.

  Returns:
    The name of the first operation that reads each of them.
  """
  return [
    inner.consumers()[0].name
    for outer, inner in captures(graph)[start:]
    if isinstance(outer, tf.__internal__.EagerTensor)
  ]


def draws(operation: tf.Operation) -> bool:
  """Returns whether an operation draws random numbers from its own state."""
  definition = operation.op_def
  return definition.is_stateful and any(
    a.name == 'seed' for a in definition.attr
  )


def noted_logits(tensor: tf.Tensor) -> Any:
  """The input that Keras keeps of an eager softmax or sigmoid, else None."""
  return getattr(tensor, '_keras_logits', None)


def made_by(tensor: tf.Tensor) -> tuple[str, str, Any]:
  """The operation that made a tensor of a graph.

  Args:
    tensor: A tensor of a graph.

  Returns:
    Its type and its name, and its input; None for the input if the tensor has
    been reshaped since.
  """
  reshaped = False
  while tensor.op.type in _VIEWS or tensor.op.type == 'Identity':
    reshaped |= tensor.op.type in _VIEWS
    tensor = tensor.op.inputs[0]
  inputs = tensor.op.inputs
  before = None if reshaped or not len(inputs) else inputs[0]
  return tensor.op.type, tensor.op.name, before


@contextlib.contextmanager
def replaced(
  slots: Sequence[Sequence[Slot]], values: Sequence[Any]
) -> Iterator[None]:
  """Puts `values[i]` into every slot of `slots[i]`, and restores them after.

  The objects are changed for all threads.

  Args:
    slots: The slots.
    values: As many values.

  Yields:
    Nothing.
  """
  saved = []
  try:
    for places, value in zip(slots, values, strict=True):
      for owner, attribute in places:
        # Bypasses `__setattr__`, in which Keras tracks variables.
        saved.append((owner, attribute, owner.__dict__[attribute]))
        owner.__dict__[attribute] = value
    yield
  finally:
    for owner, attribute, value in reversed(saved):
      owner.__dict__[attribute] = value


class RecordedVariable:
  """Replaces a variable: reads as a tensor and records assignments.

  Attributes:
    value: The tensor after the assignments so far.
  """

  def __init__(self, value: Any) -> None:
    """Starts with `value`, which is converted to a tensor."""
    self.value = tf.convert_to_tensor(value)

  def __getattr__(self, name):
    return getattr(self.value, name)

  def __tf_tensor__(self, dtype=None, name=None):
    return tf.convert_to_tensor(self.value, dtype, name=name)

  def read_value(self) -> tf.Tensor:
    """Returns `value`."""
    return self.value

  def assign(self, value: Any, **unused_kwargs) -> tf.Tensor:
    """Replaces the value; the shape must be the same."""
    self.value = tf.ensure_shape(value, self.value.shape)
    return self.value

  def assign_add(self, delta: Any, **kwargs) -> tf.Tensor:
    """Adds `delta`."""
    return self.assign(self.value + delta, **kwargs)

  def assign_sub(self, delta: Any, *unused_args, **kwargs) -> tf.Tensor:
    """Subtracts `delta`."""
    return self.assign(self.value - delta, **kwargs)


def _forward_operator(name):
  def operator(self, *args):
    return getattr(self.value, name)(*args)

  return operator


# Python looks operators up on the class, bypassing `__getattr__`.
for _name in tf.Tensor.OVERLOADABLE_OPERATORS:
  setattr(RecordedVariable, _name, _forward_operator(_name))


class StatelessGenerator:
  """Replaces a Keras layer's random generator; each draw has its own seed."""

  def __init__(self, seed: Any, layer_index: int) -> None:
    """Draws nothing yet.

    Args:
      seed: `int32[2]`, or None: then a draw is an error.
      layer_index: Distinguishes the layers of a model.
    """
    self._seed = seed
    self._layer_index = layer_index
    self._draws = 0

  def _next_seed(self):
    if self._seed is None:
      raise ValueError(
        'A layer draws random numbers in training mode, which requires a'
        ' stateless seed of shape [2], found seed=None.'
      )
    fold_in = tf.random.experimental.stateless_fold_in
    seed = fold_in(self._seed, self._layer_index)
    self._draws += 1
    return fold_in(seed, self._draws)

  def make_seed_for_stateless_op(self) -> tf.Tensor:
    """The seed of a draw that the layer makes itself, `int32[2]`."""
    return self._next_seed()

  def dropout(
    self, inputs: tf.Tensor, rate: float, noise_shape: Any = None
  ) -> tf.Tensor:
    """As `tf.nn.dropout`."""
    return tf.nn.experimental.stateless_dropout(
      inputs, rate, seed=self._next_seed(), noise_shape=noise_shape
    )

  def random_normal(
    self,
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = None,
    **unused,
  ) -> tf.Tensor:
    """As `tf.random.normal`."""
    return tf.random.stateless_normal(
      shape, self._next_seed(), mean, stddev, dtype or tf.float32
    )

  def random_uniform(
    self,
    shape: Any,
    minval: Any = 0.0,
    maxval: Any = None,
    dtype: Any = None,
    **unused,
  ) -> tf.Tensor:
    """As `tf.random.uniform`."""
    maxval = 1.0 if maxval is None else maxval
    return tf.random.stateless_uniform(
      shape, self._next_seed(), minval, maxval, dtype or tf.float32
    )
