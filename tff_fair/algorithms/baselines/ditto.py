"""Ditto: a personal model for each client, pulled towards the global one.

Li, Hu, Beirami and Smith, "Ditto: Fair and Robust Federated Learning Through
Personalization" (ICML 2021, https://arxiv.org/abs/2012.04221).
"""

import collections
from collections.abc import Callable
from typing import Annotated, Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import arguments
from tff_fair.algorithms import client_updates
from tff_fair.algorithms import processes
from tff_fair.annotations import Limits, Symbol


def build_ditto(
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
  personal_optimizer: tff.learning.optimizers.Optimizer | None = None,
  personal_learning_rate_fn: Callable[[Any], Any] | None = None,
  proximal_weight: Annotated[float, Limits(minimum=0), Symbol('λ')] = 0.1,
  uniform: bool = False,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
  robust: bool = False,
) -> processes.PersonalizedLearningProcess:
  """Builds Ditto: FedAvg, and after it, on each client, a personal model.

  The personal model v of a client is trained for as many epochs as the global
  one, on `F(v) + lambda / 2 * ||v - w||^2` with the received global model w
  fixed. Its optimiser starts with a fresh state each round. It never leaves the
  client, and does not change in rounds without the client. With
  `proximal_weight=0` it is trained alone.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    client_optimizer: Of the global model.
    local_epochs: Passes over the client's examples, for either model.
    focal_gamma: Of the losses of both models.
    personal_optimizer: A TFF optimiser for the personal models; None is
      `client_optimizer`.
    personal_learning_rate_fn: As `client_learning_rate_fn`, for the personal
      models.
    proximal_weight: Pull of a personal model towards the global one; at 0 each
      is trained alone.
    uniform: All clients have the same weight. So they do in the paper's
      Algorithm 1; otherwise it is their number of examples.

  Returns:
    A `PersonalizedLearningProcess`; `get_model_weights` gives the global model,
    `get_client_model_weights` a personal one. Metrics are FedAvg's, and
    `personal_loss`, which includes the proximal term.
  """
  shared = arguments.check_arguments(build_ditto, locals())
  personal_optimizer = personal_optimizer or client_optimizer
  arguments.check_optimizer('personal_optimizer', personal_optimizer)
  if personal_learning_rate_fn is not None:
    checks.check_function(
      'personal_learning_rate_fn', personal_learning_rate_fn, 'the round'
    )
  model = models.StatelessModel(model_fn)
  objective = client.classification_objective(focal_gamma)
  train = shared.local_training(model, objective)
  train_personal = shared.local_training(
    model,
    client.proximal_objective(objective, proximal_weight),
    client_optimizer=personal_optimizer,
  )

  def learning_rates(round_number):
    functions = (client_learning_rate_fn, personal_learning_rate_fn)
    return [f and f(round_number) for f in functions]

  def client_update(weights, row, examples, client_seed, learning_rates):
    learning_rate, personal_learning_rate = learning_rates
    result = train(
      weights, examples['train'], client_seed, learning_rate=learning_rate
    )
    personal = train_personal(
      row['model'],
      examples['train'],
      tf.random.experimental.stateless_fold_in(client_seed, local_epochs),
      context=weights.trainable,
      learning_rate=personal_learning_rate,
    )
    personal_loss = personal.metrics['loss']
    output = client_updates.trained_output(
      weights,
      result,
      collections.OrderedDict(model=personal.weights),
      examples,
      uniform,
    )
    return output._replace(
      metrics=collections.OrderedDict(
        output.metrics, personal_loss=personal_loss
      ),
      report=collections.OrderedDict(
        output.report, personal_loss=personal_loss
      ),
    )

  client_work = shared.client_work(
    model,
    client_update,
    initial_row=collections.OrderedDict(model=model.initial_weights),
    learning_rate_fn=learning_rates,
  )
  return processes.add_client_models(shared.compose(model, client_work))
