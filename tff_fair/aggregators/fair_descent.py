"""FedMDFG's server: a fair direction of descent and a line search along it.

Pan, Wang, Li, Wang, Tang and Zhao, "FedMDFG: Federated Learning with
Multi-Gradient Descent and Fair Guidance" (AAAI 2023,
https://doi.org/10.1609/aaai.v37i8.26122). Pure functions of float64, with an
entry or a row for each client that is not excluded.
"""

import collections
import math
from typing import Any

import tensorflow as tf

from tff_fair.aggregators import min_norm

# The fraction of the linear descent that a step must reach (Armijo).
_KEPT_DESCENT = 1e-4
# A larger increase along a row is not rounding.
_INCREASE = 1e-6
_TINY = 1e-12


def fair_guidance(losses: Any) -> tuple[tf.Tensor, tf.Tensor]:
  """How unequal losses are, and the combination of clients that evens them.

  With `l^ = l / |l|` and `p = (1, ..., 1) / sqrt(k)`:

      phi = arccos(<l^, p>),  h ~ <l^, p> l^ - p, of length 1

  If the losses are equal, all 0, or there are none, phi and h are 0.
  """
  number = tf.cast(tf.size(losses), tf.float64)
  unit = tf.math.divide_no_nan(losses, tf.norm(losses))
  equal = tf.ones_like(losses) / tf.sqrt(number)
  cosine = tf.reduce_sum(unit * equal)
  guide = cosine * unit - equal
  length = tf.norm(guide)
  uneven = (cosine > 0) & (length > _TINY)
  return (
    tf.where(uneven, tf.acos(tf.clip_by_value(cosine, -1.0, 1.0)), 0.0),
    tf.where(uneven, guide / length, tf.zeros_like(guide)),
  )


def fair_direction(
  gradients: Any, losses: Any, absent: Any, *, angle: float, forced: Any
) -> collections.OrderedDict:
  """The common direction of descent, with the fair guidance if it is active.

  d is the convex combination of least norm of the rows Q: the gradients, those
  of absent clients, and, if phi exceeds the angle or `forced` is true,
  `h^T gradients`. d' is d rescaled to the length of the mean gradient, or d
  itself if the rescaled vector increases the loss along a row of Q. `scale` is
  `|d'| / |d|`, 0 if no direction descends.
  """
  phi, guide = fair_guidance(losses)
  active = ((phi > angle) | forced) & tf.reduce_any(tf.not_equal(guide, 0.0))
  fair = tf.linalg.matvec(gradients, guide, transpose_a=True)
  rows = tf.concat(
    [gradients, fair[tf.newaxis][: tf.cast(active, tf.int32)], absent], axis=0
  )
  least = _least_norm(rows)
  length = tf.norm(least)
  mean = tf.math.divide_no_nan(
    tf.reduce_sum(gradients, axis=0), tf.cast(tf.size(losses), tf.float64)
  )
  direction = tf.where(
    length > _TINY, tf.norm(mean) / length * least, tf.zeros_like(least)
  )
  increases = tf.reduce_min(tf.linalg.matvec(rows, direction)) < -_INCREASE
  direction = tf.where(increases, least, direction)
  return collections.OrderedDict(
    direction=direction,
    scale=tf.math.divide_no_nan(tf.norm(direction), length),
    phi=phi,
    active=active,
  )


def step_ladder(
  rate: Any, scale: Any, client_left: Any, line_search_scale: int
) -> tf.Tensor:
  """The steps to try, each half of the one before.

  They start at `2^s rate`, or at `rate` if a client left since the last round,
  and end at `rate / (2^s scale)`, or after `2 s + 8` steps; zeros follow.
  """
  halvings = tf.range(2 * line_search_scale + 8, dtype=tf.float64)
  start = tf.where(client_left, rate, rate * 2.0**line_search_scale)
  steps = start * 0.5**halvings
  lowest = rate * 0.5**line_search_scale / scale
  # Rounding must not drop the last step.
  return tf.where(steps >= lowest * (1 - 1e-9), steps, tf.zeros_like(steps))


def choose_step(
  losses: Any,
  trials: Any,
  steps: Any,
  slopes: Any,
  active: Any,
  longest: Any = math.inf,
) -> tuple[tf.Tensor, tf.Tensor]:
  """The step that the line search chooses.

  It accepts the first step a with `l_i(a) <= l_i - 1e-4 a slope_i` for all
  clients and, if guidance is active, with losses closer to equal than before.
  If no step is accepted, it chooses the first with `a <= longest` and a lower
  sum of losses, or else the one with the lowest sum. `trials` are l_i(a),
  `float64[k, n]`, and `slopes` `<g_i, d'>`. Steps of 0 are ignored. The result
  is the step, 0 if none has finite losses, and whether it was accepted.
  """
  totals = tf.reduce_sum(trials, axis=0)
  usable = (steps > 0) & tf.math.is_finite(totals)
  promised = _KEPT_DESCENT * slopes[:, tf.newaxis] * steps
  descends = tf.reduce_all(trials <= losses[:, tf.newaxis] - promised, axis=0)
  evens = _evenness(trials) > _evenness(losses[:, tf.newaxis])
  accepted = usable & descends & (evens | ~active)
  lower = usable & (steps <= longest) & (totals < tf.reduce_sum(losses))
  lowest = tf.equal(totals, tf.reduce_min(tf.boolean_mask(totals, usable)))
  step = tf.constant(0.0, tf.float64)
  for choice in (usable & lowest, lower, accepted):
    # The steps are descending, so the first is the largest.
    largest = tf.reduce_max(tf.where(choice, steps, 0.0))
    step = tf.where(largest > 0, largest, step)
  return step, tf.reduce_any(accepted)


def _least_norm(rows) -> tf.Tensor:
  number = tf.shape(rows)[0]
  equal = tf.fill([number], 1 / tf.cast(number, tf.float64))
  weights = min_norm.min_norm(
    tf.matmul(rows, rows, transpose_b=True),
    tf.zeros_like(equal),
    tf.ones_like(equal),
    equal,
  )
  return tf.linalg.matvec(rows, weights, transpose_a=True)


def _evenness(losses) -> tf.Tensor:
  """The cosine with equal losses up to a factor: `[k, n] -> [n]`."""
  return tf.math.divide_no_nan(
    tf.reduce_sum(losses, axis=0), tf.norm(losses, axis=0)
  )
