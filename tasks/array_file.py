"""Reads arrays from an npz file."""

import os
import tokenize
import zipfile
import zlib

import numpy as np

from tff_fair.tasks import sources

# What NumPy and zipfile raise for damaged files; RuntimeError for a password,
# or an unknown method of compression.
_UNREADABLE = (
  zipfile.BadZipFile,
  zlib.error,
  tokenize.TokenError,
  EOFError,
  MemoryError,
  OSError,
  RuntimeError,
)


def read(path: str | os.PathLike, with_clients: bool) -> dict[str, np.ndarray]:
  """Reads the arrays `x` and `y`, and `client` if it is wanted."""
  keys = ('x', 'y', 'client') if with_clients else ('x', 'y')
  required = f'an npz archive of the arrays {", ".join(keys)}'
  try:
    with np.load(path, allow_pickle=False) as archive:
      lacking = [key for key in keys if key not in archive]
      if not lacking:
        return {key: archive[key] for key in keys}
      found = f'no {lacking[0]} but {", ".join(archive) or "nothing"}'
  except _UNREADABLE as error:
    found = f'an unreadable file ({error})'
    raise sources.DataDamagedError(path, required, found) from None
  except (AttributeError, TypeError, ValueError) as error:
    found = 'a file of another format'
    if 'Object arrays' in str(error):
      found = 'an array of Python objects, such as texts of dtype object'
    raise sources.DataDamagedError(path, required, found) from None
  if lacking == ['client']:
    found += '; --partition=equal --num_clients=10 deals the examples at random'
  raise sources.DataDamagedError(path, required, found)
