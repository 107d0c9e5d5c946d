"""The checks that factories which take other factories share."""

from typing import Any

import tensorflow_federated as tff


def check_weighted(name: str, factory: Any) -> None:
  """Checks that an argument is a weighted aggregation factory.

  Args:
    name: What the message calls the argument.
    factory: The argument.

  Raises:
    TypeError: If it is something else.
  """
  if not isinstance(factory, tff.aggregators.WeightedAggregationFactory):
    raise TypeError(
      f'{name} must be a tff.aggregators.WeightedAggregationFactory, found'
      f' {type(factory).__name__} (wrap an unweighted factory with'
      ' tff.aggregators.as_weighted_aggregator).'
    )


def check_unweighted(name: str, factory: Any) -> None:
  """Checks that an argument is an unweighted aggregation factory.

  Args:
    name: What the message calls the argument.
    factory: The argument.

  Raises:
    TypeError: If it is something else.
  """
  if not isinstance(factory, tff.aggregators.UnweightedAggregationFactory):
    raise TypeError(
      f'{name} must be a tff.aggregators.UnweightedAggregationFactory, found'
      f' {type(factory).__name__}.'
    )
