"""The clients' final accuracies as means over the last rounds."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tff_fair import metrics


def averaged_rounds(settings: Mapping[str, Any]) -> range:
  """The rounds over which the clients' final accuracies are averaged.

  Args:
    settings: The flag values of the run.

  Returns:
    The last `score_last` rounds; without it, the last one.
  """
  rounds = settings['rounds']
  return range(rounds - (settings['score_last'] or 1) + 1, rounds + 1)


def with_accuracies(
  scores: Mapping[str, metrics.ClientScores], accuracies: np.ndarray
) -> dict[str, metrics.ClientScores]:
  """The scores of an evaluation with other accuracies of the clients.

  Args:
    scores: As of `evaluation.evaluate`.
    accuracies: `float64[k]`, the clients' accuracies, means over rounds.

  Returns:
    The scores; all but the clients' accuracies are as they were.
  """
  model = 'personal' if 'personal' in scores else 'global'
  return {**scores, model: scores[model]._replace(accuracy=accuracies)}
