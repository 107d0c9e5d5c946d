"""A web page of sections with blocks: all that the template `page.html` shows.

Nothing here imports TensorFlow.
"""

from collections.abc import Mapping, Sequence
import pathlib
from typing import Any, NamedTuple

import jinja2

from tff_fair.launchers.pages import tables
from tff_fair.launchers.plots import plot_parts


class Text(NamedTuple):
  """A paragraph; `style` is a class of the page's style."""

  text: str
  style: str = ''


class Items(NamedTuple):
  """A list of sentences."""

  items: Sequence[str]


class Code(NamedTuple):
  """A command."""

  code: str


class Picture(NamedTuple):
  """A figure of Matplotlib, and what it shows."""

  figure: Any
  shows: str


class Details(NamedTuple):
  """A block that a reader may open."""

  summary: str
  blocks: Sequence[Any]


class Card(NamedTuple):
  """A run's description: its name, and pairs of a word and its value."""

  label: str
  pairs: Sequence[tuple[str, str]]


def render(
  *,
  mark: str,
  title: str,
  answer: Sequence[str],
  sections: Mapping[str, Sequence[Any]],
  source: str,
  picture: Picture | None = None,
  warnings: Sequence[str] = (),
  cards: Sequence[Card] = (),
  baseline: str = '',
) -> str:
  """Renders a page, always with the same text for the same values.

  Its texts are shown as they are: nothing in them is markup. The HTML file
  needs no other file.

  Args:
    mark: The page's start, which says what wrote it.
    title: Its title.
    answer: The first sentences.
    sections: Heading -> blocks.
    source: What it is written from.
    picture: The figure after them.
    warnings: What a reader has to know before the answer.
    cards: What its runs are.
    baseline: What marks compare with.
  """
  environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(pathlib.Path(__file__).parent),
    # Names and values come from files, which are not trusted.
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
  )
  environment.tests['block'] = lambda x, name: type(x).__name__ == name
  environment.filters['embed'] = plot_parts.embed
  body = environment.get_template('page.html').render(
    title=title,
    answer=answer,
    sections=sections,
    source=source,
    picture=[picture] if picture else [],
    warnings=warnings,
    cards=cards,
    baseline=baseline,
    marks=tables.MARKS,
  )
  return f'{mark}{body}\n'
