"""FairFed: weights of clients follow how they treat two groups of people.

Ezzeldin, Yan, He, Ferrara and Avestimehr, "FairFed: Enabling Group Fairness in
Federated Learning" (AAAI 2023, https://arxiv.org/abs/2110.00857).
"""

import collections
from collections.abc import Callable
from typing import Annotated, Any, Literal

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import arguments
from tff_fair.algorithms import client_updates
from tff_fair.algorithms import processes
from tff_fair.annotations import Limits, Symbol


def build_fair_fed(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int,
  client_optimizer: tff.learning.optimizers.Optimizer,
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  max_update_norm: float | None = arguments.MAX_UPDATE_NORM,
  focal_gamma: float = 0.0,
  fairness_budget: Annotated[float, Limits(minimum=0), Symbol('β')] = 1.0,
  fairness_gap: Literal[
    'equal_opportunity', 'statistical_parity'
  ] = 'equal_opportunity',
  positive_class: int = 1,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  robust: bool = False,
) -> processes.FairLearningProcess:
  """Builds FairFed, for two classes and two groups of people.

  With Y the label, P the prediction by the received model, A the group, and 1
  the positive class, the gap of the client's training examples is

      F_k = Pr(P=1 | A=0, Y=1) - Pr(P=1 | A=1, Y=1)    equal opportunity
      F_k = Pr(P=1 | A=0) - Pr(P=1 | A=1)              statistical parity

  in inference mode and before it trains; F_global is that of the examples of
  all clients of the round. Then

      Delta_k = |F_global - F_k|, or |Acc_global - Acc_k| without an F_k
      omega_k <- omega_k - beta (Delta_k - mean Delta)
      w <- sum_k omega_k w_k / sum_k omega_k

  at first with `omega_k = n_k / sum n`. A client has no F_k if one of the
  groups has no example to count. Weights below 0 become 0, and the result is
  divided by its sum; the weights of absent clients stay as they are, relative
  to those of others.

  The clients' data must have the component `group`, see
  `client.build_client_data`. There is no `model_aggregator`: the rule is the
  method. See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    fairness_budget: Step by which the weights of clients follow their gaps; at
      0 this is FedAvg bit for bit.
    fairness_gap: Gap between the groups, of their true positive rates or of
      their rates of positive predictions.
    positive_class: The class that counts as positive, 0 or 1.

  Returns:
    A `FairLearningProcess`. Its metrics are FedAvg's and those of
    `aggregators.GroupGapFactory` under `aggregator`.

  Raises:
    ValueError: If `positive_class` is not 0 or 1, or the model has not two
      classes.
  """
  shared = arguments.check_arguments(build_fair_fed, locals())
  _check_positive(positive_class)
  model = models.StatelessModel(model_fn)
  if model.num_classes != 2:
    raise ValueError(
      'model_fn must build a model of 2 classes for FairFed, whose gap is of'
      f' positive predictions, found {model.num_classes}.'
    )
  train = client_updates.build_client_update(
    shared.local_training(model, client.classification_objective(focal_gamma)),
    uniform=False,
  )
  only_positive = fairness_gap == 'equal_opportunity'

  def client_update(weights, row, examples, client_seed, learning_rate):
    part = examples['train']
    logits = client.logits_of_examples(model, weights, part['x'])
    predicted = tf.argmax(logits, axis=-1, output_type=tf.int32)
    # The local training shuffles all that it is given.
    known = collections.OrderedDict(x=part['x'], y=part['y'])
    output = train(
      weights,
      row,
      collections.OrderedDict(examples, train=known),
      client_seed,
      learning_rate,
    )
    return output._replace(
      update_weight=collections.OrderedDict(
        client_id=examples['key'],
        num_examples=output.update_weight,
        num_correct=_count(tf.equal(predicted, part['y'])),
        **_group_counts(part, predicted, positive_class, only_positive),
      )
    )

  client_work = shared.client_work(model, client_update, with_groups=True)
  rule = aggregators.GroupGapFactory(num_clients, rate=fairness_budget)
  return shared.compose(model, client_work, rule=rule)


def _check_positive(positive_class) -> None:
  if positive_class not in (0, 1):
    raise ValueError(
      f'positive_class must be 0 or 1, found {positive_class!r}.'
    )


def _group_counts(
  examples, predicted, positive_class, only_positive
) -> dict[str, tf.Tensor]:
  """How many of each group count, and are predicted positive: float32[2]."""
  counted = tf.equal(examples['y'], positive_class)
  if not only_positive:
    counted = tf.ones_like(counted)
  is_positive = tf.equal(predicted, positive_class)
  found = collections.defaultdict(list)
  for group in (0, 1):
    members = counted & tf.equal(examples['group'], group)
    found['members'].append(_count(members))
    found['selected'].append(_count(members & is_positive))
  return {name: tf.stack(numbers) for name, numbers in found.items()}


def _count(mask) -> tf.Tensor:
  return tf.reduce_sum(tf.cast(mask, tf.float32))
