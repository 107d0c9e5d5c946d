"""Markdown: tables, lists, and texts of which nothing is markup."""

from collections.abc import Iterable, Sequence
import html
import re

from tff_fair.launchers.runs import client_names

# What Markdown would read as its own, and what ends a cell of a table.
_MARKUP = re.compile(r'[\\`*_\[\]|~]')
_EMPTY = re.compile(r'\|  (?=\|)')
_WIDTH = 2000  # Characters of a text from a file.


def table(
  header: Sequence[str],
  rows: Iterable[Sequence[str]],
  texts: int = 1,
  *,
  rule: str = '---:',
  is_tight: bool = False,
) -> str:
  """Makes a table.

  Args:
    header: The titles of the columns.
    rows: The cells of each row, as Markdown.
    texts: The number of columns of text, the first ones.
    rule: What stands below the titles of the others, numbers on the right by
      default.
    is_tight: Whether to leave out the blanks around rules and in empty cells.
  """
  rules = [*['---'] * texts, *[rule] * (len(header) - texts)]
  first, line, *others = (
    f'| {" | ".join(cells)} |' for cells in (header, rules, *rows)
  )
  if is_tight:
    line = line.replace(' ', '')
    first, *others = (_EMPTY.sub('| ', text) for text in (first, *others))
  return '\n'.join([first, line, *others])


def aligned_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
  """Makes a table that is one in plain text, too: with aligned columns.

  Args:
    header: The titles of the columns.
    rows: The cells of each row, as Markdown.
  """
  cells = [header, *rows]
  widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
  first, *others = (
    f'| {" | ".join(map(str.ljust, line, widths))} |' for line in cells
  )
  rules = '|'.join('-' * (width + 2) for width in widths)
  return '\n'.join([first, f'|{rules}|', *others])


def bullets(sentences: Iterable[str]) -> str:
  """Makes a list.

  Args:
    sentences: Its items, which are escaped.
  """
  return '\n'.join(f'- {escape(sentence)}' for sentence in sentences)


def bold(text: str, is_bold: bool = True) -> str:
  """Makes a text bold.

  Args:
    text: The text, as Markdown.
    is_bold: Whether to do so.
  """
  return f'**{text}**' if is_bold else text


def escape(text: str) -> str:
  """Escapes a text, for instance from a file, on one line.

  Args:
    text: The text.
  """
  line = client_names.one_line(text, _WIDTH)
  return html.escape(_MARKUP.sub(r'\\\g<0>', line), quote=False)
