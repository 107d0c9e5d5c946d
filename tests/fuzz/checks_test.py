"""The checks of arguments: a legal value comes back, or one sentence."""

import numbers

from hypothesis import given
from hypothesis import strategies as st
import numpy as np

from tests.fuzz.strategies import fuzzes
from tests.fuzz.strategies import refused
from tff_fair import checks

_ANYTHING = st.one_of(
  st.integers(-20, 20),
  st.floats(),
  st.booleans(),
  st.none(),
  st.text(max_size=2),
  st.complex_numbers(),
  st.integers(-20, 20).map(np.int32),
  st.floats(width=32).map(np.float32),
  st.lists(st.floats(-2, 2), max_size=3),
  st.just(np.ones(2)),
)
_FLOAT32 = np.finfo(np.float32)
_BOUNDS = st.one_of(st.none(), st.floats(-2, 2))


def _same_or_refused(legal, check, value):
  if not legal:
    with refused():
      check()
  else:
    assert check() == value


def _is_real(value):
  real = isinstance(value, numbers.Real) and not isinstance(value, bool)
  return real and abs(value) <= float(_FLOAT32.max)


@fuzzes(checks.check_integer, checks.check_count)
@given(
  _ANYTHING, st.integers(-20, 20), st.one_of(st.none(), st.integers(0, 20))
)
def test_integers(value, low, high):
  integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
  legal = integer and low <= value and (high is None or value <= high)
  _same_or_refused(
    legal, lambda: checks.check_integer('n', value, low, high), value
  )
  high = 5 if high is None else high
  legal = integer and low <= value <= high
  _same_or_refused(
    legal, lambda: checks.check_count('n', value, low, high), value
  )


@fuzzes(checks.check_real, checks.check_positive, checks.check_fraction)
@given(_ANYTHING, _BOUNDS, _BOUNDS)
def test_reals(value, low, high):
  real = _is_real(value)
  below = real and (high is None or value <= high)
  inside = below and (low is None or value >= low)
  _same_or_refused(
    inside, lambda: checks.check_real('x', value, low, high), value
  )
  _same_or_refused(
    below and value >= _FLOAT32.tiny,
    lambda: checks.check_positive('x', value, high),
    value,
  )
  _same_or_refused(
    real and 0 <= value < 1, lambda: checks.check_fraction('x', value), value
  )


@fuzzes(checks.check_margins)
@given(st.one_of(_ANYTHING, st.tuples(_ANYTHING, _ANYTHING)))
def test_margins(margins):
  legal = isinstance(margins, (list, tuple)) and len(margins) == 2
  legal = legal and all(_is_real(m) and m >= 0 for m in margins)
  _same_or_refused(
    legal,
    lambda: checks.check_margins(margins),
    tuple(margins) if legal else None,
  )


@fuzzes(checks.check_function, checks.check_choice)
@given(_ANYTHING.filter(lambda value: not isinstance(value, np.ndarray)))
def test_functions_and_choices(value):
  with refused():
    checks.check_function('f', value, 'x')
  with refused():
    checks.check_choice('c', value, ('first', 'second'))
  assert checks.check_function('f', len, 'x') is len
  assert checks.check_choice('c', 'second', ('first', 'second')) == 'second'
