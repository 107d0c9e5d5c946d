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

_TEMPLATE = pathlib.Path(__file__).with_name('claims_page.md')
_LEGEND = (
  'f a o m: comparisons for the claim, against it, open (the interval has 0'
  ' inside, or there is none), missing (not run).'
)
_NOT_RUN, _NO_READING = 'not run', '-'
_BRINGS_IT_OUT = {
  verdicts.HOLDS: 'yes',
  verdicts.IN_PART: 'in part',
  verdicts.FAILS: 'no',
  verdicts.UNDECIDED: 'undecided',
}
_PROTOCOLS = 'fedakd_protocols'
_METRIC = 'client_accuracy_mean'
_OWN, _AVG = 'fedakd_own_protocol', 'fed_avg'
# Title -> the methods whose difference it is.
_PROTOCOL_DIFFERENCES = {
  'lead of FedAKD, each under its own protocol': (_OWN, _AVG),
  "lead, both under FedAvg's protocol": ('fedakd_fed_avg_protocol', _AVG),
  "lead, both under FedAvg's protocol, FedAKD by the clients' own models": (
    'fedakd_local_fed_avg_protocol',
    _AVG,
  ),
  "lead, both under FedAKD's protocol": (_OWN, 'fed_avg_fedakd_protocol'),
  'what its protocol adds to FedAKD': (_OWN, 'fedakd_fed_avg_protocol'),
  'what the same protocol adds to FedAvg': ('fed_avg_fedakd_protocol', _AVG),
}

_number = functools.partial(numbers.format_number, missing='')


def to_frame(results: Mapping[str, verdicts.Result]) -> pd.DataFrame:
  """A row for each claim, as results/claims.csv has it.

  Numbers are text of four digits, so that the file is the same everywhere.

  Args:
    results: The result of `verdicts.judge`.

  Returns:
    The table; its difference is that which speaks most against the claim.
  """
  return pd.DataFrame([_row(*item) for item in results.items()])


def count(results: Mapping[str, verdicts.Result]) -> pd.DataFrame:
  """Counts the claims: a row for each paper, a column for each verdict.

  Args:
    results: The result of `verdicts.judge`.
  """
  pairs = [(statements.paper_of(k), r.ours.verdict) for k, r in results.items()]
  found = pd.DataFrame(pairs, columns=['paper', 'verdict'])
  table = pd.crosstab(found['paper'], found['verdict'])
  shown = [paper for paper in statements.PAPERS if paper in table.index]
  return table.reindex(index=shown, columns=[*verdicts.SYMBOLS], fill_value=0)


def to_text(results: Mapping[str, verdicts.Result]) -> str:
  """The verdicts for a terminal: a line for each claim, and the counts.

  Args:
    results: The result of `verdicts.judge`.
  """
  rows = [('claim', 'verdict', 'f a o m', 'seeds', 'other reading', '')] + [
    (
      name,
      result.ours.verdict,
      ' '.join(str(result.ours.counts[o]) for o in verdicts.OUTCOMES),
      _seeds(result.ours.run) or '-',
      _reading(result),
      result.claim.text,
    )
    for name, result in results.items()
  ]
  widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
  lines = ['  '.join(map(str.ljust, row, widths)).rstrip() for row in rows]
  return '\n'.join([*lines, '', _LEGEND, '', count(results).to_string()])


def to_files(
  root: pathlib.Path,
  folder: pathlib.Path,
  results: Mapping[str, verdicts.Result],
  recorded: verdicts.Recorded,
) -> dict[pathlib.Path, str]:
  """The files that are written of the verdicts as a whole: file -> text.

  Args:
    root: The clone.
    folder: The folder of the results.
    results: The result of `verdicts.judge`, of all claims.
    recorded: What it was computed from.
  """
  return {
    folder / FILE: to_frame(results).to_csv(index=False),
    root / 'docs' / 'claims.md': to_page(results, recorded),
  }


def to_page(
  results: Mapping[str, verdicts.Result], recorded: verdicts.Recorded
) -> str:
  """The text of docs/claims.md.

  Args:
    results: The result of `verdicts.judge`, of all claims.
    recorded: What it was computed from.
  """
  papers = _by_paper(results)
  glance = [
    f'**{_link(paper)}**\n\n{_glance(own)}' for paper, own in papers.items()
  ]
  details = [
    f'## {methods.title(paper)}\n\n{_details(own)}'
    for paper, own in papers.items()
  ]
  return _TEMPLATE.read_text().format(
    counts=to_block(results, ''),
    glance='\n\n'.join(glance),
    protocols=_protocols(recorded),
    papers='\n\n'.join(details),
  )


def render(page: str, results: Mapping[str, verdicts.Result]) -> str:
  """Renders the block of a page, such as the README.

  Args:
    page: The page's text.
    results: The result of `verdicts.judge`, of all claims.
  """
  block = to_block(results, 'docs/claims.md')
  return blocks.replace(page, 'claims', 'end of claims', lambda match: block)


def to_block(results: Mapping[str, verdicts.Result], page: str) -> str:
  """The numbers of claims by paper and verdict, in all at the end.

  Args:
    results: The result of `verdicts.judge`, of all claims.
    page: The address of docs/claims.md.
  """
  *counted, uncounted = verdicts.SYMBOLS
  header = [
    'paper',
    'claims',
    *(f'{verdicts.SYMBOLS[verdict]} {verdict}' for verdict in counted),
    'of these not run',
    f'{verdicts.SYMBOLS[uncounted]} {uncounted}',
  ]
  groups = {_link(p, page): own for p, own in _by_paper(results).items()}
  rows = []
  for name, own in {**groups, 'all': results}.items():
    sums = count(own).sum()
    not_run = sum(
      not r.ours.run and r.ours.verdict != uncounted for r in own.values()
    )
    cells = [sums[counted].sum(), *sums[counted], not_run, sums[uncounted]]
    rows.append([name, *map(str, cells)])
  return markdown.table(header, rows)


def published_support(claim: statements.Claim) -> tuple[int, int]:
  """Counts the comparisons of a claim that the paper's tables support.

  Args:
    claim: The claim.

  Returns:
    The number of comparisons that the printed values support, and the number
    of those that the paper prints.
  """
  supported = [
    _supports(comparison, left, right)
    for comparison in claim.comparisons
    for left, right in [map(_printed, comparison[:2])]
    if left is not None and right is not None
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
  return found and found.value


def _row(name, result) -> dict[str, object]:
  claim, ours = result.claim, result.ours
  telling, run = ours.telling, ours.run
  support, printed = published_support(claim)
  is_missing = not run and ours.verdict != verdicts.UNCOUNTED
  notes = [claim.uncounted, claim.note, 'Not run.' if is_missing else '']
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
    'note': ' '.join(filter(None, notes)),
  }


_VALUES = ('left', 'right', 'estimate', 'low', 'high')


def _values(measured) -> dict[str, str]:
  """The means of both sides, and their difference with its interval."""
  found = measured.estimate
  values = *measured.means, found.mean, found.low, found.high
  return dict(zip(_VALUES, map(_number, values), strict=True))


def _reading(result) -> str:
  """Whether a claim holds under its other reading."""
  if result.claim.reading is None or result.claim.uncounted:
    return _NO_READING
  if result.other is None or not result.other.run:
    return _NOT_RUN
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
  if math.isnan(measured.estimate.mean):
    return 'undefined'
  left, right, mean, low, high = _values(measured).values()
  interval = f' [{low}, {high}]' if low else ''
  return f'{left} less {right}: {mean}{interval}'


def _seeds(run) -> str:
  """The numbers of seeds; "means" of those without pairs."""
  return _distinct(
    verdicts.count_seeds(m.pairs)
    or ('means' if all('-' in seed for seed in m.pairs) else 0)
    for m in run
  )


def _distinct(values: Iterable[object]) -> str:
  """Each once: numbers in order, then words."""

  def order(text):
    is_number = text.replace('.', '', 1).isdigit()
    return not is_number, float(text) if is_number else 0, text

  return ', '.join(sorted(set(map(str, values)), key=order))


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


def _by_paper(results):
  papers = {}
  for name, result in results.items():
    papers.setdefault(statements.paper_of(name), {})[name] = result
  return papers


def _link(paper, page='') -> str:
  title = methods.title(paper)
  return f'[{title}]({page}#{title.lower()})'


def _table(header, rows) -> str:
  return markdown.table(header, rows, texts=len(header))


def _glance(results) -> str:
  """A short table of a paper's claims."""
  rows = [
    [
      verdicts.SYMBOLS[result.ours.verdict],
      name,
      result.claim.text,
      '-'
      if result.ours.verdict == verdicts.UNCOUNTED
      else _seeds(result.ours.run) or _NOT_RUN,
      _reading(result),
    ]
    for name, result in results.items()
  ]
  return _table(['', 'name', 'claim', 'seeds', 'with another reading?'], rows)


def _details(results) -> str:
  """A table of the claims of a paper, and the readings behind it."""
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
  rows = to_frame(results).to_dict('records')
  lines = [_details_of(results[row['id']], row) for row in rows]
  readings = dict.fromkeys(filter(None, (row['reading'] for row in rows)))
  behind = [f'The other reading is {reading}.' for reading in readings]
  return '\n\n'.join([_table(header, lines), *behind])


def _details_of(result, row) -> list[str]:
  setting = '{data}; {scale}; {rounds}'.format(**row)
  prints = '{paper_supports} of {paper_prints}'.format(**row)
  transcribed = 'Transcribed.' if 'transcribed' in row['source'] else ''
  notes = [row['note'], *_stand_ins(result.ours.run), transcribed]
  return [
    '**{id}** {claim}'.format(**row),
    row['place'],
    f'{verdicts.SYMBOLS[row["verdict"]]} {row["verdict"]}',
    ', '.join(str(row[outcome]) for outcome in verdicts.OUTCOMES),
    _telling(result.ours),
    row['seeds'] or '-',
    setting if row['data'] else '-',
    prints if row['paper_prints'] else '-',
    _reading_details(result),
    ' '.join(filter(None, notes)),
  ]


def _telling(judged) -> str:
  if judged.telling is None:
    return '-'
  return f'`{_what(judged.telling.comparison)}`: {_difference(judged.telling)}'


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
  found = {
    cell: {
      title: verdicts.measure(
        statements.Comparison(
          *(statements.Side(_PROTOCOLS, cell, m, _METRIC) for m in pair)
        ),
        recorded,
      )
      for title, pair in _PROTOCOL_DIFFERENCES.items()
    }
    for cell in definitions.TABLES[_PROTOCOLS].cells
  }
  used = {
    cell: [m for m in measured.values() if m.outcome != 'missing']
    for cell, measured in found.items()
  }
  cells = [cell for cell in found if used[cell]]
  if not cells:
    return 'Not run yet.'
  rows = [
    [title, *(_difference_or_dash(found[cell][title]) for cell in cells)]
    for title in _PROTOCOL_DIFFERENCES
  ]
  rows.append(['lead in the paper', *map(_papers_lead, cells)])
  run = [m for cell in cells for m in used[cell]]
  scale = _distinct(f'{m.setting.scale:g}' for m in run)
  behind = [f'Share of the data: {scale}. Seeds: {_seeds(run)}.']
  table = _table(['difference', *(f'`{cell}`' for cell in cells)], rows)
  return f'{table}\n\n{" ".join(behind + _stand_ins(run))}'


def _difference_or_dash(measured) -> str:
  return '-' if measured.outcome == 'missing' else _difference(measured)


def _papers_lead(cell) -> str:
  left, right = (
    _printed(statements.Side(_PROTOCOLS, cell, method, _METRIC))
    for method in (_OWN, _AVG)
  )
  return f'{_number(left)} less {_number(right)}: {_number(left - right)}'
