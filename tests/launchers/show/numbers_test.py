"""Numbers as text."""

import math

import pytest

from tff_fair.launchers.show import numbers


@pytest.mark.parametrize(
  ('value', 'form', 'expected'),
  [
    (-0.0004, '.3f', '0.000'),
    (-0.0005001, '.3f', '-0.001'),
    (-0.4, '.0f', '0'),
    (-10.0, '.0f', '-10'),
    (math.nan, '.3f', '–'),
  ],
)
def test_zero_has_no_sign(value, form, expected):
  assert numbers.format_number(value, form) == expected
