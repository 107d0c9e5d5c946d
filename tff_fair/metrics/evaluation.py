"""Scores of a global model, or of one model a client, on clients' data.

Evaluation runs in the installed TensorFlow beside the federated runtime: one
pass over the clients' pooled examples serves the global score and every
client's.
"""

from collections.abc import Sequence
from concurrent import futures
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_fair.metrics import fairness

_BATCH = 1000


class ClientScores(NamedTuple):
  """Scores on clients' data.

  Attributes:
    num_examples: `int64[k]`, each client's number of examples.
    accuracy: `float64[k]`; NaN for a client without examples, as below.
    f1: `float64[k]`, macro-F1.
    f1_own_labels: `float64[k]`, macro-F1 over the client's true labels alone.
    loss: `float64[k]`, mean cross-entropy, whatever the training loss was.
    pooled: `dict` with keys `accuracy`, `f1` and `loss`, over all examples.
  """

  num_examples: np.ndarray
  accuracy: np.ndarray
  f1: np.ndarray
  f1_own_labels: np.ndarray
  loss: np.ndarray
  pooled: dict[str, float]


class Evaluator:
  """Evaluates models of one architecture on clients' test data."""

  def __init__(self, model: tf.keras.Model, examples: Sequence[Any]):
    """Pools the clients' examples.

    Args:
      model: Keras model whose output is logits, or a mapping with `logits`. Its
        weights are overwritten.
      examples: For each client `(x, y)`, `float32[n, ...]` and `int32[n]`; n
        may be 0.
    """
    self._model = model
    self._x = np.concatenate([x for x, _ in examples])
    self._labels = np.concatenate([y for _, y in examples])
    self._sizes = [len(y) for _, y in examples]
    self._clients = np.repeat(np.arange(len(examples)), self._sizes)
    self._pool = futures.ThreadPoolExecutor()
    self._logits_fn = tf.function(
      lambda x: _logits(model(x, training=False)), reduce_retracing=True
    )

  def evaluate_global(self, weights: Any) -> ClientScores:
    """Scores one model on every client's examples.

    Args:
      weights: `tff.learning.models.ModelWeights` of the model.

    Returns:
      `ClientScores`.
    """
    weights.assign_weights_to(self._model)
    return self._score(self._predict(self._x))

  def evaluate_clients(self, weights: Any) -> ClientScores:
    """Scores each client's own model on its own examples.

    Args:
      weights: `ModelWeights` of arrays with a leading axis of clients.

    Returns:
      `ClientScores`; `pooled` pools the clients' predictions.
    """
    logits = []
    parts = np.split(self._x, np.cumsum(self._sizes)[:-1])
    for client_id, x in enumerate(parts):
      row = tf.nest.map_structure(lambda w, i=client_id: w[i], weights)
      row.assign_weights_to(self._model)
      logits.append(self._predict(x))
    return self._score(np.concatenate(logits))

  def _score(self, logits):
    return score_predictions(
      logits, self._labels, self._clients, len(self._sizes)
    )

  def _predict(self, x) -> np.ndarray:
    nothing = np.zeros([0, _logits(self._model.output).shape[-1]], np.float32)
    batches = [  # No batch if there is no example: some layers fail on it.
      tf.convert_to_tensor(x[i : i + _BATCH], tf.float32)
      for i in range(0, len(x), _BATCH)
    ]
    return np.concatenate([nothing, *self._pool.map(self._logits_fn, batches)])


def score_predictions(
  logits: Any, labels: Any, clients: Any, num_clients: int
) -> ClientScores:
  """Scores logits; ties go to the lowest class.

  Args:
    logits: `float[n, num_classes]`.
    labels: `int[n]`.
    clients: `int[n]`, the client of each example, 0..num_clients-1.
    num_clients: Number of clients.

  Returns:
    `ClientScores`.

  Raises:
    ValueError: If a label or a client is out of range.
  """
  logits = np.asarray(logits, np.float64)
  confusion = fairness.confusion_matrices(
    labels, logits.argmax(axis=1), clients, logits.shape[1], num_clients
  )
  losses = _cross_entropy(logits, np.asarray(labels, np.int64))
  num_examples = confusion.sum(axis=(1, 2))
  with np.errstate(invalid='ignore'):  # 0 / 0 is NaN: no score.
    client_loss = np.bincount(clients, losses, num_clients) / num_examples
  pooled = confusion.sum(axis=0)
  return ClientScores(
    num_examples=num_examples,
    accuracy=fairness.accuracy(confusion),
    f1=fairness.macro_f1(confusion),
    f1_own_labels=fairness.macro_f1(confusion, own_labels=True),
    loss=client_loss,
    pooled={
      'accuracy': float(fairness.accuracy(pooled)),
      'f1': float(fairness.macro_f1(pooled)),
      'loss': float(losses.mean()) if len(losses) else float('nan'),
    },
  )


def _cross_entropy(logits, labels) -> np.ndarray:
  """`ln(sum(exp(logits))) - logits[label]` for each example."""
  shifted = logits - logits.max(axis=1, keepdims=True)
  log_sum = np.log(np.exp(shifted).sum(axis=1))
  return log_sum - shifted[np.arange(len(labels)), labels]


def _logits(output):
  return output['logits'] if isinstance(output, dict) else output
