"""Tables of recorded results as Markdown, beside the papers' numbers.

A table of a page stands between `<!-- results NAME -->` and
`<!-- end of results NAME -->`. Names are those of `layouts.LAYOUTS`, and
`headlines`.
"""

import pathlib
import re

import pandas as pd

from tff_fair import checks
from tff_fair.launchers.results import layouts
from tff_fair.launchers.results import records
from tff_fair.launchers.results import seed_means
from tff_fair.launchers.results import titles
from tff_fair.launchers.show import blocks
from tff_fair.launchers.show import markdown
from tff_fair.launchers.show import numbers
from tff_fair.launchers.show import words
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import published
from tff_fair.launchers.tables import table_metrics

MARK = '‡'
"""Marks a number that is transcribed."""

NOTHING = 'No run is recorded yet.'
"""Stands in place of a table without results."""

MIN_SEEDS = 3
"""Seeds that each number of a headline has at least."""

# A row of the README's table: the methods of a cell, the paper's own first.
_HEADLINES = pathlib.Path(__file__).with_name('headlines.csv')
_HEADLINES_BLOCK = 'headlines'
_NO_ENTRY = '-'
_LEADING_ZERO = re.compile(r'^(-?)0\.')


def render_page(page: str, frame: pd.DataFrame) -> str:
  """Renders the tables of a page.

  Args:
    page: The page's text.
    frame: All recorded rows, from `records.read`.

  Returns:
    The text with all blocks replaced.

  Raises:
    RecordsError: If a block is of no table.
  """

  def write(match):
    name = match['name']
    if name == _HEADLINES_BLOCK:
      return render_headlines(frame)
    if name not in layouts.LAYOUTS:
      known = [*layouts.LAYOUTS, _HEADLINES_BLOCK]
      raise records.RecordsError(checks.unknown_name('A block', name, known))
    return render(layouts.LAYOUTS[name], frame)

  start, end = r'results (?P<name>\w+)', r'end of results (?P=name)'
  return blocks.replace(page, start, end, write)


def render(layout: layouts.Layout, frame: pd.DataFrame) -> str:
  """Renders a table: a Markdown table for each grid, under what it is.

  Args:
    layout: What it shows.
    frame: All recorded rows.
  """
  found = to_entries(layout, frame)
  if found.empty:
    return NOTHING
  table = definitions.TABLES[layout.table]
  # Metrics and methods stand in the table's order, settings in that above.
  headings = {m: _heading(table, m) for m in table.metrics}
  titled = found.assign(
    setting=_in_order(found['setting'], found['setting'].unique()),
    method=_in_order(
      found['method'].map(titles.method), map(titles.method, table.methods)
    ),
    metric=_in_order(found['metric'].map(headings), headings.values()),
  )
  grids = titled.groupby(layout.grids, observed=True)
  return '\n\n'.join(_grid(layout, title, part) for title, part in grids)


def render_headlines(
  frame: pd.DataFrame, headlines: pathlib.Path = _HEADLINES
) -> str:
  """Renders the README's table: some methods of a cell by one metric, a row.

  Only runs at hand make a headline, of the cell's fullest setting in which all
  its methods have enough seeds.

  Args:
    frame: All recorded rows.
    headlines: The file of the rows; one without such runs is left out.
  """
  runs = frame[frame['source'] == records.RUN]
  wanted = pd.read_csv(headlines, dtype=str).itertuples(index=False)
  rows = [_headline(runs, *headline) for headline in wanted]
  header = ['experiment', 'what', "ours / the paper's"]
  return markdown.table(header, filter(None, rows), texts=3)


def to_entries(layout: layouts.Layout, frame: pd.DataFrame) -> pd.DataFrame:
  """Formats the numbers of a table, those of a cell's fullest setting first.

  Returns:
    A row for each: its cell, method, metric, number of seeds, the title of its
    setting, its text, and whether the paper has it.
  """
  wanted = (
    (frame['table'] == layout.table)
    & frame['cell'].isin([*layout.cells])
    & frame['metric'].isin([*layout.metrics])
  )
  means = seed_means.compute(frame[wanted])
  if means.empty:
    return means
  means['papers'] = [
    published.number(layout.table, row.cell, row.method, row.metric)
    for row in means.itertuples()
  ]
  settings = [_setting(layout, row) for row in means.itertuples()]
  means['order'], means['setting'] = zip(*settings, strict=True)
  usual = means.groupby('setting')['seeds'].transform(_most_frequent)
  means['setting'] += ', ' + usual.map(_format_seeds)
  texts = [
    _format_entry(layout, means, row, seeds)
    for row, seeds in zip(means.itertuples(), usual, strict=True)
  ]
  means = means.assign(text=texts, has_paper=means['papers'].notna())
  return means.sort_values('order', kind='stable')


def _grid(layout, title, part) -> str:
  for name in (layout.rows, layout.columns):
    part = part.assign(**{name: part[name].cat.remove_unused_categories()})
  grid = part.pivot(index=layout.rows, columns=layout.columns, values='text')
  body = [[row, *texts] for row, *texts in grid.fillna(_NO_ENTRY).itertuples()]
  ours = ", ours / the paper's" if part['has_paper'].any() else ''
  return f'**{title}**{ours}:\n\n{markdown.table(["", *grid], body)}'


def _headline(runs, title, name, cell, metric, methods):
  """A row of the headlines; None without enough runs."""
  layout, methods = layouts.LAYOUTS[name], methods.split()
  found = to_entries(layout, runs)
  if found.empty:
    return None
  found = found[(found['cell'] == cell) & (found['metric'] == metric)]
  found = found[found['seeds'] >= MIN_SEEDS]
  for setting, part in found.groupby('setting', sort=False):
    texts = dict(zip(part['method'], part['text'], strict=True))
    if {*methods} <= {*texts}:
      shown = [f'{titles.method(m)} {texts[m]}' for m in methods]
      heading = _heading(definitions.TABLES[layout.table], metric)
      return [f'{title}, {setting}', heading, '; '.join(shown)]
  return None


def _setting(layout, row) -> tuple[tuple, str]:
  """The place of a setting, and its title: what differs from the paper."""
  papers = published.rounds(layout.table, row.cell, row.method)
  same_data = row.data == definitions.TABLES[layout.table].cells[row.cell].data
  rounds = 0 if row.rounds == papers else row.rounds
  parts = [
    layout.cells[row.cell],
    '' if same_data else f'on {titles.data(row.data)}',
    '' if row.scale == 1 else f'{100 * row.scale:g} % of the data',
    '' if row.clients == 1 else f'{100 * row.clients:g} % of the clients',
    f'{rounds} rounds, not {papers}' if rounds else '',
  ]
  place = list(layout.cells).index(row.cell), -row.scale, -row.clients
  order = *place, bool(rounds), -rounds, '' if same_data else row.data
  return order, ', '.join(filter(None, parts))


def _format_entry(layout, means, row, usual_seeds) -> str:
  """Our number with its mark and what is special of it, and the paper's."""
  alike = means[means['metric'] == row.metric]
  percent = definitions.TABLES[layout.table].percent
  undefined = table_metrics.METRICS[row.metric].undefined
  digits = layout.digits(row.metric)
  is_run = pd.isna(row.printed)
  # What is transcribed is not printed finer than it was, nor is the paper's.
  own = digits if is_run else min(digits, int(alike['printed'].max()))
  text = _format_number(row.value, row.sd, own, percent) or undefined
  notes = []
  if row.seeds != usual_seeds:
    notes.append(_format_seeds(row.seeds))
  if 0 < row.undefined < row.seeds:
    notes.append(f'{row.undefined} of {row.seeds} {undefined}')
  if not is_run:
    text += f' {MARK}'
  if notes:
    text += f' ({", ".join(notes)})'
  printed = [value for number in alike['papers'].dropna() for value in number]
  if not printed:
    return text
  if row.papers is None:
    return f'{text} / {_NO_ENTRY}'
  papers = min(digits, max(map(seed_means.count_decimals, printed)))
  return f'{text} / {_format_number(*row.papers, papers, percent)}'


def _format_number(value, sd, digits, percent) -> str:
  texts = [numbers.format_rounded(v, digits) for v in (value, sd) if v == v]
  if not percent:
    texts = [_LEADING_ZERO.sub(r'\1.', text) for text in texts]
  return ' ± '.join(texts)


def _heading(table, metric) -> str:
  return table_metrics.METRICS[metric].heading(table.percent)


def _format_seeds(seeds) -> str:
  return words.format_count(seeds, 'seed')


def _in_order(values, order) -> pd.Categorical:
  return pd.Categorical(values, [*order], ordered=True)


def _most_frequent(seeds) -> int:
  """Of several, the largest."""
  return seeds.mode().max()
