"""Mean embeddings: a client's data as its model sees them, in one vector."""

from typing import Any

import tensorflow as tf

from tff_fair import losses
from tff_fair.models import stateless

# Examples that go through the model at once.
_BATCH = 200


def check_embedding(method: str, model: stateless.StatelessModel) -> None:
  """Raises ValueError, in the name of `method`, if the model has no embedding.

  Args:
    method: What the message calls the method.
    model: The client model.
  """
  if model.embedding_size is None:
    raise ValueError(
      f"model_fn must build a model with an output 'embedding' for {method},"
      ' found logits only.'
    )


def mean_embedding(
  model: stateless.StatelessModel, weights: Any, x: Any, *, normalize: bool
) -> tf.Tensor:
  """The mean of `phi(x)` over examples, phi being the model's embedding.

  Args:
    model: A model with an embedding.
    weights: `ModelWeights` of tensors; the model runs in inference mode.
    x: `float32[n, ...]`.
    normalize: Whether each `phi(x)` is first scaled to length 1.

  Returns:
    `float32[p]`, zeros without examples.
  """
  size = tf.shape(x)[0]

  def add(index, total):
    batch = x[index : index + _BATCH]
    outputs, _ = model(weights, batch, training=False)
    vectors = outputs['embedding']
    if normalize:
      vectors = losses.normalized(vectors)
    return index + _BATCH, total + tf.reduce_sum(vectors, axis=0)

  _, total = tf.while_loop(
    lambda index, total: index < size,
    add,
    (tf.constant(0), tf.zeros([model.embedding_size])),
    parallel_iterations=1,
  )
  return tf.math.divide_no_nan(total, tf.cast(size, tf.float32))
