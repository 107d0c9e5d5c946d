"""Numbers and names of a comparison, as its sentences have them."""

from collections.abc import Sequence
import math

from tff_fair.launchers import statistics
from tff_fair.launchers.comparison import analysis as analysis_lib
from tff_fair.launchers.comparison import measures
from tff_fair.launchers.options import methods
from tff_fair.launchers.show import words

# More names than these are counted.
_MAX_NAMED = 4

title = methods.title
"""A method's name in papers."""


def number(value: float, column: str) -> str:
  """A number in the digits of its measure.

  Args:
    value: The number.
    column: The measure's.

  Returns:
    The number in words.
  """
  return f'{value:.{measures.BY_COLUMN[column].digits}f}'


def mean(analysis: analysis_lib.Analysis, method: str, column: str) -> str:
  """A method's mean of a measure.

  Args:
    analysis: An analysis.
    method: One of its methods.
    column: The measure's.

  Returns:
    The mean in words.
  """
  return number(analysis.estimates[method, column].mean, column)


def with_interval(
  analysis: analysis_lib.Analysis, method: str, column: str
) -> str:
  """A method's mean of a measure with its interval.

  Args:
    analysis: An analysis.
    method: One of its methods.
    column: The measure's.

  Returns:
    The mean in words; behind it the interval, and the number of seeds if not
    all define the value.
  """
  found = analysis.estimates[method, column]
  details = []
  if has_interval(found):
    low, high = number(found.low, column), number(found.high, column)
    details.append(f'95 % interval {low} to {high}')
  if found.reached < len(found.values):
    details.append(f'{found.reached} of {len(found.values)} seeds')
  behind = f' ({", ".join(details)})' if details else ''
  return f'{number(found.mean, column)}{behind}'


def has_interval(found: statistics.Estimate) -> bool:
  """Whether an estimate is of enough seeds to have an interval.

  Args:
    found: The estimate.

  Returns:
    Whether it has one.
  """
  return not math.isnan(found.low)


def names(found: Sequence[str], most: int = _MAX_NAMED) -> str:
  """The titles of methods.

  Args:
    found: The methods, at least one.
    most: How many are named; the others are counted.

  Returns:
    The titles as a list in words.
  """
  told = [title(method) for method in found]
  if len(told) > most:
    told = [*told[: most - 1], f'{len(told) - most + 1} more']
  return words.join_words(told)
