"""Writes a reproduced table: table.csv, and table.md for people to read.

Tables that share a directory also share these files: writing a table replaces
only its rows. All values of table.csv are text, in the paper's unit.
"""

from collections.abc import Mapping, Sequence
import itertools
import pathlib
import shlex

import numpy as np
import pandas as pd

from tff_fair.launchers.runs import data_description
from tff_fair.launchers.runs import run_files
from tff_fair.launchers.tables import commands
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import published
from tff_fair.launchers.tables import table_metrics
from tff_fair.launchers.tables import table_runs

# Marks results of a setting that differs from the paper's.
_MARK = '†'


def build_row(
  name: str,
  row: table_runs.Row,
  values: Sequence[float],
  *,
  paper: published.Number | None,
  paper_rounds: int,
) -> dict[str, str]:
  """Builds a row of table.csv.

  Args:
    name: The table.
    row: The row of the table.
    values: Its value for each seed, in the paper's unit; NaN is undefined.
    paper: The published number, if there is one.
    paper_rounds: The rounds that the paper trains.

  Returns:
    Column -> text, empty if not applicable.
  """
  defined = np.array([value for value in values if not np.isnan(value)])
  mean = defined.mean() if defined.size else np.nan
  sd = defined.std(ddof=1) if defined.size > 1 else np.nan
  paper = paper or published.Number(np.nan, np.nan)
  undefined = table_metrics.METRICS[row.metric].undefined
  settings = row.runs[0][0].settings
  return {
    'table': name,
    'cell': row.cell,
    'method': row.method,
    'metric': row.metric,
    'ours': _format_number(mean, undefined),
    'sd': _format_number(sd),
    'values': ';'.join(_format_number(value, undefined) for value in values),
    'seeds': str(len(values)),
    'undefined': str(len(values) - defined.size),
    'paper': _format_number(paper.value),
    'paper_sd': _format_number(paper.sd),
    'difference': _format_number(mean - paper.value),
    'rounds': str(settings['rounds']),
    'paper_rounds': str(paper_rounds),
    'data': data_description.describe(settings),
    'marks': '; '.join(_marks(name, row, settings['rounds'], paper_rounds)),
    'commands': commands.AND.join(_commands(row)),
  }


def write(
  output_dir: pathlib.Path, name: str, rows: Sequence[Mapping[str, str]]
) -> str:
  """Writes table.csv and table.md.

  Args:
    output_dir: The folder to write to.
    name: The table.
    rows: All its rows, from `build_row`.

  Returns:
    The section of table.md on this table.
  """
  frame = pd.DataFrame(rows)
  path = output_dir / 'table.csv'
  if path.exists():
    there = pd.read_csv(path, dtype=str, keep_default_na=False)
    others = set(there['table']) & set(definitions.TABLES) - {name}
    frame = pd.concat([there[there['table'].isin(others)], frame])
    frame = frame.sort_values('table', kind='stable')
  run_files.write_atomically(path, frame.to_csv(index=False))
  sections = {
    n: f'{_grids(n, part)}\n{_all_rows(part)}'
    for n, part in frame.groupby('table')
  }
  text = '\n'.join(sections.values())
  run_files.write_atomically(output_dir / 'table.md', text)
  return sections[name]


def _marks(name, row, rounds, paper_rounds) -> list[str]:
  """The differences from the paper's setting."""
  table = definitions.TABLES[name]
  settings, num_seeds = row.runs[0][0].settings, len(row.runs)
  pairs = {
    'data': (
      data_description.describe(settings),
      _paper_data(table.cells[row.cell]),
    ),
    'share of the data': (settings['data_fraction'], 1),
    'rounds': (rounds, paper_rounds),
    'seeds': (num_seeds, table.seeds or num_seeds),
  }
  return [
    f'{what}: {ours}, not {paper}'
    for what, (ours, paper) in pairs.items()
    if ours != paper
  ]


def _paper_data(cell) -> str:
  return 'TriNetX' if cell.data == 'ehr' else cell.data


def _commands(row) -> list[str]:
  """Shell commands, one for each run of a row, with all its seeds."""
  seeds = ' '.join(str(compared[0].seed) for compared in row.runs)
  return [
    f'for seed in {seeds}; do {_train(run)}; done'
    for run in reversed(row.runs[0])
  ]


def _train(run) -> str:
  folder = shlex.quote(str(run.output_dir.parent))
  command = commands.train(run.arguments, '$seed')
  return f'{command} --output_dir={folder}/seed_$seed'


def _grids(name, rows) -> str:
  """The heading of a table, and a grid for each metric."""
  table = definitions.TABLES[name]
  lines = [
    f'# {name}',
    '',
    f'{table.title}. Ours, mean ± standard deviation over the seeds / the'
    " paper's.",
  ]
  if rows['marks'].any():
    lines.append(f'{_MARK} Not as in the paper: see the rows below the grids.')
  for metric, part in rows.groupby('metric', sort=False):
    digits = table_metrics.METRICS[metric].shown_digits(table.percent)
    grid = {
      (row.cell, row.method): _grid_entry(row, digits)
      for row in part.itertuples()
    }
    columns = part['method'].unique()
    body = [
      [cell, *(grid.get((cell, method), '') for method in columns)]
      for cell in part['cell'].unique()
    ]
    title = table_metrics.METRICS[metric].heading(table.percent)
    lines += ['', f'## {title}', '', *_markdown(['', *columns], body)]
  return '\n'.join(lines) + '\n'


def _grid_entry(row, digits: int) -> str:
  """Our mean ± standard deviation, its marks, and the paper's number."""
  ours = _rounded(row.ours, digits)
  if row.sd:
    ours += f' ± {_rounded(row.sd, digits)}'
  if 0 < int(row.undefined) < int(row.seeds):
    undefined = table_metrics.METRICS[row.metric].undefined
    ours += f' ({row.undefined} of {row.seeds} {undefined})'
  if row.marks:
    ours += f' {_MARK}'
  if not row.paper:
    return ours
  paper = _rounded(row.paper, digits)
  if row.paper_sd:
    paper += f' ± {_rounded(row.paper_sd, digits)}'
  return f'{ours} / {paper}'


def _all_rows(rows) -> str:
  """All rows; the commands are numbered, and listed below."""
  of_rows = [text.split(commands.AND) for text in rows['commands']]
  numbers = {}
  for command in itertools.chain(*of_rows):
    numbers.setdefault(command, str(len(numbers) + 1))
  shown = rows.drop(columns='table').rename(
    columns=lambda column: column.replace('_', ' ')
  )
  shown['commands'] = [', '.join(numbers[c] for c in of) for of in of_rows]
  lines = ['## All rows', '', *_markdown(list(shown), shown.to_numpy()), '']
  lines += [f'{number}. `{command}`' for command, number in numbers.items()]
  return '\n'.join(lines) + '\n'


def _markdown(header, body) -> list[str]:
  """A Markdown table with aligned columns."""
  table = np.array([header, *body], dtype=object)
  widths = [max(map(len, column)) for column in table.T]
  lines = [
    '| ' + ' | '.join(map(str.ljust, line, widths)) + ' |' for line in table
  ]
  return [
    lines[0],
    '|' + '|'.join('-' * (w + 2) for w in widths) + '|',
    *lines[1:],
  ]


def _rounded(text: str, digits: int) -> str:
  """A number with fewer digits; other text unchanged."""
  try:
    return f'{float(text):.{digits}f}'
  except ValueError:
    return text


def _format_number(value: float, undefined: str = '') -> str:
  return undefined if np.isnan(value) else f'{value:.6g}'
