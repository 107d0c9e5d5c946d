"""Finds data files, downloads them, or explains why there is none.

The order is: the data folder (an argument, or the environment variable
TFF_FAIR_DATA_DIR), the cache of Keras or TFF, a download into that cache.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import dataclasses
import hashlib
import os
import pathlib
import socket
import tempfile
from typing import TypeVar

from tff_fair import files

DATA_DIR_VARIABLE = 'TFF_FAIR_DATA_DIR'
# The ending of a folder, in place of a file.
FOLDER = os.sep
KERAS_CACHE = os.path.join('~', '.keras', 'datasets')

# Of each wait for the network, not of the whole download.
_TIMEOUT_SECONDS = 10.0

_T = TypeVar('_T')
_CHUNK = 2**20


class DataNotFoundError(FileNotFoundError):
  """No source has the data file; the message lists those that were tried."""


class DataDamagedError(ValueError):
  """A data file does not hold what it should."""

  def __init__(self, path: str | os.PathLike, required: str, found: str):
    """Initializes the error with its one sentence.

    Args:
      path: The file.
      required: What the file must hold.
      found: What it holds instead.
    """
    # As they are: so the error can be pickled.
    super().__init__(path, required, found)

  def __str__(self):
    path, required, found = self.args
    return (
      f"The data file '{path}' must hold {required}, found {_one_line(found)}."
    )


class DataDiffersError(ValueError):
  """A process that should have the data of another one has others."""


def reading(
  path: str | os.PathLike, required: str
) -> contextlib.AbstractContextManager[None]:
  """A context that reads a data file; failures are `DataDamagedError`.

  Args:
    path: The file.
    required: What it must hold.
  """
  return files.reading(
    path,
    lambda found: DataDamagedError(
      path, required, f'an unreadable file ({found})'
    ),
    passing=(DataDamagedError,),
  )


@dataclasses.dataclass(frozen=True)
class Download:
  """A published file.

  Attributes:
    address: Where it is published.
    sha256: Its SHA-256 checksum, in hexadecimal.
  """

  address: str
  sha256: str


def check_data_dir(data_dir: str | os.PathLike | None) -> None:
  """Checks that a data folder that was named exists.

  Args:
    data_dir: The data folder; None if none was named.

  Raises:
    DataNotFoundError: If there is no such folder.
  """
  if not data_dir:
    return
  folder = _data_folder(data_dir)
  with _readable(folder):
    if not folder.is_dir():
      raise DataNotFoundError(
        f"The data folder '{folder}' must exist, found no such folder."
      )


def absolute_path(path: str | os.PathLike | None) -> str | None:
  """Returns a path that is the same in all folders; None for None.

  Args:
    path: The path; `~` is the user's home.
  """
  return None if path is None else os.path.abspath(os.path.expanduser(path))


def check_file(path: str | os.PathLike, endings: Sequence[str]) -> str:
  """Returns the absolute path of a data file that the user has named.

  Args:
    path: The file.
    endings: The legal ends of its name; `FOLDER` for a folder.

  Raises:
    DataNotFoundError: If there is no such file, or it cannot be read.
    ValueError: If its name does not end as it should.
  """
  found = absolute_path(path)
  if FOLDER in endings:
    with _readable(pathlib.Path(found)):
      if not os.path.isdir(found):
        raise DataNotFoundError(
          f"--data_file must be a folder, found no folder '{path}'."
        )
    return found
  try:
    files.check_regular(found)  # A pipe would be waited for.
    with open(found, 'rb') as file:
      empty = not file.read(1)
  except (OSError, ValueError) as error:
    reason = getattr(error, 'strerror', None) or str(error)
    raise DataNotFoundError(
      f"The data file '{path}' must be a file that can be read, found:"
      f' {reason}.'
    ) from None
  if not found.lower().endswith(tuple(endings)):
    raise ValueError(
      f'--data_file must end in {" or ".join(endings)}, found'
      f' {os.fspath(path)!r}.'
    )
  if empty:
    raise DataDamagedError(path, 'examples', 'an empty file')
  return found


def fingerprint(path: str | os.PathLike) -> str:
  """Returns the beginning of a file's SHA-256 checksum, in hexadecimal.

  Args:
    path: The file, or a folder, whose checksum is that of the names and the
      checksums of all files in it.
  """
  path = absolute_path(path)
  if not os.path.isdir(path):
    return _sha256(path)[:12]
  lines = [f'{os.path.relpath(f, path)} {_sha256(f)}' for f in _files_in(path)]
  text = '\n'.join(lines).encode(errors='surrogateescape')
  return hashlib.sha256(text).hexdigest()[:12]


def version(path: str | os.PathLike) -> tuple:
  """Returns what changes with a file, or with one in a folder, most often.

  Args:
    path: The absolute path.
  """
  files = _files_in(path) if os.path.isdir(path) else [path]
  found = [(file, os.stat(file)) for file in files]
  return tuple((file, s.st_mtime_ns, s.st_size) for file, s in found)


def existing_data_dir(data_dir: str | os.PathLike | None) -> str | None:
  """Returns the absolute path of the data folder, None if there is none.

  Args:
    data_dir: The data folder; None for the environment variable
      TFF_FAIR_DATA_DIR, which may be unset.
  """
  folder = _data_folder(data_dir)
  # Unlike `pathlib`, takes a name that is too long.
  if folder is None or not os.path.isdir(folder):
    return None
  return os.path.abspath(folder)


def find_file(
  file_name: str, data_dir: str | os.PathLike | None
) -> pathlib.Path | None:
  """Returns the path of a file in the data folder, None if it is missing.

  Args:
    file_name: Name of the file, or of a folder of files.
    data_dir: The data folder; None for the environment variable
      TFF_FAIR_DATA_DIR, which may be unset.

  Raises:
    DataNotFoundError: If the folder cannot be read.
  """
  folder = _data_folder(data_dir)
  if folder is None:
    return None
  path = folder / file_name
  with _readable(folder):
    return path if path.exists() else None


def download(file: Download, path: str | os.PathLike) -> pathlib.Path:
  """Returns a published file, from the cache if it is whole there.

  A download becomes visible in one step, after its checksum was verified. So
  one that was interrupted leaves nothing that would be taken for data, and two
  processes may download the same file.

  Args:
    file: The file.
    path: Where it is cached.

  Returns:
    The path of the file.

  Raises:
    Exception: If the download fails, or is another file; Keras raises various.
  """
  path = pathlib.Path(path).expanduser()
  if path.is_file() and _sha256(path) == file.sha256:
    return path
  # Takes seconds to import.
  import tensorflow as tf

  path.parent.mkdir(parents=True, exist_ok=True)
  with tempfile.TemporaryDirectory(
    prefix='.download-', dir=path.parent
  ) as folder:
    whole = tf.keras.utils.get_file(
      path.name,
      file.address,
      cache_dir=folder,
      cache_subdir='',
      file_hash=file.sha256,
      hash_algorithm='sha256',
    )
    os.replace(whole, path)
  return path


def fetch(
  file_name: str,
  fetch_fn: Callable[[], _T],
  *,
  data_dir: str | os.PathLike | None,
  cache_dir: str | os.PathLike,
) -> _T:
  """Returns what a function finds in its cache or downloads.

  Args:
    file_name: Name of the file that `find_file` did not find.
    fetch_fn: The function.
    data_dir: The data folder, which lacks the file; for the message.
    cache_dir: The folder in which downloads are kept; for the message.

  Returns:
    The result of `fetch_fn`.

  Raises:
    DataNotFoundError: If the function fails for any reason.
  """
  try:
    with _network_timeout(_TIMEOUT_SECONDS):
      return fetch_fn()
  # A failed download may raise anything; Keras raises a bare Exception.
  except Exception as error:
    message = (
      f"The data file '{file_name}' must lie in a data folder or be "
      f'downloadable, found {_describe_folder(data_dir)}, nothing usable in '
      f"the cache '{cache_dir}', and a failed download "
      f'({_one_line(str(error) or repr(error))}).'
    )
  # Outside the handler, so that no traceback of the download is attached.
  raise DataNotFoundError(message)


def _data_folder(data_dir: str | os.PathLike | None) -> pathlib.Path | None:
  folder = data_dir or os.environ.get(DATA_DIR_VARIABLE)
  if not folder:
    return None
  try:
    return pathlib.Path(folder).expanduser()
  except RuntimeError:  # There is no such user.
    return pathlib.Path(folder)


def _describe_folder(data_dir: str | os.PathLike | None) -> str:
  folder = _data_folder(data_dir)
  if folder is None:
    return f'no data folder set (--data_dir or {DATA_DIR_VARIABLE})'
  if not folder.is_dir():
    return f"no folder '{folder}'"
  return f"no such file in '{folder}'"


@contextlib.contextmanager
def _readable(folder: pathlib.Path) -> Iterator[None]:
  try:
    yield
  except DataNotFoundError:
    raise
  except OSError as error:  # For example of a name that is too long.
    raise DataNotFoundError(
      f"The data folder '{folder}' must be readable, found: {error.strerror}."
    ) from None


def _files_in(folder: str | os.PathLike) -> list[str]:
  """All files at any depth but hidden ones, in the order of their names."""
  found = pathlib.Path(folder).rglob('*')
  return sorted(
    str(p) for p in found if p.is_file() and not p.name.startswith('.')
  )


def _sha256(path: pathlib.Path) -> str:
  digest = hashlib.sha256()
  with open(path, 'rb') as file:
    while chunk := file.read(_CHUNK):
      digest.update(chunk)
  return digest.hexdigest()


def _one_line(text: str) -> str:
  return ' '.join(text.split()).rstrip('.')


@contextlib.contextmanager
def _network_timeout(seconds: float) -> Iterator[None]:
  # Keras takes no timeout, and Python's default is to wait forever.
  previous = socket.getdefaulttimeout()
  socket.setdefaulttimeout(seconds)
  try:
    yield
  finally:
    socket.setdefaulttimeout(previous)
