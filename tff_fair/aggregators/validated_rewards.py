"""FedAVE's server: reputations from validation accuracy and loss distributions.

FedAVE, "Adaptive Data Value Evaluation Framework for Collaborative Fairness in
Federated Learning" (Neurocomputing, 2024), as in its public code.
"""

import collections
from collections.abc import Callable
import dataclasses
from typing import Annotated, Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.aggregators import factory
from tff_fair.aggregators import gathered
from tff_fair.aggregators import sparse_rewards
from tff_fair.annotations import Limits

# The lowest reputation of a client.
_FLOOR = 1e-3
_TINY = 1e-12


def loss_divergences(losses: Any, reference: Any, numbers: Any) -> tf.Tensor:
  """`KL(A_i || B_i)` of distributions over minibatches.

  Both vectors of mean losses are cut to the length of the shorter one and
  divided by their sum; `numbers` are these lengths. A client with fewer than
  two entries gets the largest divergence of the others, or 1 if there are none.
  """
  count = tf.shape(losses)[1]
  cut = tf.sequence_mask(numbers, count, tf.float64)

  def distribution(values):
    values = tf.cast(values, tf.float64) * cut
    total = tf.reduce_sum(values, axis=1, keepdims=True)
    return tf.maximum(tf.math.divide_no_nan(values, total), _TINY)

  p, q = distribution(losses), distribution(reference)
  divergence = tf.reduce_sum(cut * p * tf.math.log(p / q), axis=1)
  known = numbers > 1
  largest = tf.reduce_max(tf.where(known, divergence, 0.0))
  largest = tf.where(tf.reduce_any(known), largest, 1.0)
  return tf.maximum(tf.where(known, divergence, largest), _TINY)


def closeness(divergences: Any) -> tf.Tensor:
  """`k_i = (1 / KL_i) / max_j (1 / KL_j)`, `float64[m]`."""
  return gathered.divide_by_max(1 / divergences)


def reputations(
  history: Any, accuracies: Any, close: Any, history_weight: float
) -> tf.Tensor:
  """`r_i = alpha r_i + (1 - alpha) acc_i k_i^2`, at least 1e-3.

  A history of 0 is none; then `r_i = acc_i k_i^2`.
  """
  fresh = accuracies * close**2
  mixed = history_weight * history + (1 - history_weight) * fresh
  mixed = tf.where(history > 0, mixed, fresh)
  return tf.maximum(mixed, tf.constant(_FLOOR, tf.float64))


def reward_shares(reputation: Any, close: Any, altruism: float) -> tf.Tensor:
  """`q_i = k_i tanh(b r_i) / max_j tanh(b r_j)`, `float64[m]`."""
  return close * gathered.divide_by_max(tf.tanh(altruism * reputation))


def accuracies(validation_fn: Callable[[Any], Any], uploads: Any) -> tf.Tensor:
  """`acc_i`: the accuracies of what clients trained, `float64[m]`.

  0 for clients that did not train and for non-finite values.

  Args:
    validation_fn: As of `ValidatedRewardFactory`.
    uploads: With the weights `received` and the updates `value`.
  """
  weight = uploads['weight']
  trained = tf.nest.map_structure(
    tf.subtract, weight['received'], uploads['value']
  )
  found = _map_models(validation_fn, trained, [], tf.float64)
  known = (weight['num_examples'] > 0) & tf.math.is_finite(found)
  return tf.where(known, found, 0.0)


def mean_by_examples(uploads: Any, rows: Any) -> tf.Tensor:
  """`sum_i (n_i / sum n) rows_i`, `float32[d]`."""
  factors = gathered.divide_by_sum(uploads['weight']['num_examples'])
  return tf.tensordot(factors, rows, axes=1)


@dataclasses.dataclass(eq=False, repr=False)
class ValidatedRewardFactory(factory.Factory):
  """The server side of FedAVE.

  With `m_i` the weights that client i received, and `D_i` its update:

  1. `k_i` by `closeness` of the client's `loss_divergences` from the validation
     set, both of `m_i`, before training.
  2. `acc_i`: the validation accuracy of `m_i + D_i`.
  3. `u = sum_i (n_i / sum n) Gamma D_i / (||D_i|| + 1e-7)`.
  4. `r_i` by `reputations`, then `r <- r / sum r` over all clients; shares by
     `reward_shares`, but 0 in the first round, that is, while no present client
     has a reputation.

  The created process is that of `sparse_rewards.build_process`. The weight is
  `<client_id=int32, num_examples=float32, received=<like the value>, losses=
  float32[b], num_losses=int32>`, for b minibatches of the validation set:
  `losses` are the mean losses of the client's first minibatches, `num_losses`
  is how many minibatches it has. The measurements of clients also have
  `validation_accuracy` and `divergence`.

  Args:
    validation_fn: Accuracy on the server's validation set, a pure function
      `weights -> float scalar` of TensorFlow, for weights like the values.
    batch_losses_fn: The mean losses of the validation set's minibatches, a pure
      function `weights -> float32[b]` of TensorFlow.
    num_clients: N.
    update_length: Gamma, positive.
    history_weight: alpha, in [0, 1].
    altruism: b, positive.
  """

  validation_fn: Callable[[Any], Any]
  batch_losses_fn: Callable[[Any], Any]
  _: dataclasses.KW_ONLY
  num_clients: Annotated[int, Limits(minimum=1)]
  update_length: Annotated[float, Limits(above=0)] = 0.5
  history_weight: Annotated[float, Limits(minimum=0, maximum=1)] = 0.9
  altruism: Annotated[float, Limits(above=0)] = 1.0

  def _required_weight_type(self, value_type):
    return collections.OrderedDict(
      client_id=np.int32,
      num_examples=np.float32,
      received=value_type,
      losses=tff.TensorType(np.float32, [None]),
      num_losses=np.int32,
    )

  def _create(self, value_type, weight_type):
    return sparse_rewards.build_process(
      value_type,
      weight_type,
      num_clients=self.num_clients,
      initial_reputation=0.0,
      rate=self._rate,
    )

  def _rate(self, updates, uploads, reputation) -> sparse_rewards.RatedRound:
    weight = uploads['weight']
    accuracy = accuracies(self.validation_fn, uploads)
    reference = _map_models(
      self.batch_losses_fn, weight['received'], weight['losses'].shape[1:]
    )
    numbers = tf.minimum(weight['num_losses'], weight['losses'].shape[1])
    # The losses of a dropped client are not those of a good model.
    numbers = tf.where(weight['num_examples'] > 0, numbers, 0)
    divergence = loss_divergences(weight['losses'], reference, numbers)
    close = closeness(divergence)
    first = tf.equal(tf.reduce_sum(reputation), 0.0)

    def share_fn(new_reputation):
      shares = reward_shares(new_reputation, close, self.altruism)
      return tf.where(first, tf.zeros_like(shares), shares)

    return sparse_rewards.RatedRound(
      aggregate=mean_by_examples(
        uploads, sparse_rewards.unit_updates(updates, self.update_length)
      ),
      reputation=reputations(reputation, accuracy, close, self.history_weight),
      share_fn=share_fn,
      measurements=collections.OrderedDict(
        validation_accuracy=accuracy, divergence=divergence
      ),
    )


def _map_models(fn, models, shape, dtype=tf.float32) -> tf.Tensor:
  """Applies a function of weights to each row of gathered weights."""
  return tf.map_fn(
    lambda weights: tf.cast(fn(weights), dtype),
    models,
    fn_output_signature=tf.TensorSpec(shape, dtype),
    # The batches of one model use all cores; more models need more memory.
    parallel_iterations=2,
  )
