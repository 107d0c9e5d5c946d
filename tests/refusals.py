"""Tables of bad input: what must be refused, and with which message."""

from collections.abc import Callable, Iterable, Mapping
import re
from typing import Any

import pytest


def check(
  call: Callable[..., Any],
  rows: Iterable[tuple[dict[str, Any], type[Exception], str]],
  **legal: Any,
) -> None:
  """Checks that a call raises the error of each row, in one line.

  Args:
    call: What to call.
    rows: `(arguments, error, message)`: keyword arguments, the type of the
      error, and a regular expression that its message must contain.
    **legal: Other keyword arguments of all rows.
  """
  for arguments, error, message in rows:
    try:
      call(**{**legal, **arguments})
    except error as found:
      assert re.search(message, str(found)), (arguments, str(found))
      assert '\n' not in str(found), (arguments, str(found))
    else:
      pytest.fail(f'{arguments} was not refused.')


def check_values(
  call: Callable[..., Any], values: Mapping[str, Iterable[Any]]
) -> None:
  """Checks that a call refuses values of single arguments, and names these."""
  for name, wrong in values.items():
    message = rf'^{name} must .*\bfound .'
    errors = (TypeError, ValueError)
    check(call, [({name: value}, errors, message) for value in wrong])
