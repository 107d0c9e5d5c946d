"""The base of this package's aggregation factories."""

import abc
from collections.abc import Callable, Mapping
import dataclasses
import typing
from typing import Any

import tensorflow_federated as tff

from tff_fair import annotations
from tff_fair import checks
from tff_fair import summary
from tff_fair.aggregators import type_checks


class Factory(tff.aggregators.WeightedAggregationFactory):
  """A weighted rule whose arguments are the fields of a dataclass.

  A rule checks its arguments when it is made, says which weights it takes, and
  makes a process of two types that have been checked.

  Raises:
    TypeError: If an argument of the rule is of the wrong kind.
    ValueError: If a number is out of range, or a choice unknown.
  """

  def __post_init__(self) -> None:
    """Checks each argument by its annotation."""
    hints = typing.get_type_hints(type(self), include_extras=True)
    for field in dataclasses.fields(self):
      hint, value = hints[field.name], getattr(self, field.name)
      annotation = annotations.read(hint)
      annotation.check(field.name, value)
      if value is None and annotation.optional:
        continue
      if annotation.kind in (int, float):
        setattr(self, field.name, annotation.kind(value))
      _check_part(field.name, value, (hint, *typing.get_args(hint)))

  def create(
    self, value_type: tff.Type, weight_type: tff.Type
  ) -> tff.templates.AggregationProcess:
    """Creates the process of the rule.

    Args:
      value_type: Type of a client's value: a structure of float32 tensors of
        known shape, unless the class says otherwise.
      weight_type: Type of a client's weight; see the class.

    Returns:
      A weighted `tff.templates.AggregationProcess`.

    Raises:
      TypeError: If a type is not as required.
    """
    self._check_value_type(value_type)
    required = self._required_weight_type(value_type)
    if required is not None:
      type_checks.check_weight_type(self, required, weight_type)
    return self._create(value_type, weight_type)

  def __repr__(self) -> str:
    """The arguments that differ from their defaults."""
    texts = [
      (field, summary.format_value(getattr(self, field.name)))
      for field in dataclasses.fields(self)
    ]
    given = [
      f'{field.name}={text}'
      for field, text in texts
      if text != summary.format_value(field.default)
    ]
    return f'{type(self).__name__}({", ".join(given)})'

  def _check_value_type(self, value_type: tff.Type) -> None:
    type_checks.check_float32(self, value_type)

  def _required_weight_type(self, value_type: tff.Type) -> Any:
    """The weight type of the rule; None if it takes any."""
    del value_type  # Unused.

  @abc.abstractmethod
  def _create(
    self, value_type: tff.Type, weight_type: tff.Type
  ) -> tff.templates.AggregationProcess:
    """The process for two types that are as required."""


def _check_part(name: str, value: Any, members: tuple[Any, ...]) -> None:
  """Checks an argument that is a function or another factory."""
  if any(typing.get_origin(member) is Callable for member in members):
    checks.check_function(name, value, 'tensors')
  if tff.aggregators.WeightedAggregationFactory in members:
    type_checks.check_weighted(name, value)
  if tff.aggregators.UnweightedAggregationFactory in members:
    type_checks.check_unweighted(name, value)


def create_mean(
  inner_agg_factory: tff.aggregators.WeightedAggregationFactory | None,
  value_type: tff.Type,
  weight_type: tff.Type,
) -> tff.templates.AggregationProcess:
  """Creates a rule's inner mean; None is TFF's, of zero clients 0."""
  if inner_agg_factory is None:
    inner_agg_factory = tff.aggregators.MeanFactory(no_nan_division=True)
  return inner_agg_factory.create(value_type, weight_type)


def build_process(
  initialize: Callable[[], Any],
  next_fn: Callable[[Any, Any, Any], tuple[Any, Any, Any]],
  value_type: tff.Type,
  weight_type: tff.Type,
) -> tff.templates.AggregationProcess:
  """Builds a process of the bodies of its two computations.

  `initialize` may be the computation itself. `next_fn` gives state, result and
  measurements; tuples and dictionaries of federated values are zipped.
  """

  @tff.federated_computation
  def init_fn():
    return _zipped(initialize())

  @tff.federated_computation(
    init_fn.type_signature.result,
    tff.FederatedType(value_type, tff.CLIENTS),
    tff.FederatedType(weight_type, tff.CLIENTS),
  )
  def next_computation(state, value, weight):
    return tff.templates.MeasuredProcessOutput(
      *map(_zipped, next_fn(state, value, weight))
    )

  return tff.templates.AggregationProcess(init_fn, next_computation)


def _zipped(value: Any) -> Any:
  if isinstance(value, (tuple, Mapping)):
    return tff.federated_zip(value)
  return value
