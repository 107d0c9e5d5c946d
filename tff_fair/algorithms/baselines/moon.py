"""MOON: clients whose embeddings stay near those of the received model.

Li, He and Song, "Model-Contrastive Federated Learning" (CVPR 2021,
https://arxiv.org/abs/2103.16257), without its projection head: z is the model's
own embedding, as in FedQuad's comparison.
"""

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import composition
from tff_fair.algorithms.baselines import fed_avg


def build_moon(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int,
  client_optimizer: tff.learning.optimizers.Optimizer,
  local_epochs: int = 5,
  batch_size: int = 128,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  focal_gamma: float = 0.0,
  contrastive_weight: float = 5.0,
  temperature: float = 0.5,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
) -> composition.FairLearningProcess:
  """Builds MOON: FedAvg of clients that add a model-contrastive loss.

  They minimise, over minibatches,

      CE + mu mean_x -ln( exp(s_g / T) / (exp(s_g / T) + exp(s_p / T)) )

  `s_g` is the cosine of the embedding of x with that of the received model w,
  `s_p` with that of the client's own model at the end of its last round, which
  it remembers in its row of the client table. Both of these run in inference
  mode, so that a round computes their embeddings once. A client that takes part
  for the first time minimises cross-entropy alone.

  Args:
    model_fn: Builds a fresh, uncompiled Keras model (see `StatelessModel`) with
      an output `embedding`. Its initial weights are those of the process: seed
      Keras before building.
    num_clients: Clients have ids 0..num_clients-1, and data of type
      `<client_id=int32*,train=D*,holdout=D*>`.
    client_optimizer: Fresh at the start of every local training.
    local_epochs: Passes over the client's examples.
    batch_size: Examples a minibatch; the last, shorter one is kept.
    seed: Of the permutations and dropout masks on clients.
    client_learning_rate_fn: `round (int32, from 0) -> float32`, replaces the
      optimiser's learning rate, or None.
    focal_gamma: gamma of the focal loss; 0 is cross-entropy.
    contrastive_weight: mu, not negative; MOON's is 5 for CIFAR-10 and 1 for
      CIFAR-100. At 0 this is FedAvg bit for bit.
    temperature: T, positive.
    server_optimizer: Applied to the mean update; None adds it as it is.
    model_aggregator: Replaces the weighted mean of the trainable weights.

  Returns:
    A `FairLearningProcess`. Its metrics under `client_work` are FedAvg's, and
    `cross_entropy` and `contrastive_loss`; with a weight of 0, FedAvg's alone.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If a number is out of range, or the model has no embedding.
  """
  composition.check_arguments(**locals())
  checks.check_real('contrastive_weight', contrastive_weight, 0.0)
  checks.check_positive('temperature', temperature)
  model = models.StatelessModel(model_fn)
  client.check_embedding('build_moon', model)
  train = client.build_local_training(
    model,
    client.model_contrastive_objective(
      weight=contrastive_weight,
      temperature=temperature,
      focal_gamma=focal_gamma,
    ),
    client_optimizer,
    local_epochs=local_epochs,
    batch_size=batch_size,
  )

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
    return fed_avg.trained_output(weights, result, row, examples, uniform=False)

  client_work = client.build_client_work(
    model,
    client_update,
    num_clients=num_clients,
    seed=seed,
    initial_row=collections.OrderedDict(
      previous=model.initial_weights, has_previous=np.int32(0)
    ),
    learning_rate_fn=client_learning_rate_fn,
  )
  return composition.compose_process(
    model,
    client_work,
    rule=tff.aggregators.MeanFactory(no_nan_division=True),
    server_optimizer=server_optimizer,
    model_aggregator=model_aggregator,
  )


def _compared(model, weights, row, x) -> collections.OrderedDict:
  """The objective's context: embeddings of the two models that stay fixed."""
  return collections.OrderedDict(
    received=client.embed_examples(model, weights, x),
    previous=client.embed_examples(model, row['previous'], x),
    has_previous=tf.cast(row['has_previous'], tf.bool),
  )
