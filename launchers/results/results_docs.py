"""Writes the tables of docs/results.md, and the README's, from the results.

  python -m launchers.results.results_docs

The results are `results/TABLE.csv`. A table of the page stands between
`<!-- results NAME -->` and `<!-- end of results NAME -->`; what is between them
is replaced. Names are those of `layouts.LAYOUTS`, and `headlines`.
"""

from collections.abc import Sequence
import pathlib
import sys

import pandas as pd

from tff_fair import checks
from tff_fair.launchers.results import headlines
from tff_fair.launchers.results import layouts
from tff_fair.launchers.results import records
from tff_fair.launchers.results import results_tables
from tff_fair.launchers.runs import run_files
from tff_fair.launchers.show import blocks
from tff_fair.launchers.tables import published

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = (ROOT / 'docs' / 'results.md', ROOT / 'README.md')

_HEADLINES = 'headlines'

_START = r'results (?P<name>\w+)'
_END = r'end of results (?P=name)'


class BlockError(ValueError):
  """A block of the page is of no table; the message is one sentence."""


def main(argv: Sequence[str]) -> None:
  """Writes the pages.

  Args:
    argv: The program's name, and nothing else.
  """
  if len(argv) > 1:
    sys.exit(f'Error: there must be no arguments, found {argv[1]!r}.')
  try:
    frame = records.read(ROOT / 'results')
    texts = {page: render(page.read_text(), frame) for page in PAGES}
  except (records.RecordsError, BlockError) as error:
    sys.exit(f'Error: {error}')
  for page, text in texts.items():
    run_files.write_atomically(page, text)


def render(page: str, frame: pd.DataFrame) -> str:
  """A page with its tables as the results say.

  Args:
    page: The page's text.
    frame: The recorded results, from `records.read`.

  Returns:
    The text with all blocks replaced.

  Raises:
    BlockError: If a block has another name.
  """
  numbers = published.read()

  def write(match):
    name = match['name']
    if name == _HEADLINES:
      return headlines.render(frame, numbers)
    if name not in layouts.LAYOUTS:
      known = [*layouts.LAYOUTS, _HEADLINES]
      message = checks.unknown_name('A block', name, known)
      raise BlockError(message)
    return results_tables.render(layouts.LAYOUTS[name], frame, numbers)

  return blocks.replace(page, _START, _END, write)


if __name__ == '__main__':
  main(sys.argv)
