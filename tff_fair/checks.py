"""Checks of arguments; messages say what was required and what was found.

Each returns the value. A value of the wrong kind is a TypeError, one outside
its range or choices a ValueError; `name` is what the message calls it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
import difflib
import numbers
from typing import Any

import numpy as np

# In a sentence.
_MOST_GUESSES = 3
# The limits of the integers and floats in TensorFlow graphs.
_MAX_INT32 = 2**31 - 1
_MAX_FLOAT32, _MIN_FLOAT32 = (2 - 2**-23) * 2.0**127, 2.0**-126


def check_integer(
  name: str, value: Any, minimum: int, maximum: int | None = None
) -> int:
  """Returns `value` as an `int` if it is an integer of the legal range."""
  if isinstance(value, bool) or not isinstance(value, numbers.Integral):
    raise TypeError(f'{name} must be an integer, found {value!r}.')
  if maximum is None and value < minimum:
    raise ValueError(f'{name} must be at least {minimum}, found {value}.')
  if maximum is not None and not minimum <= value <= maximum:
    raise ValueError(f'{name} must be in {minimum}..{maximum}, found {value}.')
  return int(value)


def check_count(
  name: str, value: Any, minimum: int, maximum: int = _MAX_INT32
) -> int:
  """Returns `value` as an `int` if it is a count that fits int32."""
  value = check_integer(name, value, minimum)
  if value > maximum:
    raise ValueError(f'{name} must be at most {maximum}, found {value}.')
  return value


def check_real(
  name: str,
  value: Any,
  minimum: float | None = None,
  maximum: float | None = None,
) -> float:
  """Returns `value` as a `float` if it is a finite number of the legal range.

  Numbers that overflow float32 are not finite.
  """
  if isinstance(value, bool) or not isinstance(value, numbers.Real):
    raise TypeError(f'{name} must be a real number, found {value!r}.')
  if not abs(value) <= _MAX_FLOAT32:  # Also rejects NaN.
    raise ValueError(f'{name} must be finite, found {value}.')
  if minimum is not None and value < minimum:
    raise ValueError(f'{name} must be at least {minimum}, found {value}.')
  if maximum is not None and value > maximum:
    raise ValueError(f'{name} must be at most {maximum}, found {value}.')
  return float(value)


def check_positive(
  name: str, value: Any, maximum: float | None = None
) -> float:
  """Returns `value` as a `float` if it is a finite number above 0.

  Numbers that are subnormal or 0 as float32 are too small.
  """
  value = check_real(name, value, maximum=maximum)
  if value <= 0:
    raise ValueError(f'{name} must be positive, found {value}.')
  if value < _MIN_FLOAT32:
    raise ValueError(
      f'{name} must be at least {_MIN_FLOAT32:.3g}, found {value}.'
    )
  return value


def check_fraction(name: str, value: Any) -> float:
  """Returns `value` as a `float` if it lies in [0, 1)."""
  value = check_real(name, value)
  if not 0.0 <= value < 1.0:
    raise ValueError(f'{name} must be in [0, 1), found {value}.')
  return value


def check_inputs(name: str, x: Any, remedy: str = '') -> np.ndarray:
  """Returns `x` as float32 if all of its numbers are finite then.

  `remedy` is the end of the message, such as ': mend these rows'.
  """
  with np.errstate(over='ignore', invalid='ignore'):
    x = np.asarray(x, np.float32)
    # NaN is the least and the largest number; no mask is kept in memory.
    ends = x.min(initial=0), x.max(initial=0)
  if not np.isfinite(ends).all():
    bad = np.argwhere(~np.isfinite(x))
    raise ValueError(
      f'{name} must hold finite inputs, found {len(bad):,} others, the first'
      f' {x[tuple(bad[0])]:g} at {bad[0].tolist()}{remedy}.'
    )
  return x


def check_margins(margins: Sequence[float]) -> tuple[float, float]:
  """Returns `margins` as a pair if they are two numbers, not negative."""
  if not isinstance(margins, Sequence) or len(margins) != 2:
    raise ValueError(f'margins must be two numbers, found {margins!r}.')
  first, second = (check_real('margins', margin, 0.0) for margin in margins)
  return first, second


def check_function(name: str, value: Any, of: str) -> Any:
  """Returns `value` if it can be called."""
  if not callable(value):
    raise TypeError(
      f'{name} must be a function of {of}, found {type(value).__name__}.'
    )
  return value


def check_choice(name: str, value: Any, choices: Collection[Any]) -> Any:
  """Returns `value` if it is one of `choices`."""
  if value not in choices:
    known = ', '.join(repr(choice) for choice in choices)
    raise ValueError(f'{name} must be one of {known}, found {value!r}.')
  return value


def did_you_mean(found: str, known: Iterable[str]) -> str:
  """The end of a message about a name that does not exist.

  It has the names that end with the words found, such as `client_seed` and
  `data_seed` of `seed`; without any, the name that is spelled nearly so.
  """
  names = {str(name).lower(): name for name in known}
  near = [name for name in names if name.endswith(f'_{found.lower()}')]
  near = near[:_MOST_GUESSES] or difflib.get_close_matches(
    found.lower(), names, n=1
  )
  if not near:
    return ''
  *others, last = (str(names[name]) for name in near)
  return f' Did you mean {", ".join(others) + " or " if others else ""}{last}?'


def unknown_name(what: str, found: str, known: Collection[str]) -> str:
  """The message about a name that does not exist."""
  near = did_you_mean(found, known)
  if near:
    return f'{what} must be a known name, found {found!r}.{near}'
  return f'{what} must be one of {", ".join(known)}, found {found!r}.'


def differences(there: Mapping[str, str], here: Mapping[str, str]) -> str:
  """Describes the differences of two collections of settings, for messages."""
  return '; '.join(
    f'{name} is {there.get(name, "not set")} there and'
    f' {here.get(name, "not set")} here'
    for name in sorted({*there, *here})
    if there.get(name) != here.get(name)
  )
