"""The measures of `measures.csv`, by which runs and methods are described.

The columns of the file are the attributes of `Measure`; `better` is 'higher',
'lower', or nothing for what is told, not ranked.
"""

from collections.abc import Mapping
import csv
import pathlib
from typing import NamedTuple

from matplotlib import ticker

from tff_fair.launchers.runs import distances
from tff_fair.launchers.runs import groups
from tff_fair.launchers.show import numbers

_FILE = pathlib.Path(__file__).with_name('measures.csv')
_BYTES = ticker.EngFormatter(unit='B', places=2)
_ARROWS = {1: '↑', -1: '↓', 0: ''}
_DIRECTIONS = {'higher': 1, 'lower': -1, '': 0}


class Measure(NamedTuple):
  """One measure of a run: its part of a report, its name in files and on pages.

  `direction` is 1 where higher is better, -1 where lower is, otherwise 0;
  `digits` are those of a mean over seeds, and `precise` is the format of a
  single run, by default with one digit more; or 'bytes'. `seconds_ratio` and
  `equal_bytes_mean` are computed by the analysis of a comparison,
  `client_accuracy_mean_kept` and what is `_by_chance` by `client_scores`.
  """

  group: str
  column: str
  title: str
  short: str
  direction: int
  digits: int
  precise: str = ''
  note: str = ''

  @property
  def heading(self) -> str:
    """The title with the direction that is better."""
    # The arrow stays with the last word.
    return f'{self.title}\N{NO-BREAK SPACE}{_ARROWS[self.direction]}'.rstrip()

  def format(self, value: float) -> str:
    """Formats a mean over seeds."""
    return self._format(value, f'.{self.digits}f')

  def format_single(self, value: float) -> str:
    """Formats the value of a single run."""
    return self._format(value, self.precise or f'.{self.digits + 1}f')

  def _format(self, value, form) -> str:
    if self.precise == 'bytes':
      return _BYTES(value)
    return numbers.format_number(value, form)


def _read() -> list[Measure]:
  with open(_FILE, encoding='utf-8', newline='') as file:
    return [
      Measure(
        direction=_DIRECTIONS[row.pop('better')],
        digits=int(row.pop('digits')),
        short=row.pop('short') or row['title'],
        **row,
      )
      for row in csv.DictReader(file)
    ]


def _distances() -> list[Measure]:
  found = []
  for space, between in distances.SPACES.items():
    for name, (distance, unit) in distances.DISTANCES.items():
      title, column = f'{distance} between {between}', f'{space}_{name}'
      note = f'CoRe-Fed’s distance, in {unit}.'
      group = 'Loss and distances'
      found.append(Measure(group, column, title, title, -1, 3, '.4g', note))
  return found


MEASURES: Mapping[str, Measure] = {
  measure.column: measure for measure in (*_read(), *_distances())
}
"""Column -> measure, in the order of a report."""

AGAINST_ALONE = (
  'cf',
  'better_off',
  'gain_mean',
  'gain_sd',
  'gain_min',
  'harmed',
  'harmed_share',
)
"""Those that compare a run with Standalone: see `fairness.against_alone`."""

FINE_TUNED_AGAINST_ALONE = (
  'fine_tuned_cf',
  'fine_tuned_better_off',
  'fine_tuned_harmed',
)
"""Some of these after fine-tuning."""

FURTHER_SCORES = (
  'unseen_accuracy_mean',
  'unseen_accuracy_worst10',
  'unseen_accuracy_min',
  'fine_tuned_accuracy_mean',
  'fine_tuned_accuracy_worst10',
  'fine_tuned_accuracy_min',
  'fine_tuned_unseen_accuracy_mean',
  'fine_tuned_unseen_accuracy_worst10',
  'fine_tuned_unseen_accuracy_min',
  *groups.COLUMNS,
)
"""Those that a run writes only if its flags ask for them."""

OF_METHODS: tuple[Measure, ...] = tuple(
  MEASURES[column]
  for column in (
    'client_accuracy_mean',
    'client_accuracy_mean_kept',
    'equal_bytes_mean',
    'client_accuracy_worst10',
    'worst10_by_chance',
    'client_accuracy_min',
    'min_by_chance',
    'client_accuracy_variance',
    'variance_by_chance',
    'client_accuracy_jain',
    'client_f1_mean',
    *AGAINST_ALONE,
    'global_accuracy',
    *FURTHER_SCORES,
    *FINE_TUNED_AGAINST_ALONE,
    'rounds_to_target',
    'bytes_down',
    'bytes_up',
    'seconds_ratio',
  )
)
"""Those of a comparison, in the order of its tables."""
