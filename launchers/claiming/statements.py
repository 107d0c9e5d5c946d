"""The five papers' claims, from claims.csv: comparisons of recorded results.

A row is a claim. Its columns:

========== ==================================================================
id         the paper and a number: add new ones at the end, give none twice
place      where the paper says it
claim      the claim in a sentence
statistic  its comparisons, all of which must hold; see `parse`
any_rounds 'yes' if sides may have different numbers of rounds, each its most
most       'yes' if it is enough that more than half of the comparisons hold
reading    'yes' if it is also tried under the paper's reading in readings.csv
note       what else a reader must know, such as a number that is ours
uncounted  why no run of ours can decide it; it is listed without a verdict
========== ==================================================================
"""

from collections.abc import Iterable, Mapping
import dataclasses
import itertools
import pathlib
import re
from typing import NamedTuple

import pandas as pd

from tff_fair.launchers.tables import definitions

_CLAIMS = pathlib.Path(__file__).with_name('claims.csv')
# A row for each paper: its title, and the methods that replace others. None is
# the authors' own script.
_READINGS = _CLAIMS.with_name('readings.csv')
_CLAUSE = re.compile(
  r'(?P<table>\w+): (?P<metrics>.+?) of (?P<lefts>.+?)'
  r' (?P<relation>at least|at most|(?:(?:more|less) than \S+ )?(?:above|below))'
  r' (?P<rights>.+) in (?P<cells>.+?)'
)
_RIGHT = re.compile(
  r'(?:(?P<table>\w+): )?(?:(?P<metric>\w+) of )?(?P<method>\S+)'
  r'(?: in (?P<cell>\S+))?'
)
# The published statistic leaves out the table and the metric of the right.
_OTHER_METRIC = re.compile(r'((?:above|below) )(?:\w+: )?\w+ of ')


class Side(NamedTuple):
  """One side of a comparison: a metric of a method in a cell of a table."""

  table: str
  cell: str
  method: str
  metric: str

  def exists(self) -> bool:
    """Returns whether the tables have it."""
    table = definitions.TABLES.get(self.table)
    return (
      table is not None
      and self.cell in table.cells
      and self.method in table.methods_of(self.cell)
      and self.metric in table.metrics
    )


class Comparison(NamedTuple):
  """A difference whose sign supports a claim or speaks against it.

  Attributes:
    left: What the claim is about.
    right: What it is compared with, or a number, in the paper's unit.
    above: Whether the claim says that the left is above the right. Otherwise it
      says that it is below. A number itself is both, "at least" and "at most".
    margin: By how much, in the metric's unit; if negative, how far it may be on
      the other side.
    any_rounds: Whether the sides may have different numbers of rounds, each the
      most that were recorded.
  """

  left: Side
  right: Side | float
  above: bool = True
  margin: float = 0.0
  any_rounds: bool = False

  @property
  def sides(self) -> tuple[Side, ...]:
    """What it reads: the left, and the right if that is no number."""
    return tuple(s for s in (self.left, self.right) if isinstance(s, Side))


class Reading(NamedTuple):
  """Another reading of a paper, under which its claims are tried as well.

  Attributes:
    title: What it is, as it stands behind "is".
    methods: Method -> the method of the same table that replaces it.
    table: Another table; None for the claim's own.
  """

  title: str
  methods: Mapping[str, str]
  table: str | None = None

  def apply(self, comparisons: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """The comparisons under this reading, as far as the tables have them."""
    replaced = (
      c._replace(left=self._side(c.left), right=self._side(c.right))
      for c in comparisons
    )
    return tuple(c for c in replaced if all(s.exists() for s in c.sides))

  def _side(self, side: Side | float) -> Side | float:
    if not isinstance(side, Side):
      return side
    method = self.methods.get(side.method, side.method)
    return side._replace(table=self.table or side.table, method=method)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
  """A statement of a paper; see the columns above."""

  place: str
  text: str
  statistic: str
  comparisons: tuple[Comparison, ...]
  most: bool = False
  reading: Reading | None = None
  note: str = ''
  uncounted: str = ''


def parse(statistic: str, any_rounds: bool = False) -> tuple[Comparison, ...]:
  """Parses comparisons.

  Args:
    statistic: Clauses such as "cffl_table1: cf of cffl_u1 above fed_avg in
      mnist_p5", with "; " between them. Metrics, methods and cells may be
      lists with ", " between them: each is compared with each. The relation is
      "above", "below", "more than 2 above", "less than 2 below" and so on; or
      "at least" or "at most", before a number. A method on the right may have a
      table and a metric before it, as the left does, and a cell behind it.
    any_rounds: See `Comparison`.

  Returns:
    The comparisons, by cell, method, method on the right and metric.
  """
  found = []
  for clause in statistic.split('; '):
    part = _CLAUSE.fullmatch(clause)
    table, words = part['table'], part['relation'].split()
    cells, lefts, rights, metrics = (
      part[name].split(', ') for name in ('cells', 'lefts', 'rights', 'metrics')
    )
    is_less = words[0] == 'less'
    margin = float(words[2]) if len(words) > 2 else 0.0
    above = words[-1] == 'least' or (words[-1] == 'above') != is_less
    above = above and words[-1] != 'most'
    for cell, method, other, metric in itertools.product(
      cells, lefts, rights, metrics
    ):
      left = Side(table, cell, method, metric)
      right = float(other) if words[0] == 'at' else _right(other, left)
      found.append(
        Comparison(
          left, right, above, -margin if is_less else margin, any_rounds
        )
      )
  return tuple(found)


def read() -> dict[str, Claim]:
  """Reads the claims: name -> claim, by paper."""
  readings = {
    row.paper: Reading(
      row.title,
      dict(pair.split('=') for pair in row.methods.split()),
      row.table or None,
    )
    for row in _read(_READINGS)
  }
  return {
    row.id: Claim(
      place=row.place,
      text=row.claim,
      statistic=_OTHER_METRIC.sub(r'\1', row.statistic),
      comparisons=parse(row.statistic, row.any_rounds == 'yes'),
      most=row.most == 'yes',
      reading=readings[paper_of(row.id)] if row.reading == 'yes' else None,
      note=row.note,
      uncounted=row.uncounted,
    )
    for row in _read(_CLAIMS)
  }


def paper_of(name: str) -> str:
  """Returns the paper of a claim, given the claim's name."""
  return name.partition('-')[0]


def _read(path) -> Iterable[NamedTuple]:
  return pd.read_csv(path, dtype=str, keep_default_na=False).itertuples()


def _right(text, left) -> Side:
  given = {k: v for k, v in _RIGHT.fullmatch(text).groupdict().items() if v}
  return left._replace(**given)


CLAIMS = read()
PAPERS = tuple(dict.fromkeys(map(paper_of, CLAIMS)))
"""The papers' methods, in the order of the pages."""
