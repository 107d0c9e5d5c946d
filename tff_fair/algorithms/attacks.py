"""Attackers in the process of any builder, without an argument of each one."""

from collections.abc import Callable
import contextvars
import dataclasses
import functools

from tff_fair import client
from tff_fair.algorithms import processes


@dataclasses.dataclass
class _Pending:
  """The attackers of the process that is being built."""

  attackers: client.Attackers
  is_used: bool = False


_PENDING: contextvars.ContextVar[_Pending | None] = contextvars.ContextVar(
  'attackers', default=None
)


def with_attackers(
  builder: Callable[..., processes.FairLearningProcess],
  attackers: client.Attackers,
) -> Callable[..., processes.FairLearningProcess]:
  """Turns a builder into one of processes with attackers.

      build = with_attackers(build_fed_avg, attackers)
      process = build(model_fn, num_clients=10, ...)

  `client.with_attackers` says what an attack changes, and what it does not.

  Args:
    builder: `build_METHOD`, or another one that makes its client work of
      `arguments.SharedArguments`.
    attackers: Which clients are attackers and what they send.

  Returns:
    A builder with the arguments of `builder`. It raises ValueError if the
    method's clients send nothing that can be attacked or have no ids, or if
    there is no such client or no honest one.

  Raises:
    TypeError: If `attackers` is of another kind.
  """
  if not isinstance(attackers, client.Attackers):
    raise TypeError(
      'attackers must be a tff_fair.client.Attackers, found'
      f' {type(attackers).__name__}.'
    )

  @functools.wraps(builder)
  def build(*arguments, **options):
    pending = _Pending(attackers)
    token = _PENDING.set(pending)
    try:
      process = builder(*arguments, **options)
    finally:
      _PENDING.reset(token)
    if not pending.is_used:
      raise ValueError(
        'attackers must be given with a builder whose client work is of'
        ' `SharedArguments`, found another one.'
      )
    return process

  return build


def refuse(method: str, reason: str) -> None:
  """Raises ValueError if the process that is being built has attackers.

  Args:
    method: The method's name.
    reason: Why there is nothing to attack, after 'whose clients'.
  """
  if _PENDING.get() is not None:
    raise ValueError(
      'attackers must be given with a method whose clients send an update,'
      f' found {method}, whose clients {reason}.'
    )


def attacked(
  client_update: client.ClientUpdate, num_clients: int | None, num_classes: int
) -> client.ClientUpdate:
  """A client update with the attackers of the process that is being built.

  Args:
    client_update: The method's.
    num_clients: Number of clients; None for plain data.
    num_classes: Number of classes.

  Returns:
    `client_update` itself if there are none.

  Raises:
    ValueError: If clients have no ids, an attacker is none of them, or none is
      left that is honest.
  """
  pending = _PENDING.get()
  if pending is None:
    return client_update
  _check_ids(pending.attackers, num_clients)
  pending.is_used = True
  return client.with_attackers(client_update, pending.attackers, num_classes)


def described() -> dict[str, str]:
  """The attackers of the process that is being built, for its `repr`."""
  pending = _PENDING.get()
  if pending is None:
    return {}
  found = pending.attackers
  size = '' if found.size is None else f' of strength {found.size:g}'
  return {'attackers': f'{len({*found.client_ids})} by {found.kind}{size}'}


def _check_ids(attackers, num_clients) -> None:
  if num_clients is None:
    raise ValueError(
      'num_clients must be given with attackers, which are found by their id,'
      ' found None.'
    )
  ids = {*attackers.client_ids}
  if max(ids) >= num_clients:
    raise ValueError(
      f'The id of an attacker must be in the range [0, {num_clients - 1}],'
      f' found {max(ids)}.'
    )
  if len(ids) == num_clients:
    raise ValueError(
      f'attackers must leave one of the {num_clients} clients honest, found'
      ' all of them.'
    )
