"""The entry of a method: everything but its arithmetic."""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

from tff_fair.launchers.options import flag_types

GROUPS = ('fair', 'personal')
"""For `Method.groups`: made to be fair to clients; a model for each client."""

NO_SERVER_STEP = {'server_optimizer': {}, 'server_learning_rate': {}}
"""For `Method.ignores`: the server takes no step that optimisers make."""

NO_GLOBAL_MODEL = {'distances': {}}
"""For `Method.ignores`: a round leads from no global model to the next."""

NO_ROBUST_RULE = {'robust': {}}
"""For `Method.ignores`: the builder has no such argument.

Its rule is bounded already, or it needs the updates as they are.
"""


@dataclasses.dataclass(frozen=True)
class Argument:
  """An argument of a builder that is not the flag of its name.

  Attributes:
    name: Its name.
    help: What it is, for the tables in docs/.
    symbol: The paper's symbol for it.
    provided: Whether `launchers.runs.processes` provides it, from flags or from
      the task; otherwise the builder's default is kept.
  """

  name: str
  help: str
  symbol: str = ''
  provided: bool = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class Method:
  """One method.

  Flags that all methods share are in `launchers.options.run_flags`.

  Attributes:
    name: The value of `--algorithm`, and what follows `build_` in the name of
      the builder.
    title: Its name in papers.
    summary: What it does, in a few words.
    rule: The aggregation rule, for the overview in docs/.
    compared_with: The papers that have it as a baseline; none for the papers'
      own methods.
    flags: Its hyper-parameters. A flag with the name of a shared one takes the
      place of that.
    arguments: Arguments of its builder that are not the flag of their name.
    defaults: Defaults of shared flags, where this method has another.
    required: Values of shared flags without which it does not work.
    ignores: Shared flags without effect on it, each with the values of its own
      flags under which this is so; with no values it is always so.
    takes_turns: Whether clients take turns: a round calls `next` once for each
      client. `launchers.compare` does not rank such a method with others.
    groups: Which questions it answers, of `GROUPS`.
    tuned: The one or two flags that decide how well it does, each with the
      values that `launchers.compare` tries, for any task.
  """

  name: str
  title: str
  summary: str
  rule: str = 'tff.aggregators.MeanFactory'
  compared_with: Sequence[str] = ()
  flags: Sequence[flag_types.Flag] = ()
  arguments: Sequence[Argument] = ()
  defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  required: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  ignores: Mapping[str, Mapping[str, Any]] = dataclasses.field(
    default_factory=dict
  )
  takes_turns: bool = False
  groups: Sequence[str] = ()
  tuned: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
