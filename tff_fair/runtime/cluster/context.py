"""The execution context that TFF calls."""

from collections.abc import Iterator
import functools
import itertools
import threading
from typing import Any
import weakref

from ray import exceptions
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.runtime import failed_computation
from tff_fair.runtime import per_computation
from tff_fair.runtime import worker_error
from tff_fair.runtime.cluster import client_values
from tff_fair.runtime.cluster import execution
from tff_fair.runtime.cluster import pool as pool_lib
from tff_fair.runtime.device import placement
from tff_fair.runtime.device import program
from tff_fair.runtime.device import values


class ClusterContext(tff.framework.SyncContext):
  """Compiles each computation once; its clients run on workers.

  The workers end with the context. Calls from several threads run one after the
  other.

  Attributes:
    bytes_sent: Bytes of arrays that went to workers so far; what all clients
      share counts once for each worker.
    bytes_received: Bytes of arrays that came back so far.
  """

  def __init__(self, workers: pool_lib.Pool) -> None:
    """Initializes the context."""
    self.bytes_sent = self.bytes_received = 0
    self._pool = workers
    (self._server,) = placement.resolve_devices('auto')
    self._mirror = values.Mirror()
    self._sent = client_values.ClientValues()
    # It does not refer to the context, which then ends when nobody has it.
    self._programs = per_computation.PerComputation(
      functools.partial(_compile, workers, itertools.count())
    )
    self._lock = threading.Lock()
    weakref.finalize(self, workers.close).atexit = False

  def invoke(self, comp: tff.framework.ConcreteComputation, arg: Any) -> Any:
    """Executes `comp`; see `tff.framework.SyncContext`."""
    with self._lock:
      return self._invoke(comp, arg)

  def _invoke(self, comp, arg):
    parameter_type = comp.type_signature.parameter
    compiled, sent_program = self._programs(comp)
    run = None
    try:
      with tf.device(self._server):
        argument, clients = None, []
        if parameter_type is not None:
          argument = values.from_python(
            arg, parameter_type, self._mirror, load=False
          )
        num_clients = values.count_clients(argument, parameter_type)
        if num_clients:
          clients = _find_clients(argument, parameter_type)
        run = execution.Execution(sent_program, self._pool, self._sent, clients)
        result = compiled(argument, program.Cohort(num_clients, run.run_stage))
        return values.to_python(
          result, comp.type_signature.result, num_clients, self._mirror
        )
    except tf.errors.OpError as error:
      raise failed_computation.one_line(error) from error
    except exceptions.RayError as error:
      raise worker_error.WorkerError(
        f'Ray must run, found: {pool_lib.sentence(error)}'
      ) from error
    finally:
      if run is not None:
        run.end()
        self.bytes_sent += run.bytes_sent
        self.bytes_received += run.bytes_received


def _compile(
  workers: pool_lib.Pool,
  numbers: Iterator[int],
  comp: tff.framework.ConcreteComputation,
) -> tuple[program.Program, execution.SentProgram]:
  """The program of a computation, as it runs here and as it is sent."""
  compiled = program.compile_computation(comp)
  made = program.Program(compiled, select_at_server=True)
  number = next(numbers)
  forget = weakref.finalize(made, workers.forget_program, number)
  forget.atexit = False
  # The tree, not the computation: compiling again would name steps otherwise.
  return made, execution.SentProgram(number, compiled.proto)


def _find_clients(argument, parameter_type) -> list[tuple[Any, ...]]:
  """The parts of the argument of each client."""
  placed = [
    part
    for part, part_type in zip(
      values.split(argument, parameter_type),
      values.parts(parameter_type),
      strict=True,
    )
    if values.is_different_at_clients(part_type)
  ]
  return list(zip(*placed, strict=True))
