"""The colour and the marker of every method, the same in all pictures.

The eight colours differ by at least 0.09 in OKLab (Ottosson, 2020) from each
other, for normal vision and for every kind of colour blindness, and have a
contrast of at least 3 to white. More colours cannot be told apart, so methods
that share one differ by marker. Methods of one paper's tables differ by both,
as far as the numbers of colours and markers allow.
"""

import collections
from collections.abc import Sequence
import csv
import hashlib
import itertools
import pathlib
from typing import NamedTuple

_NAMED = {
  'blue': '#1860fc',
  'orange': '#d8780c',
  'green': '#0c783c',
  'red': '#d80000',
  'violet': '#8448c0',
  'magenta': '#c01884',
  'sky': '#009ccc',
  'gray': '#909084',
}
COLORS = tuple(_NAMED.values())
# Marker -> its size relative to others that look as large.
MARKERS = {
  'o': 1.0,
  's': 0.9,
  '^': 1.15,
  'v': 1.15,
  'D': 0.85,
  'P': 1.2,
  'X': 1.2,
  '*': 1.6,
  '<': 1.15,
  '>': 1.15,
  'd': 1.2,
}
with open(
  pathlib.Path(__file__).with_suffix('.csv'), encoding='utf-8', newline=''
) as _file:
  PROVIDED = {
    row['method']: (_NAMED[row['color']], row['marker'])
    for row in csv.DictReader(_file)
  }
"""Method -> its colour and marker."""
_FREE = tuple(
  look
  for look in itertools.product(COLORS, MARKERS)
  if look not in PROVIDED.values()
)
# Dashes, and whether markers are hollow, of the runs of one method.
_TURNS = tuple(
  (dashes, bool(i % 2) != again)
  for again in (False, True)
  for i, dashes in enumerate(('-', '--', ':', '-.'))
)


class Style(NamedTuple):
  """The style in which a run is drawn.

  Attributes:
    color: As `#rrggbb`.
    marker: A marker of Matplotlib.
    linestyle: Its dashes, one of `-`, `--`, `:` and `-.`.
    hollow: Whether the markers are not filled.
  """

  color: str
  marker: str
  linestyle: str = '-'
  hollow: bool = False

  @property
  def scale(self) -> float:
    """The size of the marker relative to others that look as large."""
    return MARKERS[self.marker]

  @property
  def face(self) -> str:
    """The colour inside the marker."""
    return 'white' if self.hollow else self.color


def of_runs(methods: Sequence[str]) -> list[Style]:
  """Finds the styles of the runs of one picture.

  A method has the same colour and marker in every picture. Further runs of it
  in the same picture differ in dashes and in hollow markers; up to eight runs
  of a method can be told apart. Plug-ins may have any name.
  """
  turns = collections.Counter()
  styles = []
  for method in methods:
    look = _look(method)
    styles.append(Style(*look, *_TURNS[turns[look] % len(_TURNS)]))
    turns[look] += 1
  return styles


def _look(method: str) -> tuple[str, str]:
  """The colour and the marker of a method, or of a plug-in's name."""
  if method in PROVIDED:
    return PROVIDED[method]
  digest = hashlib.sha256(method.encode(errors='replace')).digest()
  return _FREE[int.from_bytes(digest, 'big') % len(_FREE)]
