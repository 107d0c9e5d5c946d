"""Comparisons, their numbers and their settings in words."""

from collections.abc import Iterable, Sequence
import math

from tff_fair.launchers.claiming import definitions
from tff_fair.launchers.claiming import statistics
from tff_fair.launchers.claiming import verdicts
from tff_fair.launchers.tables import definitions as tables

NOT_TRIED = 'not run'
"""Text for a reading without results."""
NO_READING = '-'
"""Text for a claim that has no other reading."""

_BRINGS_IT_OUT = {
  verdicts.HOLDS: 'yes',
  verdicts.IN_PART: 'in part',
  verdicts.FAILS: 'no',
  verdicts.UNDECIDED: 'undecided',
}


def number(value: float) -> str:
  """A number in four digits; empty for NaN.

  Args:
    value: The number.
  """
  return '' if math.isnan(value) else f'{value:.4g}'


def reading(result: verdicts.Result) -> str:
  """Says whether a claim holds under its other reading.

  Args:
    result: The verdict on the claim.
  """
  if result.claim.reading is None or result.claim.uncounted:
    return NO_READING
  if result.other is None or not result.other.run:
    return NOT_TRIED
  return _BRINGS_IT_OUT[result.other.verdict]


def statistic(comparisons: Sequence[definitions.Comparison]) -> str:
  """Comparisons in one line.

  Args:
    comparisons: Those of a claim.

  Returns:
    A product of cells, methods and metrics as such; otherwise each of them.
  """
  parts = [_parts(comparison) for comparison in comparisons]
  tables_, cells, metrics, lefts, relations, rights = (
    list(dict.fromkeys(column)) for column in zip(*parts, strict=True)
  )
  product = len(cells) * len(metrics) * len(lefts) * len(rights)
  if len(tables_) == len(relations) == 1 and product == len(parts):
    return (
      f'{tables_[0]}: {", ".join(metrics)} of {", ".join(lefts)}'
      f' {relations[0]} {", ".join(rights)} in {", ".join(cells)}'
    )
  return '; '.join(map(comparison, comparisons))


def comparison(compared: definitions.Comparison) -> str:
  """A comparison in words.

  Args:
    compared: The comparison.
  """
  table, cell, metric, left, relation, right = _parts(compared)
  return f'{table}: {metric} of {left} {relation} {right} in {cell}'


def what(compared: definitions.Comparison) -> str:
  """Names the metric, cell and sides of a comparison, without its table.

  Args:
    compared: The comparison.
  """
  _, cell, metric, left, _, right = _parts(compared)
  return f'{metric}, {cell}: {left} less {right}'


def difference(measured: statistics.Measured) -> str:
  """The values of both sides, and their difference with its interval.

  Args:
    measured: A comparison with rows.
  """
  pairs, found = measured.pairs, measured.estimate
  if math.isnan(found.mean):
    return 'undefined'
  text = (
    f'{number(pairs.left)} less {number(pairs.right)}: {number(found.mean)}'
  )
  if math.isnan(found.low):
    return text
  return f'{text} [{number(found.low)}, {number(found.high)}]'


def seeds(run: Iterable[statistics.Measured]) -> str:
  """The numbers of seeds of comparisons; "means" of those without pairs.

  Args:
    run: Comparisons with rows.
  """
  return _distinct(m.pairs.num_seeds or _unpaired(m.pairs) for m in run)


def data(run: Iterable[statistics.Measured]) -> str:
  """The data sets of comparisons.

  Args:
    run: Comparisons with rows.
  """
  return _distinct(m.pairs.setting.data for m in run)


def scale(run: Iterable[statistics.Measured]) -> str:
  """The shares of the data of comparisons.

  Args:
    run: Comparisons with rows.
  """
  return _distinct(f'{m.pairs.setting.scale:g}' for m in run)


def rounds(run: Iterable[statistics.Measured]) -> str:
  """The numbers of rounds of comparisons.

  Args:
    run: Comparisons with rows.
  """
  return _distinct(number for m in run for number in m.pairs.rounds)


def source(run: Iterable[statistics.Measured]) -> str:
  """Says whether the values come from recorded runs or are transcribed.

  Args:
    run: Comparisons with rows.
  """
  return _distinct('transcribed' if m.pairs.transcribed else 'run' for m in run)


def stand_ins(run: Iterable[statistics.Measured]) -> dict[str, str]:
  """The data sets that were replaced.

  Args:
    run: Comparisons with rows.

  Returns:
    The paper's data -> those that stand in for them.
  """
  used = {(_papers_data(m), m.pairs.setting.data) for m in run}
  return {papers: ours for papers, ours in sorted(used) if papers != ours}


def _papers_data(measured) -> str:
  left = measured.comparison.left
  return tables.TABLES[left.table].cells[left.cell].data


def _parts(compared):
  left, right = compared.left, compared.right
  if isinstance(right, definitions.Side):
    relation = _relation(compared)
    other = right.method
    if right.cell != left.cell:
      other = f'{other} in {right.cell}'
  else:
    relation = 'at least' if compared.above else 'at most'
    other = f'{right:g}'
  return left.table, left.cell, left.metric, left.method, relation, other


def _relation(compared) -> str:
  """Above or below, and by how much."""
  margin, sides = compared.margin, ('above', 'below')
  if margin < 0:
    return f'less than {-margin:g} {sides[compared.above]}'
  more = f'more than {margin:g} ' if margin else ''
  return more + sides[not compared.above]


def _unpaired(pairs) -> str:
  """A mean over seeds as such, or no seed that defines the difference."""
  return 'means' if all('-' in seed for seed in pairs.differences) else '0'


def _distinct(values) -> str:
  return ', '.join(sorted(set(map(str, values)), key=_numbers_first))


def _numbers_first(text):
  try:
    return 0, float(text), text
  except ValueError:
    return 1, 0.0, text
