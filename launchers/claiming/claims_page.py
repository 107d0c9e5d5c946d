"""The verdicts as text: results/claims.csv, docs/claims.md, the README's block.

claims_page.md is the page without its tables.
"""

from collections.abc import Iterable, Mapping
import functools
import math
import pathlib

import pandas as pd

from tff_fair.launchers.claiming import statements
from tff_fair.launchers.claiming import verdicts
from tff_fair.launchers.options import methods
from tff_fair.launchers.show import blocks
from tff_fair.launchers.show import markdown
from tff_fair.launchers.show import numbers
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import published

FILE = 'claims.csv'
"""The name of the table in the folder of the results."""

Results = Mapping[str, verdicts.Result]
"""Claim -> result, from `verdicts.judge`."""

_TEMPLATE = pathlib.Path(__file__).with_name('claims_page.md')
_BRINGS_IT_OUT = {
  verdicts.HOLDS: 'yes',
  verdicts.IN_PART: 'in part',
  verdicts.FAILS: 'no',
  verdicts.UNDECIDED: 'undecided',
}
_PROTOCOL = 'fedakd_protocols: client_accuracy_mean of {} above {} in {}'
# Titles, and the methods whose difference each is; the first is the paper's.
_PROTOCOLS = pathlib.Path(__file__).with_name('protocols.csv')

_number = functools.partial(numbers.format_number, missing='')


def to_frame(results: Results) -> pd.DataFrame:
  """Writes a row for each claim, as results/claims.csv has it.

  Numbers are text of four digits, so that the file is the same everywhere. The
  difference is that which speaks most against the claim.
  """
  return pd.DataFrame([_row(*item) for item in results.items()])


def to_page(results: Results, recorded: verdicts.Recorded) -> str:
  """Writes docs/claims.md: numbers of claims, and a table for each paper."""
  header = ['claim', 'where', 'ours', 'seeds', 'data; share; rounds']
  header += ['paper', 'verdict', 'with another reading?', 'notes']
  papers = []
  for paper, rows in to_frame(results).groupby('paper', sort=False):
    body = [
      _page_row(row, results[row['id']].other)
      for row in rows.to_dict('records')
    ]
    papers += [f'## {methods.title(paper)}', _table(header, body)]
    for reading in filter(None, rows['reading'].unique()):
      papers.append(f'The other reading is {reading}.')
  return _TEMPLATE.read_text().format(
    counts=to_block(results, ''),
    protocols=_protocols(recorded),
    papers='\n\n'.join(papers),
  )


def render(page: str, results: Results) -> str:
  """Replaces the block of a page, such as the README: claims by verdict."""
  block = to_block(results, 'docs/claims.md')
  return blocks.replace(page, 'claims', 'end of claims', lambda match: block)


def to_block(results: Results, page: str) -> str:
  """Counts the claims by paper and verdict; `page` is docs/claims.md."""
  *counted, uncounted = verdicts.SYMBOLS
  frame = to_frame(results)
  counts = pd.crosstab(frame['paper'], frame['verdict'])
  counts = counts.reindex(
    index=frame['paper'].unique(), columns=[*verdicts.SYMBOLS], fill_value=0
  )
  counts.insert(0, 'claims', counts[counted].sum(axis=1))
  not_run = (frame['seeds'] == '') & (frame['verdict'] != uncounted)
  counts.insert(5, 'of these not run', not_run.groupby(frame['paper']).sum())
  counts.loc['all'] = counts.sum()
  titles = {p: methods.title(p) for p in counts.index.drop('all')}
  links = {p: f'[{t}]({page}#{t.lower()})' for p, t in titles.items()}
  shown = counts.rename(
    index=links, columns={v: f'{s} {v}' for v, s in verdicts.SYMBOLS.items()}
  ).astype(str)
  return markdown.table(['paper', *shown], shown.itertuples())


def published_support(claim: statements.Claim) -> tuple[int, int]:
  """Counts the comparisons that the printed values support, and the printed."""
  supported = [
    _supports(comparison, *sides)
    for comparison in claim.comparisons
    if None not in (sides := [_printed(side) for side in comparison[:2]])
  ]
  return sum(supported), len(supported)


def _supports(comparison, left, right) -> bool:
  lead = left - right if comparison.above else right - left
  is_level = isinstance(comparison.right, float)
  return lead > comparison.margin or (is_level and lead == comparison.margin)


def _printed(side) -> float | None:
  """The paper's number; None if it has none."""
  if isinstance(side, float):
    return side
  found = published.number(*side)
  return None if found is None else found.value


def _row(name, result) -> dict[str, object]:
  claim, ours = result.claim, result.ours
  telling, run = ours.telling, ours.run
  support, printed = published_support(claim)
  missing = '' if run or claim.uncounted else 'Not run.'
  values = dict.fromkeys(('left', 'right', 'estimate', 'low', 'high'), '')
  if telling:
    values = dict(zip(values, _values(telling), strict=True))
  return {
    'id': name,
    'paper': statements.paper_of(name),
    'place': claim.place,
    'claim': claim.text,
    'statistic': claim.statistic,
    'comparisons': len(claim.comparisons),
    **{outcome: ours.counts[outcome] for outcome in verdicts.OUTCOMES},
    'verdict': ours.verdict,
    'difference': _what(telling.comparison) if telling else '',
    **values,
    'seeds': _seeds(run),
    'data': _distinct(m.setting.data for m in run),
    'scale': _distinct(f'{m.setting.scale:g}' for m in run),
    'rounds': _distinct(n.rounds for m in run for n in m.numbers if n.rounds),
    'source': _distinct(
      'transcribed' if any(n.is_transcribed for n in m.numbers) else 'run'
      for m in run
    ),
    'paper_supports': support,
    'paper_prints': printed,
    'reading': claim.reading,
    'script_verdict': _reading(result),
    'note': ' '.join(filter(None, [claim.uncounted, claim.note, missing])),
  }


def _values(measured) -> list[str]:
  """The means of both sides, and their difference with its interval."""
  found = measured.estimate
  values = *measured.means, found.mean, found.low, found.high
  return [_number(value) for value in values]


def _reading(result) -> str:
  """Whether a claim holds under its other reading."""
  if not result.claim.reading or result.claim.uncounted:
    return '-'
  if result.other is None or not result.other.run:
    return 'not run'
  return _BRINGS_IT_OUT[result.other.verdict]


def _what(comparison) -> str:
  """The metric, the cell and the sides of a comparison."""
  left, right = comparison[:2]
  if isinstance(right, float):
    other = f'{right:g}'
  else:
    place = '' if right.cell == left.cell else f' in {right.cell}'
    other = f'{right.method}{place}'
  return f'{left.metric}, {left.cell}: {left.method} less {other}'


def _difference(left, right, mean, low, high) -> str:
  if not mean:
    return 'undefined'
  return f'{left} less {right}: {mean}' + (f' [{low}, {high}]' if low else '')


def _seeds(run) -> str:
  """The numbers of seeds; "means" of those without pairs."""
  return _distinct(
    verdicts.count_seeds(m.pairs)
    or ('means' if all('-' in seed for seed in m.pairs) else 0)
    for m in run
  )


def _distinct(values: Iterable[object]) -> str:
  """Each once: numbers in order, then words."""
  texts = sorted(set(map(str, values)))
  order = pd.to_numeric(pd.Series(texts, dtype=str), errors='coerce')
  return ', '.join(texts[place] for place in order.sort_values().index)


def _table(header, rows) -> str:
  return markdown.table(header, rows, texts=len(header))


def _page_row(row, other) -> list[str]:
  """A row of a paper's table; "-" for what was not run."""
  values = [row[name] for name in ('left', 'right', 'estimate', 'low', 'high')]
  reading = row['script_verdict']
  if other and other.run:
    telling = other.telling
    tried = f'{len(other.measured)} of {row["comparisons"]} comparisons'
    share = '' if len(other.measured) == row['comparisons'] else f' ({tried})'
    difference = _difference(*_values(telling))
    reading += f'{share}: `{_what(telling.comparison)}`: {difference}'
  source = '; transcribed' if 'transcribed' in row['source'] else ''
  return [
    '**{id}** {claim}'.format(**row),
    row['place'],
    f'`{row["difference"]}`: {_difference(*values)}' if row['seeds'] else '-',
    row['seeds'] or '-',
    '{data}; {scale}; {rounds}'.format(**row) + source if row['data'] else '-',
    '{paper_supports} of {paper_prints}'.format(**row)
    if row['paper_prints']
    else '-',
    '{} {verdict}: {for}, {against}, {open}, {missing}'.format(
      verdicts.SYMBOLS[row['verdict']], **row
    ),
    reading,
    row['note'],
  ]


def _protocols(recorded) -> str:
  """How much of FedAKD's lead is a protocol like its authors' scripts'."""
  wanted = pd.read_csv(_PROTOCOLS, dtype=str)
  columns = {}
  for cell in definitions.TABLES['fedakd_protocols'].cells:
    comparisons = [
      statements.parse(_PROTOCOL.format(row.left, row.right, cell))[0]
      for row in wanted.itertuples()
    ]
    found = [verdicts.measure(c, recorded) for c in comparisons]
    run = [m for m in found if m.pairs]
    if run:
      left, right = map(_printed, comparisons[0][:2])
      papers = map(_number, (left, right, left - right, math.nan, math.nan))
      columns[f'`{cell}`'] = [
        *(_difference(*_values(m)) if m.pairs else '-' for m in found),
        _difference(*papers),
        _seeds(run),
        _distinct(f'{m.setting.data}; {m.setting.scale:g}' for m in run),
      ]
  if not columns:
    return 'Not run yet.'
  names = [*wanted['difference'], 'lead in the paper', 'seeds', 'data; share']
  return _table(
    ['difference', *columns], zip(names, *columns.values(), strict=True)
  )
