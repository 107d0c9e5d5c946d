"""Reads the limits and choices of arguments from a builder's signature.

    proximal_weight: Annotated[float, Limits(minimum=0), Symbol('μ')] = 0.01

The checks of arguments follow from this; with the first sentence of the
docstring's entry also flags, `--help` and the tables in docs/. Nothing here
imports TensorFlow.
"""

from collections.abc import Mapping
import dataclasses
import types
import typing
from typing import Any

from tff_fair import checks

# What TensorFlow graphs hold; smaller positive numbers may count as 0.
_MIN_INT32, _MAX_INT32 = -(2**31), 2**31 - 1
_MIN_FLOAT32 = 2.0**-126


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
  """The range of a number; as text such as 'at least 0 and below 1'.

  Attributes:
    minimum: The least value, if there is one.
    above: What the value must exceed, if it must exceed something.
    maximum: The largest value, if there is one.
    below: What must exceed the value, if something must.
  """

  minimum: float | None = None
  above: float | None = None
  maximum: float | None = None
  below: float | None = None

  def __str__(self) -> str:
    limits = {
      'at least': self.minimum,
      'above': self.above,
      'at most': self.maximum,
      'below': self.below,
    }
    return ' and '.join(
      f'{words} {limit}' for words, limit in limits.items() if limit is not None
    )

  def allow(self, value: float) -> bool:
    """Returns whether a number is in the range.

    Args:
      value: The number.
    """
    return (
      (self.minimum is None or value >= self.minimum)
      and (self.above is None or value > self.above)
      and (self.maximum is None or value <= self.maximum)
      and (self.below is None or value < self.below)
    )


class Symbol(str):
  """The paper's symbol for an argument."""


class Unless(dict):
  """Values of other arguments that leave this one without effect.

  `Unless(variant='refed', alignment='server')`: both together. An argument may
  have several.
  """


@dataclasses.dataclass(frozen=True)
class Annotation:
  """The limits and choices of one annotation.

  Attributes:
    kind: The type of a legal value: bool, int, float or, with choices, str;
      None for any other annotation.
    optional: Whether None is legal, too.
    choices: The only legal values, from a `Literal`.
    limits: The range of a number.
    symbol: The paper's symbol.
    unless: What leaves the argument without effect.
  """

  kind: type | None = None
  optional: bool = False
  choices: tuple[Any, ...] = ()
  limits: Limits = Limits()
  symbol: str = ''
  unless: tuple[Mapping[str, Any], ...] = ()

  def check(self, name: str, value: Any) -> None:
    """Checks a value of the argument.

    Args:
      name: The argument.
      value: Its value.

    Raises:
      TypeError: If it is not a number and should be one.
      ValueError: If it is out of range, or none of the choices.
    """
    if self.kind is None or (value is None and self.optional):
      return
    if self.choices or self.kind is bool:
      checks.check_choice(name, value, self.choices or (False, True))
      return
    if self.kind is int:
      most = self.limits.maximum
      checks.check_count(
        name, value, _MIN_INT32, _MAX_INT32 if most is None else int(most)
      )
    else:
      checks.check_real(name, value)
    if not self.limits.allow(value):
      raise ValueError(f'{name} must be {self.limits}, found {value}.')
    if self.limits.above == 0 and value < _MIN_FLOAT32:
      raise ValueError(
        f'{name} must be at least {_MIN_FLOAT32:.3g}, found {value}.'
      )


def read(annotation: Any) -> Annotation:
  """Reads an annotation.

  Args:
    annotation: Of a signature, not as text.

  Returns:
    What it says; nothing for types that are none of a flag.
  """
  metadata: tuple[Any, ...] = ()
  if typing.get_origin(annotation) is typing.Annotated:
    annotation, *metadata = typing.get_args(annotation)
  members = (annotation,)
  if typing.get_origin(annotation) in (typing.Union, types.UnionType):
    members = typing.get_args(annotation)
  found = [member for member in members if member is not types.NoneType]
  choices = ()
  if typing.get_origin(found[0]) is typing.Literal:
    choices = typing.get_args(found[0])
    found = [type(choices[0])]
  known = len(found) == 1 and found[0] in (bool, int, float, str)
  if known and found[0] is str:
    known = bool(choices)
  limits = [part for part in metadata if isinstance(part, Limits)]
  symbols = [part for part in metadata if isinstance(part, Symbol)]
  return Annotation(
    kind=found[0] if known else None,
    optional=types.NoneType in members,
    choices=choices,
    limits=limits[0] if limits else Limits(),
    symbol=symbols[0] if symbols else '',
    unless=tuple(part for part in metadata if isinstance(part, Unless)),
  )
