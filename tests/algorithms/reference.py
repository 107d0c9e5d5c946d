"""Small networks in float64, with TensorFlow's gradients.

References are written from the papers' formulas on top of this, without the
library. A model is a vector: of each layer the kernel row by row, then the
bias.
"""

import collections
from collections.abc import Callable
import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class Network:
  """Dense layers of these widths; the input of the last one is the embedding.

  The methods take NumPy vectors or, for gradients, tensors.
  """

  widths: tuple[int, ...]
  activation: Callable[[Any], Any] = tf.identity

  @property
  def shapes(self):
    pairs = zip(self.widths[:-1], self.widths[1:], strict=True)
    return [shape for n, m in pairs for shape in ((n, m), (m,))]

  def split(self, w):
    """The kernels and biases, tensors."""
    sizes = [int(np.prod(shape)) for shape in self.shapes]
    parts = tf.split(tf.convert_to_tensor(w, tf.float64), sizes)
    return [tf.reshape(p, s) for p, s in zip(parts, self.shapes, strict=True)]

  def outputs(self, w, x):
    """The embeddings and the logits, tensors."""
    h = tf.constant(x, tf.float64)
    *hidden, kernel, bias = self.split(w)
    for k, b in zip(hidden[::2], hidden[1::2], strict=True):
      h = self.activation(h @ k + b)
    return h, h @ kernel + bias

  def logits(self, w, x):
    return self.outputs(w, x)[1].numpy()

  def right(self, w, x, y):
    """Returns which examples are classified correctly, bool[n]."""
    return self.logits(w, x).argmax(axis=1) == y

  def loss(self, w, data, gamma=0.0):
    """The mean of `-(1 - p)^gamma ln p`, p that of the label; a tensor."""
    return tf.reduce_mean(focal_losses(self.logits_of(w, data), data.y, gamma))

  def logits_of(self, w, data):
    return self.outputs(w, data.x)[1]

  def train(self, w, data, *, rate, epochs=1, gamma=0.0, plus=lambda v: 0.0):
    """The model after steps on all examples, on the loss plus another one."""
    return descend(
      lambda v: self.loss(v, data, gamma) + plus(v), w, rate, epochs
    )[0]


LINEAR = Network((4, 3))
# `linear_task.embedding_model_fn`.
ENCODER = Network((4, 3, 3))


def focal_losses(logits, y, gamma=0.0):
  """Of each example; 0 is cross-entropy."""
  log_p = tf.gather(tf.nn.log_softmax(logits), y, batch_dims=1)
  return -((1 - tf.exp(log_p)) ** gamma) * log_p if gamma else -log_p


def gradient(loss, w):
  """Of a function of the model, at a model."""
  w = tf.constant(w, tf.float64)
  with tf.GradientTape() as tape:
    tape.watch(w)
    value = loss(w)
  return tape.gradient(value, w).numpy()


def descend(loss, w, rate, steps, momentum=0.0, velocity=0.0):
  """Steps on `loss(model)`, which is a number, or one and a dictionary.

  Returns the model, the velocity, and the means of all numbers over the steps.
  """
  found = collections.defaultdict(list)

  def measured(v):
    value = loss(v)
    value, metrics = value if isinstance(value, tuple) else (value, {})
    for name, number in {'loss': value, **metrics}.items():
      found[name].append(float(number))
    return value

  for _ in range(steps):
    velocity = momentum * velocity + gradient(measured, w)
    w = w - rate * velocity
  return w, velocity, {name: np.mean(each) for name, each in found.items()}


def orders(seed, round_number, client_id, epochs, size, phase=None):
  """The library's shuffles: a function of seed, round, client and epoch."""
  fold_in = tf.random.experimental.stateless_fold_in
  words = fold_in(fold_in([seed, 0], round_number), client_id)
  if phase is not None:
    words = fold_in(words, phase)
  return [
    np.argsort(tf.random.stateless_uniform([size], fold_in(words, epoch)))
    for epoch in range(epochs)
  ]


def descend_on_minibatches(loss, w, data, rate, found_orders, batch_size):
  """A step of `loss(model, minibatch)` on each; metrics are over examples."""
  found, sizes = [], []
  for order in found_orders:
    for first in range(0, len(order), batch_size):
      rows = order[first : first + batch_size]
      part = dataclasses.replace(data, x=data.x[rows], y=data.y[rows])
      w, _, metrics = descend(lambda v, part=part: loss(v, part), w, rate, 1)
      found.append(metrics)
      sizes.append(len(rows))
  return w, {
    name: np.average([m[name] for m in found], weights=sizes)
    for name in found[0]
  }


def mean(rows, weights=None):
  """Of vectors."""
  return np.average(list(rows), axis=0, weights=weights)


def fed_avg(w, clients, *, rate, epochs, uniform=False, network=LINEAR):
  """The model after a round of FedAvg with a list of clients."""
  return mean(
    [network.train(w, data, rate=rate, epochs=epochs) for data in clients],
    None if uniform else [len(data.y) for data in clients],
  )


def cosine(u, v):
  """Of vectors or tensors; 0 for a vector of zeros."""
  lengths = tf.norm(u) * tf.norm(v)
  return tf.tensordot(u, v, 1) / tf.maximum(lengths, 1e-12)


def largest(vector, count, also_by=0.0):
  """The `count` entries of largest magnitude, 0 elsewhere.

  Of equal ones first those whose `also_by` is larger, then the first.
  """
  order = np.lexsort([-np.abs(also_by + 0 * vector), -np.abs(vector)])
  kept = order[: int(count)]
  result = np.zeros_like(vector)
  result[kept] = vector[kept]
  return result
