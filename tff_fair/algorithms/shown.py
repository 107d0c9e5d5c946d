"""States, outputs and computations of processes that say what they are."""

from collections.abc import Iterator, Mapping
import numbers
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff
import tree

from tff_fair import summary


# The names of these two classes are those of their base classes: to `tf.nest`,
# named tuples of the same name and fields have the same type.
class LearningAlgorithmState(
  summary.Summarized, tff.learning.templates.LearningAlgorithmState
):
  """TFF's state; `repr` says round, size, and what it remembers of clients."""

  def _summary(self) -> summary.Summary | None:
    work = self.client_work
    known = isinstance(work, Mapping) and {'round', 'table'} <= {*work}
    if not (known and _has_values(self)) or np.ndim(work['round']):
      return None
    weights = self.global_model_weights
    parts = [
      f'{num_entries(getattr(weights, "trainable", weights))} parameters'
    ]
    table = work['table']
    leaves = tree.flatten(table)
    if leaves and np.ndim(leaves[0]):
      parts.append(f'{", ".join(table)} of {leaves[0].shape[0]} clients')
    title = f'State after round {int(work["round"])}: {"; ".join(parts)}'
    return summary.Summary(title)


class LearningProcessOutput(
  summary.Summarized, tff.learning.templates.LearningProcessOutput
):
  """TFF's output; `repr` says what a round measured, not the weights."""

  def _summary(self) -> summary.Summary | None:
    if not (_has_values(self) and isinstance(self.metrics, Mapping)):
      return None
    parts = {
      name: ', '.join(f'{k} {v}' for k, v in _scalars(part))
      for name, part in self.metrics.items()
    }
    facts = [(name, text) for name, text in parts.items() if text]
    if isinstance(self.state, LearningAlgorithmState):
      facts.append(('state', repr(self.state)))
    work = self.metrics.get('client_work', {})
    reports = work.get('clients', {}) if isinstance(work, Mapping) else {}
    columns = {k: v for k, v in reports.items() if np.ndim(v) == 1}
    return summary.Summary('Output of a round', facts, columns)


class ShownComputation(tff.framework.ConcreteComputation):
  """A computation whose result is one of the classes above.

  Its type is unchanged: TFF wants its own classes there.
  """

  def __call__(self, *args: Any, **kwargs: Any) -> Any:
    """Calls the computation; in the body of another one, as any other."""
    return _with_summary(super().__call__(*args, **kwargs))


def show_result(computation: tff.Computation) -> ShownComputation:
  """The computation with a result that says what it is.

  Args:
    computation: It returns a state or an output of a learning process.

  Returns:
    The same computation, of the same type.
  """
  return ShownComputation(
    computation_proto=tff.framework.ConcreteComputation.get_proto(computation),
    context_stack=tff.framework.get_context_stack(),
    annotated_type=computation.type_signature,
  )


def num_entries(weights: Any) -> int:
  """The number of entries of all tensors in a structure."""
  return sum(int(np.prod(np.shape(leaf))) for leaf in tree.flatten(weights))


def _with_summary(value: Any) -> Any:
  if type(value) is tff.learning.templates.LearningProcessOutput:
    return LearningProcessOutput(_with_summary(value.state), value.metrics)
  if type(value) is tff.learning.templates.LearningAlgorithmState:
    return LearningAlgorithmState(*value)
  return value


def _has_values(structure: Any) -> bool:
  """Returns whether all leaves are concrete numbers or arrays."""
  return all(
    isinstance(leaf, numbers.Number)
    or (hasattr(leaf, '__array__') and not tf.is_symbolic_tensor(leaf))
    for leaf in tree.flatten(structure)
  )


def _scalars(part: Any) -> Iterator[tuple[str, str]]:
  """Names and values of the numbers in a structure of metrics."""
  for path, leaf in tree.flatten_with_path(part):
    if np.ndim(leaf) == 0:
      yield '/'.join(map(str, path)), summary.number(leaf)
