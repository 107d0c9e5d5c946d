"""Tables of wrong arguments, of which one test checks all rows."""

from collections.abc import Callable, Iterable, Mapping
import re
from typing import Any


def check(
  call: Callable[..., Any],
  rows: Iterable[tuple[dict[str, Any], type[Exception], str]],
) -> None:
  """Checks that a call raises a sentence for each row of a table.

  Args:
    call: Called with the keyword arguments of each row.
    rows: Arguments, the error they must raise, a pattern of its message.
  """
  for arguments, error, pattern in rows:
    try:
      call(**arguments)
    except error as found:
      message = str(found)
      assert re.search(pattern, message), f'{arguments}: {message}'
      assert '\n' not in message, f'{arguments}: {message}'
    else:
      raise AssertionError(f'{arguments} must raise {error}.')


def check_values(
  call: Callable[..., Any], values: Mapping[str, Iterable[Any]]
) -> None:
  """Checks that a call refuses values of single arguments, and names these.

  Args:
    call: Called with one argument at a time.
    values: Name of an argument -> wrong values.
  """
  for name, wrong in values.items():
    pattern = rf'^{name} must .*\bfound .'
    errors = (TypeError, ValueError)
    check(call, [({name: value}, errors, pattern) for value in wrong])
