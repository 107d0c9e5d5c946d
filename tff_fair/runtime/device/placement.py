"""Which device runs the TensorFlow blocks."""

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
