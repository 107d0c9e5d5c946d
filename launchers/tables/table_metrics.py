"""The metrics of tables: a number per finished run, or a comparison of runs.

A metric reads the files of a run and of its references. Shares are fractions
here, even if the paper prints per cent. NaN is undefined.
"""

from collections.abc import Callable
import dataclasses
import json

import numpy as np
import pandas as pd

from tff_fair import fairness
from tff_fair.launchers.runs import distances


@dataclasses.dataclass(frozen=True)
class Metric:
  """A number of a run.

  Attributes:
    title: Its title.
    compute: `(run directory, *directories of references) -> float`.
    references: Names of the table's references that it compares with.
    is_share: Whether it is a share, which some papers print in per cent.
    digits: Digits after the decimal point, for shares in per cent.
    undefined: The text for NaN.
    published: Its name in published.csv, if different.
  """

  title: str
  compute: Callable[..., float]
  references: tuple[str, ...] = ()
  is_share: bool = True
  digits: int = 2
  undefined: str = 'undefined'
  published: str | None = None

  def heading(self, percent: bool) -> str:
    """The title with the unit; `percent`: whether the paper prints per cent."""
    if not self.is_share:
      return self.title
    return f'{self.title} ({"per cent" if percent else "fraction"})'

  def in_unit(self, value: float, percent: bool) -> float:
    """A computed value in the paper's unit."""
    return 100 * value if self.is_share and percent else value

  def shown_digits(self, percent: bool) -> int:
    """The digits after the decimal point in the paper's unit."""
    return self.digits if percent or not self.is_share else self.digits + 2


def cf(run, standalone) -> float:
  """CFFL, equation 4, of the final accuracies, without free riders."""
  together, alone = _pair(run, standalone)
  return fairness.cf_coefficient(alone, together)


def _above_standalone(run, standalone) -> float:
  """The share of clients with a higher accuracy than when training alone."""
  together, alone = _pair(run, standalone)
  return float((together > alone).mean())


def _below_standalone(run, standalone) -> float:
  together, alone = _pair(run, standalone)
  return float((together < alone).mean())


def _standalone_of_best(run, standalone) -> float:
  """The accuracy alone of the client that is best in the run, the first one."""
  together, alone = _pair(run, standalone)
  return float(alone[together.idxmax()])


def _client_loss_mean(run) -> float:
  """FeDABoost, equation 1, over the clients that have test examples."""
  return float(_honest(run)['loss'].mean())


def _rounds_ahead(run, other) -> float:
  """By how many rounds a run reaches the lower of both last F1 earlier."""
  curves = [
    pd.read_csv(path / 'metrics.csv').set_index('round')['global_f1']
    for path in (run, other)
  ]
  goal = min(curve.iloc[-1] for curve in curves)
  own, others = ((curve >= goal).idxmax() for curve in curves)
  return float(others - own) if np.isfinite(goal) else np.nan


def _isolation_round(run) -> float:
  """The first round in which a free rider is no longer reputable."""
  reports = pd.read_csv(run / 'reports.csv')
  isolated = reports['client_id'].isin(_free_riders(run).index)
  isolated &= reports['reputable'] == 0
  return float(reports['round'][isolated].min())


def _free_rider_accuracy(run) -> float:
  return float(_free_riders(run)['accuracy'].mean())


def _final(name) -> Callable[..., float]:
  """A column of metrics.csv at the last evaluation."""
  return lambda run: _defined(_summary(run)['final'][name])


def _window(name) -> Callable[..., float]:
  """A mean of the last ten evaluations."""
  return lambda run: _defined(_summary(run)[f'{name}_window']['mean'])


def _change(compute) -> Callable[..., float]:
  """The difference of a metric from its value in a reference."""
  return lambda run, reference: compute(run) - compute(reference)


def _distances() -> dict[str, Metric]:
  """CoRe-Fed's distances in all spaces.

  The paper's are between parameters. It does not say in which unit its angle
  is.
  """
  radians = _final('parameters_d_cosine')
  metrics = {
    'parameters_d_cosine_degrees': Metric(
      'D_cosine between parameters (degrees)',
      lambda run: float(np.degrees(radians(run))),
      is_share=False,
      digits=3,
      published='d_cosine',
    )
  }
  for space, between in distances.SPACES.items():
    for name, (title, unit) in distances.DISTANCES.items():
      metrics[f'{space}_{name}'] = Metric(
        f'{title} between {between} ({unit})',
        _final(f'{space}_{name}'),
        is_share=False,
        digits=4 if name == 'd_cosine' else 2,
        published=name if space == 'parameters' else None,
      )
  return metrics


def _spread_of_f1() -> dict[str, Metric]:
  """FeDABoost's measures of the clients' macro-F1, over two sets of labels."""
  metrics = {}
  for name, labels in (
    ('client_f1', 'labels that occur'),
    ('client_f1_own_labels', 'own labels'),
  ):
    metrics[f'{name}_median'] = Metric(
      f"Median of the clients' F1, {labels}",
      _final(f'{name}_median'),
      published='client_f1_median',
    )
    metrics[f'{name}_variance'] = Metric(
      f"Variance of the clients' F1, {labels} (fraction²)",
      _window(f'{name}_variance'),
      is_share=False,
      digits=4,
      published='client_f1_variance',
    )
  return metrics


_ALONE, _WITHOUT, _FED_AVG = ('standalone',), ('without',), ('fed_avg',)
_mean = _final('client_accuracy_mean')

METRICS: dict[str, Metric] = {
  'cf': Metric('CF coefficient (per cent)', cf, _ALONE, is_share=False),
  'global_accuracy': Metric(
    'Accuracy of the global model', _final('global_accuracy')
  ),
  'global_f1': Metric('Macro-F1 of the global model', _final('global_f1')),
  'global_f1_lead': Metric(
    "Macro-F1 of the global model less FedAvg's",
    _change(_final('global_f1')),
    _FED_AVG,
  ),
  'global_loss': Metric(
    'Loss of the global model', _final('global_loss'), is_share=False, digits=3
  ),
  **_spread_of_f1(),
  'client_accuracy_max': Metric(
    'Maximum accuracy of the clients', _final('client_accuracy_max')
  ),
  'client_accuracy_mean': Metric('Mean accuracy of the clients', _mean),
  'client_accuracy_mean_without': Metric(
    'Mean accuracy of the clients without the free rider',
    lambda run, without: _mean(without),
    _WITHOUT,
  ),
  'client_accuracy_mean_change': Metric(
    'Mean accuracy with the free rider less that without',
    _change(_mean),
    _WITHOUT,
  ),
  'client_accuracy_variance': Metric(
    'Variance of the accuracy of the clients (fraction²)',
    _final('client_accuracy_variance'),
    is_share=False,
    digits=5,
  ),
  **_distances(),
  'above_standalone': Metric(
    'Share of the clients above their standalone accuracy',
    _above_standalone,
    _ALONE,
  ),
  'below_standalone': Metric(
    'Share of the clients below their standalone accuracy',
    _below_standalone,
    _ALONE,
  ),
  'standalone_accuracy_of_best': Metric(
    'Accuracy alone of the client that is best', _standalone_of_best, _ALONE
  ),
  'client_loss_mean': Metric(
    "Mean of the clients' losses", _client_loss_mean, is_share=False, digits=3
  ),
  'rounds_ahead_of_fed_avg': Metric(
    'Rounds less than FedAvg to the lower of their last F1',
    _rounds_ahead,
    _FED_AVG,
    is_share=False,
    digits=0,
  ),
  'isolation_round': Metric(
    'Round in which the free rider is isolated',
    _isolation_round,
    is_share=False,
    undefined='never',
  ),
  'free_rider_accuracy': Metric(
    'Accuracy of the free rider', _free_rider_accuracy
  ),
}


def _pair(run, standalone) -> tuple[pd.Series, pd.Series]:
  """The accuracies of the clients with data, in both runs, by client."""
  together, alone = (_honest(path)['accuracy'] for path in (run, standalone))
  return together.align(alone)


def _honest(run) -> pd.DataFrame:
  clients = _clients(run)
  return clients[clients['num_train'] > 0]


def _free_riders(run) -> pd.DataFrame:
  clients = _clients(run)
  return clients[clients['num_train'] == 0]


def _clients(run) -> pd.DataFrame:
  return pd.read_csv(run / 'clients.csv', index_col='client_id')


def _summary(run) -> dict[str, dict[str, float | None]]:
  return json.loads((run / 'summary.json').read_text())


def _defined(value) -> float:
  return np.nan if value is None else value
