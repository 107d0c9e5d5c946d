"""The execution context that TFF calls."""

import itertools
from typing import Any
import weakref

import ray
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import internals
from tff_fair.runtime import per_computation
from tff_fair.runtime.cluster import client_values
from tff_fair.runtime.cluster import execution
from tff_fair.runtime.cluster import pool as pool_lib
from tff_fair.runtime.device import placement
from tff_fair.runtime.device import program
from tff_fair.runtime.device import values


class ClusterContext(tff.framework.SyncContext):
  """Compiles each computation once; its clients run on workers.

  Attributes:
    bytes_sent: Bytes of arrays that went to workers so far; what all clients
      share counts once for each worker.
    bytes_received: Bytes of arrays that came back so far.
  """

  def __init__(self, workers: pool_lib.Pool):
    """Initializes the context.

    Args:
      workers: The workers.
    """
    self.bytes_sent = self.bytes_received = 0
    self._pool = workers
    (self._server,) = placement.resolve_devices('auto')
    self._mirror = values.Mirror()
    self._sent = client_values.ClientValues()
    self._numbers = itertools.count()
    self._programs = per_computation.PerComputation(self._compile)

  def invoke(self, comp: tff.framework.ConcreteComputation, arg: Any) -> Any:
    """Executes `comp`; see `tff.framework.SyncContext`."""
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
          clients = _find_clients(argument, parameter_type)
        num_clients = values.count_clients(argument, parameter_type)
        run = execution.Execution(sent_program, self._pool, self._sent, clients)
        result = compiled(argument, program.Cohort(num_clients, run.run_stage))
        return values.to_python(
          result, comp.type_signature.result, num_clients, self._mirror
        )
    except tf.errors.OpError as error:
      raise RuntimeError(
        f'A computation failed: {internals.error_line(error)}'
      ) from error
    finally:
      if run is not None:
        run.end()
        self.bytes_sent += run.bytes_sent
        self.bytes_received += run.bytes_received

  def _compile(self, comp):
    compiled = program.compile_computation(comp)
    made = program.Program(compiled, select_at_server=True)
    number = next(self._numbers)
    weakref.finalize(made, _forget_program, self._pool, number)
    # The tree, not the computation: compiling again would name steps otherwise.
    return made, execution.SentProgram(number, compiled.proto)


def _find_clients(argument, parameter_type) -> list[Any]:
  """The clients of an argument: the first of its client-placed parts."""
  for part, part_type in zip(
    values.split(argument, parameter_type),
    values.parts(parameter_type),
    strict=True,
  ):
    if values.is_different_at_clients(part_type):
      return part
  return []


def _forget_program(workers, number):
  for worker in workers.workers:
    if number in worker.programs and ray.is_initialized():
      worker.actor.forget_program.remote(number)
