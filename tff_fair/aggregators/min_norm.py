"""FedMGDA+'s server: the shortest mix of the clients' unit updates.

Hu, Shaloudegi, Zhang and Yu, "Federated Learning Meets Multi-objective
Optimization" (IEEE Transactions on Network Science and Engineering, 2022,
https://arxiv.org/abs/2006.11489; FedMGDA+). The point of least norm in a convex
hull has a product with every point of the hull that is at least its own squared
norm: as a direction of descent, it is one for all clients.
"""

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair.aggregators import gathered
from tff_fair.aggregators import largest_values
from tff_fair.tensors import flat

# With momentum and restart, enough for gaps of 1e-15 with 40 clients.
_STEPS = 2000
_TOLERANCE = 1e-12
# The bits of a float64, and some that the bracket costs.
_BISECTIONS = 60
# A shorter update has no direction.
_SHORTEST = 1e-12


def project(vector: Any, lower: Any, upper: Any) -> tf.Tensor:
  """The nearest point of `{x: lower <= x <= upper, sum x = 1}`.

  It is `clip(vector - tau, lower, upper)`, tau found by 60 bisections.

  Args:
    vector: `float64[k]`, k > 0.
    lower: `float64[k]`, with a sum of at most 1.
    upper: `float64[k]`, not below `lower`, with a sum of at least 1.

  Returns:
    `float64[k]`.
  """

  def moved_by(tau):
    return tf.clip_by_value(vector - tau, lower, upper)

  low, high = tf.reduce_min(vector - upper), tf.reduce_max(vector - lower)
  for _ in range(_BISECTIONS):
    middle = (low + high) / 2
    above = tf.reduce_sum(moved_by(middle)) > 1
    low, high = tf.where(above, middle, low), tf.where(above, high, middle)
  return moved_by((low + high) / 2)


def min_norm(gram: Any, lower: Any, upper: Any, start: Any) -> tf.Tensor:
  """The weights lambda that minimise `|sum_i lambda_i q_i|^2`.

  Subject to `lower <= lambda <= upper` and `sum lambda = 1`, by accelerated
  projected gradient descent that restarts its momentum where it points uphill.

  Args:
    gram: `float64[k, k]`, the products `<q_i, q_j>`.
    lower: `float64[k]`, with a sum of at most 1.
    upper: `float64[k]`, not below `lower`, with a sum of at least 1.
    start: `float64[k]`, where to start; the result if all q_i are 0.

  Returns:
    `float64[k]`; nothing for k = 0, and NaN if a product is not finite.
  """
  # Many small steps, one after the other: nothing for a GPU.
  with tf.device('/device:CPU:0'):
    # Eigenvalues of what is not finite are an error that stops the round.
    finite = tf.reduce_all(tf.math.is_finite(gram))
    gram = tf.where(finite, gram, tf.zeros_like(gram))
    length = tf.reduce_max(tf.linalg.eigvalsh(gram))
    weights = tf.cond(
      length > 0,
      lambda: _descend(gram / length, lower, upper, start),
      lambda: tf.identity(start),
    )
    return tf.where(finite, weights, np.nan)


class MinNormFactory(tff.aggregators.WeightedAggregationFactory):
  """The server side of FedMGDA+.

  Values are updates, old weights minus new, with weights n_i, numbers of
  examples. With `u_i = value_i / |value_i|` and `lambda0_i = n_i / sum n`:

      lambda = min_norm(u, max(0, lambda0 - epsilon), min(1, lambda0 + epsilon))
      d = sum_i lambda_i u_i,  result = rate * d

  Left out are clients with a weight that is not positive and finite, a value
  that is not finite, or one shorter than 1e-12. If nobody is left, the result
  is zero.

  Of values that are `tff.learning.models.ModelWeights` the trainable part is
  meant; the other part, batch-norm statistics, is averaged by lambda.

  The created process:

  * `initialize`: int32, the number of rounds so far.
  * `next`: `<state@SERVER, {value}@CLIENTS, {float32}@CLIENTS> -> <state,
    result=value@SERVER, measurements@SERVER>`.
  * measurements: `num_aggregated`, `norm` (|d|), `largest_weight` and
    `smallest_weight` (of lambda; NaN if nobody is left), and
    `descent_violation`, `max(|d|^2 - min_i <u_i, d>, 0)`: 0, but for rounding,
    where no bound binds, and d is a direction of descent for all.
  """

  def __init__(
    self,
    deviation: float = 1.0,
    learning_rate_fn: Callable[[Any], Any] | None = None,
  ):
    """Keeps the parameters.

    Args:
      deviation: The paper's epsilon, how far lambda may be from lambda0, in [0,
        1]. At 0, d is the weighted mean of unit updates; at 1, lambda is free.
      learning_rate_fn: `round (int32, from 0) -> rate`; None is 1.

    Raises:
      TypeError: If an argument is of the wrong kind.
      ValueError: If `deviation` is out of range.
    """
    self._deviation = checks.check_real('deviation', deviation, 0.0, 1.0)
    if learning_rate_fn is not None:
      checks.check_function('learning_rate_fn', learning_rate_fn, 'the round')
    self._learning_rate_fn = learning_rate_fn or (lambda number: 1.0)

  def create(
    self, value_type: tff.Type, weight_type: tff.Type
  ) -> tff.templates.AggregationProcess:
    """Creates the process.

    Args:
      value_type: A structure of float32 tensors of known shape.
      weight_type: `float32`.

    Returns:
      A weighted `tff.templates.AggregationProcess`.

    Raises:
      TypeError: If a type is not as required.
    """
    largest_values.check_float32('MinNormFactory', value_type)
    if not tff.TensorType(np.float32).is_equivalent_to(weight_type):
      raise TypeError(
        'MinNormFactory requires the weight type float32. Found type:'
        f' {weight_type!r}.'
      )
    return gathered.build_process(
      value_type, weight_type, lambda: tf.constant(0), self._serve
    )

  def _serve(self, state, uploads) -> gathered.Served:
    """The server's round."""
    updates, norms, uploads = _usable(uploads)
    units = updates / norms[:, tf.newaxis]
    weights = self._weights(units, uploads['weight'])
    direction = tf.linalg.matvec(units, weights, transpose_a=True)
    rate = tf.cast(self._learning_rate_fn(state), tf.float64)
    squared_norm = tf.reduce_sum(direction**2)
    products = tf.linalg.matvec(units, direction)
    anybody = tf.size(weights) > 0
    nan = tf.constant(np.nan, tf.float64)
    return gathered.Served(
      state=state + 1,
      result=gathered.weighted_sum(
        uploads['value'], rate * weights / norms, weights
      ),
      measurements=collections.OrderedDict(
        num_aggregated=tf.size(weights),
        norm=tf.sqrt(squared_norm),
        largest_weight=tf.where(anybody, tf.reduce_max(weights), nan),
        smallest_weight=tf.where(anybody, tf.reduce_min(weights), nan),
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
      tf.maximum(shares - self._deviation, 0.0),
      tf.minimum(shares + self._deviation, 1.0),
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

  def goes_on(number, x, y, momentum, moved):
    del x, y, momentum  # Unused.
    return (number < _STEPS) & (moved >= _TOLERANCE)

  x = project(start, lower, upper)
  one = tf.ones([], tf.float64)
  return tf.while_loop(goes_on, step, (0, x, x, one, one))[1]


def _usable(uploads) -> tuple[tf.Tensor, tf.Tensor, Any]:
  """The clients that count: updates `float64[m, d]`, norms, uploads."""
  updates = tf.cast(
    flat.flatten_rows(gathered.trainable_part(uploads['value'])), tf.float64
  )
  norms = tf.norm(updates, axis=1)
  usable = gathered.finite_rows(uploads['value']) & (norms >= _SHORTEST)
  usable &= tf.math.is_finite(uploads['weight']) & (uploads['weight'] > 0)
  return tf.nest.map_structure(
    lambda rows: tf.boolean_mask(rows, usable), (updates, norms, uploads)
  )
