"""Reads files that may be damaged: any error becomes a sentence about them."""

from collections.abc import Callable, Iterator
import contextlib
import csv
import errno
import hashlib
import os
import stat
import tokenize
import zipfile
import zlib

# What readers raise for content that they do not expect. RuntimeError includes
# RecursionError and NotImplementedError, LookupError a key that is not there.
_DAMAGE = (
  ArithmeticError,
  AttributeError,
  EOFError,
  LookupError,
  MemoryError,
  OSError,
  RuntimeError,
  SyntaxError,
  TypeError,
  ValueError,
  csv.Error,
  tokenize.TokenError,
  zipfile.BadZipFile,
  zlib.error,
)


@contextlib.contextmanager
def reading(
  path: str | os.PathLike,
  error: Callable[[str], Exception],
  passing: tuple[type[Exception], ...] = (),
) -> Iterator[None]:
  """A context that reads a file, and raises what `error` makes of any failure.

  Args:
    path: The file. What is no regular file, such as a pipe, which would be
      waited for, is a failure.
    error: From what was found, a few words without a full stop, to the error.
    passing: Errors that are raised as they are.
  """
  try:
    check_regular(path)
    yield
  except passing:
    raise
  except _DAMAGE as failure:
    raise error(describe(failure)) from failure


def check_regular(path: str | os.PathLike) -> None:
  """Checks that a file can be read to its end.

  Raises:
    OSError: If there is no such file, or it is no regular one.
  """
  mode = os.stat(path).st_mode
  if stat.S_ISDIR(mode):
    raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
  if not stat.S_ISREG(mode):
    raise OSError(errno.EINVAL, 'Not a regular file', os.fspath(path))


def checksum(text: str) -> str:
  """The SHA-256 checksum of a text, in hexadecimal, whatever ends its lines."""
  return hashlib.sha256(text.replace('\r\n', '\n').encode()).hexdigest()


def describe(failure: Exception) -> str:
  """Returns the text of an error, on one line without a full stop."""
  text = getattr(failure, 'strerror', None) or str(failure)
  if isinstance(failure, UnicodeDecodeError):
    text = f'bytes that are no text in UTF-8 ({failure.reason})'
  # The text of a KeyError is the key alone.
  elif isinstance(failure, LookupError) or not text:
    text = repr(failure)
  return ' '.join(text.split()).rstrip('.')
