"""Summaries of objects: a text, and a table in notebooks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import html
import inspect
import numbers
from typing import Any, NamedTuple

import numpy as np

_MOST_ROWS = 5
_MOST_NAMES = 10
_LEFT = ' style="text-align: left"'


class Summary(NamedTuple):
  """The summary of an object.

  Attributes:
    title: One line.
    facts: Names and values.
    columns: Name -> values, a table of which notebooks show the first rows.
  """

  title: str
  facts: Sequence[tuple[str, str]] = ()
  columns: Mapping[str, Sequence[Any]] = {}

  def text(self) -> str:
    """The title, and a line for each fact."""
    return '\n  '.join([self.title, *(f'{k}: {v}' for k, v in self.facts)])

  def html(self) -> str:
    """The same, with the columns; in the colours of the page around it."""
    parts = [f'<b>{html.escape(self.title)}</b>']
    if self.facts:
      parts.append(_table(([name], [value]) for name, value in self.facts))
    if self.columns:
      parts.append(_table(self._rows()))
      num_rows = min(map(len, self.columns.values()))
      if num_rows > _MOST_ROWS:
        parts.append(f'<div>... {num_rows - _MOST_ROWS} more</div>')
    return f'<div style="overflow-x: auto">{"".join(parts)}</div>'

  def _rows(self) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    yield list(self.columns), []
    shown = (values[:_MOST_ROWS] for values in self.columns.values())
    for row in zip(*shown, strict=False):
      yield [], [*map(number, row)]


class Summarized:
  """Shows the `Summary` that `_summary()` returns, if there is one."""

  def _summary(self) -> Summary | None:
    raise NotImplementedError

  def __repr__(self) -> str:
    found = self._summary()
    return super().__repr__() if found is None else found.text()

  def _repr_html_(self) -> str | None:
    found = self._summary()
    return None if found is None else found.html()


class ShowsArguments:
  """Shows the arguments that an object was made with."""

  _shown: dict[str, Any]

  def __new__(cls, *args: Any, **kwargs: Any) -> Any:
    """Notes the arguments; `__init__` checks them."""
    made = super().__new__(cls)
    bound = inspect.signature(cls.__init__).bind_partial(made, *args, **kwargs)
    made._shown = dict([*bound.arguments.items()][1:])
    return made

  def __repr__(self) -> str:
    given = (f'{name}={value_text(v)}' for name, v in self._shown.items())
    return f'{type(self).__name__}({", ".join(given)})'


def number(value: Any) -> str:
  """A number in a few digits."""
  if np.issubdtype(np.asarray(value).dtype, np.floating):
    return f'{float(value):.4g}'
  return str(value)


def listed(names: Sequence[str]) -> str:
  """The first names, and how many more there are."""
  more = len(names) - _MOST_NAMES
  shown = ', '.join(map(str, names[:_MOST_NAMES]))
  return f'{shown}, ... {more} more' if more > 0 else shown


def differs(value: Any, default: Any) -> bool:
  """Returns whether an argument differs from its default."""
  if value is default:
    return False
  simple = (numbers.Number, str)
  return not (
    isinstance(value, simple) and isinstance(default, simple)
  ) or bool(value != default)


def value_text(value: Any) -> str:
  """An argument in a few words: numbers, texts, and kinds of other things."""
  if isinstance(value, (numbers.Number, str, ShowsArguments)) or value is None:
    return repr(value)
  if isinstance(value, (tuple, list)):
    return f'({", ".join(map(value_text, value))})'
  if hasattr(value, 'shape'):
    return f'array {list(value.shape)}'
  return getattr(value, '__name__', type(value).__name__.strip('_'))


def _table(rows: Iterable[tuple[Sequence[str], Sequence[str]]]) -> str:
  """HTML of rows, each of head cells and other cells."""
  found = []
  for heads, cells in rows:
    row = ''.join(f'<th{_LEFT}>{html.escape(text)}</th>' for text in heads)
    row += ''.join(f'<td{_LEFT}>{html.escape(text)}</td>' for text in cells)
    found.append(f'<tr>{row}</tr>')
  return f'<table>{"".join(found)}</table>'
