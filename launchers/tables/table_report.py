"""Writes a reproduced table: table.csv, and table.md for people to read.

Tables that share a directory also share these files: writing a table replaces
only its rows. All values of table.csv are text, in the paper's unit.
"""

from collections.abc import Mapping, Sequence
import functools
import math
import pathlib
import shlex

import pandas as pd

from tff_fair import files
from tff_fair.launchers import frame as frame_lib
from tff_fair.launchers.runs import data_description
from tff_fair.launchers.runs import planned_run
from tff_fair.launchers.runs import run_files
from tff_fair.launchers.show import markdown
from tff_fair.launchers.show import numbers
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import published
from tff_fair.launchers.tables import table_metrics
from tff_fair.launchers.tables import table_runs

# Marks results of a setting that differs from the paper's.
_MARK = '†'
_NOTHING = published.Number(math.nan, math.nan)


def build_row(
  name: str,
  row: table_runs.Row,
  values: Sequence[float],
) -> dict[str, str]:
  """Builds a row of table.csv.

  Args:
    name: The table.
    row: The row of the table.
    values: Its value for each seed, in the paper's unit; NaN is undefined.

  Returns:
    Column -> text, empty if not applicable.
  """
  seeds = pd.Series(values, dtype=float)
  paper = published.number(name, row.cell, row.method, row.metric)
  paper, mean = paper or _NOTHING, seeds.mean()
  paper_rounds = published.rounds(name, row.cell, row.method)
  undefined = table_metrics.METRICS[row.metric].undefined
  settings = row.runs[0][0].settings
  return {
    'table': name,
    'cell': row.cell,
    'method': row.method,
    'metric': row.metric,
    'ours': _format(mean, undefined),
    'sd': _format(seeds.std()),
    'values': ';'.join(_format(value, undefined) for value in values),
    'seeds': str(len(values)),
    'undefined': str(seeds.isna().sum()),
    'paper': _format(paper.value),
    'paper_sd': _format(paper.sd),
    'difference': _format(mean - paper.value),
    'rounds': str(settings['rounds']),
    'paper_rounds': str(paper_rounds),
    'data': data_description.describe(settings),
    'marks': '; '.join(_marks(name, row, settings, paper_rounds)),
    'commands': table_runs.AND.join(_commands(row)),
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

    def damaged(found):
      return frame_lib.FrameError(
        f'{path} must be as a table is written, found: {found}; remove it, and'
        ' the same commands write it again.'
      )

    with files.reading(path, damaged):
      there = pd.read_csv(path, dtype=str, keep_default_na=False)
      others = set(there['table']) & set(definitions.TABLES) - {name}
    frame = pd.concat([there[there['table'].isin(others)], frame])
    frame = frame.sort_values('table', kind='stable')
  run_files.write_atomically(path, frame.to_csv(index=False))
  sections = {n: f'{_grids(n, part)}\n' for n, part in frame.groupby('table')}
  text = '\n'.join(sections.values())
  run_files.write_atomically(output_dir / 'table.md', text)
  return sections[name]


def _marks(name, row, settings, paper_rounds) -> list[str]:
  """The differences from the paper's setting."""
  table, num_seeds = definitions.TABLES[name], len(row.runs)
  data = table.cells[row.cell].data
  pairs = {
    'data': (
      data_description.describe(settings),
      'TriNetX' if data == 'ehr' else data,
    ),
    'share of the data': (settings['data_fraction'], 1),
    'clients': (
      settings['num_clients'],
      _usual_clients(name, row.cell, row.method),
    ),
    'rounds': (settings['rounds'], paper_rounds),
    'seeds': (num_seeds, table.seeds or num_seeds),
  }
  return [
    f'{what}: {ours}, not {paper}'
    for what, (ours, paper) in pairs.items()
    if ours != paper
  ]


@functools.cache  # A method has a row for each metric.
def _usual_clients(name, cell_name, method) -> int | None:
  """The number of clients of the cell as the table has it."""
  table = definitions.TABLES[name]
  cell = table.cells[cell_name]
  command = {
    'preset': cell.preset,
    **cell.flags,
    **table.flags_of(cell_name, method),
  }
  return planned_run.resolve(command)['num_clients']


def _commands(row) -> list[str]:
  """Shell commands, one for each run of a row, with all its seeds."""
  seeds = ' '.join(str(compared[0].seed) for compared in row.runs)
  return [
    f'for seed in {seeds}; do'
    f' {table_runs.train_command(run.arguments, "$seed")}'
    f' --output_dir={shlex.quote(str(run.output_dir.parent))}/seed_$seed; done'
    for run in reversed(row.runs[0])
  ]


def _grids(name, rows) -> str:
  """The heading of a table, and a grid for each metric."""
  table = definitions.TABLES[name]
  head = (
    f'# {name}\n\n{table.title}. Ours, mean ± standard deviation over the'
    " seeds / the paper's."
  )
  if rows['marks'].any():
    head += f'\n{_MARK} Not as in the paper: see the marks in table.csv.'
  parts = [head]
  for metric, part in rows.groupby('metric', sort=False):
    digits = table_metrics.METRICS[metric].shown_digits(table.percent)
    grid = part.assign(
      text=[_grid_entry(row, digits) for row in part.itertuples()]
    ).pivot(index='cell', columns='method', values='text')
    grid = grid.reindex(part['cell'].unique())[part['method'].unique()]
    body = grid.fillna('').itertuples()
    parts += [
      f'## {table_metrics.METRICS[metric].heading(table.percent)}',
      markdown.aligned_table(['', *grid], body),
    ]
  return '\n\n'.join(parts)


def _grid_entry(row, digits: int) -> str:
  """Our mean ± standard deviation, its marks, and the paper's number."""
  ours = _with_sd(row.ours, row.sd, digits)
  if 0 < int(row.undefined) < int(row.seeds):
    undefined = table_metrics.METRICS[row.metric].undefined
    ours += f' ({row.undefined} of {row.seeds} {undefined})'
  if row.marks:
    ours += f' {_MARK}'
  if not row.paper:
    return ours
  return f'{ours} / {_with_sd(row.paper, row.paper_sd, digits)}'


def _with_sd(value: str, sd: str, digits: int) -> str:
  """Numbers with fewer digits; a word unchanged."""
  texts = [value, sd] if sd else [value]
  return ' ± '.join(
    f'{float(text):.{digits}f}' if _is_number(text) else text for text in texts
  )


def _is_number(text: str) -> bool:
  return text.lstrip('-')[:1].isdigit()


def _format(value: float, undefined: str = '') -> str:
  return numbers.format_number(value, '.6g', undefined)
