"""The amount of data that each client states to the server (CFFL)."""

import math

import numpy as np

from tff_fair import checks
from tff_fair.tasks import task as task_lib

# Scenario -> the amount of a client, from its labels, and the one that free
# riders state, from those of the others.
_SCENARIOS = {
  'size': (len, np.mean),
  'class': (lambda labels: len(np.unique(labels)), np.median),
}


def stated_amounts(task: task_lib.Task, scenario: str) -> list[int]:
  """Returns the amount of data that each client states.

  Clients with data are honest. Free riders state the mean ('size') or the
  median ('class') of the others' amounts, rounded, halves up.

  Args:
    task: The task.
    scenario: 'size' for the number of training examples, 'class' for the
      number of distinct labels among them.

  Returns:
    One number per client, in the order of client ids.

  Raises:
    ValueError: If there is no such scenario.
  """
  checks.check_choice('scenario', scenario, tuple(_SCENARIOS))
  amount, pretend = _SCENARIOS[scenario]
  num_honest = task.num_clients - len(task.free_riders)
  honest = [
    amount(task.data.y[split.train]) for split in task.splits[:num_honest]
  ]
  pretended = math.floor(pretend(honest) + 0.5)
  return honest + [pretended] * len(task.free_riders)
