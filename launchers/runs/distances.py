"""CoRe-Fed's distances between clients and what they share, of each evaluation.

CoRe-Fed (AAAI 2026), table 1, does not say between what it measures. So a row
of metrics.csv has both distances in three spaces: between the parameters and
between the mean embeddings of the clients' models and the global one, and
between the clients' accuracies and equal ones.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

# What they are called, and in which unit they are.
DISTANCES = {
  'd_cosine': ('D_cosine', 'radians'),
  'd_manhattan': ('D_manhattan', 'L1 norm'),
}
# In which models differ; a model without embedding has but the first.
MODEL_SPACES = {'parameters': 'parameters', 'embedding': 'mean embeddings'}
SPACES = {**MODEL_SPACES, 'accuracy': 'accuracies'}
COLUMNS = tuple(f'{space}_{name}' for space in SPACES for name in DISTANCES)


def of_round(
  process: Any, before: Any, after: Any, data: Sequence[Any]
) -> dict[str, float]:
  """The distances of a round's local models from its global one.

  Args:
    process: A `tff_fair.algorithms` process with `divergence`.
    before: Its state before the round.
    after: Its state after it.
    data: The client data of the round.

  Returns:
    Column name -> value; NaN if no client's model has moved.
  """
  return {
    name: float(value)
    for name, value in process.divergence(before, after, list(data)).items()
  }


def of_accuracies(
  accuracies: np.ndarray, has_data: Sequence[bool]
) -> dict[str, float]:
  """The distances of the clients' accuracies from equal ones.

  Args:
    accuracies: `float[k]`; NaN for a client without test data.
    has_data: Which clients have training data; the others are left out.

  Returns:
    Column name -> value.
  """
  # Imported here because pictures need this module, and not TensorFlow.
  from tff_fair import metrics

  values = np.where(has_data, accuracies, np.nan)
  distances = metrics.accuracy_distances(values)
  return {f'accuracy_{name}': value for name, value in distances.items()}


def last(rounds: pd.DataFrame) -> dict[str, float]:
  """The distances in the last row of metrics.csv, as far as it has them."""
  return {
    name: float(rounds[name].iloc[-1]) for name in COLUMNS if name in rounds
  }
