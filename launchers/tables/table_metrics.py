"""The metrics of tables: a number per finished run, or a comparison of runs.

table_metrics.csv has a row per metric; its columns are the attributes of
`Metric`. A metric that `_COMPUTED` does not name is a measure of the run at its
end. Shares are fractions here, even if the paper prints per cent. NaN is
undefined.
"""

from collections.abc import Callable, Sequence
import functools
import pathlib
from typing import NamedTuple

import numpy as np
import pandas as pd

from tff_fair import fairness
from tff_fair.launchers import frame
from tff_fair.launchers import summary

_PATH = pathlib.Path(__file__).with_suffix('.csv')


class Metric(NamedTuple):
  """A number of a run.

  Attributes:
    name: Its name.
    title: Its title.
    references: Names of the table's references that it compares with.
    is_share: Whether it is a share, which some papers print in per cent.
    digits: Digits after the decimal point, for shares in per cent.
    undefined: The text for NaN.
    published: Its name in published.csv.
    minimum: The lowest value that it can have.
    maximum: The highest.
  """

  name: str
  title: str
  references: tuple[str, ...]
  is_share: bool
  digits: int
  undefined: str
  published: str
  minimum: float
  maximum: float

  @property
  def is_correlation(self) -> bool:
    """Whether it is a coefficient of correlation, in per cent."""
    return (self.minimum, self.maximum) == (-100, 100)

  def limits(self, percent: bool) -> tuple[float, float]:
    """The lowest and the highest value in the paper's unit."""
    # Sums of floats may be a little too large.
    unit = (100 if self.is_share and percent else 1) * (1 + 1e-9)
    return unit * self.minimum, unit * self.maximum

  def heading(self, percent: bool) -> str:
    """The title with the unit; `percent`: whether the paper prints per cent."""
    if not self.is_share:
      return self.title
    return f'{self.title} ({"per cent" if percent else "fraction"})'

  def shown_digits(self, percent: bool) -> int:
    """The digits after the decimal point in the paper's unit."""
    return self.digits if percent or not self.is_share else self.digits + 2

  def compute(
    self, directories: Sequence[pathlib.Path], percent: bool
  ) -> float:
    """Computes the value in the paper's unit.

    Args:
      directories: Those of a run and of its references, all finished.
      percent: Whether the paper prints shares in per cent.

    Raises:
      ValueError: If a file is not as a training run writes it.
      KeyError: If the run has no such measure.
    """
    runs = [
      _read(path, (path / 'summary.json').stat().st_mtime_ns)
      for path in directories
    ]
    function = _COMPUTED.get(self.name)
    value = function(*runs) if function else runs[0].end[self.name]
    return float(100 * value if self.is_share and percent else value)


@functools.lru_cache(maxsize=64)  # The metrics of a run read the same files.
def _read(directory, finished) -> frame.Run:
  del finished  # Another time is another run.
  return frame.read_run(directory)


def _accuracies(run, alone) -> tuple[pd.Series, pd.Series]:
  """The accuracies of the clients with data in both runs, by client."""
  return run.honest['accuracy'].align(alone.honest['accuracy'])


def _cf_spread(run, alone) -> float:
  """The standard deviation of CF over the last three evaluations."""
  of_rounds = run.scores_by_round('accuracy').pivot(
    index='round', columns='client_id', values='accuracy'
  )
  if len(of_rounds) < 3:
    return np.nan
  shared = run.honest.index.intersection(alone.honest.index)
  expected = alone.honest['accuracy'][shared]
  last = of_rounds[shared].iloc[-3:]
  return np.std(
    [fairness.cf_coefficient(expected, row) for _, row in last.iterrows()]
  )


def _standalone_of_best(run, alone) -> float:
  """The accuracy alone of the client that is best in the run, the first one."""
  together, alone = _accuracies(run, alone)
  return alone[together.idxmax()]


def _of_largest(run) -> float:
  """The accuracy of the client with most training examples, the first one."""
  return run.honest['accuracy'][run.honest['num_train'].idxmax()]


def _rounds_ahead(run, other) -> float:
  """By how many rounds a run reaches the lower of both last F1 earlier."""
  own, others = (r.curve('global_f1') for r in (run, other))
  goal = min(own.iloc[-1], others.iloc[-1])
  return (others >= goal).idxmax() - (own >= goal).idxmax()


def _free_riders(run) -> pd.DataFrame:
  return run.clients[run.clients['num_train'] == 0]


def _isolation_round(run) -> float:
  """The first round in which a free rider is no longer reputable."""
  reports = run.reports
  isolated = reports['client_id'].isin(_free_riders(run).index)
  isolated &= reports['reputable'] == 0
  return reports['round'][isolated].min()


def _end(name) -> Callable[[frame.Run], float]:
  return lambda run: run.end[name]


def _change(name) -> Callable[[frame.Run, frame.Run], float]:
  """The difference from the reference."""
  return lambda run, reference: run.end[name] - reference.end[name]


_COMPUTED = {
  # CFFL, equation 4, without free riders.
  'cf': lambda run, alone: summary.cf_coefficient(alone, run),
  'cf_spread': _cf_spread,
  'global_f1_lead': _change('global_f1'),
  # FeDABoost's are means of the last ten evaluations.
  'client_f1_variance': _end('client_f1_variance_window_mean'),
  'client_f1_own_labels_variance': _end(
    'client_f1_own_labels_variance_window_mean'
  ),
  'client_accuracy_mean_without': lambda _, without: without.end[
    'client_accuracy_mean'
  ],
  'client_accuracy_mean_change': _change('client_accuracy_mean'),
  'parameters_d_cosine_degrees': lambda run: np.degrees(
    run.end['parameters_d_cosine']
  ),
  'above_standalone': lambda run, alone: np.greater(
    *_accuracies(run, alone)
  ).mean(),
  'below_standalone': lambda run, alone: np.less(
    *_accuracies(run, alone)
  ).mean(),
  'standalone_accuracy_of_best': _standalone_of_best,
  'accuracy_of_largest': _of_largest,
  # FeDABoost, equation 1, over the clients that have test examples.
  'client_loss_mean': lambda run: run.honest['loss'].mean(),
  'rounds_ahead_of_fed_avg': _rounds_ahead,
  'isolation_round': _isolation_round,
  'free_rider_accuracy': lambda run: _free_riders(run)['accuracy'].mean(),
}

METRICS: dict[str, Metric] = {
  row.name: row._replace(
    references=tuple(row.references.split()),
    is_share=row.is_share == 'yes',
    digits=int(row.digits),
    published=row.published or row.name,
    minimum=float(row.minimum or '-inf'),
    maximum=float(row.maximum or 'inf'),
  )
  for row in map(
    Metric._make,
    pd.read_csv(_PATH, dtype=str, keep_default_na=False).itertuples(
      index=False
    ),
  )
}
"""Name -> metric, in the order of tables."""
