"""Results that stay on a device until somebody reads them."""

import functools
from typing import Any

import numpy as np
import tensorflow as tf

from tff_fair import internals


class DeviceArray(np.lib.mixins.NDArrayOperatorsMixin):
  """A read-only array whose numbers are on a device, such as a GPU.

  Its type and shape are known at once. The first use of its numbers copies them
  to the host, where they are kept. NumPy's functions and operators take it like
  an array, it has the attributes and methods of one, and `isinstance` of
  `np.ndarray` holds. TensorFlow takes the tensor, without a copy to the host.
  """

  def __init__(self, tensor: tf.Tensor) -> None:
    """Copies nothing."""
    self._tensor = tensor
    self.shape = tuple(tensor.shape)
    self.dtype = np.dtype(tensor.dtype.as_numpy_dtype)
    self.ndim = len(self.shape)
    self.size = int(np.prod(self.shape))
    self.nbytes = self.size * self.dtype.itemsize

  @property
  def __class__(self):
    return np.ndarray

  @functools.cached_property
  def _array(self) -> np.ndarray:
    """The numbers on the host."""
    return internals.read_only_array(self._tensor)

  def __array__(self, dtype: Any = None) -> np.ndarray:
    return self._array if dtype is None else self._array.astype(dtype)

  def __tf_tensor__(self, dtype: Any = None, name: str | None = None):
    return tf.convert_to_tensor(self._tensor, dtype, name=name)

  def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
    return getattr(ufunc, method)(*map(_to_host, inputs), **keywords)

  def __getattr__(self, name: str) -> Any:
    if name.startswith('__'):  # Protocols that look like an array's memory.
      raise AttributeError(name)
    return getattr(self._array, name)

  def __getitem__(self, key: Any) -> Any:
    return self._array[key]

  def __len__(self) -> int:
    return self.shape[0]

  def __iter__(self) -> Any:
    return iter(self._array)

  def __bool__(self) -> bool:
    return bool(self._array)

  def __int__(self) -> int:
    return int(self._array)

  def __float__(self) -> float:
    return float(self._array)

  def __repr__(self) -> str:
    return repr(self._array)

  def __reduce__(self) -> Any:
    return self._array.__reduce__()


def _to_host(value: Any) -> Any:
  return np.asarray(value) if type(value) is DeviceArray else value
