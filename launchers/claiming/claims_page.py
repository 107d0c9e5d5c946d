"""The verdicts as text: results/claims.csv, docs/claims.md, the README's block.

claims_page.md is the page without its tables.
"""

from collections.abc import Iterable, Mapping
import functools
import math
import pathlib

import pandas as pd

from tff_fair.launchers.claiming import evidence
from tff_fair.launchers.claiming import going_on
from tff_fair.launchers.claiming import outcomes
from tff_fair.launchers.claiming import statements
from tff_fair.launchers.claiming import verdicts
from tff_fair.launchers.options import methods
from tff_fair.launchers.show import blocks
from tff_fair.launchers.show import markdown
from tff_fair.launchers.show import numbers
from tff_fair.launchers.tables import definitions

FILE = 'claims.csv'
"""The name of the table in the folder of the results."""

Results = Mapping[str, verdicts.Result]
"""Claim -> result, from `verdicts.judge`."""

_TEMPLATE = pathlib.Path(__file__).with_name('claims_page.md')
_PROTOCOL = 'fedakd_protocols: client_accuracy_mean of {} above {} in {}'
# Titles, and the methods whose difference each is; the first is the paper's.
_PROTOCOLS = pathlib.Path(__file__).with_name('protocols.csv')
_HEADER = (
  'claim',
  'where',
  'difference [98 % interval]',
  'seeds',
  'size: data; share; rounds',
  'verdict',
  'what would decide it',
  'paper',
  'with another reading?',
  'notes',
)
_AT = {
  evidence.PAPERS: "decided at the paper's size",
  evidence.REDUCED: 'at a reduced size',
  evidence.STAND_IN: 'on stand-in data',
}
_NOT_RUN = (
  '**Not run**, by their place in the paper; `results/claims.csv` has what'
  ' would decide each:'
)
_NO_JUDGED = verdicts.Judged((), verdicts.UNDECIDED)

_number = functools.partial(numbers.format_number, missing='')


def to_frame(results: Results) -> pd.DataFrame:
  """Writes a row for each claim and size, as results/claims.csv has it.

  Numbers are text of four digits, so that the file is the same everywhere. The
  difference is that which speaks most against the claim. Without numbers the
  size is empty.
  """
  return pd.DataFrame(
    _row(name, result, size)
    for name, result in results.items()
    for size in _sizes(result)
  )


def to_page(results: Results, recorded: evidence.Recorded) -> str:
  """Writes docs/claims.md: numbers of claims, and a table for each paper."""
  papers = []
  for paper, rows in to_frame(results).groupby('paper', sort=False):
    has_others = rows['id'].map(lambda name: bool(results[name].others))
    is_run = has_others | (rows['size'] != '')
    papers.append(f'## {methods.title(paper)}')
    papers += _of_run(rows[is_run], results) + _not_run(rows[~is_run])
    for reading in filter(None, rows['reading'].unique()):
      papers.append(f'The other reading is {reading}.')
  return _TEMPLATE.read_text().format(
    counts=to_block(results, ''),
    sizes=_by_size(results),
    protocols=_protocols(recorded),
    papers='\n\n'.join(papers),
  )


def _of_run(rows, results) -> list[str]:
  """The table of the claims with numbers, a line for each size."""
  body = [
    _page_row(row, results[row['id']], is_first)
    for row, is_first in zip(
      rows.to_dict('records'), ~rows['id'].duplicated(), strict=True
    )
  ]
  return [_table(_HEADER, body)] if body else []


def _not_run(rows) -> list[str]:
  """The claims without numbers, by their place in the paper."""
  places = [
    f'- *{place}:* {" ".join(map(_named, group.itertuples()))}'
    for place, group in rows.groupby('place', sort=False)
  ]
  return [_NOT_RUN, '\n'.join(places)] if places else []


def _named(row) -> str:
  """A claim with its name, and what speaks against it without a run."""
  notes = []
  if row.verdict == verdicts.UNCOUNTED:
    notes.append('not counted')
  if row.paper_supports < row.paper_prints:
    notes.append(
      f"the paper's own numbers support {row.paper_supports} of"
      f' {row.paper_prints} comparisons'
    )
  return f'**{row.id}** {row.claim}' + f' ({"; ".join(notes)})' * bool(notes)


def render(page: str, results: Results) -> str:
  """Replaces the block of a page, such as the README: claims by verdict."""
  block = to_block(results, 'docs/claims.md')
  return blocks.replace(page, 'claims', 'end of claims', lambda match: block)


def to_block(results: Results, page: str) -> str:
  """Counts the claims by paper, and by the largest size that decides each.

  `page` is docs/claims.md.
  """
  rows = [
    {
      'paper': statements.paper_of(name),
      'size': result.decided_at,
      'verdict': result.verdict,
      'is_run': bool(result.sizes),
    }
    for name, result in results.items()
  ]
  frame = pd.DataFrame(rows)
  named = [(p, group) for p, group in frame.groupby('paper', sort=False)]
  body = []
  for paper, group in [*named, ('all', frame)]:
    title = 'all' if paper == 'all' else methods.title(paper)
    link = title if paper == 'all' else f'[{title}]({page}#{title.lower()})'
    counted = group[group['verdict'] != verdicts.UNCOUNTED]
    is_open = counted['verdict'] == verdicts.UNDECIDED
    numbers_ = [
      len(counted),
      *(
        _counts(counted.loc[counted['size'] == size, 'verdict'])
        for size in evidence.SIZES
      ),
      is_open.sum(),
      (is_open & ~counted['is_run']).sum(),
      len(group) - len(counted),
    ]
    body.append([link, *map(str, numbers_)])
  undecided, uncounted = verdicts.UNDECIDED, verdicts.UNCOUNTED
  header = [
    'paper',
    'claims',
    *_AT.values(),
    f'{verdicts.SYMBOLS[undecided]} {undecided}',
    'of which not run',
    f'{verdicts.SYMBOLS[uncounted]} {uncounted}',
  ]
  return markdown.table(header, body)


def _by_size(results) -> str:
  """Counts the verdicts at each size, whatever the others say."""
  header = ['size', *(f'{verdicts.SYMBOLS[v]} {v}' for v in _COUNTED), 'claims']
  body = []
  for size in evidence.SIZES:
    found = [r.sizes[size].verdict for r in results.values() if size in r.sizes]
    found = [verdict for verdict in found if verdict in _COUNTED]
    counts = [found.count(verdict) for verdict in _COUNTED]
    body.append([size, *map(str, [*counts, len(found)])])
  return markdown.table(header, body)


_COUNTED = (*verdicts.DECISIONS, verdicts.UNDECIDED)


def _counts(found) -> str:
  """Such as "20 ✓, 3 ◐"; "-" for none."""
  counts = found.value_counts()
  return (
    ', '.join(
      f'{counts[verdict]} {verdicts.SYMBOLS[verdict]}'
      for verdict in verdicts.DECISIONS
      if verdict in counts
    )
    or '-'
  )


def published_support(claim: statements.Claim) -> tuple[int, int]:
  """Counts the comparisons that the printed values support, and the printed.

  Those that cannot exist do not count, even if the paper prints them.
  """
  supported = [
    _supports(comparison, *comparison.published)
    for comparison in claim.comparisons
    if comparison.published and not comparison.undefined
  ]
  return sum(supported), len(supported)


def _supports(comparison, left, right) -> bool:
  lead = left - right if comparison.above else right - left
  is_level = isinstance(comparison.right, float)
  return lead > comparison.margin or (is_level and lead == comparison.margin)


def _sizes(result) -> list[str]:
  """The sizes with numbers of either reading; one that is empty without."""
  found = {*result.sizes, *result.others}
  return [size for size in evidence.SIZES if size in found] or ['']


def _row(name, result, size) -> dict[str, object]:
  claim = result.claim
  ours = result.sizes.get(size, _NO_JUDGED)
  telling, run = ours.telling, ours.run
  support, printed = published_support(claim)
  values = dict.fromkeys(('left', 'right', 'estimate', 'low', 'high'), '')
  if telling:
    values = dict(zip(values, _values(telling), strict=True))
  counts = ours.counts
  if not ours.measured:
    undefined = sum(bool(c.undefined) for c in claim.comparisons)
    missing = len(claim.comparisons) - undefined
    counts = {outcomes.MISSING: missing, outcomes.UNDEFINED: undefined}
  return {
    'id': name,
    'paper': statements.paper_of(name),
    'place': claim.place,
    'claim': claim.text,
    'statistic': claim.statistic,
    'size': size if run else '',
    'difference': _what(telling.comparison) if telling else '',
    **values,
    'clients': '{} of {}'.format(*telling.counted)
    if telling and telling.counted
    else '',
    'seeds': _seeds(run),
    'left_aside': _distinct(filter(None, (m.evidence.left_aside for m in run))),
    'negligible': _negligible(ours),
    'comparisons': len(claim.comparisons),
    **{outcome: counts.get(outcome, 0) for outcome in outcomes.OUTCOMES},
    'verdict': verdicts.UNCOUNTED if claim.uncounted else ours.verdict,
    'data': _distinct(m.evidence.setting.data for m in run),
    'scale': _distinct(map(_shares, (m.evidence.setting for m in run))),
    'rounds': _distinct(n.rounds for m in run for n in m.numbers if n.rounds),
    'source': _distinct(
      'transcribed' if m.is_transcribed else 'run' for m in run
    ),
    'to_decide': _plan(result, size),
    'paper_supports': support,
    'paper_prints': printed,
    'reading': claim.reading,
    'script_verdict': _reading(result, size),
    'note': _note(claim, ours),
  }


def _note(claim, ours) -> str:
  """Returns the other notes on a claim."""
  left_out = dict.fromkeys(c.undefined for c in claim.comparisons)
  number = sum(bool(c.undefined) for c in claim.comparisons)
  found = [claim.uncounted, claim.note]
  if number:
    reasons = ' '.join(filter(None, left_out))
    found.append(
      f'{number} of {len(claim.comparisons)} comparisons cannot exist and are'
      f' left out. {reasons}'
    )
  if ours.telling:
    found += [_other_setting(ours.telling, e) for e in ours.telling.passed_over]
    others = sum(bool(m.passed_over) for m in ours.run)
    others -= bool(ours.telling.passed_over)
    if others:
      found.append(f'Of {others} other comparisons there are such, too.')
  elif not claim.uncounted:
    found.append('Not run.')
  return ' '.join(filter(None, found))


def _other_setting(measured, other) -> str:
  """The difference in a setting that another one was preferred to."""
  found = outcomes.difference(measured.comparison, other.used)[0]
  shown = numbers.format_interval(found.mean, found.low, found.high)
  setting = other.setting
  rounds = '' if math.isinf(setting.length) else f'; {setting.length}'
  number = len(other.defined)
  seeds = 'means' if not number else f'{number} seed{"s" * (number > 1)}'
  where = f'{setting.data}; {_shares(setting)}{rounds}'
  return f'Also with {where}, {seeds}: {shown}.'


def _shares(setting) -> str:
  """The share of the data, and of the clients unless all took part."""
  fewer = f' of {setting.clients:g} of the clients' * (setting.clients < 1)
  return f'{setting.scale:g}{fewer}'


def _negligible(ours) -> str:
  """The margins of the comparisons that say "no difference"."""
  ties = [m for m in ours.measured if m.outcome == outcomes.TIE]
  return _distinct(_number(m.comparison.negligible) for m in ties)


def _plan(result, size) -> str:
  """Says how a claim could be decided, in the row of its largest size."""
  found = going_on.plan(result)
  if found is None or size != next(iter(result.sizes), _sizes(result)[0]):
    return ''
  hours = ''
  if not math.isnan(found.core_hours):
    is_short = found.core_hours < 0.01
    shown = f'{max(found.core_hours, 0.01):.2g}'
    hours = f', {"below " * is_short}{shown} core-hours'
  commands = '; '.join(f'`{command}`' for command in found.commands)
  if math.isinf(found.seeds):
    return f'no number of seeds would, as it is: {commands}'
  needed = ''
  if not math.isnan(found.seeds):
    needed = f'about {found.seeds:.0f} seeds: '
  look = f'look at {found.look}' if found.look else 'beyond the planned 9'
  return f'{needed}{look}{hours}: {commands}'


def _values(measured) -> list[str]:
  """The means of both sides, and their difference with its interval."""
  found = measured.estimate
  values = *measured.means, found.mean, found.low, found.high
  return [_number(value) for value in values]


def _reading(result, size) -> str:
  """The verdict under the other reading, at a size."""
  if not result.claim.reading or result.claim.uncounted:
    return '-'
  found = result.others.get(size)
  return found.verdict if found else 'not run'


def _what(comparison) -> str:
  """The metric, the cell and the sides of a comparison."""
  left, right = comparison[:2]
  if isinstance(right, float):
    other = f'{right:g}'
  else:
    metric = '' if right.metric == left.metric else f'{right.metric} of '
    place = '' if right.cell == left.cell else f' in {right.cell}'
    other = f'{metric}{right.method}{place}'
  return f'{left.metric}, {left.cell}: {left.method} minus {other}'


def _difference(left, right, mean, low, high) -> str:
  if not mean:
    return 'undefined'
  return (
    f'{mean}'
    + (f' [{low}, {high}]' if low else '')
    + (f' = {left} minus {right}')
  )


def _seeds(run) -> str:
  """The numbers of seeds; "means" of those without pairs."""
  return _distinct(m.shown_seeds for m in run)


def _distinct(values: Iterable[object]) -> str:
  """Each once: numbers in order, then words."""
  texts = sorted(set(map(str, values)))
  order = pd.to_numeric(pd.Series(texts, dtype=str), errors='coerce')
  return ', '.join(texts[place] for place in order.sort_values().index)


def _table(header, rows) -> str:
  return markdown.table(header, rows, texts=len(header))


def _page_row(row, result, is_first) -> list[str]:
  """A row of a paper's table; "-" where only another reading was run."""
  is_run = bool(row['size'])
  text = f' {row["claim"]}' if is_first else ''
  return [
    f'**{row["id"]}**{text}',
    row['place'] if is_first else '',
    _shown_difference(row) if is_run else '-',
    _shown_seeds(row) if is_run else '-',
    _shown_size(row) if is_run else '-',
    _shown_verdict(row),
    row['to_decide'].partition(': `')[0],
    '{paper_supports} of {paper_prints}'.format(**row)
    if row['paper_prints']
    else '-',
    _shown_reading(row, result),
    row['note'],
  ]


def _shown_difference(row) -> str:
  names = 'left', 'right', 'estimate', 'low', 'high'
  values = _difference(*(row[name] for name in names))
  clients = f' ({row["clients"]} clients)' if row['clients'] else ''
  return f'{values}{clients}; `{row["difference"]}`'


def _shown_seeds(row) -> str:
  rest = row['left_aside']
  return row['seeds'] + (f' ({rest} left aside)' if rest else '')


def _shown_size(row) -> str:
  source = '; transcribed' if 'transcribed' in row['source'] else ''
  return '{size}: {data}; {scale}; {rounds}'.format(**row) + source


def _shown_verdict(row) -> str:
  verdict = row['verdict']
  shown = f'{verdicts.SYMBOLS[verdict]} {verdict}'
  if verdict == verdicts.TIE:
    shown += f' larger than {row["negligible"]}'
  counts = ', '.join(
    f'{row[outcome]} {outcome}' for outcome in outcomes.OUTCOMES if row[outcome]
  )
  return f'{shown}: {counts}'


def _shown_reading(row, result) -> str:
  other = result.others.get(row['size'])
  if other is None or not other.run or row['script_verdict'] == '-':
    return row['script_verdict']
  telling = other.telling
  tried = f'{len(other.run)} of {row["comparisons"]} comparisons'
  share = '' if len(other.run) == row['comparisons'] else f' ({tried})'
  difference = _difference(*_values(telling))
  return f'{difference}; `{_what(telling.comparison)}`: {other.verdict}{share}'


def _protocols(recorded) -> str:
  """How much of FedAKD's lead is a protocol like its authors' scripts'."""
  wanted = pd.read_csv(_PROTOCOLS, dtype=str)
  columns = {}
  for cell in definitions.TABLES['fedakd_protocols'].cells:
    comparisons = [
      statements.parse(_PROTOCOL.format(row.left, row.right, cell))[0]
      for row in wanted.itertuples()
    ]
    found = [outcomes.measure(c, recorded) for c in comparisons]
    run = [m for m in found if m.evidence]
    if run:
      left, right = comparisons[0].published
      papers = map(_number, (left, right, left - right, math.nan, math.nan))
      columns[f'`{cell}`'] = [
        *(_difference(*_values(m)) if m.evidence else '-' for m in found),
        _difference(*papers),
        _seeds(run),
        _distinct(
          f'{m.evidence.setting.data}; {_shares(m.evidence.setting)}'
          for m in run
        ),
      ]
  if not columns:
    return 'Not run yet.'
  names = [*wanted['difference'], 'lead in the paper', 'seeds', 'data; share']
  return _table(
    ['difference', *columns], zip(names, *columns.values(), strict=True)
  )
