"""The guarantee of a private run's noise: a column, and a sentence."""

from collections.abc import Mapping
from typing import Any

from tff_fair import privacy
from tff_fair.launchers.options import private
from tff_fair.launchers.runs import building
from tff_fair.launchers.runs import callbacks


class Privacy(callbacks.Callback):
  """Adds epsilon and its delta after each round to the row."""

  def after_round(self, run, result):
    """Counts the rounds so far, those of earlier starts among them."""
    result.row.update(after(run.accounting, result.number))


def build_accounting(
  settings: Mapping[str, Any], task: Any
) -> privacy.Accounting | None:
  """Builds the accounting of a run; None if it is not private.

  Raises:
    ValueError: If too few clients train.
  """
  if not private.is_private(settings):
    return None
  clients, size = building.sampled_clients(settings, task)
  if len(clients) < 2:
    raise ValueError(
      'dp_noise_multiplier must be given for at least 2 clients with training'
      f' data, found {len(clients)}.'
    )
  return privacy.Accounting(
    noise_multiplier=float(settings['dp_noise_multiplier']),
    num_clients=len(clients),
    clients_per_round=size,
  )


def after(
  accounting: privacy.Accounting | None, num_rounds: int
) -> dict[str, float]:
  """Returns the columns after some rounds; none of a run without noise."""
  if accounting is None:
    return {}
  return {
    'epsilon': accounting.epsilon(num_rounds),
    'delta': accounting.delta,
  }


def note(accounting: privacy.Accounting) -> str:
  """Says what is private, and what is not."""
  size, number = accounting.clients_per_round, accounting.num_clients
  cohort = (
    f'{size} of {number} clients drawn each round'
    if accounting.is_sampled
    else f'all {number} clients each round'
  )
  return (
    'Epsilon is that of the global model, where all data of one client are'
    f" replaced by others', with {cohort}; all clients count the same, and"
    ' measurements and scores are outside of the guarantee.'
  )
