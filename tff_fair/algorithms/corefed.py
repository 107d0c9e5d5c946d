"""CoRe-Fed: collaborative and representation fairness by embeddings.

"CoRe-Fed: Bridging Collaborative and Representation Fairness via Federated
Embedding Distillation" (AAAI 2026) weighs clients by how rarely they took part
and by how well their mean embedding agrees with the global one, and reuses the
gradients of clients that took part recently. By default embeddings act through
these weights alone, so clients do not distil. Equation numbers are the paper's.
"""

import collections
from collections.abc import Callable
import functools
from typing import Annotated, Any, Literal

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair import client
from tff_fair import losses
from tff_fair import models
from tff_fair.aggregators import gradient_reuse as gradient_reuse_lib
from tff_fair.algorithms import arguments
from tff_fair.algorithms import client_updates
from tff_fair.algorithms import processes
from tff_fair.annotations import Limits, Symbol, Unless
from tff_fair.tensors import geometry


def build_corefed(
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
  variant: Literal['corefed', 'cofed', 'refed'] = 'corefed',
  alignment: Annotated[
    Literal['server', 'client'], Unless(variant='cofed')
  ] = 'server',
  gradient_reuse: Annotated[bool, Unless(variant='refed')] = True,
  global_embedding: Annotated[
    Literal['mean', 'first'],
    Symbol('z_g'),
    Unless(variant='refed', alignment='server'),
  ] = 'mean',
  embedding_of: Annotated[
    Literal['local', 'global_batch'],
    Symbol('z_i'),
    Unless(variant='refed', alignment='server'),
  ] = 'local',
  include_positive: Annotated[
    bool, Unless(variant='refed', alignment='server')
  ] = False,
  fairness_exponent: Annotated[
    float, Limits(minimum=0), Symbol('γ'), Unless(variant='refed')
  ] = 0.5,
  sharpness: Annotated[
    float, Limits(minimum=0), Symbol('k'), Unless(variant='refed')
  ] = 2.0,
  distillation_rate: Annotated[
    float,
    Limits(minimum=0, maximum=1),
    Symbol('β'),
    Unless(variant='cofed'),
    Unless(variant='refed', alignment='server'),
  ] = 0.5,
  temperature: Annotated[
    float,
    Limits(above=0),
    Symbol('τ'),
    Unless(variant='refed', alignment='server'),
  ] = 0.07,
  contrastive_weight: Annotated[
    float,
    Limits(minimum=0),
    Unless(variant='cofed'),
    Unless(alignment='server'),
  ] = 0.1,
  distillation_weight: Annotated[
    float,
    Limits(minimum=0),
    Unless(variant='cofed'),
    Unless(alignment='server'),
  ] = 0.1,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  robust: bool = False,
) -> processes.FairLearningProcess:
  """Builds CoRe-Fed.

  A client i of the round's cohort S_t receives the global model w:

  1. Local training by cross-entropy gives w_i.
  2. `z_i = mean_x phi(x) / ||phi(x)||` over its training examples, phi the
     embedding of w_i in inference mode.
  3. It sends w - w_i, which is `lr_t g_i`, and z_i.

  The server (see `aggregators.GradientReuseFactory`) takes
  `w <- w - lr_t sum_i w~_i g_i` over the clients present or recently present.

  There is no `model_aggregator`: the rule is the method.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    model_fn: Builds a model with an output `embedding`.
    client_optimizer: The paper's is SGD at 0.1, times 0.999 each round.
    batch_size: The paper's are 50 and 200; the default is ours.
    client_learning_rate_fn: As in `build_fed_avg`; reused gradients are
      multiplied by the rate of the current round.
    variant: The whole method (corefed), or a half of it, from the ablation:
      contribution-aware aggregation (cofed) or representation alignment
      (refed). 'cofed' has no contrastive loss and no distillation:
      `distillation_rate` is 0 and `alignment` 'server'; 'refed' weighs by
      numbers of examples, without reuse.
    alignment: Where embeddings act: in the aggregation weights (server), as
      printed, or also in the clients' loss (client). 'server' is what the
      formulas say, and makes 'refed' FedAvg. 'client' is what the prose says:
      from the second round on, a client also receives the last z_g and the
      embeddings of all others that ever took part, and minimises `CE +
      contrastive_weight L(z_b) + distillation_weight ||z_b - r_b||^2` with z_b
      the mean normalised embedding of a minibatch, L equation 6 (0 without
      others), and r_b the refined z_b, held constant.
    gradient_reuse: Absent clients that participated recently count with their
      last gradients, as in equation 12; not in equations 11 and 13. Those are
      sums over S_t alone.
    global_embedding: What a client's embedding is compared with: the mean of
      the round's clients (mean), or the embedding of the client with the lowest
      id (first); the public code takes the client that was drawn first.
      Runtimes do not keep the order of a round's clients.
    embedding_of: A client's embedding: of all its examples by its trained model
      (local), or of one minibatch, its first examples, by the received model
      (global_batch), as in the public code, which does not scale features. The
      public code does it in training mode.
    include_positive: The positive pair is in the denominator of equation 6. The
      paper leaves it out.
    fairness_exponent: Exponent of the inverse frequency of participation; the
      larger, the more rare participation counts. The paper has 0.5 and 2, and
      its public code 0.5.
    sharpness: Slope of the sigmoid of the alignment score; the larger, the more
      agreement counts. The paper has 0.5 and 2, and its public code 2.
    distillation_rate: How far an embedding is moved to its alignment vector.
    temperature: Temperature of the contrastive loss.
    contrastive_weight: Factor on the contrastive loss in the clients' loss; the
      paper gives no number.
    distillation_weight: Factor on the distance to the refined embedding in the
      clients' loss; the paper gives no number.

  Returns:
    A `FairLearningProcess`. Metrics: those of the factory under `aggregator`;
    under `client_work` those of FedAvg, and `contrastive_loss` and
    `distillation_loss` of the minibatches with `alignment='client'`. What
    clients are then sent is in `state.client_work['table']`,
    `OrderedDict(embedding=float32[K, p], last_round=int32[K])`.

  Raises:
    ValueError: Also if the arguments do not fit together, or the model has no
      embedding.
  """
  shared = arguments.check_arguments(build_corefed, locals())
  if variant == 'cofed':
    if alignment == 'client':
      raise ValueError(
        "alignment must be 'server' with the variant 'cofed', which aligns"
        " nothing, found 'client'."
      )
    distillation_rate = 0.0
  model = models.StatelessModel(model_fn)
  embedding_size = client.check_embedding('build_corefed', model)
  rule: aggregators.GradientReuseFactory | None
  rule = aggregators.GradientReuseFactory(
    num_clients,
    fairness_exponent=fairness_exponent,
    sharpness=sharpness,
    distillation_rate=distillation_rate,
    temperature=temperature,
    gradient_reuse=gradient_reuse,
    global_embedding=global_embedding,
    include_positive=include_positive,
    learning_rate_fn=shared.learning_rate_fn(),
  )
  if variant == 'refed':
    rule = None  # The mean by numbers of examples.
  aligns = alignment == 'client'
  objective = client.classification_objective(focal_gamma)
  if aligns:
    objective = _aligned_objective(
      distillation_rate=distillation_rate,
      temperature=temperature,
      include_positive=include_positive,
      contrastive_weight=contrastive_weight,
      distillation_weight=distillation_weight,
      focal_gamma=focal_gamma,
    )
  train = shared.local_training(model, objective)

  def client_update(
    weights, row, examples, client_seed, learning_rate, shared=()
  ):
    result = train(
      weights,
      examples['train'],
      client_seed,
      context=_context(shared, examples['key']) if aligns else (),
      learning_rate=learning_rate,
    )
    embedded_by, x = result.weights, examples['train']['x']
    if embedding_of == 'global_batch':
      embedded_by, x = weights, x[:batch_size]
    embedding = client.mean_embedding(model, embedded_by, x, normalize=True)
    if aligns:
      row = collections.OrderedDict(
        embedding=embedding, last_round=shared['round'] + 1
      )
    output = client_updates.trained_output(
      weights, result, row, examples, uniform=False
    )
    if variant == 'refed':
      return output
    return output._replace(
      update_weight=collections.OrderedDict(
        client_id=examples['key'],
        accepted=tf.constant(1.0),
        embedding=embedding,
      ),
    )

  row: Any = ()
  if aligns:
    row = collections.OrderedDict(
      embedding=np.zeros([embedding_size], np.float32),
      last_round=np.int32(0),
    )
  client_work = shared.client_work(
    model,
    client_update,
    initial_row=row,
    share_fn=functools.partial(_share, global_embedding) if aligns else None,
  )
  return shared.compose(
    model, client_work, rule=rule, split_statistics=variant == 'refed'
  )


def _aligned_objective(
  *,
  distillation_rate,
  temperature,
  include_positive,
  contrastive_weight,
  distillation_weight,
  focal_gamma,
) -> client.Objective:
  """Cross-entropy, and the pull of a minibatch's embedding (`alignment`).

  The context is `OrderedDict(started=bool, global_embedding=float32[p],
  embeddings=float32[K, p], is_other=bool[K])`; before the start, in round 1,
  this is cross-entropy alone.
  """

  def compute(forward, batch, context):
    outputs = forward(batch['x'])
    loss, metrics = client.classification(
      batch['y'], outputs['logits'], focal_gamma
    )
    target = context['global_embedding']
    embedding = tf.reduce_mean(
      geometry.normalized(outputs['embedding']), axis=0
    )
    contrast = losses.contrastive_loss(
      embedding,
      target,
      context['embeddings'],
      context['is_other'],
      temperature=temperature,
      include_positive=include_positive,
    )
    goal = tf.stop_gradient(
      geometry.refined(embedding, target, distillation_rate)
    )
    distillation = tf.reduce_sum((embedding - goal) ** 2)
    started = tf.cast(context['started'], tf.float32)
    pull = contrastive_weight * contrast + distillation_weight * distillation
    metrics['contrastive_loss'] = started * contrast
    metrics['distillation_loss'] = started * distillation
    return loss + started * pull, metrics

  return client.Objective(
    compute, ('accuracy', 'contrastive_loss', 'distillation_loss')
  )


def _share(kind, table, round_number) -> collections.OrderedDict:
  """The broadcast to all clients: the last z_g, and the embeddings of all."""
  last_round = table['last_round']
  # Present in the last round with any client; none before the first round.
  present = tf.equal(last_round, tf.reduce_max(last_round)) & (last_round > 0)
  online = tf.boolean_mask(table['embedding'], present)
  return collections.OrderedDict(
    round=round_number,
    global_embedding=gradient_reuse_lib.global_embedding(online, kind),
    embeddings=table['embedding'],
    last_round=last_round,
  )


def _context(shared, client_id) -> collections.OrderedDict:
  """The objective's context at one client."""
  seen = shared['last_round'] > 0
  everyone = tf.range(tf.size(shared['last_round']))
  return collections.OrderedDict(
    started=tf.reduce_any(seen),
    global_embedding=shared['global_embedding'],
    embeddings=shared['embeddings'],
    is_other=seen & tf.not_equal(everyone, client_id),
  )
