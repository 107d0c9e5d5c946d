"""The runtime of several machines: TFF computations on workers of Ray.

The driver, which is the process that calls a computation, runs the steps of the
server as the runtime `device` does (`context`). Each worker runs a share of the
clients (`worker`), as `device` does: a stage of the plan is one call a
worker (`execution`). Clients are dealt so that the workers have the same amount
of work, and get the clients again whose data they have; many small ones are
dealt in groups, of which each is one call (`dealing`, `client_values`,
`loaded_clients`). Lost workers are found and replaced
(`pool`). `messages` says what is sent, `ray_session` starts and ends Ray.
"""

import os

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair.runtime.cluster import ray_session
from tff_fair.runtime.device import placement


def create_cluster_context(
  num_workers: int = 2,
  cpus_per_worker: int = 1,
  gpus_per_worker: float = 0,
  address: str | None = None,
  timeout: float = 60.0,
) -> tff.framework.SyncContext:
  """A context whose clients run on workers of a Ray cluster.

  Results have the bits of the runtime `device`, for any number of workers.
  Another context of this kind ends the workers of the last one.

  Args:
    num_workers: Number of workers.
    cpus_per_worker: CPUs of each, which run as many clients at a time.
    gpus_per_worker: GPUs of each, which share its clients: a whole number, or
      a part of one GPU.
    address: None to start a Ray on this machine, which listens on loopback only
      and ends with this process; `host:port` or 'auto' to join one that runs.
    timeout: Seconds in which a worker must answer when asked whether it runs,
      however long its clients take. One that does not is lost.

  Returns:
    The context. It raises a `WorkerError` if no worker is left, or one runs out
    of memory.

  Raises:
    ImportError: If Ray is not installed.
    TypeError: If an argument is of another type.
    ValueError: If an argument is out of range.
    WorkerError: If Ray or the workers do not start.
  """
  checks.check_integer('num_workers', num_workers, 1)
  checks.check_integer('cpus_per_worker', cpus_per_worker, 1)
  _check_gpus(gpus_per_worker)
  checks.check_positive('timeout', timeout)
  placement.limit_op_threads()
  ray_session.connect(
    address, num_workers * cpus_per_worker, num_workers * gpus_per_worker
  )
  # They import Ray.
  from tff_fair.runtime.cluster import context
  from tff_fair.runtime.cluster import pool

  workers = pool.Pool(
    num_workers, cpus_per_worker, gpus_per_worker, _op_threads(), timeout
  )
  return context.ClusterContext(workers)


def _check_gpus(gpus_per_worker):
  """Checks that Ray can give a worker this number of GPUs."""
  checks.check_real('gpus_per_worker', gpus_per_worker, minimum=0)
  if gpus_per_worker > 1 and gpus_per_worker != int(gpus_per_worker):
    raise ValueError(
      'gpus_per_worker must be a whole number, or less than 1, found'
      f' {gpus_per_worker}.'
    )


def _op_threads() -> int:
  """The threads of a TensorFlow operation in this process."""
  return (
    tf.config.threading.get_intra_op_parallelism_threads()
    or int(os.environ.get('TF_NUM_INTRAOP_THREADS', 0))
    or len(os.sched_getaffinity(0))
  )
