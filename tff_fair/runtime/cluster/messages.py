"""Messages between the driver and its workers.

Values travel as NumPy arrays in nested tuples. Ray puts large ones into shared
memory without a copy.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
import dataclasses
import itertools
import pickle
import types
from typing import Any

import numpy as np
import tensorflow as tf

from tff_fair import internals
from tff_fair.runtime import element_dataset
from tff_fair.runtime.device import aggregation
from tff_fair.runtime.device import values


@dataclasses.dataclass(frozen=True)
class DataSet:
  """A data set: its graph, with the tensors that it holds.

  Attributes:
    graph: uint8 [n].
  """

  graph: np.ndarray


class Kept(int):
  """The number of a value that the worker keeps."""

  __slots__ = ()


@dataclasses.dataclass(frozen=True)
class Joined:
  """A value with many arrays, which are one: Ray takes as long for each.

  Attributes:
    pickled: The value without its buffers.
    sizes: The bytes of each buffer.
    buffer: All of them, uint8 [n].
  """

  pickled: bytes
  sizes: Sequence[int]
  buffer: np.ndarray


@dataclasses.dataclass(frozen=True)
class Selection:
  """A sequence of a known number of elements.

  Attributes:
    elements: The components of each element, in the order of a data set.
  """

  elements: Sequence[Sequence[Any]]


@dataclasses.dataclass(frozen=True)
class Reference:
  """A client that the worker loads.

  Attributes:
    loader: The number of the function, which the worker has.
    client_id: See `ClientReference`.
  """

  loader: int
  client_id: Hashable


@dataclasses.dataclass(frozen=True)
class Shared:
  """A part of a stage's inputs that is the same for all clients.

  Attributes:
    leaves: The leaves, or the position of each in the arguments of the call.
  """

  leaves: Sequence[Any]


@dataclasses.dataclass(frozen=True)
class InArgument:
  """A large leaf, which is an argument of the call of its own.

  Attributes:
    position: Its position.
  """

  position: int


@dataclasses.dataclass(frozen=True)
class OfClients:
  """A part of a stage's inputs with an entry for each client.

  Attributes:
    entries: Client -> its entry.
  """

  entries: Mapping[int, Any]


@dataclasses.dataclass(frozen=True)
class OfStage:
  """A part of a stage's inputs that is an output of an earlier stage.

  Attributes:
    stage: The number of that stage.
    output: The number of the output.
  """

  stage: int
  output: int


@dataclasses.dataclass(frozen=True)
class StageCall:
  """The call of a stage at a worker.

  Attributes:
    execution: The number of the execution.
    program: The number of the compiled computation.
    tree: The computation, a proto, if the worker has not got it yet.
    stage: The number of the stage.
    num_clients: Size of the cohort.
    clients: The clients to run, in the order in which they start.
    parts: The inputs of the stage, in the order of their leaves.
    spans: Groups of clients whose totals to return.
    starts: The first members of groups of which other workers have the rest.
    in_groups: Whether they are groups of `aggregation`, each of them whole.
    values: Number -> a new value to keep, of data sets at hand and graphs.
    loaders: New functions of references, pickled.
    unused: Values that are not needed again.
    unused_programs: Computations that are not.
  """

  execution: int
  program: int
  tree: Any | None
  stage: int
  num_clients: int
  clients: Sequence[int]
  in_groups: bool
  parts: Sequence[Shared | OfClients | OfStage]
  spans: Sequence[aggregation.Span]
  starts: Sequence[Sequence[int]]
  values: Joined
  loaders: Mapping[int, bytes]
  unused: Sequence[int]
  unused_programs: Sequence[int]


@dataclasses.dataclass(frozen=True)
class StageResult:
  """A worker's result of a stage.

  Attributes:
    fetched: Output -> client -> its entry, of the outputs that are needed
      outside of stages.
    totals: For each aggregation, span -> total.
    loaded: Number of a function of references -> how many clients it loaded
      now, and their bytes.
  """

  fetched: Mapping[str, Mapping[int, Any]]
  totals: Sequence[Mapping[aggregation.Span, Any]]
  loaded: Mapping[int, tuple[int, float]]


@dataclasses.dataclass(frozen=True)
class Failure:
  """An error in a client's code, which is no fault of the worker.

  Attributes:
    error: The exception.
  """

  error: Exception


def join(value: Any) -> Joined:
  """Joins the arrays of a value."""
  buffers: list[pickle.PickleBuffer] = []
  pickled = pickle.dumps(value, 5, buffer_callback=buffers.append)
  raw = [buffer.raw() for buffer in buffers]
  joined = np.frombuffer(b''.join(raw), np.uint8)
  return Joined(pickled, [part.nbytes for part in raw], joined)


def take_apart(joined: Joined) -> Any:
  """The value of `join`."""
  ends = itertools.accumulate(joined.sizes, initial=0)
  parts = [joined.buffer[i:j] for i, j in itertools.pairwise(ends)]
  return pickle.loads(joined.pickled, buffers=parts)


def sent_dataset(
  dataset: tf.data.Dataset,
) -> element_dataset.ElementDataset | np.ndarray:
  """A data set as it is sent: itself if it is at hand, else its graph."""
  if isinstance(dataset, element_dataset.ElementDataset):
    return dataset
  return serialize_dataset(dataset)


def serialize_dataset(dataset: tf.data.Dataset) -> np.ndarray:
  """The graph of a data set, uint8 [n].

  Raises:
    ValueError: If the data set calls Python code, which stays here.
  """
  variant = tf.data.experimental.to_variant(dataset)
  try:
    graph = tf.raw_ops.DatasetToGraphV2(input_dataset=variant).numpy()
  except tf.errors.OpError as error:
    raise ValueError(
      'A data set must be one that TensorFlow can serialise to be sent to'
      f' workers, found: {internals.error_line(error)}; a'
      ' `runtime.ClientReference` lets the workers load it instead.'
    ) from error
  if b'PyFunc' in graph:
    raise ValueError(
      'A data set must not call Python code to be sent to workers, found one'
      ' that does, as from_generator makes; a `runtime.ClientReference` lets'
      ' the workers load it instead.'
    )
  return np.frombuffer(graph, np.uint8)


def to_message(
  value: Any,
  send_dataset: Callable[[tf.data.Dataset], Any] = lambda dataset: DataSet(
    serialize_dataset(dataset)
  ),
) -> Any:
  """A value of the interpreter as it is sent."""
  if isinstance(value, tuple):
    return tuple(to_message(part, send_dataset) for part in value)
  if isinstance(value, values.Slices):
    return Selection(
      [
        [to_message(tensor) for tensor in components]
        for components in value.components()
      ]
    )
  if isinstance(value, tf.data.Dataset):
    return send_dataset(value)
  if value.shape.rank == 0 or value.dtype == tf.string:
    return value.numpy()
  return internals.read_only_array(value)


def from_message(
  message: Any, kept: Mapping[int, Any] = types.MappingProxyType({})
) -> Any:
  """The value of a message."""
  if isinstance(message, tuple):
    return tuple(from_message(part, kept) for part in message)
  if isinstance(message, Selection):
    # Not empty, since the keys are not.
    return values.concatenate([tuple(e) for e in message.elements])
  if isinstance(message, DataSet):
    return load_dataset(message.graph)
  if isinstance(message, Kept):
    return kept[message]
  return tf.convert_to_tensor(message)


def load_dataset(graph: np.ndarray) -> tf.Tensor:
  """The variant tensor of a data set from its graph."""
  with tf.device('CPU:0'):
    return tf.raw_ops.DatasetFromGraph(graph_def=graph.tobytes())


def num_bytes(message: Any) -> int:
  """The size of the arrays in a message."""
  if isinstance(message, Kept):
    return 0
  if isinstance(message, (tuple, list)):
    return sum(map(num_bytes, message))
  if isinstance(message, dict):
    return sum(map(num_bytes, message.values()))
  if isinstance(message, (np.ndarray, np.generic)):
    return message.nbytes
  if isinstance(message, bytes):
    return len(message)
  if dataclasses.is_dataclass(message):
    return sum(
      num_bytes(getattr(message, field.name))
      for field in dataclasses.fields(message)
    )
  return 0
