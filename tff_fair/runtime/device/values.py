"""Values of the interpreter, and their conversion from and to Python.

A tensor is a `tf.Tensor`, a sequence a `tf.data.Dataset` or `Slices`, a
structure a tuple (names are in the types), a function a Python function of at
most one value. A server-placed value is the value itself. A client-placed value
is a list with an entry per client, or `AllEqual`. A sequence is at hand if it
is an `ElementDataset`: its leaves are then those of its element, arrays.
"""

import collections
from collections.abc import Callable, Iterator, Sequence
import dataclasses
import functools
from typing import Any
import weakref

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import internals
from tff_fair.runtime import client_reference
from tff_fair.runtime import element_dataset
from tff_fair.runtime.device import device_array

Struct = tff.structure.Struct
# The end of the name of the device whose memory NumPy reads.
_HOST = '/device:CPU:0'


@dataclasses.dataclass(frozen=True)
class AllEqual:
  """A client-placed value that is the same for all clients."""

  value: Any


@dataclasses.dataclass(frozen=True)
class Slices:
  """A sequence of a known number of elements, such as a client's selection.

  Its elements stay on their device. A data set, which is on the CPU, is made of
  them only where a TensorFlow block needs one.

  Attributes:
    elements: The elements, values of type `element_type`.
    element_type: Their type.
  """

  elements: tuple[Any, ...]
  element_type: tff.Type

  def dataset(self) -> tf.data.Dataset:
    """The sequence as a data set."""
    return to_dataset(self.elements, self.element_type)

  def components(self) -> list[list[tf.Tensor]]:
    """The tensors of each element, in the order of a data set."""
    return [
      tf.nest.flatten(_nest(element, self.element_type))
      for element in self.elements
    ]


class Mirror:
  """Remembers which tensor each array that a context returned is a view of.

  A process's state is returned as arrays and passed back in the next round.
  While the caller holds an array, its tensor stays on its device and is found
  again instead of converted. Arrays are read-only, so they cannot differ. Those
  of another device than the CPU are copied to the host when they are read.
  """

  def __init__(self) -> None:
    """Knows no array yet."""
    self._tensors: dict[int, tf.Tensor] = {}

  def __len__(self) -> int:
    """The number of arrays that the caller still holds."""
    return len(self._tensors)

  def array(self, tensor: tf.Tensor) -> Any:
    """The array of a tensor, or its scalar."""
    if tensor.shape.rank == 0 or tensor.dtype == tf.string:
      return tensor.numpy()
    if tensor.device.endswith(_HOST):
      array = internals.read_only_array(tensor)
    else:
      array = device_array.DeviceArray(tensor)
    self._tensors[id(array)] = tensor
    weakref.finalize(array, self._tensors.pop, id(array), None)
    return array

  def tensor(self, value: Any) -> tf.Tensor | None:
    """The tensor of an array that `array` returned, or None."""
    return self._tensors.get(id(value))


def is_different_at_clients(value_type: tff.Type) -> bool:
  """Returns whether values of the type are lists, one entry per client."""
  return (
    isinstance(value_type, tff.FederatedType)
    and value_type.placement is tff.CLIENTS
    and not value_type.all_equal
  )


def for_each_client(value: Any, num_clients: int) -> list[Any]:
  """The entries of a client-placed value, one per client."""
  if isinstance(value, AllEqual):
    return [value.value] * num_clients
  return value


def flatten(value: Any, at_hand: bool = False) -> list[Any]:
  """The leaves of a value, depth first.

  A sequence is one leaf, the variant of its data set; or, with `at_hand`, all
  sequences are at hand.
  """
  leaves: list[Any] = []
  _add_leaves(value, at_hand, leaves)
  return leaves


def _add_leaves(value, at_hand, leaves) -> None:
  if isinstance(value, (tuple, list)):
    for part in value:
      _add_leaves(part, at_hand, leaves)
  elif isinstance(value, AllEqual):
    _add_leaves(value.value, at_hand, leaves)
  elif at_hand and isinstance(value, element_dataset.ElementDataset):
    leaves.extend(value.leaves)
  elif isinstance(value, Slices):
    _add_leaves(value.dataset(), at_hand, leaves)
  elif isinstance(value, tf.data.Dataset):
    leaves.append(tf.data.experimental.to_variant(value))
  else:
    leaves.append(value)


def is_at_hand(value: Any) -> bool:
  """Returns whether all sequences in a value are at hand."""
  if isinstance(value, (tuple, list)):
    return all(map(is_at_hand, value))
  if isinstance(value, element_dataset.ElementDataset):
    return True
  if isinstance(value, (AllEqual, Slices, tf.data.Dataset)):
    return False
  return value.dtype != tf.variant


def parts(value_type: tff.Type) -> list[tff.Type]:
  """The types of the parts of a type that are placed as a whole."""
  if isinstance(value_type, tff.StructType):
    return [part for t in value_type for part in parts(t)]
  return [value_type]


def split(value: Any, value_type: tff.Type) -> list[Any]:
  """The parts of a value, for the types that `parts` returns."""
  if isinstance(value_type, tff.StructType):
    pairs = zip(value, value_type, strict=True)
    return [part for v, t in pairs for part in split(v, t)]
  return [value]


def join(parts_: Iterator[Any], value_type: tff.Type) -> Any:
  """The value of a type whose parts `split` returns."""
  if isinstance(value_type, tff.StructType):
    return tuple([join(parts_, t) for t in value_type])
  return next(parts_)


def columns(
  value: Any, value_type: tff.Type, num_clients: int, at_hand: bool = False
) -> list[Any]:
  """The leaves of a value: each an `AllEqual`, or a list of the clients'.

  `at_hand` is as for `flatten`.
  """
  found = []
  for part, part_type in zip(
    split(value, value_type), parts(value_type), strict=True
  ):
    if is_different_at_clients(part_type):
      entries = for_each_client(part, num_clients)
      rows = [flatten(entry, at_hand) for entry in entries]
      found += [list(column) for column in zip(*rows, strict=True)]
    else:
      found += [AllEqual(leaf) for leaf in flatten(part, at_hand)]
  return found


def build_pack(
  value_type: tff.Type, at_hand: bool = False
) -> Callable[[Iterator[Any]], Any]:
  """Builds the inverse of `flatten`, which takes only the leaves it needs."""
  build = functools.partial(build_pack, at_hand=at_hand)
  match value_type:
    case tff.FederatedType(placement=tff.CLIENTS, all_equal=True):
      member = build(value_type.member)
      return lambda leaves: AllEqual(member(leaves))
    case tff.FederatedType(placement=tff.CLIENTS):
      member = build(value_type.member)
      return lambda leaves: [member(leaves)]
    case tff.FederatedType():
      return build(value_type.member)
    case tff.StructType():
      members = [build(t) for t in value_type]
      return lambda leaves: tuple([member(leaves) for member in members])
    case tff.SequenceType():
      if at_hand:
        element = build(value_type.element)
        return lambda leaves: Slices((element(leaves),), value_type.element)
      spec = tff.types.structure_from_tensor_type_tree(
        tensor_spec, value_type.element
      )
      return lambda leaves: tf.data.experimental.from_variant(
        next(leaves), structure=spec
      )
  return next


def tensor_spec(tensor_type: tff.TensorType) -> tf.TensorSpec:
  """The `tf.TensorSpec` of a TFF type."""
  return tf.TensorSpec(tensor_type.shape, tensor_type.dtype)


def to_dataset(
  elements: Sequence[Any], element_type: tff.Type
) -> tf.data.Dataset:
  """A data set of values."""
  if not elements:
    return to_dataset([_zeros(element_type)], element_type).take(0)
  return concatenate([_nest(element, element_type) for element in elements])


def concatenate(elements: Sequence[Any]) -> tf.data.Dataset:
  """A data set of one or more elements, in the structure of `tf.nest`."""
  with tf.device('/device:CPU:0'):
    datasets = map(tf.data.Dataset.from_tensors, elements)
    return functools.reduce(tf.data.Dataset.concatenate, datasets)


def from_element(element: Any) -> Any:
  """The value of a data set's element."""
  if tf.is_tensor(element):
    return element
  return tuple(
    from_element(part)
    for _, part in tff.structure.iter_elements(
      tff.structure.from_container(element)
    )
  )


def count_clients(value: Any, value_type: tff.Type | None) -> int:
  """The number of clients for which an argument has entries.

  Raises:
    ValueError: If parts of the argument differ.
  """
  numbers = set(_client_counts(value, value_type))
  if len(numbers) > 1:
    raise ValueError(
      'All client-placed arguments must have one entry per client, found'
      f' {sorted(numbers)} entries.'
    )
  return numbers.pop() if numbers else 0


def from_python(
  value: Any, value_type: tff.Type, mirror: Mirror, load: bool = True
) -> Any:
  """Converts an argument of a computation.

  Args:
    value: The argument.
    value_type: Its type.
    mirror: Knows the arrays that the context returned.
    load: Whether clients that are references are loaded. Otherwise they stay
      references, since others load them.

  Returns:
    The value.

  Raises:
    TypeError: If `value` is not of that type.
  """
  match value_type:
    case tff.FederatedType(all_equal=True, placement=tff.CLIENTS):
      return AllEqual(from_python(value, value_type.member, mirror))
    case tff.FederatedType(placement=tff.CLIENTS):
      if not isinstance(value, list):
        raise TypeError(
          'A client-placed argument must be a list with an entry per client,'
          f' found {type(value).__name__}.'
        )
      return [_client(v, value_type.member, mirror, load) for v in value]
    case tff.FederatedType():
      return from_python(value, value_type.member, mirror)
    case tff.StructType():
      return _struct(value, value_type, mirror, load)
    case tff.SequenceType():
      return _sequence(value, value_type, mirror)
    case tff.TensorType():
      return _tensor(value, value_type, mirror)
  raise TypeError(f'An argument must not be of the type {value_type}.')


def to_python(
  value: Any, value_type: tff.Type, num_clients: int, mirror: Mirror
) -> Any:
  """Converts the result of a computation.

  Arrays are read-only, and passing them back costs no conversion; those on
  another device than the CPU are `DeviceArray`s.
  """

  def convert(value, value_type):
    match value_type:
      case tff.FederatedType(all_equal=True):
        if isinstance(value, AllEqual):
          value = value.value
        return convert(value, value_type.member)
      case tff.FederatedType():
        entries = for_each_client(value, num_clients)
        return [convert(v, value_type.member) for v in entries]
      case tff.StructType():
        types = tff.structure.to_elements(value_type)
        return Struct(
          (name, convert(v, t))
          for v, (name, t) in zip(value, types, strict=True)
        )
      case tff.SequenceType():
        return value.dataset() if isinstance(value, Slices) else value
      case tff.TensorType():
        return mirror.array(value)
    raise TypeError(
      f'The result of a computation must not be of the type {value_type}.'
    )

  return tff.types.type_to_py_container(convert(value, value_type), value_type)


def _client(value, value_type, mirror, load) -> Any:
  """A client's value."""
  if isinstance(value, client_reference.ClientReference):
    if not load:
      return value
    value = value()
  return from_python(value, value_type, mirror)


def _struct(value, value_type, mirror, load) -> tuple:
  """A mapping, sequence, named tuple, attrs class or Struct."""
  if type(value) is collections.OrderedDict:  # A client, and nearly always.
    found, parts_ = list(value), value.values()
  else:
    try:
      elements = tff.structure.to_elements(
        tff.structure.from_container(value, recursive=False)
      )
    except TypeError as error:
      raise TypeError(
        f'An argument of type {value_type} must be a structure, found'
        f' {type(value).__name__}{_hint_for_dataset(value, value_type)}.'
      ) from error
    found, parts_ = [n for n, _ in elements], [v for _, v in elements]
  required = tff.structure.name_list_with_nones(value_type)
  if found != required and (
    len(found) != len(required)
    or any(
      name not in (other, None)
      for name, other in zip(found, required, strict=True)
    )
  ):
    raise TypeError(
      f'A structure must have the elements {required}, in this order, found'
      f' {found}.'
    )
  return tuple(
    [
      from_python(v, t, mirror, load)
      for v, t in zip(parts_, value_type, strict=True)
    ]
  )


def _sequence(value, value_type, mirror) -> tf.data.Dataset:
  """A data set, or a list of elements."""
  # By `type`: to ask what is a data set of TensorFlow takes longer.
  has_arrays = type(value) is element_dataset.ElementDataset
  if has_arrays and value.is_of_type(value_type):
    return value
  if isinstance(value, list):
    element_type = value_type.element
    elements = [from_python(e, element_type, mirror) for e in value]
    return to_dataset(elements, element_type)
  if not isinstance(value, tf.data.Dataset):
    raise TypeError(
      f'An argument of type {value_type} must be a tf.data.Dataset or a list,'
      f' found {type(value).__name__}.'
    )
  found = tff.SequenceType(tff.types.tensorflow_to_type(value.element_spec))
  if not value_type.is_assignable_from(found):
    raise TypeError(
      f'A data set must be of type {value_type}, found'
      f' {found}{_hint_for_dataset(value, value_type)}.'
    )
  return value


def _hint_for_dataset(value, value_type) -> str:
  """A hint on how to turn a `tf.data.Dataset` into a client, or ''."""
  if not isinstance(value, tf.data.Dataset):
    return ''
  if not isinstance(value_type, tff.SequenceType):
    if 'client_id' not in tff.structure.name_list(value_type):
      return ''
    return (
      ': tff_fair.client.build_client_data makes a client of arrays, and'
      ' client.from_client_data the clients of a ClientData'
    )
  batch = tff.types.tensorflow_to_type(value.batch(1).element_spec)
  if value_type.is_assignable_from(tff.SequenceType(batch)):
    return ': batch it, such as dataset.batch(32)'
  element = value_type.element
  if isinstance(element, tff.StructType) and (
    tff.structure.name_list(element) == ['x', 'y']
  ):
    return ': map its elements to OrderedDict(x=..., y=...), and batch them'
  return ''


def _zeros(element_type):
  """A value of a type, with size 0 along unknown axes."""
  if isinstance(element_type, tff.StructType):
    return tuple(_zeros(t) for t in element_type)
  shape = [size or 0 for size in element_type.shape]
  return tf.zeros(shape, element_type.dtype)


def _nest(value, value_type):
  """A value in the containers of `tf.nest`."""
  if not isinstance(value_type, tff.StructType):
    return value
  types = tff.structure.to_elements(value_type)
  parts = [_nest(v, t) for v, (_, t) in zip(value, types, strict=True)]
  names = [name for name, _ in types]
  if None in names:
    return tuple(parts)
  return collections.OrderedDict(zip(names, parts, strict=True))


def _client_counts(value, value_type):
  if isinstance(value_type, tff.StructType):
    for part, part_type in zip(value, value_type, strict=True):
      yield from _client_counts(part, part_type)
  elif isinstance(value, list):
    yield len(value)


def _tensor(value, value_type, mirror) -> tf.Tensor:
  dtype = tf.dtypes.as_dtype(value_type.dtype)
  tensor = mirror.tensor(value)
  if tensor is None:
    try:
      # Arrays keep their dtype, which is checked below.
      typed = isinstance(value, (np.ndarray, np.generic, tf.Tensor))
      tensor = tf.convert_to_tensor(value, None if typed else dtype)
    except (TypeError, ValueError) as error:
      raise TypeError(
        f'An argument must be of type {value_type}, found {value!r}.'
      ) from error
  if tensor.dtype != dtype or not tensor.shape.is_compatible_with(
    value_type.shape
  ):
    raise TypeError(
      f'An argument must be of type {value_type}, found'
      f' {tensor.dtype.name}{tensor.shape.as_list()}.'
    )
  return tensor
