"""FedMGDA+'s server: the convex combination of unit updates of least norm.

Hu, Shaloudegi, Zhang and Yu, "Federated Learning Meets Multi-objective
Optimization" (IEEE Transactions on Network Science and Engineering, 2022,
https://arxiv.org/abs/2006.11489; FedMGDA+). The inner product of the point of
least norm in a convex hull with every point of the hull is at least its squared
norm: it is a direction of descent for all clients.
"""

import collections
from collections.abc import Callable
import dataclasses
from typing import Annotated, Any

import numpy as np
import tensorflow as tf

from tff_fair.aggregators import factory
from tff_fair.aggregators import gathered
from tff_fair.annotations import Limits
from tff_fair.tensors import flat
from tff_fair.tensors import summable

# With momentum and restart, enough for gaps of 1e-15 with 40 clients.
_STEPS = 2000
_TOLERANCE = 1e-12
# Shorter updates are excluded.
_SHORTEST = 1e-12


def project(vector: Any, lower: Any, upper: Any) -> tf.Tensor:
  """The nearest point of `{x: lower <= x <= upper, sum x = 1}`.

  It is `clip(vector - tau, lower, upper)`. The sum of that falls with tau, on a
  straight line between any two of the values at which a component leaves its
  upper bound or reaches its lower one. `float64[n]` each, n > 0.
  """
  ends = tf.concat([vector - upper, vector - lower], axis=0)
  order = tf.argsort(ends)
  ends = tf.gather(ends, order)
  ones = tf.ones_like(vector)
  # After each end: how many components are between their bounds.
  free = tf.cumsum(tf.gather(tf.concat([ones, -ones], axis=0), order))
  falls = tf.cumsum(free[:-1] * (ends[1:] - ends[:-1]))
  sums = tf.reduce_sum(upper) - tf.pad(falls, [[1, 0]])
  last = tf.maximum(tf.math.count_nonzero(sums >= 1) - 1, 0)
  tau = ends[last] + tf.math.divide_no_nan(sums[last] - 1, free[last])
  # Once more from there, without the rounding errors of the sums.
  moved = vector - tau
  between = tf.cast((moved > lower) & (moved < upper), tf.float64)
  excess = tf.reduce_sum(tf.clip_by_value(moved, lower, upper)) - 1
  tau += tf.math.divide_no_nan(excess, tf.reduce_sum(between))
  return tf.clip_by_value(vector - tau, lower, upper)


def min_norm(gram: Any, lower: Any, upper: Any, start: Any) -> tf.Tensor:
  """The weights lambda that minimise `|sum_i lambda_i q_i|^2`.

  Subject to `lower <= lambda <= upper` and `sum lambda = 1`. Computed by
  accelerated projected gradient descent whose momentum restarts where it points
  uphill. It is `start` if all q_i are 0, and NaN if a product is not finite.
  """
  # Many small sequential steps, which are slow on a GPU.
  with tf.device('/device:CPU:0'):
    # Eigenvalues of a non-finite matrix would raise an error.
    finite = tf.reduce_all(tf.math.is_finite(gram))
    gram = tf.where(finite, gram, tf.zeros_like(gram))
    length = tf.reduce_max(tf.linalg.eigvalsh(gram))
    weights = tf.cond(
      length > 0,
      lambda: _descend(gram / length, lower, upper, start),
      lambda: tf.identity(start),
    )
    return tf.where(finite, weights, np.nan)


@dataclasses.dataclass(eq=False, repr=False)
class MinNormFactory(factory.Factory):
  """The server side of FedMGDA+.

  Values are updates, old weights minus new; their weights n_i are numbers of
  examples. With `u_i = value_i / |value_i|` and `lambda0_i = n_i / sum n`:

      lambda = min_norm(u, max(0, lambda0 - epsilon), min(1, lambda0 + epsilon))
      d = sum_i lambda_i u_i,  result = rate * d

  Excluded are clients with a weight that is not positive, with a value of norm
  below 1e-12, or with a value or weight that is not finite or too large
  (`summable.LARGEST`). If no client remains, the result is zero.

  If values are `tff.learning.models.ModelWeights`, this applies to the
  trainable part; batch-norm statistics are averaged with weights lambda.

  The created process:

  * `initialize`: int32, the number of rounds so far.
  * `next`: `<state@SERVER, {value}@CLIENTS, {float32}@CLIENTS> -> <state,
    result=value@SERVER, measurements@SERVER>`.
  * measurements: `num_aggregated`, `num_non_finite` (clients with non-finite or
    too large numbers), `norm` (|d|), `largest_weight` and
    `smallest_weight` (of lambda; NaN if no client remains), and
    `descent_violation`, `max(|d|^2 - min_i <u_i, d>, 0)`. It is 0 up to
    rounding where no bound is active; then d is a direction of descent for all
    clients.

  Args:
    deviation: The paper's epsilon, the largest difference between lambda and
      lambda0, in [0, 1]. At 0, d is the weighted mean of unit updates; at 1,
      lambda is unconstrained.
    learning_rate_fn: `round (int32, from 0) -> rate`; None is 1.
  """

  deviation: Annotated[float, Limits(minimum=0, maximum=1)] = 1.0
  learning_rate_fn: Callable[[Any], Any] | None = None

  def _required_weight_type(self, value_type):
    return np.float32

  def _create(self, value_type, weight_type):
    return gathered.build_process(
      value_type, weight_type, lambda: tf.constant(0), self._server_round
    )

  def _server_round(self, state, uploads) -> gathered.ServerOutput:
    summable_rows = summable.are_rows_summable(
      (uploads['value'], uploads['weight'])
    )
    updates, norms, uploads = _usable(uploads, summable_rows)
    units = updates / norms[:, tf.newaxis]
    weights = self._weights(units, uploads['weight'])
    direction = tf.linalg.matvec(units, weights, transpose_a=True)
    rate_fn = self.learning_rate_fn or (lambda number: 1.0)
    rate = tf.cast(rate_fn(state), tf.float64)
    squared_norm = tf.reduce_sum(direction**2)
    products = tf.linalg.matvec(units, direction)
    any_left = tf.size(weights) > 0
    nan = tf.constant(np.nan, tf.float64)
    return gathered.ServerOutput(
      state=state + 1,
      result=gathered.weighted_sum(
        uploads['value'], rate * weights / norms, weights
      ),
      measurements=collections.OrderedDict(
        num_aggregated=tf.size(weights),
        num_non_finite=tf.math.count_nonzero(~summable_rows, dtype=tf.int32),
        norm=tf.sqrt(squared_norm),
        largest_weight=tf.where(any_left, tf.reduce_max(weights), nan),
        smallest_weight=tf.where(any_left, tf.reduce_min(weights), nan),
        descent_violation=tf.maximum(
          squared_norm - tf.reduce_min(products), 0.0
        ),
      ),
    )

  def _weights(self, units, num_examples) -> tf.Tensor:
    """The weights lambda of the unit updates."""
    num_examples = tf.cast(num_examples, tf.float64)
    shares = num_examples / tf.reduce_sum(num_examples)
    return min_norm(
      tf.matmul(units, units, transpose_b=True),
      tf.maximum(shares - self.deviation, 0.0),
      tf.minimum(shares + self.deviation, 1.0),
      shares,
    )


def _descend(scaled, lower, upper, start) -> tf.Tensor:
  """Descends with a matrix of norm 1, in steps of length 1."""

  def step(number, x, y, momentum, _):
    new = project(y - tf.linalg.matvec(scaled, y), lower, upper)
    moved = new - x
    uphill = tf.tensordot(y - new, moved, 1) > 0
    momentum = tf.where(uphill, tf.ones_like(momentum), momentum)
    next_momentum = (1 + tf.sqrt(1 + 4 * momentum**2)) / 2
    y = new + (momentum - 1) / next_momentum * moved
    return number + 1, new, y, next_momentum, tf.reduce_max(tf.abs(moved))

  def not_converged(number, x, y, momentum, moved):
    del x, y, momentum  # Unused.
    return (number < _STEPS) & (moved >= _TOLERANCE)

  x = project(start, lower, upper)
  one = tf.ones([], tf.float64)
  return tf.while_loop(not_converged, step, (0, x, x, one, one))[1]


def _usable(uploads, summable_rows) -> tuple[tf.Tensor, tf.Tensor, Any]:
  """The clients not excluded: updates `float64[m, d]`, norms, uploads."""
  updates = tf.cast(
    flat.flatten_rows(gathered.trainable_part(uploads['value'])), tf.float64
  )
  norms = tf.norm(updates, axis=1)
  usable = summable_rows & (norms >= _SHORTEST) & (uploads['weight'] > 0)
  return tf.nest.map_structure(
    lambda rows: tf.boolean_mask(rows, usable), (updates, norms, uploads)
  )
