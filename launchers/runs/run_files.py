"""Reads, writes and locks the files of a run, without TensorFlow."""

from collections.abc import Iterator, Sequence
import contextlib
import io
import os
import pathlib

import filelock
import pandas as pd

from tff_fair import files
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.runs import client_names

_LOCK = '.lock'


def read_whole(
  path: pathlib.Path, columns: list[str], *, growing: bool = False
) -> pd.DataFrame:
  """Reads all columns of a csv file, as numbers except the clients' names.

  Args:
    path: A file of a run directory.
    columns: Columns that it must have.
    growing: Whether a run is writing it: an incomplete last row is left out.

  Raises:
    FileNotFoundError: If there is no such file.
    ValueError: If it is not as `launchers.train` writes it.
  """
  frame = _load(path, columns, growing)
  try:
    return frame.apply(
      lambda column: (
        column if column.name == client_names.COLUMN else pd.to_numeric(column)
      )
    )
  except ValueError as error:
    raise ValueError(
      f'{path.name} must hold numbers in {", ".join(map(str, frame))}, found in'
      f' {path}: {files.describe(error)}.'
    ) from error


def labels(
  names: Sequence[str], runs: Sequence[str | os.PathLike[str]]
) -> list[str]:
  """Labels the runs that a picture or a page shows together, by their names.

  Where several have the same name, also by their directory, without the part
  that all runs share.
  """
  paths = [pathlib.Path(run).resolve() for run in runs]
  shared = os.path.commonpath([path.parent for path in paths]) if paths else ''
  return [
    name if names.count(name) == 1 else f'{name} ({path.relative_to(shared)})'
    for name, path in zip(names, paths, strict=True)
  ]


def write_atomically(path: pathlib.Path, content: str | bytes) -> None:
  """Writes a whole file, or leaves the old one."""
  temporary = path.with_name(f'{path.name}.tmp')
  if isinstance(content, str):
    content = content.encode()
  temporary.write_bytes(content)
  os.replace(temporary, path)


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


def _load(path, columns, growing) -> pd.DataFrame:
  if not path.is_file():
    raise FileNotFoundError(
      f'A run directory must hold {path.name}, found no file {path}.'
    )
  try:
    text = path.read_text(encoding='utf-8')
    if growing:
      text = _whole_rows(text)
    elif not text.endswith('\n'):
      raise ValueError('a last line without an end, as if the file was cut')
    # A name may look like a number, or like a missing value.
    frame = pd.read_csv(
      io.StringIO(text), converters={client_names.COLUMN: str}
    )
  except ValueError as error:  # Includes pandas' error for a broken csv file.
    raise ValueError(
      f'{path.name} must be a csv file, found in {path}:'
      f' {files.describe(error)}.'
    ) from error
  missing = [column for column in columns if column not in frame]
  if missing or frame.empty:
    raise ValueError(
      f'{path.name} must have the columns {", ".join(columns)} and a row,'
      f' found {len(frame)} rows of {", ".join(map(str, frame))} in {path}.'
    )
  return frame


def _whole_rows(text: str) -> str:
  """The text without an incomplete last row."""
  text = text[: text.rfind('\n') + 1]
  while text.count('"') % 2:  # Within a name of several lines.
    text = text[: text.rfind('\n', 0, -1) + 1]
  return text
