"""CoRe-Fed's distances of the clients from the global model.

Section 4.1 of CoRe-Fed (AAAI 2026) measures a "parameter divergence between a
client model and a global model", without the unit of its angle. So a row of
metrics.csv has both distances between parameters, the angle in radians. The
other two spaces are ours: the mean embeddings of the local models and the
global model, and the clients' accuracies and equal accuracies.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tff_fair.launchers.runs import callbacks

# Name -> title and unit.
DISTANCES = {
  'd_cosine': ('D_cosine', 'radians'),
  'd_manhattan': ('D_manhattan', 'L1 norm'),
}
# Spaces of models; a model without embedding has only the first.
MODEL_SPACES = {'parameters': 'parameters', 'embedding': 'mean embeddings'}
SPACES = {**MODEL_SPACES, 'accuracy': 'accuracies'}
COLUMNS = tuple(f'{space}_{name}' for space in SPACES for name in DISTANCES)


class Distances(callbacks.Callback):
  """Adds the distances to the rows of evaluated rounds."""

  def __init__(self, *, only_last: bool = False):
    """Measures after each evaluation, or after the last round alone."""
    self._only_last = only_last

  def after_round(self, run, result):
    """Measures; for this the clients of the round are trained once more."""
    if not run.settings['distances'] or result.scores is None:
      return
    if self._only_last and result.number < run.settings['rounds']:
      return
    found = run.process.divergence(
      result.before, result.state, list(result.data)
    )
    # NaN if no local model has changed.
    result.row.update({name: float(value) for name, value in found.items()})
    scores = result.scores.get('personal', result.scores['global'])
    result.row.update(of_accuracies(scores.accuracy, run.is_scored))


def of_accuracies(
  accuracies: np.ndarray, is_scored: Sequence[bool]
) -> dict[str, float]:
  """Measures how far accuracies, float[k], are from equal ones, by column.

  Clients without training or test data, whose accuracy is NaN, are excluded.
  """
  # Imported here: the plots import this module, and must not import TensorFlow.
  from tff_fair import metrics

  values = np.where(is_scored, accuracies, np.nan)
  distances = metrics.accuracy_distances(values)
  return {f'accuracy_{name}': value for name, value in distances.items()}


def last(rounds: pd.DataFrame) -> dict[str, float]:
  """Returns the distances in the last row of metrics.csv, if it has any."""
  return {
    name: float(rounds[name].iloc[-1]) for name in COLUMNS if name in rounds
  }
