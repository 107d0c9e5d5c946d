"""The tables of docs/replication.md, from replication.csv and the results.

A row of replication.csv is a line of a table. Its columns:

========= ==================================================================
table     the table: a block `<!-- replication NAME -->` of the page
what      what the line says, in words
statistic a claim by its id, or a comparison as claims.csv writes it
========= ==================================================================
"""

from collections.abc import Mapping
import pathlib

import pandas as pd

from tff_fair.launchers.claiming import evidence
from tff_fair.launchers.claiming import outcomes
from tff_fair.launchers.claiming import statements
from tff_fair.launchers.claiming import verdicts
from tff_fair.launchers.show import blocks
from tff_fair.launchers.show import markdown
from tff_fair.launchers.show import numbers

_FILE = pathlib.Path(__file__).with_name('replication.csv')
_HEADER = (
  '',
  'ours [98 % interval]',
  "the paper's",
  'seeds',
  'size: data',
  'verdict',
)
_DIGITS = '.3g'


def render(
  page: str,
  results: Mapping[str, verdicts.Result],
  recorded: evidence.Recorded,
) -> str:
  """Replaces the blocks of a page: differences, each with its verdict.

  A claim with several comparisons has the one that speaks most against it.

  Args:
    page: The page.
    results: Claim -> result.
    recorded: The recorded numbers.
  """
  rows = pd.read_csv(_FILE, dtype=str, keep_default_na=False)

  def write(match):
    found = rows[rows['table'] == match['name']]
    lines = [
      _line(row.what, row.statistic, results, recorded)
      for row in found.itertuples()
    ]
    # What the paper prints is known of claims alone.
    kept = [
      place
      for place in range(len(_HEADER))
      if any(line[place] != numbers.MISSING for line in lines)
    ]
    header, *lines = (
      [row[place] for place in kept] for row in (_HEADER, *lines)
    )
    return markdown.table(header, lines, texts=len(header))

  return blocks.replace(
    page, r'replication (?P<name>\w+)', 'end of replication', write
  )


def _line(what, statistic, results, recorded) -> list[str]:
  """A line of a table; dashes if nothing was run."""
  if statistic in statements.CLAIMS:
    measured, verdict = _of_claim(results[statistic])
    what = f'{what} ({statistic})'
    comparison = results[statistic].claim.comparisons[0]
  else:
    (comparison,) = statements.parse(statistic)
    measured, verdict = outcomes.measure(comparison, recorded), ''
  if measured and measured.evidence:
    is_claim, found = bool(verdict), measured.estimate
    return [
      what,
      numbers.format_interval(found.mean, found.low, found.high, _DIGITS),
      _papers(measured.comparison) if is_claim else numbers.MISSING,
      measured.shown_seeds,
      f'{measured.evidence.size}: {_data(measured)}',
      verdict or _sign(measured),
    ]
  return [what, numbers.MISSING, _papers(comparison), '0', '', 'not run']


def _of_claim(result) -> tuple[outcomes.Measured | None, str]:
  """The telling comparison at the size that decides a claim, or the first."""
  size = result.decided_at or next(iter(result.sizes), None)
  if size is None:
    return None, ''
  judged = result.sizes[size]
  symbol = verdicts.SYMBOLS[judged.verdict]
  return judged.telling, f'{symbol} {judged.verdict}'


def _papers(comparison) -> str:
  """The difference that the paper prints, if it prints both sides."""
  if comparison.published is None:
    return numbers.MISSING
  left, right = comparison.published
  return numbers.format_number(left - right, _DIGITS)


def _data(measured) -> str:
  setting = measured.evidence.setting
  parts = [setting.data]
  if setting.share < 1:
    parts.append(f'{100 * setting.share:g} %')
  return ', '.join(parts) + ' ‡' * measured.is_transcribed


def _sign(measured) -> str:
  """Whether the interval leaves out zero."""
  low, high = measured.estimate.low, measured.estimate.high
  if low > 0:
    return 'above 0'
  return 'below 0' if high < 0 else 'not told from 0'
