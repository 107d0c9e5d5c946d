"""Reads and writes the text files of a run. Nothing here imports TensorFlow."""

from collections.abc import Sequence
import io
import os
import pathlib

import pandas as pd

from tff_fair.launchers.runs import client_names


def read(path: pathlib.Path, columns: list[str]) -> pd.DataFrame:
  """Reads some columns of a csv file, as numbers.

  Raises:
    FileNotFoundError: If there is no such file.
    ValueError: If it is not as `launchers.train` writes it.
  """
  return _numbers(_load(path, columns)[columns], path)


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
  return _numbers(_load(path, columns, growing=growing), path)


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


def _load(
  path: pathlib.Path, columns: list[str], *, growing: bool = False
) -> pd.DataFrame:
  if not path.is_file():
    raise FileNotFoundError(
      f'A run directory must hold {path.name}, found no file {path}.'
    )
  try:
    text = path.read_text(encoding='utf-8')
    if growing:
      text = _whole_rows(text)
    # A name may look like a number, or like a missing value.
    frame = pd.read_csv(
      io.StringIO(text), converters={client_names.COLUMN: str}
    )
  except ValueError as error:  # Includes pandas' error for a broken csv file.
    raise ValueError(
      f'{path.name} must be a csv file, found in {path}: {_one_line(error)}.'
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


def _numbers(frame: pd.DataFrame, path: pathlib.Path) -> pd.DataFrame:
  try:
    return frame.apply(
      lambda column: (
        column if column.name == client_names.COLUMN else pd.to_numeric(column)
      )
    )
  except ValueError as error:
    raise ValueError(
      f'{path.name} must hold numbers in {", ".join(map(str, frame))}, found in'
      f' {path}: {_one_line(error)}.'
    ) from error


def _one_line(error: Exception) -> str:
  return ' '.join(str(error).split()).rstrip('.')
