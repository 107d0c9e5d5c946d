"""Checks of the factories and types that aggregation factories are given."""

from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff


def check_weighted(name: str, factory: Any) -> None:
  """Raises TypeError unless an argument is a weighted aggregation factory."""
  required = tff.aggregators.WeightedAggregationFactory
  tip = ' (wrap an unweighted factory with tff.aggregators.as_weighted_'
  _check_factory(name, factory, required, f'{tip}aggregator)')


def check_unweighted(name: str, factory: Any) -> None:
  """Raises TypeError unless an argument is an unweighted factory."""
  required = tff.aggregators.UnweightedAggregationFactory
  _check_factory(name, factory, required)


def check_float32(who: Any, value_type: tff.Type) -> None:
  """Raises TypeError unless values are float32 of known shape, not empty."""
  good = has_known_entries(value_type) and all(
    t.dtype == np.float32 for t in _tensor_types(value_type)
  )
  if not good:
    raise TypeError(
      f'{type(who).__name__} requires values that are structures of float32'
      ' tensors of known shape, with one entry at least. Found type:'
      f' {value_type!r}.'
    )


def has_known_entries(value_type: tff.Type) -> bool:
  """Returns whether a type has tensors of known shapes, not all empty."""
  shapes = [tf.TensorShape(t.shape) for t in _tensor_types(value_type)]
  known = all(shape.is_fully_defined() for shape in shapes)
  return known and any(shape.num_elements() for shape in shapes)


def check_weight_type(who: Any, required: Any, found: tff.Type) -> None:
  """Raises TypeError unless weights are of a type; None is any known size."""
  required = tff.types.to_type(required)
  fits = required.is_assignable_from(found) and has_known_entries(found)
  if not fits or _names(required) != _names(found):
    sizes = ' with known sizes' if '?' in str(required) else ''
    raise TypeError(
      f'{who!r} requires the weight type {required}{sizes}. Found type:'
      f' {found!r}.'
    )


def _check_factory(name, factory, required, tip='') -> None:
  if not isinstance(factory, required):
    raise TypeError(
      f'{name} must be a tff.aggregators.{required.__name__}, found'
      f' {type(factory).__name__}{tip}.'
    )


def _tensor_types(value_type) -> list[tff.TensorType]:
  """The tensor types within a structure of tensors; none of another type."""
  tensor_types: list[tff.TensorType] = []
  if tff.types.is_structure_of_tensors(value_type):
    tff.types.structure_from_tensor_type_tree(tensor_types.append, value_type)
  return tensor_types


def _names(value_type) -> Any:
  """The names in a structure of types, which assignability does not compare."""
  if not isinstance(value_type, tff.StructType):
    return None
  return [
    (name, _names(t)) for name, t in tff.structure.iter_elements(value_type)
  ]
