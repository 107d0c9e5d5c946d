"""pFedCK: a personal and a shared model teach each other on every client.

J. Zhang and Y. Shi, "A Personalized Federated Learning Method Based on
Clustering and Knowledge Distillation", Electronics 13(5), 857, 2024. The paper
itself was not available: the structure is that of its abstract, and the default
numbers are our choice.
"""

import collections
from collections.abc import Callable
from typing import Annotated, Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair import client
from tff_fair import losses
from tff_fair import models
from tff_fair.algorithms import arguments
from tff_fair.algorithms import client_updates
from tff_fair.algorithms import exchanges
from tff_fair.algorithms import processes
from tff_fair.annotations import Limits, Symbol, Unless
from tff_fair.tensors import client_table

ModelWeights = tff.learning.models.ModelWeights


def build_pfed_ck(
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
  knowledge_weight: Annotated[float, Limits(minimum=0), Symbol('a')] = 1.0,
  feature_weight: Annotated[float, Limits(minimum=0), Symbol('b')] = 1.0,
  distillation_temperature: Annotated[
    float, Limits(above=0), Symbol('T'), Unless(knowledge_weight=0.0)
  ] = 1.0,
  num_clusters: Annotated[int, Limits(minimum=1)] = 3,
) -> processes.PersonalizedLearningProcess:
  """Builds pFedCK.

  Client i has a personal model `p_i` and an interaction model `s_i`:

  1. On every minibatch both make a step, from gradients taken before either, of
     `L_s = CE(s) + a KL(P_p || P_s) + b MSE(f_s, f_p)` and
     `L_p = CE(p) + a KL(P_s || P_p) + b MSE(f_p, f_s)`. There
     `P = softmax(logits / T)` and f is the embedding; in each loss the other
     model's outputs are constants.
  2. The server clusters the clients by their updates `s_i' - s_i` (see
     `aggregators.ClusteredMeanFactory`).
  3. `s_i <- sum_c n_j s_j' / sum_c n_j` over the cluster c of client i; a
     client in no cluster, or alone in one, keeps `s_i'`.

  With `num_clusters=1`, both weights 0 and all clients in every round, the
  interaction models are FedAvg's global model. Batch-norm statistics of both
  models are the client's own. There is no `server_optimizer` and no
  `model_aggregator`: the clusters' models are exact means.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    model_fn: Builds a model with an output `embedding`.
    client_optimizer: Of both models.
    focal_gamma: Of the losses of both models.
    knowledge_weight: Factor on the divergence of the two models.
    feature_weight: Factor on the squared difference of their embeddings.
    distillation_temperature: Temperature of the softmax in the divergence.
    num_clusters: Number of clusters of clients.

  Returns:
    A `PersonalizedLearningProcess`; `get_client_model_weights` gives `p_i`,
    `get_model_weights` the mean of the interaction models, by examples. The
    client table is `OrderedDict(model, interaction)`. Metrics are FedAvg's, of
    the interaction model, and `personal_loss`; `loss` is the sum of both
    losses. Under `aggregator` those of the factory.

  Raises:
    ValueError: Also if the model has no embedding.
  """
  shared = arguments.check_arguments(build_pfed_ck, locals())
  model = models.StatelessModel(model_fn)
  client.check_embedding('build_pfed_ck', model)
  rule = aggregators.ClusteredMeanFactory(num_clients, num_clusters)
  pair = models.PairedModel(model)
  objective = _mutual_objective(
    knowledge_weight, feature_weight, distillation_temperature, focal_gamma
  )
  train = shared.local_training(pair, objective)

  def client_update(weights, row, examples, client_seed, learning_rate):
    result = train(
      pair.joined(row['interaction'], row['model']),
      examples['train'],
      client_seed,
      learning_rate=learning_rate,
    )
    interaction, personal = pair.parted(result.weights)
    # The members of a cluster receive the mean of their interaction models.
    interaction, clipped = client_updates.bounded_weights(
      row['interaction'], interaction, max_update_norm
    )
    weight = collections.OrderedDict(
      client_id=examples['key'],
      num_examples=client_updates.example_weight(examples),
      change=tf.nest.map_structure(
        tf.subtract, interaction.trainable, row['interaction'].trainable
      ),
    )
    return client.ClientOutput(
      update=client_updates.model_update(weights, interaction),
      update_weight=weight,
      row=collections.OrderedDict(model=personal, interaction=interaction),
      metrics=result.metrics,
      report=collections.OrderedDict(loss=result.metrics['loss']),
      clipped=clipped,
    )

  client_work = shared.client_work(
    model,
    client_update,
    initial_row=collections.OrderedDict(
      model=model.initial_weights, interaction=model.initial_weights
    ),
  )
  process = shared.compose(
    model, client_work, rule=rule, split_statistics=False
  )
  return processes.add_client_models(exchanges.add_download(process, _download))


def _mutual_objective(
  knowledge_weight, feature_weight, temperature, focal_gamma
) -> client.Objective:
  """Step 1: the sum of both losses, of which each model sees its own."""

  def taught(labels, student, teacher):
    loss, metrics = client.classification(
      labels, student['logits'], focal_gamma
    )
    if knowledge_weight:
      divergence = losses.distillation_loss(
        student['logits'], teacher['logits'], temperature=temperature
      )
      # That loss has a factor T^2, unlike KL.
      loss += knowledge_weight / temperature**2 * tf.reduce_mean(divergence)
    if feature_weight:
      error = student['embedding'] - tf.stop_gradient(teacher['embedding'])
      loss += feature_weight * tf.reduce_mean(error**2)
    return loss, metrics

  def compute(forward, batch, context):
    del context  # Unused.
    outputs = forward(batch['x'])
    shared, personal = outputs['first'], outputs['second']
    loss, metrics = taught(batch['y'], shared, personal)
    personal_loss, _ = taught(batch['y'], personal, shared)
    return loss + personal_loss, collections.OrderedDict(
      metrics, personal_loss=personal_loss
    )

  return client.Objective(compute, metric_names=('accuracy', 'personal_loss'))


def _download(state) -> collections.OrderedDict:
  """Step 3: members of a cluster receive its model."""
  table, server = state.client_work['table'], state.aggregator
  cluster = server['cluster']
  clustered = cluster >= 0

  def of_cluster(own, overall, offset):
    shared = overall - tf.gather(offset, tf.maximum(cluster, 0))
    return client_table.choose_rows(clustered, shared, own)

  own = table['interaction']
  trainable = tf.nest.map_structure(
    of_cluster,
    own.trainable,
    state.global_model_weights.trainable,
    server['offset'],
  )
  return collections.OrderedDict(
    model=table['model'],
    interaction=ModelWeights(trainable, own.non_trainable),
  )
