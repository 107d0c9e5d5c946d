"""Flags as data: name, default, limits and help.

A run's settings are described by these classes alone. absl's flags, `--help`,
the checks of `launchers.options.settings` and the option tables in docs/ are
made of them. Nothing here imports TensorFlow.
"""

from collections.abc import Collection, Mapping, Sequence
import dataclasses
import math
from typing import Any, ClassVar

from tff_fair import annotations


@dataclasses.dataclass(frozen=True)
class Flag:
  """A flag.

  Attributes:
    name: Its name, without dashes.
    default: Its default value.
    help: What it does: for `--help` and for the tables in docs/.
    symbol: The paper's symbol for it.
    argument: The argument of the method's builder that it sets, alone or
      together with other flags; by default the one with the flag's name.
    unless: When the flag has no effect: each mapping holds values of other
      flags that cause this.
    follows: The flag whose value it has if it is not given.
  """

  kind: ClassVar[str] = ''  # The name of absl's function after `DEFINE_`.

  name: str
  default: Any = None
  help: str = ''
  _: dataclasses.KW_ONLY
  symbol: str = ''
  argument: str = ''
  unless: Sequence[Mapping[str, Any]] = ()
  follows: str = ''

  def limits(self) -> str:
    """Describes the legal values of the type; empty if all are legal."""
    return self._limits()

  def violated(self, value: Any) -> str:
    """Returns the limits if a value of the type violates them, else ''."""
    if isinstance(value, float) and not math.isfinite(value):
      return 'finite'
    return '' if self._allows(value) else self.limits()

  def _limits(self) -> str:
    return ''

  def _allows(self, value: Any) -> bool:
    del value  # Unused.
    return True


@dataclasses.dataclass(frozen=True)
class Switch(Flag):
  """A flag that is on or off."""

  kind: ClassVar[str] = 'boolean'


@dataclasses.dataclass(frozen=True)
class Choice(Flag):
  """A flag with a fixed set of values.

  Attributes:
    choices: The values; of a registry a view, which has what plug-ins add.
  """

  kind: ClassVar[str] = 'enum'

  _: dataclasses.KW_ONLY
  choices: Collection[str]

  def _limits(self) -> str:
    return f'one of {", ".join(self.choices)}'

  def _allows(self, value: str) -> bool:
    return value in self.choices


@dataclasses.dataclass(frozen=True)
class Real(Flag):
  """A flag whose value is a finite number; see `annotations.Limits`."""

  kind: ClassVar[str] = 'float'

  _: dataclasses.KW_ONLY
  minimum: float | None = None
  above: float | None = None
  maximum: float | None = None
  below: float | None = None

  def _limits(self) -> str:
    return str(self._range())

  def _allows(self, value: float) -> bool:
    return self._range().allow(value)

  def _range(self) -> annotations.Limits:
    names = [field.name for field in dataclasses.fields(annotations.Limits)]
    return annotations.Limits(**{name: getattr(self, name) for name in names})


@dataclasses.dataclass(frozen=True)
class Integer(Real):
  """A flag whose value is an integer.

  Attributes:
    choices: The only values, if there are few.
  """

  kind: ClassVar[str] = 'integer'

  _: dataclasses.KW_ONLY
  choices: Sequence[int] = ()

  def _limits(self) -> str:
    return ' or '.join(map(str, self.choices)) or super()._limits()

  def _allows(self, value: int) -> bool:
    return value in (self.choices or [value]) and super()._allows(value)


@dataclasses.dataclass(frozen=True)
class Text(Flag):
  """A flag whose value is a line of text."""

  kind: ClassVar[str] = 'string'

  def _limits(self) -> str:
    return 'a line of text without blanks at its ends'

  def _allows(self, value: str) -> bool:
    # Anything else could not be read back from a flags file.
    return value.isprintable() and value == value.strip()


@dataclasses.dataclass(frozen=True)
class Texts(Text):
  """A flag that may be repeated; its value is a list of lines of text."""

  kind: ClassVar[str] = 'multi_string'

  def _allows(self, value: Sequence[str]) -> bool:
    return all(map(super()._allows, value))


@dataclasses.dataclass(frozen=True)
class Path(Text):
  """A flag whose value is a file or a folder; see `paths`."""

  kind: ClassVar[str] = 'path'


@dataclasses.dataclass(frozen=True)
class Paths(Texts):
  """A flag that may be repeated; its value is a list of files or folders."""

  kind: ClassVar[str] = 'multi_path'


def merge(variants: Sequence[Flag]) -> Flag:
  """One flag with the choices of several flags of the same name.

  Raises:
    TypeError: If the flags are of different kinds.
  """
  first = variants[0]
  if any(type(flag) is not type(first) for flag in variants):
    raise TypeError(
      f'--{first.name} must be of the same kind for all methods, found'
      f' {", ".join(type(flag).__name__ for flag in variants)}.'
    )
  if not isinstance(first, Choice):
    return first
  choices = [choice for flag in variants for choice in flag.choices]
  return dataclasses.replace(first, choices=tuple(dict.fromkeys(choices)))


def to_json(flag: Flag) -> dict[str, Any]:
  """A flag as values of JSON: its class, and what is no default."""
  values = {
    field.name: getattr(flag, field.name)
    for field in dataclasses.fields(flag)
    if getattr(flag, field.name) != field.default
  }
  return {'type': type(flag).__name__, **values}


def from_json(values: Mapping[str, Any]) -> Flag:
  """The flag of what `to_json` gives."""
  types = (Switch, Choice, Integer, Real, Text, Texts, Path, Paths)
  kinds = {kind.__name__: kind for kind in types}
  values = dict(values)
  return kinds[values.pop('type')](**values)
