"""Independent NumPy implementations for a linear model and full batches.

Written from the papers' formulas, without the library: logits are `x W + b`,
gradients are derived by hand, and a full batch makes the order of the examples
irrelevant, so nothing is random.
"""

import dataclasses

import numpy as np


@dataclasses.dataclass
class Linear:
  """A linear classifier; also serves as a gradient."""

  kernel: np.ndarray
  bias: np.ndarray

  @classmethod
  def of(cls, vector, num_classes=3):
    """The inverse of `vector`."""
    kernel, bias = vector[:-num_classes], vector[-num_classes:]
    return cls(kernel.reshape(-1, num_classes), bias)

  @property
  def vector(self):
    """The kernel row by row, then the bias."""
    return np.concatenate([np.ravel(self.kernel), self.bias])

  def logits(self, x):
    return x @ self.kernel + self.bias

  def plus(self, other, scale=1.0):
    return Linear(
      self.kernel + scale * other.kernel, self.bias + scale * other.bias
    )


@dataclasses.dataclass
class Client:
  """A client's data: arrays float64[n, features] and int[n]."""

  x: np.ndarray
  y: np.ndarray
  holdout_x: np.ndarray
  holdout_y: np.ndarray


def weighted_mean(clients_models, weights):
  total = Linear(0.0, 0.0)
  for model, weight in zip(clients_models, weights, strict=True):
    total = total.plus(model, weight / np.sum(weights))
  return total


def softmax(logits):
  p = np.exp(logits - logits.max(axis=1, keepdims=True))
  return p / p.sum(axis=1, keepdims=True)


def cross_entropies(model, x, y):
  """The cross-entropy of each example."""
  return -np.log(softmax(model.logits(x))[np.arange(len(y)), y])


def focal_gradient(model, x, y, gamma):
  """Of `mean(-(1 - p)^gamma ln p)`, p the probability of the true class."""
  p = softmax(model.logits(x))
  true = np.eye(p.shape[1])[y]
  p_true = (p * true).sum(axis=1, keepdims=True)
  # dL/dp times p, since dp/dz = p (true - p).
  slope = -((1 - p_true) ** gamma)
  if gamma:
    slope += gamma * (1 - p_true) ** (gamma - 1) * p_true * np.log(p_true)
  dz = slope * (true - p) / len(y)
  return Linear(x.T @ dz, dz.sum(axis=0))


def train(model, client, *, learning_rate, epochs, gamma=0.0, pull=None):
  """Full-batch gradient descent; `pull` is (centre, proximal weight)."""
  for _ in range(epochs):
    gradient = focal_gradient(model, client.x, client.y, gamma)
    if pull is not None:
      centre, weight = pull
      gradient = gradient.plus(model.plus(centre, -1.0), weight)
    model = model.plus(gradient, -learning_rate)
  return model


def error(model, client):
  x, y = client.holdout_x, client.holdout_y
  if not len(y):
    x, y = client.x, client.y
  return np.mean(model.logits(x).argmax(axis=1) != y)


def alpha(err, num_classes):
  if num_classes < 2:
    return 0.0
  err = np.clip(err, 1e-6, 1 - 1e-6)
  return np.log((1 - err) / err) + np.log(num_classes - 1)


def fed_avg_round(model, clients, *, learning_rate, epochs, uniform=False):
  trained = [
    train(model, c, learning_rate=learning_rate, epochs=epochs) for c in clients
  ]
  weights = [1.0 if uniform else len(c.y) for c in clients]
  return weighted_mean(trained, weights)


def fedaboost_round(
  model,
  clients,
  weight,
  gamma,
  *,
  learning_rate,
  epochs,
  boost_rate,
  threshold,
  boosting=True,
  script=False,
):
  """One round; `clients` maps ids to data; changes `weight` and `gamma`.

  With `script`, as the authors' code: the number of clients is taken for that
  of classes, and gamma stays.
  """
  trained, alphas = [], {}
  for j, c in clients.items():
    num_classes = len(set(c.y) | set(c.holdout_y))
    if script:
      num_classes = len(clients)
    if boosting:
      before = error(model, c)
      if before > threshold:
        weight[j] *= np.exp(-boost_rate * alpha(before, num_classes))
        if not script:
          gamma[j] = min(gamma[j] + weight[j], 5.0)
    mu = train(
      model,
      c,
      learning_rate=learning_rate,
      epochs=epochs,
      gamma=gamma[j] if boosting else 0.0,
    )
    trained.append(mu)
    alphas[j] = alpha(error(mu, c), num_classes)
  positive = [max(a, 0.0) for a in alphas.values()]
  if sum(positive):
    model = weighted_mean(trained, positive)
  return model, alphas
