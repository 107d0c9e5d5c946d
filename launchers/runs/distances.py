"""CoRe-Fed's distances of the clients from the global model, by evaluation.

Section 4.1 of CoRe-Fed (AAAI 2026) measures a "parameter divergence between a
client model and a global model", without the unit of its angle. So a row of
metrics.csv has both distances between parameters, the angle in radians. The
other two spaces are ours: the mean embeddings of the local models and the
global model, and the clients' accuracies and equal accuracies.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

# Name -> title and unit.
DISTANCES = {
  'd_cosine': ('D_cosine', 'radians'),
  'd_manhattan': ('D_manhattan', 'L1 norm'),
}
# Spaces of models; a model without embedding has only the first.
MODEL_SPACES = {'parameters': 'parameters', 'embedding': 'mean embeddings'}
SPACES = {**MODEL_SPACES, 'accuracy': 'accuracies'}
COLUMNS = tuple(f'{space}_{name}' for space in SPACES for name in DISTANCES)


def of_round(
  process: Any, before: Any, after: Any, data: Sequence[Any]
) -> dict[str, float]:
  """The distances of the local models of a round from its global model.

  Args:
    process: A `tff_fair.algorithms` process with `divergence`.
    before: Its state before the round.
    after: Its state after the round.
    data: The client data of the round.

  Returns:
    Column name -> value; NaN if no local model has changed.
  """
  return {
    name: float(value)
    for name, value in process.divergence(before, after, list(data)).items()
  }


def of_accuracies(
  accuracies: np.ndarray, has_data: Sequence[bool]
) -> dict[str, float]:
  """The distances of the clients' accuracies from equal accuracies.

  Args:
    accuracies: `float[k]`; NaN for a client without test data.
    has_data: Which clients have training data; the others are excluded.

  Returns:
    Column name -> value.
  """
  # Imported here: the plots import this module, and must not import TensorFlow.
  from tff_fair import metrics

  values = np.where(has_data, accuracies, np.nan)
  distances = metrics.accuracy_distances(values)
  return {f'accuracy_{name}': value for name, value in distances.items()}


def last(rounds: pd.DataFrame) -> dict[str, float]:
  """The distances in the last row of metrics.csv, if it has any."""
  return {
    name: float(rounds[name].iloc[-1]) for name in COLUMNS if name in rounds
  }
