"""A web page of sections with blocks: all that the template `page.html` shows.

Nothing here imports TensorFlow.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import pathlib
from typing import Any

import jinja2

from tff_fair.launchers.pages import tables
from tff_fair.launchers.plots import svg


@dataclasses.dataclass(frozen=True)
class Text:
  """A paragraph; `style` is a class of the page's style."""

  text: str
  style: str = ''


@dataclasses.dataclass(frozen=True)
class Items:
  """A list of sentences."""

  items: Sequence[str]


@dataclasses.dataclass(frozen=True)
class Code:
  """A command."""

  code: str


@dataclasses.dataclass(frozen=True)
class Gallery:
  """Figures, below them if `single`, and the legend of their lines, if any."""

  figures: Sequence[svg.Figure]
  keys: Sequence[svg.Key] = ()
  what: str = 'Legend'
  single: bool = False


@dataclasses.dataclass(frozen=True)
class Details:
  """What a reader may open, or close."""

  summary: str
  blocks: Sequence[Any]
  is_open: bool = False


@dataclasses.dataclass(frozen=True)
class Card:
  """What a run is: its key, its name, and pairs of a word and its value."""

  key: svg.Key
  pairs: Sequence[tuple[str, str]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Page:
  """A page.

  Attributes:
    mark: Its start, which says what wrote it.
    title: Its title.
    answer: The first sentences.
    pictures: What stands beside them.
    sections: Heading -> blocks.
    warnings: What a reader has to know before the answer.
    cards: What its runs are.
    source: What it is written from.
    baseline: What marks compare with.
  """

  mark: str
  title: str
  answer: Sequence[str]
  pictures: Sequence[Any]
  sections: Mapping[str, Sequence[Any]]
  warnings: Sequence[str] = ()
  cards: Sequence[Card] = ()
  source: str
  baseline: str = ''


def render(page: Page) -> str:
  """Renders a page, always with the same text for the same values.

  Its texts are shown as they are: nothing in them is markup. The HTML file
  needs no other file.
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
  body = environment.get_template('page.html').render(
    page=page, marks=tables.MARKS
  )
  return f'{page.mark}{body}\n'
