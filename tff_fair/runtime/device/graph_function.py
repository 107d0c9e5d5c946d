"""A TensorFlow block as a function of the interpreter's values."""

import queue
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.runtime.device import graph_import
from tff_fair.runtime.device import tracing
from tff_fair.runtime.device import values


class GraphFunction:
  """Runs a block; several threads may call it in parallel.

  It runs on the device of the caller, but on the CPU if it takes or returns
  data sets, which are there.
  """

  def __init__(self, block: tff.framework.CompiledComputation) -> None:
    """Imports the block.

    Raises:
      NotImplementedError: If the block is not a TensorFlow one.
    """
    kind = block.proto.WhichOneof('computation')
    if kind != 'tensorflow':
      raise NotImplementedError(
        "The 'device' runtime runs TensorFlow blocks, found a block of kind"
        f' {kind!r}; use another runtime.'
      )
    self._block = block
    block_type = block.type_signature
    self._pack = values.build_pack(block_type.result)
    has_datasets = tff.types.contains(
      block_type, lambda t: isinstance(t, tff.SequenceType)
    )
    self._device = '/device:CPU:0' if has_datasets else None
    # Imports that no thread is using. Threads share one import without
    # variables; with variables, each parallel call needs a separate import.
    self._free = queue.LifoQueue()
    first = graph_import.ImportedGraph(block)
    self._shared = None if first.has_variables else first
    self._free.put(first)

  def __call__(self, *argument: Any) -> Any:
    """Runs the block.

    Raises:
      tracing.NotTraceableError: If the block has variables and is called while
        a function is traced.
    """
    element = self._only_element(*argument)
    if element is not None:
      return self._pack(iter(self._shared.call_on_element(*element)))
    leaves = values.flatten(*argument) if argument else []
    if self._device is None:
      results = self._run(leaves)
    else:
      with tf.device(self._device):
        results = self._run(leaves)
    return self._pack(iter(results))

  def _only_element(self, *argument):
    """The components of the single element that the block takes, or None.

    So a row that a client selected needs no data set, and stays on its device.
    """
    if not argument or not isinstance(argument[0], values.Slices):
      return None
    if self._shared is None or self._shared.call_on_element is None:
      return None
    if len(argument[0].elements) != 1:
      return None
    return argument[0].components()[0]

  def _run(self, leaves):
    if self._shared is not None:
      return self._shared(*leaves)
    if not tf.executing_eagerly():
      raise tracing.NotTraceableError
    try:
      graph = self._free.get_nowait()
    except queue.Empty:
      graph = graph_import.ImportedGraph(self._block)
    try:
      return graph(*leaves)
    finally:
      self._free.put(graph)
