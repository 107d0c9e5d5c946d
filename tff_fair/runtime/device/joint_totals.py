"""The aggregations of a stage with few clients, all of them in one call."""

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from tff_fair.runtime.device import aggregation
from tff_fair.runtime.device import client_stage
from tff_fair.runtime.device import tracing
from tff_fair.runtime.device import values

# Numbers of clients and parts of a stage for which there are functions.
_MAX_SIZES = 3


def find_totals(
  stage: client_stage.ClientStage,
  functions: Sequence[client_stage.Functions],
  value_specs: Sequence[tf.TensorSpec],
  num_clients: int,
  num_parts: int,
) -> 'JointTotals | None':
  """The totals of a stage, as `JointTotals`; None if they are made apart.

  So they are beyond a few sizes of cohorts, as each is a function of its own.
  """
  key = num_clients, num_parts
  if key not in stage.joint_totals:
    if len(stage.joint_totals) >= _MAX_SIZES:
      return None
    try:
      stage.joint_totals[key] = JointTotals(
        stage.aggregations, functions, value_specs, *key
      )
    except tracing.NotTraceableError:
      stage.joint_totals[key] = None
  return stage.joint_totals[key]


class JointTotals:
  """Aggregates values that are stacked in parts.

  The order is that of `aggregation`, and so are the bits.
  """

  def __init__(
    self,
    aggregations: Sequence[client_stage.StageAggregation],
    functions: Sequence[client_stage.Functions],
    value_specs: Sequence[tf.TensorSpec],
    num_clients: int,
    num_parts: int,
  ) -> None:
    """Traces a function for so many clients in so many parts.

    Takes the specs of the leaves of one client's values. The functions may be
    of another round than that of a call: all rounds have the same.

    Raises:
      NotTraceableError: If an aggregation cannot run inside a function.
    """
    self._aggregations = aggregations
    self._pack_results = [
      values.build_pack(a.result_type) for a in aggregations
    ]
    total_specs = tracing.leaf_specs([a.total_type for a in aggregations])
    stacked = [
      tf.TensorSpec([None, *spec.shape], spec.dtype) for spec in value_specs
    ]

    def run(leaves):
      zeros, parts = leaves[: len(total_specs)], leaves[len(total_specs) :]
      columns = [
        tf.unstack(tf.concat(parts[i :: len(stacked)], 0), num_clients)
        for i in range(len(stacked))
      ]
      rows = zip(*columns, strict=True)
      return self._aggregate(functions, iter(zeros), [[*row] for row in rows])

    self._run = tracing.trace(run, [*total_specs, *stacked * num_parts])

  def __call__(
    self, zeros: Sequence[Any], parts: Iterable[Sequence[tf.Tensor]]
  ) -> list[Any]:
    """The result of each aggregation, of the stacked leaves of each part."""
    leaves = [leaf for part in parts for leaf in part]
    results = iter(self._run(*values.flatten(zeros), *leaves))
    return [pack(results) for pack in self._pack_results]

  def _aggregate(self, functions, zeros, rows) -> list[Any]:
    rows = [iter(row) for row in rows]
    found = []
    for function, aggregated in zip(functions, self._aggregations, strict=True):
      zero = aggregated.pack_total(zeros)
      entries = [aggregated.pack_value(row) for row in rows]
      found.append(function.report(_total(function, zero, entries)))
    return found


def _total(functions: client_stage.Functions, zero: Any, entries: Any) -> Any:
  groups = []
  for group in range(aggregation.num_groups(len(entries))):
    total = zero
    for client in aggregation.members(group, len(entries)):
      total = functions.accumulate(
        (aggregation.keep_order(total), entries[client])
      )
    groups.append(aggregation.keep_order(total))
  return aggregation.merge_all(functions.merge, groups)
