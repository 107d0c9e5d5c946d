"""Objectives: what a method minimises on a minibatch.

An objective computes `(forward, batch, context) -> (loss, metrics)`:

* `forward(x)` calls the model in training mode with the weights of this step
  and returns `OrderedDict(logits, [embedding])`; it may be called several
  times. `forward.each(xs)` does so for several batches of equal size.
  `forward.trainable` are the weights, and `forward.seed` is `int32[2]` for
  random draws at this step.
* `batch` is `OrderedDict(x, y, index)`; `index` are the positions among the
  client's examples, to look up entries of `context`.
* `context` is what the method passes: a focusing parameter, the centre of a
  proximal term, a teacher's logits; or the result of `prepare`.

`loss` is a scalar, the mean over the minibatch; `metrics` is an OrderedDict of
float32 scalars, also means over the minibatch.
"""

import collections
from collections.abc import Callable
import math
from typing import Any, Literal, NamedTuple

import tensorflow as tf

from tff_fair import checks
from tff_fair import losses


class Objective(NamedTuple):
  """The loss that a method minimises, and the metrics reported with it.

  Attributes:
    compute: `(forward, batch, context) -> (loss, metrics)`.
    metric_names: The keys of `metrics`, in their order.
    prepare: `(context, examples, seed) -> context`, a computation on all of the
      client's examples before the minibatches, such as drawing quadruplets; or
      None.
    prepare_each: Whether `prepare` runs once an epoch or once a round.
  """

  compute: Callable[[Any, Any, Any], tuple[tf.Tensor, Any]]
  metric_names: tuple[str, ...] = ('accuracy',)
  prepare: Callable[[Any, Any, Any], Any] | None = None
  prepare_each: Literal['epoch', 'round'] = 'epoch'


def cross_entropy(
  labels: Any, logits: Any
) -> tuple[tf.Tensor, collections.OrderedDict]:
  """Mean cross-entropy of a minibatch, and `OrderedDict(accuracy)`.

  Args:
    labels: `int32[?]`.
    logits: `float32[?, num_classes]`.

  Returns:
    A float32 scalar, and the metrics.
  """
  loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
  return tf.reduce_mean(loss), _accuracy(labels, logits)


def classification_objective(focal_gamma: float = 0.0) -> Objective:
  """The mean loss of a classifier, see `classification`; it has no context.

  Args:
    focal_gamma: The focusing parameter; 0 is FedAvg's objective.

  Raises:
    TypeError: If `focal_gamma` is not a number.
    ValueError: If it is negative.
  """
  checks.check_real('focal_gamma', focal_gamma, 0.0)

  def compute(forward, batch, context):
    del context  # Unused.
    return classification(
      batch['y'], forward(batch['x'])['logits'], focal_gamma
    )

  return Objective(compute)


def classification(
  labels: Any, logits: Any, focal_gamma: float
) -> tuple[tf.Tensor, collections.OrderedDict]:
  """Mean cross-entropy or focal loss of a minibatch, and the accuracy.

  Args:
    labels: `int32[?]`.
    logits: `float32[?, num_classes]`.
    focal_gamma: The focusing parameter; 0 for cross-entropy.

  Returns:
    A float32 scalar, and the metrics.
  """
  if not focal_gamma:
    return cross_entropy(labels, logits)
  loss = losses.focal_loss(labels, logits, focal_gamma)
  return tf.reduce_mean(loss), _accuracy(labels, logits)


def distillation_objective(
  weight: float, *, temperature: float, focal_gamma: float
) -> Objective:
  """FedAKD's objective: `CE + weight * KD`, with a fixed teacher.

  Args:
    weight: alpha or beta; with 0 it is cross-entropy, without a context.
    temperature: As in `losses.distillation_loss`.
    focal_gamma: As in `classification`, which computes the term CE.

  Returns:
    An objective whose context is the teacher's logits for all of the client's
    examples, `float32[n, num_classes]`.

  Raises:
    TypeError: If an argument is not a number.
    ValueError: If one is out of range.
  """
  checks.check_real('weight', weight, 0.0)
  checks.check_positive('temperature', temperature)
  if not weight:
    return classification_objective(focal_gamma)

  def compute(forward, batch, context):
    logits = forward(batch['x'])['logits']
    loss, metrics = classification(batch['y'], logits, focal_gamma)
    distillation = losses.distillation_loss(
      logits, tf.gather(context, batch['index']), temperature=temperature
    )
    return loss + weight * tf.reduce_mean(distillation), metrics

  return Objective(compute)


def linear_objective(objective: Objective) -> Objective:
  """Adds `<w, shift>` to an objective, and so `shift` to its gradient.

  Args:
    objective: The objective to add to; it receives the rest of the context.

  Returns:
    An objective with the context `(shift, rest)`, where `shift` are tensors
    like the trainable weights. The reported loss does not include the added
    term.
  """

  def compute(forward, batch, context):
    shift, rest = context
    loss, metrics = objective.compute(forward, batch, rest)
    slope = tf.add_n(
      [
        tf.reduce_sum(w * s)
        for w, s in zip(forward.trainable, shift, strict=True)
      ]
    )
    # The value cancels; the gradient remains.
    return loss + (slope - tf.stop_gradient(slope)), metrics

  return Objective(compute, objective.metric_names)


def focal_objective(focal_weight: float = 1.0) -> Objective:
  """Mean focal loss (FeDABoost, equation 5); the context is gamma.

  Args:
    focal_weight: A factor of the loss, positive.

  Raises:
    TypeError: If `focal_weight` is not a number.
    ValueError: If it is not positive.
  """
  checks.check_positive('focal_weight', focal_weight)

  def compute(forward, batch, context):
    logits = forward(batch['x'])['logits']
    loss = losses.focal_loss(
      batch['y'], logits, context, focal_weight=focal_weight
    )
    return tf.reduce_mean(loss), _accuracy(batch['y'], logits)

  return Objective(compute)


def proximal_objective(
  objective: Objective, proximal_weight: float
) -> Objective:
  """Adds `proximal_weight / 2 * ||w - centre||^2` to an objective.

  Args:
    objective: The objective to add to; it receives an empty context.
    proximal_weight: mu of FedProx, lambda of Ditto; 0 changes nothing.

  Returns:
    An objective whose context is the centre, tensors like the trainable
    weights. The gradient gains `proximal_weight * (w - centre)`.

  Raises:
    TypeError: If `proximal_weight` is not a number.
    ValueError: If it is negative.
  """
  checks.check_real('proximal_weight', proximal_weight, 0.0)

  def compute(forward, batch, context):
    loss, metrics = objective.compute(forward, batch, ())
    if not proximal_weight:
      return loss, metrics
    distances = [
      tf.nn.l2_loss(w - centre)
      for w, centre in zip(forward.trainable, context, strict=True)
    ]
    # Not `tf.add_n`: see `full_batch.fisher_trace`.
    return loss + proximal_weight * tf.reduce_sum(distances), metrics

  return Objective(compute, objective.metric_names)


def proportional_objective(
  objective: Objective, *, loss_bound: float, linear_width: float
) -> Objective:
  """PropFair's objective, `-log(1 - loss / M)`, linear where the loss is high.

  Above `M - epsilon` it goes on as its tangent,
  `(loss - M + epsilon) / epsilon - log(epsilon / M)`.

  Args:
    objective: The objective whose loss this is of; it receives the context.
    loss_bound: M, positive.
    linear_width: epsilon, positive and at most M.

  Returns:
    An objective with the same context and metrics.

  Raises:
    TypeError: If an argument is not a number.
    ValueError: If one is out of range.
  """
  checks.check_positive('loss_bound', loss_bound)
  checks.check_positive('linear_width', linear_width, loss_bound)

  def compute(forward, batch, context):
    loss, metrics = objective.compute(forward, batch, context)
    edge = loss_bound - linear_width
    # Exact for a bound far above the loss, too.
    bent = -tf.math.log1p(-tf.minimum(loss, edge) / loss_bound)
    tangent = (loss - edge) / linear_width - math.log(linear_width / loss_bound)
    return tf.where(loss < edge, bent, tangent), metrics

  return Objective(compute, objective.metric_names)


def _accuracy(labels, logits) -> collections.OrderedDict:
  predicted = tf.argmax(logits, axis=-1, output_type=labels.dtype)
  hits = tf.cast(tf.equal(predicted, labels), tf.float32)
  return collections.OrderedDict(accuracy=tf.reduce_mean(hits))
