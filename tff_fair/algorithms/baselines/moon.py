"""MOON: clients whose embeddings stay near those of the received model.

Li, He and Song, "Model-Contrastive Federated Learning" (CVPR 2021,
https://arxiv.org/abs/2103.16257), without its projection head: z is the model's
own embedding. FedQuad's paper does not say how its comparison has it.
"""

import collections
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import arguments
from tff_fair.algorithms import client_updates
from tff_fair.algorithms import processes
from tff_fair.annotations import Limits, Symbol, Unless


def build_moon(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int,
  client_optimizer: tff.learning.optimizers.Optimizer,
  local_epochs: int = 5,
  batch_size: int = 128,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  max_update_norm: float | None = arguments.MAX_UPDATE_NORM,
  focal_gamma: float = 0.0,
  contrastive_weight: Annotated[float, Limits(minimum=0), Symbol('μ')] = 5.0,
  temperature: Annotated[
    float, Limits(above=0), Symbol('T'), Unless(contrastive_weight=0.0)
  ] = 0.5,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
  robust: bool = False,
) -> processes.FairLearningProcess:
  """Builds MOON: FedAvg of clients that add a model-contrastive loss.

  They minimise, over minibatches,

      CE + mu mean_x -ln( exp(s_g / T) / (exp(s_g / T) + exp(s_p / T)) )

  `s_g` is the cosine of the embedding of x with that of the received model w,
  `s_p` with that of the client's own model at the end of its last round, which
  is kept in its row of the client table. Both of these models run in inference
  mode, so a round computes their embeddings once. A client that takes part for
  the first time minimises cross-entropy alone.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    model_fn: Builds a model with an output `embedding`.
    contrastive_weight: Factor on the contrastive loss; at 0 this is FedAvg bit
      for bit. MOON's is 5 for CIFAR-10 and 1 for CIFAR-100.
    temperature: Temperature of the contrastive loss.

  Returns:
    A `FairLearningProcess`. Its metrics under `client_work` are FedAvg's, and
    `cross_entropy` (or the focal loss) and `contrastive_loss`; with a weight of
    0, FedAvg's alone.

  Raises:
    ValueError: Also if the model has no embedding.
  """
  shared = arguments.check_arguments(build_moon, locals())
  model = models.StatelessModel(model_fn)
  client.check_embedding('build_moon', model)
  objective = client.model_contrastive_objective(
    weight=contrastive_weight, temperature=temperature, focal_gamma=focal_gamma
  )
  train = shared.local_training(model, objective)

  def client_update(weights, row, examples, client_seed, learning_rate):
    context = ()
    if contrastive_weight:
      context = _compared(model, weights, row, examples['train']['x'])
    result = train(
      weights,
      examples['train'],
      client_seed,
      context=context,
      learning_rate=learning_rate,
    )
    row = collections.OrderedDict(
      previous=result.weights, has_previous=tf.constant(1)
    )
    return client_updates.trained_output(
      weights, result, row, examples, uniform=False
    )

  client_work = shared.client_work(
    model,
    client_update,
    initial_row=collections.OrderedDict(
      previous=model.initial_weights, has_previous=np.int32(0)
    ),
  )
  return shared.compose(model, client_work)


def _compared(model, weights, row, x) -> collections.OrderedDict:
  """The objective's context: embeddings of the two models that stay fixed."""
  return collections.OrderedDict(
    received=client.embed_examples(model, weights, x),
    previous=client.embed_examples(model, row['previous'], x),
    has_previous=tf.cast(row['has_previous'], tf.bool),
  )
