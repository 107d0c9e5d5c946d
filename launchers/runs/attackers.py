"""Draws the clients of a run that are attackers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tff_fair import client
from tff_fair import streams
from tff_fair import tasks
from tff_fair.launchers.options import attack
from tff_fair.launchers.options import methods
from tff_fair.launchers.runs import evaluation

COLUMN = 'attacker'
"""That of clients.csv and reports.csv: 1 for an attacker, otherwise 0."""


def draw(settings: Mapping[str, Any], task: tasks.Task) -> tuple[int, ...]:
  """Draws the attackers of a run, by `--data_seed`, in ascending order.

  They are a share of the clients with training data, rounded to the nearest
  number. Without an attack there are none.

  Raises:
    ValueError: If that is nobody, or everybody.
  """
  if not attack.is_attacked(settings):
    return ()
  eligible = [i for i in range(task.num_clients) if task.num_train(i)]
  fraction = settings['attack_fraction']
  count = int(fraction * len(eligible) + 0.5)
  if not 0 < count < len(eligible):
    raise ValueError(
      'attack_fraction must make at least one of the clients with training'
      ' data an attacker, and leave at least one honest, found'
      f' {fraction:g} of {len(eligible)}.'
    )
  generator = streams.generator(settings['data_seed'], streams.ATTACKERS)
  drawn = generator.choice(eligible, count, replace=False)
  return tuple(map(int, np.sort(drawn)))


def build(
  settings: Mapping[str, Any], task: tasks.Task
) -> client.Attackers | None:
  """Builds the attackers of a run's process.

  None without an attack, and for clients that train alone: nobody receives what
  they could send.

  Raises:
    ValueError: As of `draw`.
  """
  client_ids = draw(settings, task)
  if not client_ids or _is_alone(settings):
    return None
  return client.Attackers(
    client_ids=client_ids,
    kind=settings['attack'],
    strength=settings['attack_strength'],
  )


def note(
  settings: Mapping[str, Any], task: tasks.Task, client_ids: Sequence[int]
) -> str:
  """Says who is an attacker, and that these do not count."""
  names = evaluation.listed(client_ids, task.client_names)
  alone = (
    ' Clients that train alone send nothing, so that nobody is attacked.'
    if _is_alone(settings)
    else ''
  )
  return f'{_share(settings, task, client_ids)}: {names}.{alone}'


def note_of_seeds(
  settings: Mapping[str, Any], task: tasks.Task, client_ids: Sequence[int]
) -> str:
  """Says how many attackers there are with each of several seeds."""
  return f'{_share(settings, task, client_ids)}; each seed draws its own.'


def _share(settings, task, client_ids) -> str:
  share = 100 * len(client_ids) / task.num_clients
  return (
    f'{share:.3g} % of the clients are attackers ({settings["attack"]}), left'
    ' out of the scores of clients and of fairness measures'
  )


def _is_alone(settings) -> bool:
  return methods.METHODS[settings['algorithm']].rule == 'none'
