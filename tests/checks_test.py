import math

import numpy as np
import pytest

from tff_fair import checks


def test_legal_values_come_back():
  assert checks.check_integer('n', np.int64(3), 0) == 3
  assert checks.check_integer('n', 5, 0, 5) == 5
  assert checks.check_real('x', np.float32(0.5), 0.5, 0.5) == 0.5
  assert checks.check_positive('x', 0.5, 0.5) == 0.5
  assert checks.check_fraction('x', 0) == 0.0
  assert checks.check_choice('c', 'a', ('a', 'b')) == 'a'


@pytest.mark.parametrize(
  ('check', 'error', 'message'),
  [
    (
      lambda: checks.check_integer('n', 1.0, 0),
      TypeError,
      'n must be an integer, found 1.0.',
    ),
    (
      lambda: checks.check_integer('n', True, 0),
      TypeError,
      'n must be an integer, found True.',
    ),
    (
      lambda: checks.check_integer('n', -1, 0),
      ValueError,
      'n must be at least 0, found -1.',
    ),
    (
      lambda: checks.check_integer('n', 6, 0, 5),
      ValueError,
      'n must be in 0..5, found 6.',
    ),
    (
      lambda: checks.check_count('n', 2**31, 1),
      ValueError,
      'n must be at most 2147483647, found 2147483648.',
    ),
    (
      lambda: checks.check_real('x', 1e39),
      ValueError,
      'x must be finite, found 1e+39.',
    ),
    (
      lambda: checks.check_positive('x', 1e-39),
      ValueError,
      'x must be at least 1.18e-38, found 1e-39.',
    ),
    (
      lambda: checks.check_real('x', '1'),
      TypeError,
      "x must be a real number, found '1'.",
    ),
    (
      lambda: checks.check_real('x', math.nan),
      ValueError,
      'x must be finite, found nan.',
    ),
    (
      lambda: checks.check_real('x', -0.1, 0.0),
      ValueError,
      'x must be at least 0.0, found -0.1.',
    ),
    (
      lambda: checks.check_real('x', 1.1, 0.0, 1.0),
      ValueError,
      'x must be at most 1.0, found 1.1.',
    ),
    (
      lambda: checks.check_positive('x', 0),
      ValueError,
      'x must be positive, found 0.0.',
    ),
    (
      lambda: checks.check_positive('x', 1.1, 1.0),
      ValueError,
      'x must be at most 1.0, found 1.1.',
    ),
    (
      lambda: checks.check_fraction('x', 1.0),
      ValueError,
      'x must be in [0, 1), found 1.0.',
    ),
    (
      lambda: checks.check_choice('c', 'd', ('a', 'b')),
      ValueError,
      "c must be one of 'a', 'b', found 'd'.",
    ),
  ],
)
def test_illegal_values_are_named(check, error, message):
  with pytest.raises(error) as raised:
    check()
  assert str(raised.value) == message
