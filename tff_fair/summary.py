"""Short descriptions of objects: a text, and tables in notebooks."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import html
import numbers
from typing import Any, NamedTuple

import numpy as np
import tree


class Summary(NamedTuple):
  """A description; its `repr` is the title and a line for each fact.

  Attributes:
    title: One line.
    facts: Pairs of a name and a text.
    columns: Name -> values; notebooks show some of the rows.
  """

  title: str
  facts: Sequence[tuple[str, str]] = ()
  columns: Mapping[str, Sequence[Any]] = {}

  def __repr__(self) -> str:
    return '\n  '.join([self.title, *map(': '.join, self.facts)])

  def _repr_html_(self) -> str:
    import pandas as pd  # Takes seconds to import.

    text = f'<b>{html.escape(self.title)}</b>'
    with pd.option_context('display.max_colwidth', None):
      if self.facts:
        text += pd.Series(dict(self.facts)).to_frame().to_html(header=False)
      if self.columns:
        columns = pd.DataFrame(self.columns).map(format_number)
        text += columns.to_html(index=False, max_rows=8, show_dimensions=True)
    return text


class Summarized:
  """An object that is shown as its `Summary`."""

  _summary: Callable[[], Summary]

  def __repr__(self) -> str:
    return repr(self._summary())

  def _repr_html_(self) -> str:
    return self._summary()._repr_html_()


def describe(value: Any) -> Summary:
  """Describes what `initialize` or `next` of a process of this package gave."""
  if hasattr(value, 'client_work'):
    weights, work = value.global_model_weights, value.client_work
    weights = tree.flatten(getattr(weights, 'trainable', weights))
    size = sum(map(np.size, weights))
    title = f'State after round {int(work["round"])}: {size} parameters'
    if work['table']:
      number = len(tree.flatten(work['table'])[0])
      title += f'; {", ".join(work["table"])} of {number} clients'
    return Summary(title)
  scalars = {name: _format_scalars(v) for name, v in value.metrics.items()}
  facts = [(name, text) for name, text in scalars.items() if text]
  facts.append(('state', describe(value.state).title))
  clients = value.metrics['client_work'].get('clients', {})
  columns = {k: v for k, v in clients.items() if np.ndim(v) == 1}
  return Summary('Output of a round', facts, columns)


def _format_scalars(metrics: Any) -> str:
  return ', '.join(
    f'{"/".join(map(str, path))} {format_number(leaf)}'
    for path, leaf in tree.flatten_with_path(metrics)
    if np.ndim(leaf) == 0
  )


def format_number(value: Any) -> str:
  """Formats a number in a few digits; other values as text."""
  if np.issubdtype(np.asarray(value).dtype, np.floating):
    return f'{float(value):.4g}'
  return str(value)


def format_value(value: Any) -> str:
  """Formats an argument: numbers, texts, our rules; the kind of the others."""
  simple = isinstance(value, (numbers.Number, str)) or value is None
  if simple or dataclasses.is_dataclass(value):
    return repr(value)
  if isinstance(value, (tuple, list)):
    return f'({", ".join(map(format_value, value))})'
  if hasattr(value, 'shape'):
    return f'array {list(value.shape)}'
  return getattr(value, '__name__', type(value).__name__.strip('_'))
