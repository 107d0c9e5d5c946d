"""Numbers as text: the one formatter of tables, sentences and pages."""

import decimal
import math

MISSING = '–'
"""Stands for a number that is not known."""


def format_number(
  value: float, form: str = '.4g', missing: str = MISSING
) -> str:
  """Formats a number.

  Args:
    value: The number.
    form: As for `format`, such as '.3f'.
    missing: The text for NaN.
  """
  if math.isnan(value):
    return missing
  shown = format(value, form)
  # A small negative number rounds to zero, not to minus zero.
  return shown.removeprefix('-') if not shown.strip('-0.') else shown


def format_interval(
  mean: float, low: float, high: float, form: str = '.4g'
) -> str:
  """Formats a mean with its interval in brackets, if there is one.

  Args:
    mean: The mean; the text is empty if it is NaN.
    low: The lower end; NaN without an interval.
    high: The upper end.
    form: As for `format`.
  """
  shown = format_number(mean, form, '')
  if math.isnan(low):
    return shown
  return f'{shown} [{format_number(low, form)}, {format_number(high, form)}]'


def format_plain(value: float) -> str:
  """Formats a number: integers in full, others with four digits."""
  return format_number(value, '.0f' if float(value).is_integer() else '.4g')


def format_rounded(value: float, digits: int) -> str:
  """Formats a number half up, from the decimals that it is printed with.

  `format` rounds the binary number, which may lie below a printed half.

  Args:
    value: A finite number.
    digits: Digits after the point.
  """
  exact = decimal.Decimal(repr(float(value)))
  unit = decimal.Decimal(1).scaleb(-digits)
  return f'{exact.quantize(unit, decimal.ROUND_HALF_UP):f}'
