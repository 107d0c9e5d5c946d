"""Markdown: tables, lists, and texts of which nothing is markup."""

from collections.abc import Iterable, Sequence
import html
import re

from tff_fair.launchers.runs import client_names

# What Markdown would read as its own, and what ends a cell of a table.
_MARKUP = re.compile(r'[\\`*_\[\]|~]')
_WIDTH = 2000  # Characters of a text from a file.


def table(
  header: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1
) -> str:
  """Makes a table.

  Args:
    header: The titles of the columns.
    rows: The cells of each row, as Markdown.
    texts: The number of columns of text, the first ones; numbers follow, on
      the right.
  """
  numbers = len(header) - texts
  lines = [header, [*['---'] * texts, *['---:'] * numbers], *rows]
  return '\n'.join(f'| {" | ".join(line)} |' for line in lines)


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
