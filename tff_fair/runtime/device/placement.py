"""The devices that run the TensorFlow blocks, and their threads."""

from collections.abc import Sequence
import contextlib
import os

import tensorflow as tf


def resolve_devices(device: str | Sequence[str]) -> list[str]:
  """Finds devices of this process.

  Args:
    device: 'auto', the first GPU if there is one, else the CPU; 'all', all GPUs
      if there are any, else all CPUs; 'cpu'; logical devices, such as 'gpu:0'
      or 'gpu:0,gpu:1'; or a list of logical devices.

  Returns:
    The devices' names, such as '/device:GPU:0'.

  Raises:
    ValueError: If there is no such device, or it is named twice.
  """
  found = [
    d.name.removeprefix('/device:').lower()
    for d in tf.config.list_logical_devices()
    if d.device_type in ('CPU', 'GPU')
  ]
  # GPUs come first: with one, a CPU is neither 'auto' nor one of 'all'.
  best = [d for d in found if d.startswith('gpu')] or found
  names = device.split(',') if isinstance(device, str) else list(device)
  if names == ['all']:
    names = best
  names = [{'auto': best[0], 'cpu': 'cpu:0'}.get(name, name) for name in names]
  if not names or not set(names) <= set(found) or len(set(names)) < len(names):
    raise ValueError(
      "device must be 'auto', 'cpu', 'all', or devices that TensorFlow sees"
      f' here, all different, out of {sorted(found)}, found {device!r}.'
    )
  return [f'/device:{name.upper()}' for name in names]


def limit_op_threads() -> None:
  """Gives each TensorFlow operation one thread, unless a number is set already.

  Clients run in parallel, with one thread each. With more threads per operation
  they would compete (measured on two cores: 1.3 to 1.4 times the time). The
  last bits of some convolution gradients depend on the number of threads, so
  one thread also makes results the same on machines with any number of cores.

  For another number, first call
  `tf.config.threading.set_intra_op_parallelism_threads` or set the environment
  variable TF_NUM_INTRAOP_THREADS. TensorFlow accepts the number only before its
  first operation; later calls have no effect.
  """
  threading = tf.config.threading
  chosen = threading.get_intra_op_parallelism_threads()
  if not chosen and 'TF_NUM_INTRAOP_THREADS' not in os.environ:
    with contextlib.suppress(RuntimeError):
      threading.set_intra_op_parallelism_threads(1)
