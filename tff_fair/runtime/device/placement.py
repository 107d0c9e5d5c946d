"""Which device runs the TensorFlow blocks, and with how many threads."""

import contextlib
import os

import tensorflow as tf


def resolve_device(device: str) -> str:
  """Finds a device of this process.

  Args:
    device: 'auto', the first GPU if there is one, else the CPU; 'cpu'; or a
      logical device, such as 'gpu:0' or 'cpu:1'.

  Returns:
    The device's name, such as '/device:GPU:0'.

  Raises:
    ValueError: If there is no such device.
  """
  found = [
    d.name.removeprefix('/device:').lower()
    for d in tf.config.list_logical_devices()
    if d.device_type in ('CPU', 'GPU')
  ]
  if device == 'auto':
    device = 'gpu:0' if 'gpu:0' in found else 'cpu:0'
  elif device == 'cpu':
    device = 'cpu:0'
  if device not in found:
    raise ValueError(
      "device must be 'auto', 'cpu' or a device that TensorFlow sees here,"
      f' one of {sorted(found)}, found {device!r}.'
    )
  return f'/device:{device.upper()}'


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
