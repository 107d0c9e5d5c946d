"""The execution context that TFF calls."""

from collections.abc import Sequence
import os
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair.runtime import failed_computation
from tff_fair.runtime import per_computation
from tff_fair.runtime.device import local_clients
from tff_fair.runtime.device import placement
from tff_fair.runtime.device import program
from tff_fair.runtime.device import values


def create_device_context(
  device: str | Sequence[str] = 'auto', client_threads: int | None = None
) -> tff.framework.SyncContext:
  """A context that executes in this process, on one device or several.

  With several, each runs a part of the clients of a round; the state is on the
  first, which does the server's work. Results do not depend on the number of
  devices of one kind.

  If TensorFlow has not started yet, each of its operations gets one thread (see
  `placement.limit_op_threads`), as clients run in parallel.

  Args:
    device: 'auto', the first GPU if there is one, else the CPU; 'all', all GPUs
      if there are any, else all CPUs; 'cpu'; or logical devices, such as
      'gpu:0', 'gpu:0,gpu:1', or a list. Data-set operations stay on the CPU.
    client_threads: How many clients of a round run in parallel, on all devices
      together; None for the number of CPU cores of this process. Results do not
      depend on it.

  Returns:
    A `tff.framework.SyncContext`.

  Raises:
    TypeError: If `client_threads` is not an integer.
    ValueError: If there is no such device, or `client_threads` is not positive.
  """
  if client_threads is None:
    client_threads = len(os.sched_getaffinity(0))
  checks.check_integer('client_threads', client_threads, 1)
  placement.limit_op_threads()
  return _DeviceContext(placement.resolve_devices(device), client_threads)


class _DeviceContext(tff.framework.SyncContext):
  """Compiles each computation once and interprets it at each call."""

  def __init__(self, devices: Sequence[str], client_threads: int) -> None:
    self._server = devices[0]
    self._mirror = values.Mirror()
    self._clients = local_clients.LocalClients(devices, client_threads)
    self._programs = per_computation.PerComputation(
      lambda comp: program.Program(program.compile_computation(comp))
    )

  def invoke(self, comp: tff.framework.ConcreteComputation, arg: Any) -> Any:
    """Executes `comp`; see `tff.framework.SyncContext`."""
    parameter_type = comp.type_signature.parameter
    compiled = self._programs(comp)
    try:
      with tf.device(self._server):
        argument = None
        if parameter_type is not None:
          argument = values.from_python(arg, parameter_type, self._mirror)
        num_clients = values.count_clients(argument, parameter_type)
        cohort = program.Cohort(num_clients, self._clients.run_stage)
        result = compiled(argument, cohort)
        return values.to_python(
          result, comp.type_signature.result, num_clients, self._mirror
        )
    except tf.errors.OpError as error:
      raise failed_computation.one_line(error) from error
