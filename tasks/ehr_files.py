"""Where the files with health records are. Nothing here imports TensorFlow."""

import os
import pathlib

from tasks import sources

NAMES = ('patients.csv', 'events.csv')


def find(data_dir: str | os.PathLike | None) -> list[pathlib.Path] | None:
  """Returns the paths of both files, or None if neither exists.

  Args:
    data_dir: The data folder; None for the environment variable
      TFF_FAIR_DATA_DIR.

  Raises:
    DataNotFoundError: If only one of the files exists.
  """
  paths = [sources.find_file(name, data_dir) for name in NAMES]
  found = [path for path in paths if path is not None]
  if len(found) == 1:
    raise sources.DataNotFoundError(
      f"The data files '{NAMES[0]}' and '{NAMES[1]}' must lie in one data"
      f" folder, found only '{found[0]}'."
    )
  return found or None


def is_synthetic(data_dir: str | os.PathLike | None = None) -> bool:
  """Returns whether the task generates its records, as there are no files.

  Args:
    data_dir: See `find`.

  Raises:
    DataNotFoundError: If only one of the files exists.
  """
  return find(data_dir) is None
