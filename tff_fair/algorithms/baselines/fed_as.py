"""FedAS: clients align the shared feature extractor before they use it.

Yang, Huang and Ye, "FedAS: Bridging Inconsistency in Personalized Federated
Learning" (CVPR 2024).
"""

import collections
from collections.abc import Callable
from typing import Annotated, Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import arguments
from tff_fair.algorithms import client_updates
from tff_fair.algorithms import processes
from tff_fair.annotations import Limits

ModelWeights = tff.learning.models.ModelWeights

# Below every trace of a Fisher information that a trained model has.
_SMALLEST_TRACE = 1e-30
# Above those of usable data; larger weights times updates would be infinite.
_LARGEST_TRACE = 1e30


def build_fed_as(
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
  alignment_learning_rate: Annotated[float, Limits(above=0)] = 0.01,
  alignment_batch_size: Annotated[int, Limits(minimum=1)] = 16,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
  robust: bool = False,
) -> processes.PersonalizedLearningProcess:
  """Builds FedAS.

  A model is a base and a head, its last dense layer. Client i has both, `b_i`
  and `k_i`; the server has a base b.

  1. Prototypes: for each class, the client's mean embedding under its old
     `b_i`, in inference mode.
  2. Alignment: one epoch of SGD on a copy of b, on the sum over the classes of
     a minibatch of the mean squared difference, over examples and entries,
     between embedding and prototype.
  3. `b_i` becomes that copy, and base and head are trained together.
  4. `F_i = sum ||grad NLL||^2` over the client's minibatches, in their order,
     of all trained weights, in inference mode.
  5. Server: `b <- sum_S F_i b_i / sum_S F_i`, uniform if all F_i are 0.

  The authors' code aligns the server's base in place, so that one client's
  alignment affects the next client's; here every client has its own copy.
  Batch-norm statistics belong to the base.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    model_fn: Builds a model with an output `embedding`, the input of its last
      dense layer.
    client_optimizer: Of step 3.
    local_epochs: Passes over the client's examples in step 3.
    batch_size: Examples a minibatch of steps 3 and 4; the last, shorter one is
      kept.
    focal_gamma: Of the loss of step 3; the NLL of step 4 is cross-entropy.
    alignment_learning_rate: Learning rate of the alignment.
    alignment_batch_size: Examples in a minibatch of the alignment.
    model_aggregator: Replaces the mean of the bases, of weights F_i.

  Returns:
    A `PersonalizedLearningProcess`; `get_client_model_weights` gives a client's
    model after step 3, `get_model_weights` the server's base with the head of
    the initial weights, which no client shares. The client table is
    `OrderedDict(model)`. Metrics are FedAvg's, and `alignment_loss` and
    `fisher_trace`, F_i.

  Raises:
    ValueError: Also if the model has no embedding, or its last weights are not
      those of a dense layer on the embedding.
  """
  shared = arguments.check_arguments(build_fed_as, locals())
  model = models.StatelessModel(model_fn)
  client.check_embedding('build_fed_as', model)
  head_size = _head_size(model)
  align = shared.local_training(
    model,
    _alignment_objective(model.num_classes),
    client_optimizer=tff.learning.optimizers.build_sgdm(
      alignment_learning_rate
    ),
    local_epochs=1,
    batch_size=alignment_batch_size,
  )
  train = shared.local_training(
    model, client.classification_objective(focal_gamma)
  )

  def with_head(base, head):
    """A model with the base and statistics of one and the head of another."""
    trainable = base.trainable[:-head_size] + head.trainable[-head_size:]
    return ModelWeights(trainable, base.non_trainable)

  def client_update(weights, row, examples, client_seed, learning_rate):
    own = row['model']
    sums, counts = client.class_sums(model, own, examples['train'])
    prototypes = tf.math.divide_no_nan(
      sums, tf.cast(counts, tf.float32)[:, tf.newaxis]
    )
    aligned = align(
      weights,
      examples['train'],
      tf.random.experimental.stateless_fold_in(client_seed, local_epochs),
      context=prototypes,
    )
    result = train(
      with_head(aligned.weights, own),
      examples['train'],
      client_seed,
      learning_rate=learning_rate,
    )
    trace = client.fisher_trace(
      model, result.weights, examples['train'], batch_size
    )
    measured = collections.OrderedDict(
      alignment_loss=aligned.metrics['loss'], fisher_trace=trace
    )
    return client.ClientOutput(
      update=client_updates.model_update(
        weights, with_head(result.weights, weights)
      ),
      update_weight=_weight(trace),
      row=collections.OrderedDict(model=result.weights),
      metrics=collections.OrderedDict(result.metrics, **measured),
      report=collections.OrderedDict(loss=result.metrics['loss'], **measured),
    )

  client_work = shared.client_work(
    model,
    client_update,
    initial_row=collections.OrderedDict(model=model.initial_weights),
  )
  return processes.add_client_models(shared.compose(model, client_work))


def _weight(trace) -> tf.Tensor:
  """The client's weight in the mean; not finite if the trace is not."""
  weight = tf.clip_by_value(trace, _SMALLEST_TRACE, _LARGEST_TRACE)
  return tf.where(tf.math.is_finite(trace), weight, trace)


def _alignment_objective(num_classes) -> client.Objective:
  """Step 2; the context is the prototypes, `float32[num_classes, p]`."""

  def compute(forward, batch, context):
    embedding = forward(batch['x'])['embedding']
    labels = batch['y']
    errors = tf.reduce_mean((embedding - tf.gather(context, labels)) ** 2, 1)
    by_class = tf.math.unsorted_segment_mean(errors, labels, num_classes)
    return tf.reduce_sum(by_class), collections.OrderedDict()

  return client.Objective(compute, metric_names=())


def _head_size(model) -> int:
  """The number of trailing weights of the head: 1, or 2 with a bias."""
  shapes = [w.shape for w in model.initial_weights.trainable]
  kernel = (model.embedding_size, model.num_logits)
  if shapes[-1:] == [kernel]:
    return 1
  if shapes[-2:] == [kernel, (model.num_logits,)]:
    return 2
  raise ValueError(
    'model_fn must build a model whose last trainable weights are those of a'
    f' dense layer on its embedding, a kernel of shape {kernel} and perhaps a'
    f' bias, for build_fed_as, found the shapes {shapes[-2:]}.'
  )
