"""Embeddings of a client's examples, their mean, and their sums by class."""

import collections
from typing import Any

import tensorflow as tf

from tff_fair.client import full_batch
from tff_fair.models import stateless
from tff_fair.tensors import geometry


def check_embedding(method: str, model: stateless.StatelessModel) -> int:
  """Checks that a model has an embedding.

  Args:
    method: What the message calls the method.
    model: The client model.

  Returns:
    The embedding's size.

  Raises:
    ValueError: If the model has logits only.
  """
  if model.embedding_size is None:
    raise ValueError(
      f"model_fn must build a model with an output 'embedding' for {method},"
      ' found logits only.'
    )
  return model.embedding_size


def mean_embedding(
  model: stateless.StatelessModel, weights: Any, x: Any, *, normalize: bool
) -> tf.Tensor:
  """The mean of `phi(x)` over examples, phi being the model's embedding.

  Args:
    model: A model with an embedding.
    weights: `ModelWeights` of tensors; the model runs in inference mode.
    x: `float32[n, ...]`.
    normalize: Whether to scale each `phi(x)` to length 1 first.

  Returns:
    `float32[p]`, zeros without examples.
  """

  def sum_of(batch):
    outputs, _ = model(weights, batch['x'], training=False)
    vectors = outputs['embedding']
    if normalize:
      vectors = geometry.normalized(vectors)
    return tf.reduce_sum(vectors, axis=0)

  return full_batch.mean_over_batches(
    sum_of,
    tf.zeros([model.embedding_size]),
    collections.OrderedDict(x=x),
  )


def embed_examples(
  model: stateless.StatelessModel, weights: Any, x: Any
) -> tf.Tensor:
  """`phi(x)` of each example.

  Args:
    model: A model with an embedding.
    weights: `ModelWeights` of tensors; the model runs in inference mode.
    x: `float32[n, ...]`.

  Returns:
    `float32[n, p]`.
  """

  def embed(batch):
    return model(weights, batch, training=False)[0]['embedding']

  return full_batch.map_over_batches(embed, x, [model.embedding_size])


def class_sums(
  model: stateless.StatelessModel, weights: Any, examples: Any
) -> tuple[tf.Tensor, tf.Tensor]:
  """The sum of `phi(x)` over the examples of each class, and their number.

  Args:
    model: A model with an embedding.
    weights: `ModelWeights` of tensors; the model runs in inference mode.
    examples: `OrderedDict(x=float32[n, ...], y=int32[n])`.

  Returns:
    `float32[C, p]` and `int32[C]`.
  """
  vectors = embed_examples(model, weights, examples['x'])
  labels = examples['y']

  def by_class(values):
    return tf.math.unsorted_segment_sum(values, labels, model.num_classes)

  return by_class(vectors), by_class(tf.ones_like(labels))
