"""A run's directory belongs to one launcher at a time."""

from collections.abc import Iterator
import contextlib
import pathlib

import filelock

from tff_fair.launchers.options import settings as settings_lib

_LOCK = '.lock'


@contextlib.contextmanager
def claim(output_dir: pathlib.Path) -> Iterator[None]:
  """A context in which no other launcher can write to the run's directory.

  The directory is made if it is missing. The operating system ends the claim
  with the process, however that ends.

  Raises:
    SettingsError: If it cannot be written, or another launcher writes to it.
  """
  settings_lib.make_writable(output_dir)
  lock = filelock.FileLock(output_dir / _LOCK, timeout=0)
  try:
    lock.acquire()
  except filelock.Timeout:
    raise settings_lib.SettingsError(
      f'--output_dir={output_dir} must be written by one launcher at a time,'
      ' found that another one is writing to it.'
    ) from None
  try:
    yield
  finally:
    lock.release()
