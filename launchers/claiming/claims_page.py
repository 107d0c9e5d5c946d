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
from tff_fair.launchers.results import titles
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
_LEGEND = (
  'f a o m: comparisons for the claim, against it, open (the interval has 0'
  ' inside, or there is none), missing (not run).'
)
_BRINGS_IT_OUT = {
  verdicts.HOLDS: 'yes',
  verdicts.IN_PART: 'in part',
  verdicts.FAILS: 'no',
  verdicts.UNDECIDED: 'undecided',
}
_VALUES = ('left', 'right', 'estimate', 'low', 'high')
_PROTOCOL = 'fedakd_protocols: client_accuracy_mean of {} above {} in {}'
# Titles, and the methods whose difference each is; the first is the paper's.
_PROTOCOLS = pathlib.Path(__file__).with_name('protocols.csv')

_number = functools.partial(numbers.format_number, missing='')


def to_files(
  root: pathlib.Path,
  folder: pathlib.Path,
  results: Results,
  recorded: verdicts.Recorded,
) -> dict[pathlib.Path, str]:
  """Writes the files that are of the verdicts as a whole: file -> text.

  Args:
    root: The clone.
    folder: The folder of the results.
    results: The results of all claims.
    recorded: What they were computed from.
  """
  return {
    folder / FILE: to_frame(results).to_csv(index=False),
    root / 'docs' / 'claims.md': to_page(results, recorded),
  }


def render(page: str, results: Results) -> str:
  """Replaces the block of a page, such as the README: claims by verdict."""
  block = to_block(results, 'docs/claims.md')
  return blocks.replace(page, 'claims', 'end of claims', lambda match: block)


def to_frame(results: Results) -> pd.DataFrame:
  """Writes a row for each claim, as results/claims.csv has it.

  Numbers are text of four digits, so that the file is the same everywhere. The
  difference is that which speaks most against the claim.
  """
  return pd.DataFrame([_row(*item) for item in results.items()])


def count(results: Results) -> pd.DataFrame:
  """Counts the claims: a row for each paper, a column for each verdict."""
  found = pd.DataFrame(
    {
      'paper': map(statements.paper_of, results),
      'verdict': [result.ours.verdict for result in results.values()],
    }
  )
  table = pd.crosstab(found['paper'], found['verdict'])
  return table.reindex(
    index=found['paper'].unique(), columns=[*verdicts.SYMBOLS], fill_value=0
  )


def to_text(results: Results) -> str:
  """Writes a line for each claim, and the counts, for a terminal."""
  frame = to_frame(results).astype(str)
  outcomes = frame[[*verdicts.OUTCOMES]].agg(' '.join, axis=1)
  seeds = frame['seeds'].replace('', '-')
  columns = frame['id'], frame['verdict'], outcomes, seeds
  columns = *columns, frame['script_verdict'], frame['claim']
  header = ('claim', 'verdict', 'f a o m', 'seeds', 'other reading', '')
  rows = [header, *zip(*columns, strict=True)]
  widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
  lines = ['  '.join(map(str.ljust, row, widths)).rstrip() for row in rows]
  return '\n'.join([*lines, '', _LEGEND, '', count(results).to_string()])


def to_page(results: Results, recorded: verdicts.Recorded) -> str:
  """Writes docs/claims.md, of all claims."""
  frame = to_frame(results)
  glance, details = [], []
  for paper, rows in frame.groupby('paper', sort=False):
    title = methods.title(paper)
    glance += [f'**{_link(paper)}**', _glance(rows)]
    details += [f'## {title}', _details(rows, results)]
    readings = filter(None, rows['reading'].unique())
    details += [f'The other reading is {reading}.' for reading in readings]
  return _TEMPLATE.read_text().format(
    counts=to_block(results, ''),
    glance='\n\n'.join(glance),
    protocols=_protocols(recorded),
    papers='\n\n'.join(details),
  )


def to_block(results: Results, page: str) -> str:
  """Writes the numbers of claims by paper and verdict, in all at the end.

  Args:
    results: The results of all claims.
    page: The address of docs/claims.md.
  """
  *counted, uncounted = verdicts.SYMBOLS
  shown = [
    f'{symbol} {verdict}' for verdict, symbol in verdicts.SYMBOLS.items()
  ]
  header = ['paper', 'claims', *shown[:-1], 'of these not run', shown[-1]]
  counts = count(results)
  counts['not run'] = [
    sum(
      _is_missing(r) for k, r in results.items() if statements.paper_of(k) == p
    )
    for p in counts.index
  ]
  counts['claims'] = counts[counted].sum(axis=1)
  names = [*(_link(paper, page) for paper in counts.index), 'all']
  counts.loc['all'] = counts.sum()
  columns = ['claims', *counted, 'not run', uncounted]
  rows = counts[columns].astype(str).to_numpy()
  return markdown.table(
    header, [[name, *row] for name, row in zip(names, rows, strict=True)]
  )


def published_support(claim: statements.Claim) -> tuple[int, int]:
  """Counts the comparisons of a claim that the paper's tables support.

  Args:
    claim: The claim.

  Returns:
    The number of comparisons that the printed values support, and the number
    of those that the paper prints.
  """
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
  found = published.read().get(published.key(*side))
  return None if found is None else found.value


def _row(name, result) -> dict[str, object]:
  claim, ours = result.claim, result.ours
  telling, run = ours.telling, ours.run
  support, printed = published_support(claim)
  missing = 'Not run.' if _is_missing(result) else ''
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
    **(_values(telling) if telling else dict.fromkeys(_VALUES, '')),
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
    'reading': claim.reading.title if claim.reading else '',
    'script_verdict': _reading(result),
    'note': ' '.join(filter(None, [claim.uncounted, claim.note, missing])),
  }


def _is_missing(result) -> bool:
  """Whether it counts, and nothing was run."""
  return not result.ours.run and result.ours.verdict != verdicts.UNCOUNTED


def _values(measured) -> dict[str, str]:
  """The means of both sides, and their difference with its interval."""
  found = measured.estimate
  values = *measured.means, found.mean, found.low, found.high
  return dict(zip(_VALUES, map(_number, values), strict=True))


def _reading(result) -> str:
  """Whether a claim holds under its other reading."""
  if result.claim.reading is None or result.claim.uncounted:
    return '-'
  if result.other is None or not result.other.run:
    return 'not run'
  return _BRINGS_IT_OUT[result.other.verdict]


def _what(comparison) -> str:
  """The metric, the cell and the sides of a comparison."""
  left, right = comparison.left, comparison.right
  if isinstance(right, float):
    other = f'{right:g}'
  else:
    place = '' if right.cell == left.cell else f' in {right.cell}'
    other = f'{right.method}{place}'
  return f'{left.metric}, {left.cell}: {left.method} less {other}'


def _difference(measured) -> str:
  if measured.outcome == 'missing':
    return '-'
  if math.isnan(measured.estimate.mean):
    return 'undefined'
  left, right, mean, low, high = _values(measured).values()
  interval = f' [{low}, {high}]' if low else ''
  return f'{left} less {right}: {mean}{interval}'


def _telling(judged) -> str:
  if judged.telling is None:
    return '-'
  return f'`{_what(judged.telling.comparison)}`: {_difference(judged.telling)}'


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


def _stand_ins(run) -> list[str]:
  """Sentences on the data that were replaced."""
  used = {
    (verdicts.papers_data(m.comparison.left), m.setting.data) for m in run
  }
  return [
    f'{titles.data(ours)} stands in for {titles.data(papers)}.'
    for papers, ours in sorted(used)
    if papers != ours
  ]


def _link(paper, page='') -> str:
  title = methods.title(paper)
  return f'[{title}]({page}#{title.lower()})'


def _table(header, rows) -> str:
  return markdown.table(header, rows, texts=len(header))


def _glance(rows) -> str:
  """A short table of a paper's claims."""
  uncounted = rows['verdict'] == verdicts.UNCOUNTED
  seeds = rows['seeds'].replace('', 'not run').mask(uncounted, '-')
  columns = rows['verdict'].map(verdicts.SYMBOLS), rows['id'], rows['claim']
  return _table(
    ['', 'name', 'claim', 'seeds', 'with another reading?'],
    zip(*columns, seeds, rows['script_verdict'], strict=True),
  )


def _details(rows, results) -> str:
  """A table of the claims of a paper."""
  header = [
    'claim',
    'where',
    'verdict',
    'for, against, open, missing',
    'difference',
    'seeds',
    'data, share, rounds',
    "paper's numbers",
    'with another reading?',
    'notes',
  ]
  return _table(
    header,
    [_details_of(row, results[row['id']]) for row in rows.to_dict('records')],
  )


def _details_of(row, result) -> list[str]:
  transcribed = 'Transcribed.' if 'transcribed' in row['source'] else ''
  notes = [row['note'], *_stand_ins(result.ours.run), transcribed]
  return [
    '**{id}** {claim}'.format(**row),
    row['place'],
    f'{verdicts.SYMBOLS[row["verdict"]]} {row["verdict"]}',
    '{for}, {against}, {open}, {missing}'.format(**row),
    _telling(result.ours),
    row['seeds'] or '-',
    '{data}; {scale}; {rounds}'.format(**row) if row['data'] else '-',
    '{paper_supports} of {paper_prints}'.format(**row)
    if row['paper_prints']
    else '-',
    _reading_details(result),
    ' '.join(filter(None, notes)),
  ]


def _reading_details(result) -> str:
  """The other reading's answer, with its comparisons and difference."""
  answer, other = _reading(result), result.other
  if other is None or not other.run:
    return answer
  tried, every = len(other.measured), len(result.ours.measured)
  share = '' if tried == every else f' ({tried} of {every} comparisons)'
  return f'{answer}{share}: {_telling(other)}'


def _protocols(recorded) -> str:
  """How much of FedAKD's lead is a protocol like its authors' scripts'."""
  wanted = pd.read_csv(_PROTOCOLS, dtype=str)
  columns, run = {}, []
  for cell in definitions.TABLES['fedakd_protocols'].cells:
    comparisons = [
      statements.parse(_PROTOCOL.format(row.left, row.right, cell))[0]
      for row in wanted.itertuples()
    ]
    found = [verdicts.measure(c, recorded) for c in comparisons]
    if any(m.outcome != 'missing' for m in found):
      left, right = map(_printed, comparisons[0][:2])
      lead = f'{_number(left)} less {_number(right)}: {_number(left - right)}'
      columns[f'`{cell}`'] = [*map(_difference, found), lead]
      run += [m for m in found if m.outcome != 'missing']
  if not columns:
    return 'Not run yet.'
  names = [*wanted['difference'], 'lead in the paper']
  table = _table(
    ['difference', *columns], zip(names, *columns.values(), strict=True)
  )
  scale = _distinct(f'{m.setting.scale:g}' for m in run)
  behind = [f'Share of the data: {scale}. Seeds: {_seeds(run)}.']
  return f'{table}\n\n{" ".join(behind + _stand_ins(run))}'
