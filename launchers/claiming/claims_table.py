"""The verdicts as a table: results/claims.csv, and what the launcher prints."""

from collections.abc import Mapping
import functools
import math

import pandas as pd

from tff_fair.launchers.claiming import definitions
from tff_fair.launchers.claiming import papers
from tff_fair.launchers.claiming import verdicts
from tff_fair.launchers.claiming import wording
from tff_fair.launchers.tables import published

FILE = 'claims.csv'
"""Its name in the folder of the results."""

_OUTCOMES = ('for', 'against', 'open', 'missing')


def frame(results: Mapping[str, verdicts.Result]) -> pd.DataFrame:
  """A row for each claim.

  Numbers are text of four digits, so that the file is the same everywhere.

  Args:
    results: The result of `verdicts.judge`.

  Returns:
    The table; its difference is that which speaks most against the claim.
  """
  return pd.DataFrame([_row(*item) for item in results.items()])


def counts(results: Mapping[str, verdicts.Result]) -> pd.DataFrame:
  """The number of claims of each paper and verdict.

  Args:
    results: The result of `verdicts.judge`.

  Returns:
    A row for each paper that has claims here, a column for each verdict, those
    that do not count last.
  """
  pairs = [(papers.paper_of(k), r.ours.verdict) for k, r in results.items()]
  found = pd.DataFrame(pairs, columns=['paper', 'verdict'])
  table = pd.crosstab(found['paper'], found['verdict'])
  shown = [paper for paper in papers.PAPERS if paper in table.index]
  columns = [*verdicts.VERDICTS, verdicts.UNCOUNTED]
  return table.reindex(index=shown, columns=columns, fill_value=0)


def text(results: Mapping[str, verdicts.Result]) -> str:
  """The verdicts for a terminal.

  Args:
    results: The result of `verdicts.judge`.

  Returns:
    A line for each claim, and the counts.
  """
  rows = [
    (
      name,
      result.ours.verdict,
      ' '.join(str(result.ours.counts[outcome]) for outcome in _OUTCOMES),
      wording.seeds(result.ours.run) or '-',
      wording.reading(result),
      result.claim.text,
    )
    for name, result in results.items()
  ]
  header = ('claim', 'verdict', 'f a o m', 'seeds', 'other reading', '')
  widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
  lines = [
    '  '.join(f'{c:{w}}' for c, w in zip(row, widths, strict=True)).rstrip()
    for row in (header, *rows)
  ]
  legend = (
    'f a o m: comparisons for the claim, against it, open (the interval has 0'
    ' inside, or there is none), missing (not run).'
  )
  return '\n'.join([*lines, '', legend, '', counts(results).to_string()])


def published_support(claim: definitions.Claim) -> tuple[int, int]:
  """Counts the comparisons of a claim that the paper's tables support.

  Args:
    claim: The claim.

  Returns:
    The number of comparisons that the printed values support, and the number
    of those that the paper prints.
  """
  printed = [
    (comparison, [_printed(side) for side in _sides(comparison)])
    for comparison in claim.comparisons
  ]
  known = [(c, *sides) for c, sides in printed if None not in sides]
  support = sum(
    _supports(comparison, left, right) for comparison, left, right in known
  )
  return support, len(known)


def _row(name, result) -> dict[str, object]:
  claim, ours, telling = result.claim, result.ours, result.ours.telling
  support, printed = published_support(claim)
  run = ours.run
  return {
    'id': name,
    'paper': papers.paper_of(name),
    'place': claim.place,
    'claim': claim.text,
    'statistic': wording.statistic(claim.comparisons),
    'comparisons': len(claim.comparisons),
    **{outcome: ours.counts[outcome] for outcome in _OUTCOMES},
    'verdict': ours.verdict,
    'difference': wording.what(telling.comparison) if telling else '',
    **_format_values(telling),
    'seeds': wording.seeds(run),
    'data': wording.data(run),
    'scale': wording.scale(run),
    'rounds': wording.rounds(run),
    'source': wording.source(run),
    'paper_supports': support,
    'paper_prints': printed,
    'reading': claim.reading.title if claim.reading else '',
    'script_verdict': wording.reading(result),
    'note': ' '.join(
      filter(None, [claim.uncounted, claim.note, _missing(ours)])
    ),
  }


def _missing(ours) -> str:
  """A note on a claim that runs could decide, if there are none."""
  return '' if ours.run or ours.verdict == verdicts.UNCOUNTED else 'Not run.'


def _format_values(telling) -> dict[str, str]:
  if telling is None:
    values = [math.nan] * 5
  else:
    pairs, found = telling.pairs, telling.estimate
    values = [pairs.left, pairs.right, found.mean, found.low, found.high]
  names = ('left', 'right', 'estimate', 'low', 'high')
  return dict(zip(names, map(wording.number, values), strict=True))


def _sides(comparison):
  return comparison.left, comparison.right


def _printed(side) -> float | None:
  """The paper's number; None if it has none."""
  if isinstance(side, float):
    return side
  key = published.key(side.table, side.cell, side.method, side.metric)
  found = _numbers().get(key)
  return None if found is None else found.value


@functools.cache
def _numbers():
  return published.read()


def _supports(comparison, left, right) -> bool:
  lead = left - right if comparison.above else right - left
  if lead == comparison.margin:
    return isinstance(comparison.right, float)
  return lead > comparison.margin
