"""Which values of its parameters a method tries.

Every method tries as many values of the same learning rates. Its own one or two
parameters, `Method.tuned`, vary at the same time: trial t takes the t-th point
of the Halton sequence, whose first coordinate is the place in the grid of
learning rates and whose others are places in the lists of the entry. So a
method with more parameters gets no more trials than FedAvg, which has none.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tff_fair.launchers.options.methods import entry

_FEWEST_RATES = 8
# Optimiser -> the lowest and the highest learning rate.
_RATES: Mapping[str, tuple[float, float]] = {'sgd': (0.01, 1.0)}
_ADAPTIVE_RATES = (1e-4, 1e-2)


def learning_rates(optimizer: str, count: int) -> list[float]:
  """The grid of learning rates, the same for all methods.

  Args:
    optimizer: `--client_optimizer`.
    count: The number of trials.

  Returns:
    The rates in equal ratios, ascending, with two digits: eight of them, or as
    many as there are trials, rounded up to a power of two.
  """
  size = _FEWEST_RATES
  while size < count:
    size *= 2
  grid = np.geomspace(*_RATES.get(optimizer, _ADAPTIVE_RATES), size)
  return [float(f'{rate:.2g}') for rate in grid]


def of_method(
  method: entry.Method, optimizer: str, count: int
) -> list[dict[str, Any]]:
  """The trials of a method.

  Args:
    method: The method.
    optimizer: `--client_optimizer`.
    count: The number of trials; 0 for one without other values than the usual
      ones.

  Returns:
    For each trial the flags to set and their values.
  """
  if count == 0:
    return [{}]
  # Takes a second to import.
  from scipy.stats import qmc

  grid = {
    'client_learning_rate': learning_rates(optimizer, count),
    **method.tuned,
  }
  points = qmc.Halton(len(grid), scramble=False).random(count)
  return [
    {
      name: values[int(place * len(values))]
      for (name, values), place in zip(grid.items(), point, strict=True)
    }
    for point in points
  ]
