"""A check of the type signature of an aggregation process."""

from typing import Any

import tensorflow_federated as tff


def check(
  process: tff.templates.AggregationProcess,
  *,
  state: Any,
  value: Any,
  measurements: Any,
) -> None:
  """Checks the types, containers included, of what a process returns.

  Args:
    process: The process, which must be weighted.
    state: Unplaced type of the state.
    value: Unplaced type of the result.
    measurements: Unplaced type of the measurements.
  """
  assert process.is_weighted
  output = process.next.type_signature.result
  for found, expected in (
    (process.initialize.type_signature.result, state),
    (output.state, state),
    (output.result, value),
    (output.measurements, measurements),
  ):
    tff.test.assert_types_identical(
      found, tff.FederatedType(expected, tff.SERVER)
    )
