"""Scores of a global model, or of one model per client.

Evaluation runs in the installed TensorFlow, outside the federated runtime. Test
data belong to the clients, where one pass gives the global score and every
client's score, or to the server, which then evaluates every client's model.
"""

import abc
from collections.abc import Iterable, Mapping, Sequence
from concurrent import futures
import functools
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_fair import checks
from tff_fair import fairness
from tff_fair import models
from tff_fair.models import keras_weights

_BATCH = 1000


class ClientScores(NamedTuple):
  """Scores of clients.

  Attributes:
    num_examples: `int64[k]`, number of test examples of each client.
    accuracy: `float64[k]`; NaN for a client without examples, or if the largest
      logit of one is not finite, as below.
    f1: `float64[k]`, macro-F1.
    f1_own_labels: `float64[k]`, macro-F1 over the true labels only.
    f1_weighted: `float64[k]`, F1 weighted by the numbers of true labels.
    loss: `float64[k]`, mean cross-entropy, independent of the training loss;
      NaN if the nearest centroid classified.
    pooled: `dict` with keys `accuracy`, `f1` and `loss`, over all examples.
    predicted: `int64[n]`, the predicted class of each test example, client by
      client; None on the server's data.
  """

  num_examples: np.ndarray
  accuracy: np.ndarray
  f1: np.ndarray
  f1_own_labels: np.ndarray
  f1_weighted: np.ndarray
  loss: np.ndarray
  pooled: dict[str, float]
  predicted: np.ndarray | None = None


class _Evaluator(abc.ABC):
  """The base of evaluators of clients' data and of the server's."""

  @abc.abstractmethod
  def evaluate_each(self, models: Iterable[Any]) -> ClientScores:
    """Scores models, of the clients in turn; see `evaluate_clients`."""

  @abc.abstractmethod
  def _all_batches(self) -> Any:
    """Returns all inputs, in batches."""

  @abc.abstractmethod
  def _score(self, logits: Any) -> ClientScores:
    """Scores the outputs for all inputs."""

  def __init__(self, model, num_clients) -> None:
    self._predict = _Predictor(model)
    self._embed = _Predictor(model, 'embedding')
    self._num_clients = num_clients

  def evaluate_global(
    self, weights: Any, centroids: Mapping[str, Any] | None = None
  ) -> ClientScores:
    """Scores one model for every client.

    Args:
      weights: `tff.learning.models.ModelWeights` of the model.
      centroids: What `algorithms.build_class_centroids` returns for the
        weights; the nearest centroid then replaces the model's classifier.

    Returns:
      `ClientScores`; all alike on the server's data.
    """
    if centroids is None:
      return self._score(self._predict(weights, self._all_batches()))
    embeddings = self._embed(weights, self._all_batches())
    scores = self._score(nearest_centroid_logits(embeddings, centroids))
    # Of a classifier without probabilities.
    return scores._replace(
      loss=np.full_like(scores.loss, np.nan),
      pooled={**scores.pooled, 'loss': np.nan},
    )

  def evaluate_clients(self, weights: Any) -> ClientScores:
    """Scores each client's own model.

    Args:
      weights: `ModelWeights` of arrays with a leading axis of clients.

    Returns:
      `ClientScores`; `pooled` pools the clients' predictions.
    """
    return self.evaluate_each(
      _row(weights, client_id) for client_id in range(self._num_clients)
    )


class Evaluator(_Evaluator):
  """Evaluates models of one architecture on clients' test data."""

  def __init__(self, model: tf.keras.Model, examples: Sequence[Any]) -> None:
    """Pools the clients' examples.

    Args:
      model: Keras model whose output is logits, or a mapping with `logits`; a
        single logit, or its sigmoid, is that of class 1 of two. Its weights are
        overwritten.
      examples: For each client `(x, y)`, `float32[n, ...]` and `int32[n]`; n
        may be 0.

    Raises:
      ValueError: If there is no client, or a client has a different number of
        inputs and labels, or an input that is not finite.
    """
    if not examples:
      raise ValueError('examples must be of at least one client, found none.')
    for number, (x, y) in enumerate(examples):
      _check_examples(f'The part of client {number} that is evaluated', x, y)
    super().__init__(model, len(examples))
    self._x = np.concatenate([x for x, _ in examples])
    self._labels = np.concatenate([y for _, y in examples])
    self._sizes = [len(y) for _, y in examples]
    self._clients = np.repeat(np.arange(len(examples)), self._sizes)

  def evaluate_each(self, models: Iterable[Any]) -> ClientScores:
    """Scores each client's own model on its own examples.

    Args:
      models: `ModelWeights` for each client, one after the other, so that not
        all need be in memory.

    Returns:
      `ClientScores`; `pooled` pools the clients' predictions.

    Raises:
      ValueError: If there are not as many models as clients.
    """
    parts = np.split(self._x, np.cumsum(self._sizes)[:-1])
    logits = [
      self._predict(weights, _batches(x))
      for weights, x in zip(models, parts, strict=True)
    ]
    return self._score(np.concatenate(logits))

  def _all_batches(self):
    return _batches(self._x)

  def _score(self, logits):
    return score_predictions(
      logits, self._labels, self._clients, len(self._sizes)
    )


class ServerEvaluator(_Evaluator):
  """Evaluates models of one architecture on the server's test data."""

  def __init__(
    self, model: tf.keras.Model, examples: Any, num_clients: int
  ) -> None:
    """Keeps one copy of the examples for all clients.

    Args:
      model: As for `Evaluator`.
      examples: `(x, y)`, `float32[n, ...]` and `int32[n]`.
      num_clients: Number of clients, at least 1.

    Raises:
      TypeError: If `num_clients` is not an integer.
      ValueError: If it is below 1, the numbers of inputs and labels differ, or
        an input is not finite.
    """
    checks.check_integer('num_clients', num_clients, 1)
    x, self._labels = examples
    _check_examples("The server's part that is evaluated", x, self._labels)
    super().__init__(model, num_clients)
    self._batches = _batches(x)

  def evaluate_each(self, models: Iterable[Any]) -> ClientScores:
    """Scores each client's own model; see `Evaluator.evaluate_each`."""
    totals = [
      self._totals(self._predict(weights, self._batches))
      for weights, _ in zip(models, range(self._num_clients), strict=True)
    ]
    return _scores(*map(np.concatenate, zip(*totals, strict=True)))

  def _all_batches(self):
    return self._batches

  def _score(self, logits):
    totals = self._totals(logits)
    return _scores(
      *(np.repeat(total, self._num_clients, axis=0) for total in totals)
    )

  def _totals(self, logits):
    return _totals(logits, self._labels, np.zeros_like(self._labels), 1)


class _Predictor:
  """Computes an output of a model on batches, in several threads."""

  def __init__(self, model, name='logits') -> None:
    self._model = model
    self._name = name
    self._pool = futures.ThreadPoolExecutor()

  @functools.cached_property
  def _variables(self):
    # Keras looks through all layers, which takes longer than a small model.
    return keras_weights.variables(self._model)

  @functools.cached_property
  def _output_fn(self):
    # Traced once, for any batch size: otherwise each thread would trace it.
    return tf.function(self._outputs, autograph=False).get_concrete_function(
      tf.TensorSpec(self._model.input.shape, tf.float32)
    )

  def _outputs(self, x):
    outputs = models.class_outputs(self._model(x, training=False))
    if self._name not in outputs:
      raise ValueError(
        f'The model must have an output {self._name!r}, found none.'
      )
    return outputs[self._name]

  def __call__(self, weights, batches) -> np.ndarray:
    keras_weights.write(weights, self._variables)
    width = self._output_fn.structured_outputs.shape[-1]
    nothing = np.zeros([0, width], np.float32)
    return np.concatenate([nothing, *self._pool.map(self._output_fn, batches)])


def embeddings(model: tf.keras.Model, weights: Any, x: Any) -> np.ndarray:
  """The embeddings of examples.

  Args:
    model: Keras model whose output is a mapping with `embedding`. Its weights
      are overwritten.
    weights: `tff.learning.models.ModelWeights` of the model.
    x: `float32[n, ...]`.

  Returns:
    `float32[n, p]`.

  Raises:
    ValueError: If the model has no embedding.
  """
  return _Predictor(model, 'embedding')(weights, _batches(x))


def nearest_centroid_logits(
  embeddings: Any, centroids: Mapping[str, Any]
) -> np.ndarray:
  """Logits of which the largest belongs to the nearest class centroid.

      2 z c - |c|^2,  which orders the classes as -|z - c|^2 does

  Args:
    embeddings: z, `float[n, p]`.
    centroids: `sums`, `float[C, p]`, the sum of the embeddings of each class,
      and `counts`, `int[C]`; c is their ratio.

  Returns:
    `float64[n, C]`; -inf for a class with count 0, which is never predicted;
    NaN if no class has examples.

  Raises:
    ValueError: If the shapes differ from these.
  """
  counts = np.asarray(centroids['counts'])
  sums = np.asarray(centroids['sums'], np.float64)
  shapes = [np.shape(embeddings), sums.shape, counts.shape]
  if [*map(len, shapes)] != [2, 2, 1] or (
    shapes[0][1:] + shapes[2] != shapes[1][::-1]
  ):
    raise ValueError(
      'embeddings, sums and counts must have the shapes [n, p], [C, p] and [C],'
      f' found {", ".join(map(str, shapes))}.'
    )
  means = sums / np.maximum(counts, 1)[:, np.newaxis]
  logits = 2 * np.asarray(embeddings, np.float64) @ means.T
  missing = -np.inf if counts.any() else np.nan
  return np.where(counts > 0, logits - np.sum(means**2, axis=1), missing)


def score_predictions(
  logits: Any, labels: Any, clients: Any, num_clients: int
) -> ClientScores:
  """Scores logits; ties go to the lowest class.

  A client for which a largest logit is NaN or infinite has no scores: its model
  is of no use, and the first of such classes no prediction.

  Args:
    logits: `float[n, num_classes]`.
    labels: `int[n]`.
    clients: `int[n]`, the client of each example, 0..num_clients-1.
    num_clients: Number of clients.

  Returns:
    `ClientScores`; its `predicted` is in the order of the logits, and means
    nothing where there are no scores.

  Raises:
    TypeError: If the labels or clients are not integers.
    ValueError: If a label or a client is out of range, or the shapes differ
      from these.
  """
  found = _scores(*_totals(logits, labels, clients, num_clients))
  return found._replace(predicted=np.asarray(logits).argmax(axis=1))


def _totals(logits, labels, clients, num_clients):
  """Each client's confusion matrix, summed loss, and NaN without scores."""
  logits = np.asarray(logits, np.float64)
  if logits.ndim != 2 or not logits.shape[1]:
    raise ValueError(
      f'logits must have the shape [n, num_classes], found {logits.shape}.'
    )
  confusion = fairness.confusion_matrices(
    labels, logits.argmax(axis=1), clients, logits.shape[1], num_clients
  )
  losses = _cross_entropy(logits, np.asarray(labels, np.int64))
  # 0 for a model that predicts; -inf is a class that it never does.
  useless = np.where(np.isfinite(logits.max(axis=1)), 0.0, np.nan)
  return (
    confusion,
    np.bincount(clients, losses, num_clients),
    np.bincount(clients, useless, num_clients),
  )


def _scores(confusion, losses, useless) -> ClientScores:
  """The scores that follow from each client's totals."""
  num_examples = confusion.sum(axis=(1, 2))
  pooled = confusion.sum(axis=0)
  with np.errstate(invalid='ignore'):  # 0 / 0 is NaN: no score.
    client_loss = losses / num_examples
    pooled_loss = losses.sum() / num_examples.sum()
  return ClientScores(
    num_examples=num_examples,
    accuracy=fairness.accuracy(confusion) + useless,
    f1=fairness.macro_f1(confusion) + useless,
    f1_own_labels=fairness.macro_f1(confusion, own_labels=True) + useless,
    f1_weighted=fairness.weighted_f1(confusion) + useless,
    loss=client_loss,
    pooled={
      'accuracy': float(fairness.accuracy(pooled) + useless.sum()),
      'f1': float(fairness.macro_f1(pooled) + useless.sum()),
      'loss': float(pooled_loss),
    },
  )


def _cross_entropy(logits, labels) -> np.ndarray:
  """`ln(sum(exp(logits))) - logits[label]` for each example."""
  with np.errstate(invalid='ignore'):  # NaN if the largest logit is infinite.
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_sum = np.log(np.exp(shifted).sum(axis=1))
    return log_sum - shifted[np.arange(len(labels)), labels]


def _check_examples(what, x, y) -> None:
  if np.shape(x)[:1] != np.shape(y):
    raise ValueError(
      f'{what} must have as many inputs as labels, found shapes'
      f' {np.shape(x)} and {np.shape(y)}.'
    )
  checks.check_inputs(what, x)


def _batches(x) -> list[tf.Tensor]:
  """Batches; none without examples, as some layers fail on an empty batch."""
  return [
    tf.convert_to_tensor(x[i : i + _BATCH], tf.float32)
    for i in range(0, len(x), _BATCH)
  ]


def _row(weights, client_id):
  return tf.nest.map_structure(lambda w: w[client_id], weights)
