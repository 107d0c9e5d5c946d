"""Writes the tables of docs/results.md from the recorded results.

  python -m launchers.results.results_docs

The results are `results/TABLE.csv`. A table of the page stands between
`<!-- results NAME -->` and `<!-- end of results NAME -->`; what is between them
is replaced. Names are those of `layouts.LAYOUTS`.
"""

from collections.abc import Sequence
import pathlib
import sys

import pandas as pd

from tff_fair import checks
from tff_fair.launchers.pages import blocks
from tff_fair.launchers.results import layouts
from tff_fair.launchers.results import records
from tff_fair.launchers.results import results_tables
from tff_fair.launchers.runs import run_files
from tff_fair.launchers.tables import published

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / 'docs' / 'results.md'

_START = r'results (?P<name>\w+)'
_END = r'end of results (?P=name)'


class BlockError(ValueError):
  """A block of the page is of no table; the message is one sentence."""


def main(argv: Sequence[str]) -> None:
  """Writes the page.

  Args:
    argv: The program's name, and nothing else.
  """
  if len(argv) > 1:
    sys.exit(f'Error: there must be no arguments, found {argv[1]!r}.')
  try:
    text = render(PAGE.read_text(), records.read(ROOT / 'results'))
  except (records.RecordsError, BlockError) as error:
    sys.exit(f'Error: {error}')
  run_files.write_atomically(PAGE, text)


def render(page: str, frame: pd.DataFrame) -> str:
  """A page with its tables as the results say.

  Args:
    page: The page's text.
    frame: The recorded results, from `records.read`.

  Returns:
    The text with all blocks replaced.

  Raises:
    BlockError: If a block has a name that is not in `layouts.LAYOUTS`.
  """
  numbers = published.read()

  def write(match):
    name = match['name']
    if name not in layouts.LAYOUTS:
      message = checks.unknown_name('A block', name, list(layouts.LAYOUTS))
      raise BlockError(message)
    return results_tables.render(layouts.LAYOUTS[name], frame, numbers)

  return blocks.replace(page, _START, _END, write)


if __name__ == '__main__':
  main(sys.argv)
