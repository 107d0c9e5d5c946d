"""Mean embeddings: a client's data as its model sees them, in one vector."""

import collections
from typing import Any

import tensorflow as tf

from tff_fair import losses
from tff_fair.client import full_batch
from tff_fair.models import stateless


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

  def sum_of(batch):
    outputs, _ = model(weights, batch['x'], training=False)
    vectors = outputs['embedding']
    if normalize:
      vectors = losses.normalized(vectors)
    return tf.reduce_sum(vectors, axis=0)

  return full_batch.mean_over_batches(
    sum_of,
    tf.zeros([model.embedding_size]),
    collections.OrderedDict(x=x),
  )
