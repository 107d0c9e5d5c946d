"""FeDABoost: federated learning with adaptive boosting.

Kasthuri Arachchige, Boeva and Abghari, "FeDABoost: Fairness Aware Federated
Learning with Adaptive Boosting" (WAFL at ECML PKDD 2025), weigh client models
by the multiclass-AdaBoost (SAMME) coefficient of their own error, and give
clients with a high error a growing focusing parameter of the focal loss.
Equation numbers are the paper's. Where it contradicts itself, the default is
named in `build_fedaboost` and an option gives the other reading.
"""

import collections
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair import checks
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import arguments
from tff_fair.algorithms import client_updates
from tff_fair.algorithms import processes
from tff_fair.annotations import Limits, Symbol, Unless

# Equation 8 multiplies in every round; bounds keep float32 away from 0 and inf.
_LOWEST_WEIGHT, _HIGHEST_WEIGHT = 1e-12, 1e6


def build_fedaboost(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int,
  client_optimizer: tff.learning.optimizers.Optimizer,
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  max_update_norm: float | None = arguments.MAX_UPDATE_NORM,
  boosting: bool = True,
  boost_rate: Annotated[
    float, Limits(minimum=0), Symbol('η'), Unless(boosting=False)
  ] = 0.01,
  error_threshold: Annotated[
    float, Limits(minimum=0, maximum=1), Unless(boosting=False)
  ] = 0.3,
  error_clip: Annotated[float, Limits(above=0, below=0.5), Symbol('ε')] = 1e-6,
  alpha_clip: Annotated[float | None, Limits(above=0)] = None,
  initial_gamma: Annotated[
    float, Limits(minimum=0), Symbol('γ₀'), Unless(boosting=False)
  ] = 0.0,
  max_gamma: Annotated[float, Limits(minimum=0), Unless(boosting=False)] = 5.0,
  focal_weight: Annotated[float, Limits(above=0), Symbol('β')] = 1.0,
  class_count: Annotated[Literal['local', 'global'], Symbol('C')] = 'local',
  single_class: Literal['exclude', 'floor2'] = 'exclude',
  weighting: Literal['softmax'] | None = None,
  fallback: Annotated[
    Literal['keep', 'fed_avg'], Unless(weighting='softmax')
  ] = 'keep',
  initial_weight: Annotated[
    float | None, Limits(above=0), Unless(boosting=False)
  ] = None,
  weight_sign: Annotated[Literal[-1, 1], Unless(boosting=False)] = -1,
  weight_init: Annotated[
    Literal['m0', 'k'], Symbol('m₀'), Unless(boosting=False)
  ] = 'm0',
  gamma_mode: Annotated[
    Literal['gated', 'always', 'constant'], Unless(boosting=False)
  ] = 'gated',
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
  robust: bool = False,
) -> processes.FairLearningProcess:
  """Builds FeDABoost.

  A client j receives the global model M and keeps a boost weight `w_j` and a
  focusing parameter `gamma_j`. With `A(E, C) = samme_alpha(E, C)`:

  1. `E_pre`: error of M on the client's holdout (its training part if it has no
     holdout); `I = 1` if `E_pre > error_threshold`, else 0.
  2. `w_j <- w_j exp(-eta A(E_pre, C_j) I)` (equation 8), kept in [1e-12, 1e6].
  3. `gamma_j <- min(max(gamma_j + I w_j, 0), max_gamma)`.
  4. mu_j: M trained by the focal loss with `gamma_j` (equation 5).
  5. `alpha_j = A(E_post, C_j)` with the error of mu_j (equation 6).

  The server takes `M <- sum_P alpha_j mu_j / sum_P alpha_j` over the clients
  with `alpha_j > 0` (equation 7). With equal alphas and `boosting=False` this
  is FedAvg with uniform weights.

  There is no `focal_gamma`: the focusing parameter is each client's own.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    boosting: Adapt the focal loss; without it, the paper's ablation, there are
      no boost weights and the loss is cross-entropy. The aggregation stays.
    boost_rate: Rate of the boost weights; 0 leaves them unchanged. Equation 8.
    error_threshold: Clients with a larger error are boosted; at 1 none is.
    error_clip: Errors are clipped to this distance from 0 and 1. Equation 6;
      the paper has 1e-6 as an example.
    alpha_clip: Alphas are clipped to this distance from 0, in both equations;
      None leaves them as they are. The authors' public code has bounds of 3 and
      5.
    initial_gamma: Initial focusing parameter of every client. At most
      `max_gamma`.
    max_gamma: Largest focusing parameter.
    focal_weight: Factor on the focal loss. The beta_f of equation 5.
    class_count: Number of classes in alpha: the client's distinct labels
      (local) or the task's classes (global). The labels are those of the
      training and holdout parts (text of equation 6); 'global' is the paper's
      Algorithm 1.
    single_class: A client with a single class is left out (exclude) or counts
      as having two (floor2). It has ln(0) in equation 6. Excluded, it has alpha
      0 and keeps `w_j`; otherwise it would have the largest alpha of all, for a
      model of one class.
    weighting: Models are weighed by the softmax of the alphas of the round,
      which leaves nobody out, as in the authors' public code; None weighs them
      by the positive alphas. Equation 7 has the latter.
    fallback: If no alpha is positive, the model stays (keep) or is the mean of
      all (fed_avg). That mean is by numbers of examples.
    initial_weight: Initial boost weight, in place of that of `weight_init`.
    weight_sign: Sign in equation 8; 1 is the form of SAMME. The background text
      has 1, too.
    weight_init: Initial boost weight: 1 / size of the first cohort (m0) or 1 /
      number of clients (k). The text has m0, Algorithm 1 k.
    gamma_mode: Gamma grows only above the error threshold (gated), or always,
      or it stays as it is (constant). 'gated' is step 3; 'always' adds `w_j` at
      every participation; 'constant' leaves step 3 out.
    model_aggregator: Replaces `SammeAlphaFactory` for the trainable weights. It
      receives the raw alpha as weight, even if it is negative, or with
      `weighting='softmax'` its exponential, and with `fallback='fed_avg'`
      `<alpha=float32,num_examples=float32>`.

  Returns:
    A `FairLearningProcess`. The client table, in `state.client_work['table']`,
    is `OrderedDict(weight=float32[K], gamma=float32[K])`. Metrics under
    `client_work['clients']`, a vector each:
    `alpha`, `aggregated` (1 where the weight is positive), `weight`, `gamma`,
    `error_before` (E_pre, if boosting), `error_after` (E_post), `num_classes`,
    `loss`.
  """
  shared = arguments.check_arguments(build_fedaboost, locals())
  checks.check_real('initial_gamma', initial_gamma, 0.0, max_gamma)
  model = models.StatelessModel(model_fn)
  rule = aggregators.SammeAlphaFactory(fallback=fallback)
  train = shared.local_training(model, client.focal_objective(focal_weight))

  def alpha_fn(error, num_classes):
    alpha = aggregators.samme_alpha(error, num_classes, error_clip=error_clip)
    if alpha_clip is None:
      return alpha
    return tf.clip_by_value(alpha, -alpha_clip, alpha_clip)

  def boost(row, error, num_classes):
    return boosted_row(
      row,
      error,
      alpha_fn(error, num_classes),
      boost_rate=boost_rate,
      error_threshold=error_threshold,
      max_gamma=max_gamma,
      weight_sign=weight_sign,
      gamma_mode=gamma_mode,
    )

  def client_update(weights, row, examples, client_seed, learning_rate):
    validation = validation_part(examples)
    num_classes = _num_classes(
      examples, model.num_classes, class_count, single_class
    )
    report = collections.OrderedDict(num_classes=num_classes)
    gamma = tf.constant(0.0)
    if boosting:
      report['error_before'] = error_rate(model, weights, validation)
      row = boost(row, report['error_before'], num_classes)
      gamma = row['gamma']
    result = train(
      weights,
      examples['train'],
      client_seed,
      context=gamma,
      learning_rate=learning_rate,
    )
    report['error_after'] = error_rate(model, result.weights, validation)
    alpha = alpha_fn(report['error_after'], num_classes)
    report['alpha'] = alpha
    # Of a client that is dropped later, it becomes 0.
    update_weight = tf.exp(alpha) if weighting == 'softmax' else alpha
    report['aggregated'] = tf.cast(update_weight > 0, tf.int32)
    report.update(
      weight=row['weight'], gamma=row['gamma'], loss=result.metrics['loss']
    )
    if fallback == 'fed_avg':
      update_weight = collections.OrderedDict(
        alpha=update_weight,
        num_examples=client_updates.example_weight(examples),
      )
    return client.ClientOutput(
      update=client_updates.model_update(weights, result.weights),
      update_weight=update_weight,
      row=row,
      metrics=result.metrics,
      report=report,
    )

  def start_round(table, round_number, cohort_size):
    """Sets the weights 1/m_0 in the round in which m_0 becomes known."""
    first = tf.fill([num_clients], 1 / tf.cast(cohort_size, tf.float32))
    weight = tf.where(tf.equal(round_number, 0), first, table['weight'])
    return collections.OrderedDict(table, weight=weight)

  client_work = shared.client_work(
    model,
    client_update,
    initial_row=collections.OrderedDict(
      weight=np.float32(initial_weight or 1 / num_clients),
      gamma=np.float32(initial_gamma),
    ),
    start_round=start_round
    if weight_init == 'm0' and initial_weight is None
    else None,
  )
  return shared.compose(model, client_work, rule=rule)


def boosted_row(
  row: Any,
  error: Any,
  alpha: Any,
  *,
  boost_rate: float,
  error_threshold: float,
  max_gamma: float,
  weight_sign: int = -1,
  gamma_mode: str = 'gated',
) -> collections.OrderedDict:
  """Steps 2 and 3: a client's new boost weight and focusing parameter.

  Args:
    row: `OrderedDict(weight=float32, gamma=float32)`; other entries are kept.
    error: float32, E_pre, the received model's error on the client.
    alpha: float32, `A(E_pre, C_j)`; 0 leaves the weight as it is.
    boost_rate: eta of equation 8.
    error_threshold: The client is boosted if `error` exceeds it.
    max_gamma: Upper bound of gamma.
    weight_sign: -1 as in equation 8, or +1.
    gamma_mode: 'gated', 'always' or 'constant'.

  Returns:
    The new row.
  """
  above = tf.cast(error > error_threshold, tf.float32)
  weight = row['weight'] * tf.exp(weight_sign * boost_rate * alpha * above)
  weight = tf.clip_by_value(weight, _LOWEST_WEIGHT, _HIGHEST_WEIGHT)
  gamma = row['gamma']
  if gamma_mode != 'constant':
    step = weight if gamma_mode == 'always' else above * weight
    gamma = tf.clip_by_value(gamma + step, 0.0, max_gamma)
  return collections.OrderedDict(row, weight=weight, gamma=gamma)


def error_rate(
  model: models.StatelessModel, weights: Any, examples: Any
) -> tf.Tensor:
  """Returns the share of wrong predictions, float32; 1 without examples.

  Args:
    model: The client model.
    weights: `ModelWeights` of it.
    examples: `OrderedDict(x, y)`.
  """
  labels = examples['y']

  def share_wrong():
    outputs, _ = model(weights, examples['x'], training=False)
    predicted = tf.argmax(outputs['logits'], axis=-1, output_type=labels.dtype)
    # Not `!=`, which compares identities where TFF traces.
    wrong = tf.cast(tf.not_equal(predicted, labels), tf.float32)
    return tf.reduce_mean(wrong)

  # Some layers fail on an empty batch.
  return tf.cond(tf.size(labels) > 0, share_wrong, lambda: 1.0)


def validation_part(examples: Any) -> Any:
  """Returns the holdout, or the training part of a client without one.

  Args:
    examples: A client's gathered examples, with `train` and `holdout`.
  """
  holdout, whole = examples['holdout'], examples['train']
  empty = tf.equal(tf.size(holdout['y']), 0)
  return tf.cond(empty, lambda: whole, lambda: holdout)


def _num_classes(examples, all_classes, class_count, single_class) -> tf.Tensor:
  """C_j of equation 6, int32; `all_classes` if it is not the client's own."""
  number = tf.convert_to_tensor(all_classes)
  if class_count == 'local':
    labels = tf.concat([examples['train']['y'], examples['holdout']['y']], 0)
    number = client.count_classes(labels, all_classes)
  return tf.maximum(number, 2) if single_class == 'floor2' else number
