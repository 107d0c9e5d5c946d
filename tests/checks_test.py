import math

import numpy as np
import pytest

from tff_fair import checks


def test_legal_values_come_back():
  assert checks.check_integer('n', np.int64(3), 0) == 3
  assert checks.check_integer('n', 5, 0, 5) == 5
  assert checks.check_count('n', 2**31 - 1, 1) == 2**31 - 1
  assert checks.check_real('x', np.float32(0.5), 0.5, 0.5) == 0.5
  assert checks.check_positive('x', 0.5, 0.5) == 0.5
  assert checks.check_fraction('x', 0) == 0.0
  assert checks.check_margins((1, 0.0)) == (1.0, 0.0)
  assert checks.check_function('f', len, 'a list') is len
  assert checks.check_choice('c', 'a', ('a', 'b')) == 'a'


# Check, arguments -> the error and what its message says.
_REFUSED = [
  (checks.check_integer, (1.0, 0), TypeError, 'an integer, found 1.0.'),
  (checks.check_integer, (True, 0), TypeError, 'an integer, found True.'),
  (checks.check_integer, (-1, 0), ValueError, 'at least 0, found -1.'),
  (checks.check_integer, (6, 0, 5), ValueError, 'in 0..5, found 6.'),
  (
    checks.check_count,
    (2**31, 1),
    ValueError,
    'at most 2147483647, found 2147',
  ),
  (checks.check_real, ('1',), TypeError, "a real number, found '1'."),
  (checks.check_real, (True,), TypeError, 'a real number, found True.'),
  (checks.check_real, (math.nan,), ValueError, 'finite, found nan.'),
  (checks.check_real, (3.5e38,), ValueError, 'finite, found 3.5e+38.'),
  (checks.check_real, (-0.1, 0.0), ValueError, 'at least 0.0, found -0.1.'),
  (checks.check_real, (1.1, 0, 1.0), ValueError, 'at most 1.0, found 1.1.'),
  (checks.check_positive, (0,), ValueError, 'positive, found 0.0.'),
  (checks.check_positive, (1e-39,), ValueError, 'at least 1.18e-38, found 1e-'),
  (checks.check_positive, (1.1, 1.0), ValueError, 'at most 1.0, found 1.1.'),
  (checks.check_fraction, (1.0,), ValueError, 'in [0, 1), found 1.0.'),
  (checks.check_fraction, (-0.1,), ValueError, 'in [0, 1), found -0.1.'),
  (
    checks.check_function,
    (0.1, 'x'),
    TypeError,
    'a function of x, found float.',
  ),
  (checks.check_choice, ('d', 'ab'), ValueError, "one of 'a', 'b', found 'd'."),
]


def test_messages():
  for check, arguments, error, message in _REFUSED:
    with pytest.raises(error) as raised:
      check('x', *arguments)
    assert str(raised.value).startswith(f'x must be {message}'), arguments
  for margins, error in (
    ((1.0,), ValueError),
    (1.0, ValueError),
    ((1, -1), ValueError),
    ((1, '1'), TypeError),
  ):
    with pytest.raises(error, match='^margins must be .*found'):
      checks.check_margins(margins)


def test_names_that_do_not_exist():
  known = ('fed_avg', 'Fed-Prox', 'ditto')
  for found, expected in (
    ('fedavg', ' Did you mean fed_avg?'),
    ('FED-PROX', ' Did you mean Fed-Prox?'),
    ('moon', ''),
    ('', ''),
    ('avg', ' Did you mean fed_avg?'),
  ):
    assert checks.did_you_mean(found, iter(known)) == expected
  seeds = ('model_seed', 'seed_model', 'client_seed', 'Data_Seed', 'new_seed')
  assert checks.did_you_mean('seed', seeds) == (
    ' Did you mean model_seed, client_seed or Data_Seed?'
  )
  assert checks.unknown_name('x', 'dito', known) == (
    "x must be a known name, found 'dito'. Did you mean ditto?"
  )
  assert checks.unknown_name('x', 'moon', known) == (
    "x must be one of fed_avg, Fed-Prox, ditto, found 'moon'."
  )
