"""A run's directory belongs to one launcher at a time."""

from collections.abc import Iterator
import contextlib
import pathlib

import filelock

from tff_fair.launchers.options import settings as settings_lib

_LOCK = '.lock'
# What a run writes, as far as a file of the user's could be in the way.
_FILES = (
  settings_lib.FLAGS_FILE,
  'client_scores.csv',
  'clients.csv',
  'contributions.json',
  'metrics.csv',
  'reports.csv',
  'summary.json',
)
_FOLDERS = ('checkpoints', 'plots', 'tensorboard')


@contextlib.contextmanager
def claim(output_dir: pathlib.Path) -> Iterator[None]:
  """A context in which no other launcher can write to the run's directory.

  The directory is made if it is missing. The operating system ends the claim
  with the process, however that ends.

  Raises:
    SettingsError: If it cannot be written, another launcher writes to it, or it
      holds what a run cannot replace.
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
    _check_layout(output_dir)
    yield
  finally:
    lock.release()


def _check_layout(output_dir) -> None:
  """Refuses what would stop the run after its training."""
  for names, kind, wrong in (
    (_FILES, 'a file', pathlib.Path.is_dir),
    (_FOLDERS, 'a directory', pathlib.Path.is_file),
  ):
    for name in names:
      if wrong(output_dir / name):
        raise settings_lib.SettingsError(
          f'{output_dir / name} must be {kind} or not exist, found something'
          ' else.'
        )
  # TFF's manager saved a folder for each checkpoint.
  old = sorted(output_dir.glob('checkpoints/round_*/saved_model.pb'))
  if old:
    raise settings_lib.SettingsError(
      f'--output_dir={output_dir} must be a new directory or hold a run of this'
      f' version of tff-fair, found {old[0].parent.name} of an earlier version,'
      ' whose checkpoints cannot be read.'
    )
