"""The five papers' claims, from claims.csv: comparisons of recorded results.

A row is a claim. Its columns:

========== ==================================================================
id         the paper and a number: add new ones at the end, give none twice
place      where the paper says it
claim      the claim in a sentence
statistic  its comparisons, all of which must hold; see `parse`
any_rounds 'yes' if sides may have different numbers of rounds, each its most
most       'yes' if it is enough that more than half of the comparisons hold
reading    'yes' if it is also tried under the paper's reading in readings.csv:
           methods that replace others, of another table if it names one
note       what else a reader must know, such as a number that is ours
uncounted  why no run of ours can decide it; it is listed without a verdict
========== ==================================================================

undefined.csv has the numbers that cannot exist, by table, method and metric:
comparisons with them are left out, and counted.
"""

from collections.abc import Iterable
import itertools
import math
import pathlib
import re
from typing import NamedTuple

import pandas as pd

from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import published

_CLAIMS = pathlib.Path(__file__).with_name('claims.csv')
# Of the paper's own lead.
_NEGLIGIBLE = 0.5
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

  @property
  def undefined(self) -> str:
    """Why no run can define it, from undefined.csv; empty if runs can."""
    return _UNDEFINED.get((self.table, self.method, self.metric), '')


class Comparison(NamedTuple):
  """A difference whose sign supports a claim or speaks against it.

  Attributes:
    left: What the claim is about.
    right: What it is compared with, or a number, in the paper's unit.
    above: Whether the claim says that the left is above the right, or below. A
      number itself is both, "at least" and "at most".
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
  def undefined(self) -> str:
    """Why the comparison cannot exist; empty if it can."""
    sides = (side for side in self[:2] if isinstance(side, Side))
    return next(filter(None, (side.undefined for side in sides)), '')

  @property
  def published(self) -> tuple[float, float] | None:
    """The paper's numbers of both sides; None unless it has both."""
    found = [
      side if isinstance(side, float) else published.number(*side)
      for side in self[:2]
    ]
    if None in found:
      return None
    return tuple(getattr(number, 'value', number) for number in found)

  @property
  def negligible(self) -> float:
    """The largest difference that says "no difference", in the metric's unit.

    Half of the paper's own lead, so it is fixed before anything is run. NaN if
    the paper does not print both sides or does not lead, and for comparisons
    with a number or by an amount, which say themselves what counts.
    """
    if isinstance(self.right, float) or self.margin or not self.published:
      return math.nan
    left, right = self.published
    lead = left - right if self.above else right - left
    return lead * _NEGLIGIBLE if lead > 0 else math.nan


class Claim(NamedTuple):
  """A statement of a paper; see the columns above.

  Attributes:
    others: The comparisons under the other reading, as far as the tables have
      them; none if there is none.
    reading: What the other reading is; empty if there is none.
  """

  place: str
  text: str
  statistic: str
  comparisons: tuple[Comparison, ...]
  most: bool = False
  others: tuple[Comparison, ...] = ()
  reading: str = ''
  note: str = ''
  uncounted: str = ''


def parse(statistic: str, any_rounds: bool = False) -> tuple[Comparison, ...]:
  """Parses comparisons: each by cell, method, method on the right and metric.

  Args:
    statistic: Clauses such as "cffl_table1: cf of cffl_u1 above fed_avg in
      mnist_p5", with "; " between them. Metrics, methods and cells may be
      lists with ", " between them: each is compared with each. The relation is
      "above", "below", "more than 2 above", "less than 2 below" and so on; or
      "at least" or "at most", before a number. A method on the right may have a
      table and a metric before it, as the left does, and a cell behind it.
    any_rounds: See `Comparison`.
  """
  found = []
  for clause in statistic.split('; '):
    part = _CLAUSE.fullmatch(clause)
    *amount, direction = part['relation'].split()
    is_level, is_less = amount == ['at'], amount[:1] == ['less']
    above = direction == 'least' or (direction == 'above') != is_less
    margin = float(amount[-1]) if len(amount) > 1 else 0.0
    for cell, method, other, metric in itertools.product(
      *(part[name].split(', ') for name in ('cells', 'lefts', 'rights')),
      part['metrics'].split(', '),
    ):
      left = Side(part['table'], cell, method, metric)
      named = _RIGHT.fullmatch(other).groupdict()
      given = {name: text for name, text in named.items() if text}
      right = float(other) if is_level else left._replace(**given)
      signed = -margin if is_less else margin
      found.append(Comparison(left, right, above, signed, any_rounds))
  return tuple(found)


def under_reading(
  comparisons: Iterable[Comparison], methods: str, table: str
) -> tuple[Comparison, ...]:
  """The comparisons under a row of readings.csv, as far as there are runs."""
  replaced = dict(pair.split('=') for pair in methods.split())

  def read(side):
    if not isinstance(side, Side):
      return side
    method = replaced.get(side.method, side.method)
    return side._replace(table=table or side.table, method=method)

  found = [
    c._replace(left=read(c.left), right=read(c.right)) for c in comparisons
  ]
  return tuple(
    c
    for c in found
    if all(not isinstance(s, Side) or s.exists() for s in c[:2])
  )


def paper_of(name: str) -> str:
  """Returns the paper of a claim, given the claim's name."""
  return name.partition('-')[0]


def _read(path) -> Iterable[NamedTuple]:
  return pd.read_csv(path, dtype=str, keep_default_na=False).itertuples()


def _read_undefined() -> dict[tuple[str, str, str], str]:
  """Table, method and metric -> why the number cannot exist."""
  rows = _read(_CLAIMS.with_name('undefined.csv'))
  return {(r.table, r.method, r.metric): r.reason for r in rows}


def _read_claims() -> dict[str, Claim]:
  """Name -> claim, by paper."""
  readings = {r.paper: r for r in _read(_CLAIMS.with_name('readings.csv'))}
  claims = {}
  for row in _read(_CLAIMS):
    comparisons = parse(row.statistic, row.any_rounds == 'yes')
    other = readings[paper_of(row.id)] if row.reading == 'yes' else None
    claims[row.id] = Claim(
      place=row.place,
      text=row.claim,
      statistic=_OTHER_METRIC.sub(r'\1', row.statistic),
      comparisons=comparisons,
      most=row.most == 'yes',
      others=under_reading(comparisons, other.methods, other.table)
      if other
      else (),
      reading=other.title if other else '',
      note=row.note,
      uncounted=row.uncounted,
    )
  return claims


_UNDEFINED = _read_undefined()
CLAIMS = _read_claims()
PAPERS = tuple(dict.fromkeys(map(paper_of, CLAIMS)))
"""The papers' methods, in the order of the pages."""
