"""The verdicts in the pages: docs/claims.md, and a block of the README."""

from collections.abc import Mapping, Sequence

from tff_fair.launchers.claiming import claims_table
from tff_fair.launchers.claiming import papers
from tff_fair.launchers.claiming import protocols
from tff_fair.launchers.claiming import verdicts
from tff_fair.launchers.claiming import wording
from tff_fair.launchers.options import methods
from tff_fair.launchers.results import titles
from tff_fair.launchers.show import blocks
from tff_fair.launchers.show import markdown

SYMBOLS = {
  verdicts.HOLDS: '✓',
  verdicts.IN_PART: '◐',
  verdicts.FAILS: '✗',
  verdicts.UNDECIDED: '?',
  verdicts.UNCOUNTED: '–',
}
"""Verdict -> what stands for it."""

_START, _END = 'claims', 'end of claims'

_MARK = '<!-- Written by launchers.claims --write. -->'
_TITLE = '# Claims'
_INTRODUCTION = """\
What the five papers claim, and what [our recorded results](results.md) say of
it. This page is computed from `results/` by

```sh
uv run python -m launchers.claims --write
```

which also prints the verdicts, and writes `results/claims.csv`. No verdict is
typed by hand."""

_RULES = """\
A claim is one or more comparisons, and all of them must hold: a metric of one
method against that of another, in a cell of a table, or against a number.

- **A difference** is paired over the seeds that both methods have, with its
  95 % interval of Student's t. With two seeds it is long, 9 standard deviations
  to each side of the mean, with three 2.5: only a clear difference decides.
- **A comparison** is *for* the claim if the whole interval is on the claimed
  side, and *against* it if the whole interval is on the other. It is *open* if
  0 is inside, with one seed, with transcribed means, of whose seeds nothing is
  known, and if an end of the interval is within what transcribed values lost by
  rounding. It is *missing* if nothing was run.
- **The verdict:** the claim *holds* if all comparisons are for it; *holds in
  part* if some are for it and some against; *does not hold* if some are against
  and none for it. Otherwise it is *undecided at this scale*, which includes all
  that was not run. A claim of "most" of its comparisons holds if more than half
  are for it, and does not hold if at least half are against it.
- **Which results count:** both sides must be of the same data, share of the
  data and rounds. Of several such settings, those with two or more seeds come
  first, then the paper's own data, then more data, then more rounds. Rounds
  differ only between FedAKD's protocols, in its comparison in equal time, and
  where a claim compares experiments of different lengths.
- **Another reading.** Where a paper can be read in another way that we can run,
  its claims are tried again with that reading, which the section of the paper
  names. None of these readings is the authors' own script.
- **The paper's numbers** are held against its claims in the same way: "3 of 4"
  means that its own table contradicts one comparison. A dash: the paper has
  figures or words only.

"Difference" is that of the comparison that speaks most against the claim, with
the means of both sides; per cent are points. "Seeds", data, share and rounds
are those of all comparisons that were run; "means" are transcribed means."""

_PROTOCOLS = """\
The scripts of FedAKD's authors do not treat the methods alike: FedAKD trains on
all of a client's examples, its test examples among them, scores the global
model, and has 30 rounds; FedAvg trains on the other four fifths, and has 20. So
the lead is measured with each method under its own protocol, with both under
FedAvg's, and with both under FedAKD's. A protocol is split, rounds and scored
model; the partition is the paper's in all of them, not that of the scripts,
which have not been run here. In cells whose name ends in `shared` the clients
draw from one pool, so that what tests one may train another. Mean accuracy of
the clients, in points; the paper's is of all the data:"""


def page(
  results: Mapping[str, verdicts.Result], cells: Sequence[protocols.Cell]
) -> str:
  """The page about the claims.

  Args:
    results: The result of `verdicts.judge`, of all claims.
    cells: The result of `protocols.measure`.

  Returns:
    The text of docs/claims.md.
  """
  parts = [
    _MARK,
    _TITLE,
    _INTRODUCTION,
    '## At a glance',
    _counts(results, ''),
    _glance(results),
    '## How a verdict is computed',
    _RULES,
    '## FedAKD: what the protocol does',
    _PROTOCOLS,
    _of_protocols(cells),
  ]
  for paper in _papers_of(results):
    parts += [
      f'## {methods.title(paper)}',
      _details(_results_of(results, paper)),
    ]
  return '\n\n'.join(parts) + '\n'


def render(readme: str, results: Mapping[str, verdicts.Result]) -> str:
  """The README with its block as the results say.

  Args:
    readme: The README's text.
    results: The result of `verdicts.judge`, of all claims.

  Returns:
    The text with the block replaced.
  """
  block = _counts(results, 'docs/claims.md')
  return blocks.replace(readme, _START, _END, lambda match: block)


def _counts(results, link) -> str:
  """The number of claims by paper and verdict, in all at the end."""
  counts = claims_table.counts(results)
  counted = list(verdicts.VERDICTS)
  header = [
    'paper',
    'claims',
    *(f'{SYMBOLS[verdict]} {verdict}' for verdict in counted),
    'of these not run',
    f'{SYMBOLS[verdicts.UNCOUNTED]} {verdicts.UNCOUNTED}',
  ]
  named = [
    (f'[{methods.title(paper)}]({link}#{_anchor(paper)})', row, paper)
    for paper, row in counts.iterrows()
  ]
  rows = [
    [
      name,
      str(row[counted].sum()),
      *map(str, row[counted]),
      str(_not_run(_results_of(results, paper) if paper else results)),
      str(row[verdicts.UNCOUNTED]),
    ]
    for name, row, paper in [*named, ('all', counts.sum(), None)]
  ]
  return markdown.table(header, rows)


def _not_run(results) -> int:
  """The number of claims that count and have no result."""
  return sum(
    not result.ours.run and result.ours.verdict != verdicts.UNCOUNTED
    for result in results.values()
  )


def _anchor(paper) -> str:
  """The anchor that a site makes of the heading of a paper's section."""
  return methods.title(paper).lower()


def _glance(results) -> str:
  """A short table of the claims of each paper."""
  header = ['', 'name', 'claim', 'seeds', 'with another reading?']
  parts = []
  for paper in _papers_of(results):
    rows = [
      [
        SYMBOLS[result.ours.verdict],
        name,
        result.claim.text,
        _seeds(result),
        wording.reading(result),
      ]
      for name, result in _results_of(results, paper).items()
    ]
    title = f'**[{methods.title(paper)}](#{_anchor(paper)})**'
    parts += [title, _left(header, rows)]
  return '\n\n'.join(parts)


def _seeds(result) -> str:
  if result.ours.verdict == verdicts.UNCOUNTED:
    return '-'
  return wording.seeds(result.ours.run) or 'not run'


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
  rows = claims_table.frame(results)
  lines = [
    [
      f'**{row.id}** {row.claim}',
      row.place,
      f'{SYMBOLS[row.verdict]} {row.verdict}',
      f'{row.for_}, {row.against}, {row.open}, {row.missing}',
      _difference(results[row.id].ours.telling),
      row.seeds or '-',
      _setting(row),
      f'{row.paper_supports} of {row.paper_prints}'
      if row.paper_prints
      else '-',
      _reading(results[row.id]),
      _notes(results[row.id], row),
    ]
    for row in rows.rename(columns={'for': 'for_'}).itertuples()
  ]
  readings = dict.fromkeys(filter(None, rows['reading']))
  behind = [f'The other reading is {reading}.' for reading in readings]
  return '\n\n'.join([_left(header, lines), *behind])


def _reading(result) -> str:
  """The other reading's answer, with its comparisons and difference."""
  answer, other = wording.reading(result), result.other
  if other is None or not other.run:
    return answer
  tried, every = len(other.measured), len(result.ours.measured)
  share = '' if tried == every else f' ({tried} of {every} comparisons)'
  return f'{answer}{share}: {_difference(other.telling)}'


def _difference(telling) -> str:
  if telling is None:
    return '-'
  what = wording.what(telling.comparison)
  return f'`{what}`: {wording.difference(telling)}'


def _setting(row) -> str:
  return f'{row.data}; {row.scale}; {row.rounds}' if row.data else '-'


def _notes(result, row) -> str:
  replaced = wording.stand_ins(result.ours.run)
  notes = [
    row.note,
    *(
      f'{titles.data(used)} stands in for {titles.data(data)}.'
      for data, used in replaced.items()
    ),
    'Transcribed.' if 'transcribed' in row.source else '',
  ]
  return ' '.join(filter(None, notes))


def _of_protocols(cells) -> str:
  if not cells:
    return 'Not run yet.'
  header = ['difference', *(f'`{cell.name}`' for cell in cells)]
  rows = [
    [title, *(_protocol_cell(cell.differences[title]) for cell in cells)]
    for title in protocols.DIFFERENCES
  ]
  rows.append(['lead in the paper', *map(_papers_lead, cells)])
  used = [m for cell in cells for m in cell.differences.values() if m.pairs]
  scale, seeds = wording.scale(used), wording.seeds(used)
  replaced = [
    f'{titles.data(ours)} stands in for {titles.data(data)}.'
    for data, ours in wording.stand_ins(used).items()
  ]
  behind = ' '.join([f'Share of the data: {scale}. Seeds: {seeds}.', *replaced])
  return f'{_left(header, rows)}\n\n{behind}'


def _protocol_cell(measured) -> str:
  return wording.difference(measured) if measured.pairs else '-'


def _papers_lead(cell) -> str:
  left, right = cell.papers
  ours, other, lead = map(wording.number, (left, right, left - right))
  return f'{ours} less {other}: {lead}'


def _papers_of(results) -> list[str]:
  return list(dict.fromkeys(map(papers.paper_of, results)))


def _results_of(results, paper):
  return {k: r for k, r in results.items() if papers.paper_of(k) == paper}


def _left(header, rows) -> str:
  """A Markdown table of text, as `markdown.table` is one of numbers."""
  lines = [header, ['---'] * len(header), *rows]
  return '\n'.join(f'| {" | ".join(line)} |' for line in lines)
