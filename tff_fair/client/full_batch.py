"""A model on all of a client's examples: mean losses, gradients, or outputs.

The model runs in inference mode, one batch at a time, so that memory holds the
activations of one batch only. The batch size changes only rounding errors; it
is an integer of at least 1, else a TypeError or a ValueError.
"""

import collections
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tff_fair import checks
from tff_fair import losses
from tff_fair.models import stateless

# Examples in a batch.
_BATCH = 200


def mean_loss(
  model: stateless.StatelessModel,
  weights: Any,
  examples: Any,
  batch_size: int = _BATCH,
  focal_gamma: float = 0.0,
) -> tf.Tensor:
  """The mean cross-entropy over a client's examples.

  Args:
    model: The client model.
    weights: `ModelWeights` of tensors.
    examples: `OrderedDict(x=float32[n, ...], y=int32[n])`.
    batch_size: Examples in a batch, at least 1.
    focal_gamma: gamma of the focal loss; 0 is cross-entropy.

  Returns:
    float32, 0 without examples.
  """
  checks.check_integer('batch_size', batch_size, 1)

  def loss_of(batch):
    return _loss_and_hits(model, weights, batch, focal_gamma)[0]

  return mean_over_batches(loss_of, tf.constant(0.0), examples, batch_size)


def mean_gradient(
  model: stateless.StatelessModel,
  weights: Any,
  examples: Any,
  batch_size: int = _BATCH,
  focal_gamma: float = 0.0,
) -> tuple[list[tf.Tensor], collections.OrderedDict]:
  """The gradient of the mean cross-entropy over a client's examples.

  Args:
    model: The client model.
    weights: `ModelWeights` of tensors.
    examples: `OrderedDict(x=float32[n, ...], y=int32[n])`.
    batch_size: Examples in a batch, at least 1.
    focal_gamma: gamma of the focal loss; 0 is cross-entropy.

  Returns:
    Tensors like the trainable weights, and `OrderedDict(loss, accuracy)` of
    float32 scalars; all 0 without examples.
  """
  checks.check_integer('batch_size', batch_size, 1)
  trainable = [tf.convert_to_tensor(w) for w in weights.trainable]

  def sums_of(batch):
    with tf.GradientTape() as tape:
      tape.watch(trainable)
      loss, hits = _loss_and_hits(
        model,
        stateless.ModelWeights(trainable, weights.non_trainable),
        batch,
        focal_gamma,
      )
    gradient = tape.gradient(
      loss, trainable, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    # Gradients of embedding layers are indexed slices.
    gradient = [tf.convert_to_tensor(g) for g in gradient]
    return gradient, collections.OrderedDict(loss=loss, accuracy=hits)

  zeros = (
    [tf.zeros_like(w) for w in trainable],
    collections.OrderedDict(loss=tf.constant(0.0), accuracy=tf.constant(0.0)),
  )
  return mean_over_batches(sums_of, zeros, examples, batch_size)


def logits_of_examples(
  model: stateless.StatelessModel, weights: Any, x: Any
) -> tf.Tensor:
  """The logits of each example.

  Args:
    model: The client model.
    weights: `ModelWeights` of tensors.
    x: `float32[n, ...]`.

  Returns:
    `float32[n, num_classes]`.
  """

  def logits_of(batch):
    return model(weights, batch, training=False)[0]['logits']

  return map_over_batches(logits_of, x, [model.num_classes])


def batch_losses(
  model: stateless.StatelessModel,
  weights: Any,
  examples: Any,
  batch_size: int,
  number: int,
) -> tf.Tensor:
  """The mean cross-entropy of each of the first minibatches.

  Args:
    model: The client model.
    weights: `ModelWeights` of tensors.
    examples: `OrderedDict(x=float32[n, ...], y=int32[n])`, divided into
      minibatches in their order.
    batch_size: Examples in a minibatch, at least 1; the last may be shorter.
    number: Number of minibatches.

  Returns:
    `float32[number]`, 0 where the client has fewer minibatches.
  """
  checks.check_integer('batch_size', batch_size, 1)
  checks.check_integer('number', number, 0)

  def loss_of(index):
    batch = _batch_from(index * batch_size, examples, batch_size)
    return mean_loss(model, weights, batch, batch_size)

  return tf.map_fn(
    loss_of,
    tf.range(number),
    fn_output_signature=tf.TensorSpec([], tf.float32),
    parallel_iterations=1,
  )


def fisher_trace(
  model: stateless.StatelessModel, weights: Any, examples: Any, batch_size: int
) -> tf.Tensor:
  """The sum over minibatches of the squared norm of the gradient.

      F = sum_b || grad mean_(x in b) CE(x) ||^2

  Args:
    model: The client model.
    weights: `ModelWeights` of tensors.
    examples: `OrderedDict(x=float32[n, ...], y=int32[n])`, divided into
      minibatches in their order.
    batch_size: Examples in a minibatch, at least 1; the last may be shorter.

  Returns:
    float32, 0 without examples.
  """
  checks.check_integer('batch_size', batch_size, 1)
  size = tf.shape(examples['y'])[0]

  def add(start, total):
    batch = _batch_from(start, examples, batch_size)
    gradient, _ = mean_gradient(model, weights, batch, batch_size)
    # Not `tf.add_n`, whose bits depend on the function around it: the kernel
    # is oneDNN's or Eigen's.
    squares = tf.reduce_sum([tf.reduce_sum(g**2) for g in gradient])
    return start + batch_size, total + squares

  return tf.while_loop(
    lambda start, _: start < size, add, (tf.constant(0), tf.constant(0.0))
  )[1]


def mean_over_batches(
  sums_of: Callable[[Any], Any],
  zeros: Any,
  examples: Any,
  batch_size: int = _BATCH,
) -> Any:
  """The mean over examples of sums by batch; `zeros` without examples."""
  size = tf.shape(next(iter(examples.values())))[0]

  def add(start, totals):
    batch = _batch_from(start, examples, batch_size)
    totals = tf.nest.map_structure(tf.add, totals, sums_of(batch))
    return start + batch_size, totals

  _, totals = tf.while_loop(
    lambda start, _: start < size,
    add,
    (tf.constant(0), zeros),
    parallel_iterations=1,
  )
  return tf.nest.map_structure(
    lambda total: tf.math.divide_no_nan(total, tf.cast(size, tf.float32)),
    totals,
  )


def map_over_batches(
  fn: Callable[[Any], Any],
  x: Any,
  output_shape: Any,
  batch_size: int = _BATCH,
) -> tf.Tensor:
  """A function of each example, batch by batch: `[n, *output_shape]`."""
  size = tf.shape(x)[0]
  outputs = tf.TensorArray(
    tf.float32,
    size=1 - (-size // batch_size),
    infer_shape=False,
    element_shape=[None, *output_shape],
  )
  # An empty first entry, so that there is always one to concatenate.
  outputs = outputs.write(0, tf.zeros([0, *output_shape]))

  def write(index, outputs):
    start = index * batch_size
    outputs = outputs.write(index + 1, fn(x[start : start + batch_size]))
    return index + 1, outputs

  _, outputs = tf.while_loop(
    lambda index, _: index * batch_size < size,
    write,
    (tf.constant(0), outputs),
    parallel_iterations=1,
  )
  return outputs.concat()


def _batch_from(start, examples, batch_size) -> collections.OrderedDict:
  return collections.OrderedDict(
    (name, value[start : start + batch_size])
    for name, value in examples.items()
  )


def _loss_and_hits(
  model, weights, batch, focal_gamma
) -> tuple[tf.Tensor, tf.Tensor]:
  """Sums over a batch: the loss and correct predictions."""
  labels = batch['y']
  outputs, _ = model(weights, batch['x'], training=False)
  if focal_gamma:
    each = losses.focal_loss(labels, outputs['logits'], focal_gamma)
  else:
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(
      labels, outputs['logits']
    )
  predicted = tf.argmax(outputs['logits'], axis=-1, output_type=labels.dtype)
  hits = tf.cast(tf.equal(predicted, labels), tf.float32)
  return tf.reduce_sum(each), tf.reduce_sum(hits)
