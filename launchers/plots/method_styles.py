"""The colour and the marker of every method, the same in all pictures.

The eight colours differ by at least 0.09 in OKLab (Ottosson, 2020) from each
other, for normal vision and for every kind of colour blindness, and have a
contrast of at least 3 to a white and to a dark page. More colours cannot be
told apart, so methods that share one differ by marker. Methods of one paper's
tables differ by both, as far as the numbers of colours and markers allow.
"""

import collections
from collections.abc import Sequence
import hashlib
import itertools
from typing import NamedTuple

_BLUE, _ORANGE, _GREEN, _RED = '#1860fc', '#d8780c', '#0c783c', '#d80000'
_VIOLET, _MAGENTA, _SKY, _GRAY = '#8448c0', '#c01884', '#009ccc', '#909084'
COLORS = (_BLUE, _ORANGE, _GREEN, _RED, _VIOLET, _MAGENTA, _SKY, _GRAY)
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

PROVIDED = {
  # The papers' methods, and those that all are compared with.
  'cffl': (_MAGENTA, '^'),
  'corefed': (_RED, 'D'),
  'fedaboost': (_ORANGE, 's'),
  'fedakd': (_VIOLET, 'X'),
  'fedquad': (_GREEN, 'P'),
  'fed_avg': (_BLUE, 'o'),
  'standalone': (_GRAY, 'v'),
  # In the tables of CFFL,
  'dssgd': (_SKY, '>'),
  'round_robin_fed_avg': (_ORANGE, '*'),
  # of CoRe-Fed,
  'ditto': (_MAGENTA, 'd'),
  'fed_mdfg': (_ORANGE, '^'),
  'fed_mgda': (_SKY, '*'),
  'fed_rdn': (_VIOLET, '<'),
  'q_fed_avg': (_GRAY, 'X'),
  # of FedQuad,
  'moon': (_GRAY, 'd'),
  'quadruplet_fl': (_SKY, '^'),
  'supcon_fl': (_RED, '*'),
  'triplet_fl': (_VIOLET, '>'),
  # and of FedAKD.
  'cgsv': (_SKY, 'D'),
  'fed_as': (_SKY, 'P'),
  'fed_ave': (_RED, 's'),
  'fed_dc': (_GREEN, '*'),
  'fed_mpr': (_BLUE, '<'),
  'fed_prox': (_ORANGE, 'P'),
  'fed_sac': (_ORANGE, 'd'),
  'pfed_ck': (_RED, '>'),
  'scaffold': (_VIOLET, 's'),
}
_FREE = tuple(
  look
  for look in itertools.product(COLORS, MARKERS)
  if look not in PROVIDED.values()
)

# Dashes, and whether markers are hollow, of the runs of one method.
_TURNS = (
  ('-', False),
  ('--', True),
  (':', False),
  ('-.', True),
  ('-', True),
  ('--', False),
  (':', True),
  ('-.', False),
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


def of_runs(methods: Sequence[str]) -> list[Style]:
  """The styles of the runs of one picture.

  A method has the same colour and marker in every picture. Further runs of it
  in the same picture differ in dashes and in hollow markers; up to eight runs
  of a method can be told apart.

  Args:
    methods: The method of each run; plug-ins may have any name.

  Returns:
    A style for each run.
  """
  turns = collections.Counter()
  styles = []
  for method in methods:
    look = _look(method)
    dashes, hollow = _TURNS[turns[look] % len(_TURNS)]
    turns[look] += 1
    styles.append(Style(*look, dashes, hollow))
  return styles


def _look(method: str) -> tuple[str, str]:
  """The colour and the marker of a method, or of a plug-in's name."""
  if method in PROVIDED:
    return PROVIDED[method]
  digest = hashlib.sha256(method.encode(errors='replace')).digest()
  return _FREE[int.from_bytes(digest, 'big') % len(_FREE)]
