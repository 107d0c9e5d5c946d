"""Reads arrays from an npz file."""

from collections.abc import Mapping, Sequence
import os
import zipfile

import numpy as np

from tff_fair import files
from tff_fair.tasks import sources


def read_inputs(path: str | os.PathLike) -> np.ndarray:
  """Reads an array of inputs from a .npy file, or `x` of an .npz file.

  Args:
    path: The file.

  Raises:
    DataDamagedError: If it holds no such array.
  """
  required = 'an array of numbers, or an npz archive of the array x'
  with sources.reading(path, required):
    found = np.load(path, allow_pickle=False)
    if isinstance(found, np.ndarray):
      return found
    with found as archive:
      if 'x' in archive:
        return archive['x']
      missing = f'no x but {", ".join(archive) or "nothing"}'
  raise sources.DataDamagedError(path, required, missing)


def read(path: str | os.PathLike, with_clients: bool) -> dict[str, np.ndarray]:
  """Reads the arrays `x` and `y`, and `client` if it is wanted."""
  keys = ('x', 'y', 'client') if with_clients else ('x', 'y')
  return read_arrays(
    path,
    keys,
    {
      'client': '; --partition=equal --num_clients=10 deals the examples at'
      ' random'
    },
  )


def read_arrays(
  path: str | os.PathLike,
  keys: Sequence[str],
  remedies: Mapping[str, str] | None = None,
) -> dict[str, np.ndarray]:
  """Reads arrays from an npz file.

  Args:
    path: The file.
    keys: The names of the arrays.
    remedies: Name -> the end of the message if that array is not there.

  Raises:
    DataDamagedError: If it is no such file, or lacks an array.
  """
  required = f'an npz archive of the arrays {", ".join(keys)}'

  def damaged(found):
    if 'Object arrays' in found:
      found = 'an array of Python objects, such as texts of dtype object'
    else:
      found = f'an unreadable file ({found})'
    return sources.DataDamagedError(path, required, found)

  if os.path.isfile(path) and not zipfile.is_zipfile(path):
    found = 'a file of another format, or a part of one'
    raise sources.DataDamagedError(path, required, found)
  with (
    files.reading(path, damaged),
    np.load(path, allow_pickle=False) as archive,
  ):
    lacking = [key for key in keys if key not in archive]
    if not lacking:
      return {key: archive[key] for key in keys}
    found = f'no {lacking[0]} but {", ".join(archive) or "nothing"}'
  remedy = (remedies or {}).get(lacking[0], '')
  raise sources.DataDamagedError(path, required, f'{found}{remedy}')
