"""The metrics of tables: a number per finished run, or a comparison of runs.

A metric reads the files of a run and of its references. Shares are fractions
here, even if the paper prints per cent. NaN is undefined.
"""

from collections.abc import Callable
import dataclasses
import json
import pathlib

import numpy as np
import pandas as pd

from tff_fair import fairness
from tff_fair.launchers.runs import distances


@dataclasses.dataclass(frozen=True, kw_only=True)
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


def cf(run: pathlib.Path, standalone: pathlib.Path) -> float:
  """CFFL, equation 4, of the final accuracies, without free riders."""
  pairs = _pair(run, standalone)
  return fairness.cf_coefficient(pairs['standalone'], pairs['run'])


def above_standalone(run: pathlib.Path, standalone: pathlib.Path) -> float:
  """The share of clients with a higher accuracy than when training alone."""
  pairs = _pair(run, standalone)
  return float((pairs['run'] > pairs['standalone']).mean())


def below_standalone(run: pathlib.Path, standalone: pathlib.Path) -> float:
  """The share of clients with a lower accuracy than when training alone."""
  pairs = _pair(run, standalone)
  return float((pairs['run'] < pairs['standalone']).mean())


def standalone_accuracy_of_best(
  run: pathlib.Path, standalone: pathlib.Path
) -> float:
  """The accuracy alone of the client that is best in the run, the first one."""
  pairs = _pair(run, standalone)
  return float(pairs['standalone'][pairs['run'].idxmax()])


def client_loss_mean(run: pathlib.Path) -> float:
  """FeDABoost, equation 1, over the clients that have test examples."""
  return float(_honest(run)['loss'].mean())


def rounds_ahead(run: pathlib.Path, other: pathlib.Path) -> float:
  """Counts by how many rounds a run reaches the same global F1 earlier.

  The F1 is the lower of the last values of both runs: both reach it.

  Args:
    run: The run.
    other: The run that it is compared with.

  Returns:
    The difference of the first evaluated rounds with this F1 or a higher one;
    NaN if a last F1 is undefined.
  """
  curves = [
    pd.read_csv(path / 'metrics.csv').set_index('round')['global_f1']
    for path in (run, other)
  ]
  goal = min(curve.iloc[-1] for curve in curves)
  own, others = ((curve >= goal).idxmax() for curve in curves)
  return float(others - own) if np.isfinite(goal) else np.nan


def isolation_round(run: pathlib.Path) -> float:
  """The first round in which a free rider is no longer reputable."""
  reports = pd.read_csv(run / 'reports.csv')
  isolated = reports['client_id'].isin(_free_riders(run).index)
  isolated &= reports['reputable'] == 0
  return float(reports['round'][isolated].min())


def free_rider_accuracy(run: pathlib.Path) -> float:
  """The mean accuracy of the free riders' models."""
  return float(_free_riders(run)['accuracy'].mean())


def final(name: str) -> Callable[[pathlib.Path], float]:
  """A column of metrics.csv at the last evaluation."""

  def read(run):
    value = json.loads((run / 'summary.json').read_text())['final'][name]
    return np.nan if value is None else value

  return read


def change(compute: Callable[[pathlib.Path], float]) -> Callable[..., float]:
  """The difference of a metric from its value in a reference."""
  return lambda run, reference: compute(run) - compute(reference)


def window(name: str) -> Callable[[pathlib.Path], float]:
  """A variance of the clients' F1, the mean of the last ten evaluations."""

  def read(run):
    summary = json.loads((run / 'summary.json').read_text())
    value = summary[f'{name}_window']['mean']
    return np.nan if value is None else value

  return read


_mean_accuracy = final('client_accuracy_mean')


def in_degrees(
  compute: Callable[[pathlib.Path], float],
) -> Callable[[pathlib.Path], float]:
  """An angle that another metric has in radians."""
  return lambda run: float(np.degrees(compute(run)))


def _distances() -> dict[str, Metric]:
  """CoRe-Fed's distances in all spaces.

  The paper's are between parameters. It does not say in which unit its angle
  is.
  """
  metrics = {
    'parameters_d_cosine_degrees': Metric(
      title='D_cosine between parameters (degrees)',
      compute=in_degrees(final('parameters_d_cosine')),
      is_share=False,
      digits=3,
      published='d_cosine',
    )
  }
  for space, between in distances.SPACES.items():
    for name, (title, unit) in distances.DISTANCES.items():
      metrics[f'{space}_{name}'] = Metric(
        title=f'{title} between {between} ({unit})',
        compute=final(f'{space}_{name}'),
        is_share=False,
        digits=4 if name == 'd_cosine' else 2,
        published=name if space == 'parameters' else None,
      )
  return metrics


def _of_f1() -> dict[str, Metric]:
  """FeDABoost's measures of the clients' macro-F1, over two sets of labels."""
  metrics = {}
  for name, labels in (
    ('client_f1', 'labels that occur'),
    ('client_f1_own_labels', 'own labels'),
  ):
    metrics[f'{name}_median'] = Metric(
      title=f"Median of the clients' F1, {labels}",
      compute=final(f'{name}_median'),
      published='client_f1_median',
    )
    metrics[f'{name}_variance'] = Metric(
      title=f"Variance of the clients' F1, {labels} (fraction²)",
      compute=window(f'{name}_variance'),
      is_share=False,
      digits=4,
      published='client_f1_variance',
    )
  return metrics


METRICS: dict[str, Metric] = {
  'cf': Metric(
    title='CF coefficient (per cent)',
    compute=cf,
    references=('standalone',),
    is_share=False,
  ),
  'global_accuracy': Metric(
    title='Accuracy of the global model', compute=final('global_accuracy')
  ),
  'global_f1': Metric(
    title='Macro-F1 of the global model', compute=final('global_f1')
  ),
  'global_f1_lead': Metric(
    title="Macro-F1 of the global model less FedAvg's",
    compute=change(final('global_f1')),
    references=('fed_avg',),
  ),
  'global_loss': Metric(
    title='Loss of the global model',
    compute=final('global_loss'),
    is_share=False,
    digits=3,
  ),
  **_of_f1(),
  'client_accuracy_max': Metric(
    title='Maximum accuracy of the clients',
    compute=final('client_accuracy_max'),
  ),
  'client_accuracy_mean': Metric(
    title='Mean accuracy of the clients', compute=_mean_accuracy
  ),
  'client_accuracy_mean_without': Metric(
    title='Mean accuracy of the clients without the free rider',
    compute=lambda run, without: _mean_accuracy(without),
    references=('without',),
  ),
  'client_accuracy_mean_change': Metric(
    title='Mean accuracy with the free rider less that without',
    compute=change(_mean_accuracy),
    references=('without',),
  ),
  'client_accuracy_variance': Metric(
    title='Variance of the accuracy of the clients (fraction²)',
    compute=final('client_accuracy_variance'),
    is_share=False,
    digits=5,
  ),
  **_distances(),
  'above_standalone': Metric(
    title='Share of the clients above their standalone accuracy',
    compute=above_standalone,
    references=('standalone',),
  ),
  'below_standalone': Metric(
    title='Share of the clients below their standalone accuracy',
    compute=below_standalone,
    references=('standalone',),
  ),
  'standalone_accuracy_of_best': Metric(
    title='Accuracy alone of the client that is best',
    compute=standalone_accuracy_of_best,
    references=('standalone',),
  ),
  'client_loss_mean': Metric(
    title="Mean of the clients' losses",
    compute=client_loss_mean,
    is_share=False,
    digits=3,
  ),
  'rounds_ahead_of_fed_avg': Metric(
    title='Rounds less than FedAvg to the lower of their last F1',
    compute=rounds_ahead,
    references=('fed_avg',),
    is_share=False,
    digits=0,
  ),
  'isolation_round': Metric(
    title='Round in which the free rider is isolated',
    compute=isolation_round,
    is_share=False,
    undefined='never',
  ),
  'free_rider_accuracy': Metric(
    title='Accuracy of the free rider', compute=free_rider_accuracy
  ),
}


def _pair(run, standalone) -> pd.DataFrame:
  """The accuracies of the clients with data, in both runs."""
  accuracies = {
    name: _honest(path)['accuracy']
    for name, path in (('run', run), ('standalone', standalone))
  }
  return pd.DataFrame(accuracies)


def _honest(run) -> pd.DataFrame:
  clients = _clients(run)
  return clients[clients['num_train'] > 0]


def _free_riders(run) -> pd.DataFrame:
  clients = _clients(run)
  return clients[clients['num_train'] == 0]


def _clients(run) -> pd.DataFrame:
  return pd.read_csv(run / 'clients.csv', index_col='client_id')
