"""The entry of a method: everything but its arithmetic."""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

from tff_fair.launchers.options import flag_types

GROUPS = ('fair', 'personal')
"""For `Method.groups`: made to be fair to clients; a model for each client."""

NO_GLOBAL_MODEL = {'distances': {}, 'fine_tune_epochs': {}}
"""For `Method.ignores`: a round leads from no global model to the next."""

PROVIDED: Mapping[str, tuple[str, ...]] = {
  'amounts': ('scenario',),
  'contributions': (),
  'free_riders': ('free_riders', 'free_rider_kind'),
  'personal_learning_rate_fn': ('personal_learning_rate',),
  'personal_optimizer': (
    'personal_optimizer',
    'personal_learning_rate',
    'personal_weight_decay',
  ),
  'positive_class': (),
  'statistics': (),
  'total_examples': (),
  'validation': (),
}
"""Arguments that `launchers.runs.processes` makes of a run, each with the flags
of the method that it needs for that."""


@dataclasses.dataclass(frozen=True)
class Signature:
  """The facts that `launchers.options.builders` reads from a builder.

  Attributes:
    flags: A flag for each argument that can be one.
    defaults: Defaults of shared flags, where the builder has another.
    ignores: Shared flags whose argument it does not have.
    arguments: Its arguments that are among `PROVIDED`.
  """

  flags: Sequence[flag_types.Flag] = ()
  defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  ignores: Sequence[str] = ()
  arguments: Sequence[str] = ()

  def to_json(self) -> dict[str, Any]:
    """The signature as values of JSON, for `from_json`."""
    flags = [flag_types.to_json(flag) for flag in self.flags]
    return {**vars(self), 'flags': flags}

  @classmethod
  def from_json(cls, values: Mapping[str, Any]) -> 'Signature':
    """The signature of what `to_json` gives.

    Args:
      values: What it gives.
    """
    flags = tuple(map(flag_types.from_json, values.get('flags', ())))
    return cls(**{**values, 'flags': flags})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Method:
  """One method.

  Its hyper-parameters are the arguments of its builder: `with_signature` adds
  their flags, and which of the shared flags (launchers/options/flags.json) the
  builder takes. What an entry itself says of a flag goes before.

  Attributes:
    name: The value of `--algorithm`.
    title: Its name in papers.
    summary: What it does, in a few words.
    rule: The aggregation rule, for the overview in docs/.
    compared_with: The papers that have it as a baseline; none for the papers'
      own methods, and for those that none of them compares with.
    flags: Flags that its builder's signature does not have, since they set an
      argument together, or that differ from it. A flag with the name of a
      shared one takes the place of that.
    without_flag: Arguments of its builder that have no flag, and keep their
      default.
    arguments: Arguments of its builder that are among `PROVIDED`.
    defaults: Defaults of shared flags, where this method has another.
    required: Values of shared flags without which it does not work.
    ignores: Shared flags without effect on it, each with the values of its own
      flags under which this is so; with no values it is always so.
    builder: Where its builder is, as 'module:name'; empty if it is `build_NAME`
      of `tff_fair.algorithms`.
    sends: What a client sends beside its update, in words; nothing if it is
      empty. None if that is not known: then there is no private training. Of a
      rule that is no plain mean it need not be said.
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
  without_flag: Sequence[str] = ()
  arguments: Sequence[str] = ()
  defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  required: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  ignores: Mapping[str, Mapping[str, Any]] = dataclasses.field(
    default_factory=dict
  )
  builder: str = ''
  sends: str | None = None
  takes_turns: bool = False
  groups: Sequence[str] = ()
  tuned: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)

  @property
  def needs_groups(self) -> bool:
    """Whether its clients must know the group of people of each example."""
    return 'positive_class' in self.arguments

  @property
  def has_global_model(self) -> bool:
    """Whether a round leads from a global model to the next one."""
    return self.ignores.get('distances') != NO_GLOBAL_MODEL['distances']

  def with_signature(self, signature: Signature) -> 'Method':
    """The entry, with what its builder's signature says.

    Args:
      signature: The signature.
    """
    without = {*self.without_flag}
    for flag in self.flags:
      without |= {flag.name, flag.argument}
    flags = (
      *(flag for flag in signature.flags if flag.name not in without),
      *self.flags,
    )
    names = {flag.name for flag in flags}
    ignored = {name: {} for name in signature.ignores if name not in names}
    provided = [n for n in signature.arguments if names >= {*PROVIDED[n]}]
    return dataclasses.replace(
      self,
      flags=flags,
      defaults={**signature.defaults, **self.defaults},
      ignores={**ignored, **self.ignores},
      arguments=tuple(dict.fromkeys((*provided, *self.arguments))),
    )
