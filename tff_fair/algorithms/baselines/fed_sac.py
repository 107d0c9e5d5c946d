"""FedSAC: contributors train submodels, the larger the more they contribute.

Wang et al., "FedSAC: Dynamic Submodel Allocation for Collaborative Fairness in
Federated Learning" (KDD 2024, https://arxiv.org/abs/2405.18291).
"""

import collections
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair import checks
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import arguments
from tff_fair.algorithms import client_updates
from tff_fair.algorithms import exchanges
from tff_fair.algorithms import processes
from tff_fair.algorithms import validation as validation_lib
from tff_fair.annotations import Limits, Symbol

ModelWeights: TypeAlias = tff.learning.models.ModelWeights

# Validation examples on which neurons are tried.
_MOST_EXAMPLES = 1000
# Sums of importances are rounded: all of them must count as 100.
ROUNDING = 1e-9


def build_fed_sac(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int,
  client_optimizer: tff.learning.optimizers.Optimizer,
  validation: Annotated[tuple[Any, Any], Symbol('V')],
  contributions: Annotated[Sequence[float], Symbol('c')],
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  max_update_norm: float | None = arguments.MAX_UPDATE_NORM,
  focal_gamma: float = 0.0,
  contribution_sharpness: Annotated[
    float, Limits(minimum=0), Symbol('β')
  ] = 2.0,
  importance_every: Annotated[int, Limits(minimum=1)] = 10,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
) -> processes.PersonalizedLearningProcess:
  """Builds FedSAC.

  1. Before the first round, and before every tenth after it, the server rates
     the neurons of w on its validation set: `I_k = max(0, loss(w without neuron
     k) - loss(w))`, scaled to the sum 100, equal if all are 0.
  2. `r_i = 100 exp(beta c_i) / max_j exp(beta c_j)`; the mask `M_i` has the
     least important neurons as long as their importances sum to at most r_i, at
     least one: the client with the largest contribution c_i gets all.
  3. Client i trains `w * M_i`; what is masked stays 0.
  4. Every weight of w becomes the uniform mean over the clients whose mask has
     it; if no mask has it, it stays.

  See `models.Neurons` for what a neuron is; the output layer is never masked.
  With equal contributions this is FedAvg with uniform weights.

  There is no `model_aggregator`: the mean is taken entry by entry, over
  different clients for each.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    validation: The server's validation set, `(x, y)`; its size is
      `--validation_fraction` or, with `--split=client`, `--holdout_fraction`.
      Arrays `float32[n, ...]` and `int32[n]`, of which the first 1,000 examples
      are used.
    contributions: Accuracy of each client when it trains alone. One number in
      [0, 1] a client.
    focal_gamma: Of the loss of training; neurons are rated by cross-entropy.
    contribution_sharpness: The larger, the smaller the submodels of clients
      that contribute less.
    importance_every: Number of rounds between two ratings of the neurons.

  Returns:
    A `PersonalizedLearningProcess`: `get_client_model_weights` gives `w * M_i`,
    `get_model_weights` w. The client table is `OrderedDict(mask, model)`, with
    the mask `float32[H]`. Metrics are FedAvg's, and each client's
    `num_neurons`.

  Raises:
    ValueError: Also if the model has no hidden neurons.
  """
  shared = arguments.check_arguments(build_fed_sac, locals())
  check_contributions(contributions, num_clients)
  model = models.StatelessModel(model_fn)
  neurons = models.Neurons(model)
  loss_fn = validation_loss(model, validation)
  budgets = allocation_budgets(contributions, contribution_sharpness)
  train_masked = build_masked_training(
    neurons,
    shared.local_training(model, client.classification_objective(focal_gamma)),
  )

  def client_update(weights, row, examples, client_seed, learning_rate):
    result, output = train_masked(
      weights, row['model'], row, examples, client_seed, learning_rate
    )
    counted = ModelWeights(
      neurons.masks(row['mask']), output.update_weight.non_trainable
    )
    return output._replace(
      update_weight=counted,
      row=collections.OrderedDict(output.row, model=result.weights),
    )

  def download(state):
    table, weights = state.client_work['table'], state.global_model_weights
    masks = tf.cond(
      tf.equal(state.client_work['round'] % importance_every, 0),
      lambda: least_important(importances(neurons, loss_fn, weights), budgets),
      lambda: table['mask'],
    )
    masks = tf.ensure_shape(masks, [len(budgets), neurons.number])
    submodels = tf.map_fn(
      lambda mask: neurons.masked(weights, mask).trainable,
      masks,
      fn_output_signature=[
        tf.TensorSpec(w.shape, w.dtype) for w in weights.trainable
      ],
    )
    return collections.OrderedDict(
      mask=masks, model=ModelWeights(submodels, table['model'].non_trainable)
    )

  client_work = shared.client_work(
    model,
    client_update,
    initial_row=collections.OrderedDict(
      mask=np.ones(neurons.number, np.float32), model=model.initial_weights
    ),
  )
  process = shared.compose(
    model,
    client_work,
    rule=aggregators.EntrywiseMeanFactory(),
    split_statistics=False,
  )
  return processes.add_client_models(
    exchanges.add_download(process, download, at_start=True)
  )


def validation_loss(
  model: models.StatelessModel, validation: tuple[Any, Any]
) -> Callable[[Any], Any]:
  """The loss by which neurons are rated, `ModelWeights -> float32`.

  Args:
    model: The client model.
    validation: `(x, y)`, of which the first 1,000 examples are used.

  Raises:
    TypeError: If they are not arrays.
    ValueError: If they are no examples of the model.
  """
  x, y = validation_lib.check_validation(model, validation)
  return validation_lib.loss_fn(model, (x[:_MOST_EXAMPLES], y[:_MOST_EXAMPLES]))


def build_masked_training(
  neurons: models.Neurons, train: Callable[..., client.LocalResult]
) -> Callable[..., tuple[client.LocalResult, client.ClientOutput]]:
  """The training of the neurons that a client's row has as its mask.

  Args:
    neurons: Of the model.
    train: What `client.build_local_training` returns.

  Returns:
    `(weights, start, row, examples, client_seed, learning_rate) -> (result,
    output)`: it trains `start`, and uploads against `weights`.
  """

  def train_masked(weights, start, row, examples, client_seed, learning_rate):
    result = train(
      start,
      examples['train'],
      client_seed,
      learning_rate=learning_rate,
      gradient_mask=neurons.masks(row['mask']),
    )
    uploaded = neurons.masked(result.weights, row['mask'])
    num_neurons = tf.math.count_nonzero(row['mask'], dtype=tf.int32)
    output = client.ClientOutput(
      update=client_updates.model_update(weights, uploaded),
      update_weight=tf.nest.map_structure(tf.ones_like, uploaded),
      row=collections.OrderedDict(mask=row['mask']),
      metrics=result.metrics,
      report=collections.OrderedDict(
        loss=result.metrics['loss'], num_neurons=num_neurons
      ),
    )
    return result, output

  return train_masked


def importances(
  neurons: models.Neurons, loss_fn: Callable[[Any], Any], weights: ModelWeights
) -> tf.Tensor:
  """Step 1.

  Args:
    neurons: Of the model.
    loss_fn: `ModelWeights -> float32`.
    weights: w, tensors.

  Returns:
    I, `float64[H]`, with the sum 100.
  """
  everything = tf.ones([neurons.number])

  def loss_without(neuron):
    mask = everything - tf.one_hot(neuron, neurons.number)
    return loss_fn(neurons.masked(weights, mask))

  losses = tf.map_fn(
    loss_without,
    tf.range(neurons.number),
    fn_output_signature=tf.TensorSpec([], tf.float32),
    # The batches of one model keep the cores busy.
    parallel_iterations=1,
  )
  rises = tf.cast(tf.maximum(losses - loss_fn(weights), 0.0), tf.float64)
  total = tf.reduce_sum(rises)
  return 100 * tf.where(total > 0, rises / total, 1 / neurons.number)


def allocation_budgets(
  contributions: Sequence[float], sharpness: float
) -> np.ndarray:
  """`r_i = 100 exp(beta c_i) / max_j exp(beta c_j)`, `float64[N]`."""
  exponents = sharpness * np.asarray(contributions, np.float64)
  return 100 * np.exp(exponents - exponents.max())


def least_important(importance: Any, budgets: Any) -> tf.Tensor:
  """Step 2: the masks.

  Args:
    importance: I, `float64[H]`.
    budgets: r, `float64[N]`.

  Returns:
    `float32[N, H]`, ones for the longest prefix of the neurons, by ascending
    importance, that sums to at most r; at least one.
  """
  order = tf.argsort(importance, stable=True)
  sums = tf.cumsum(tf.gather(importance, order))
  limits = tf.convert_to_tensor(budgets)[:, tf.newaxis] * (1 + ROUNDING)
  lengths = tf.reduce_sum(tf.cast(sums <= limits, tf.int32), axis=1)
  return masks_of_first(order, tf.maximum(lengths, 1))


def masks_of_first(order: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
  """Masks `float32[N, H]` of the first `lengths` `[N]` neurons of `order`."""
  ranks = tf.math.invert_permutation(order)
  return tf.cast(ranks[tf.newaxis] < lengths[:, tf.newaxis], tf.float32)


def check_contributions(contributions: Any, num_clients: int) -> None:
  """Refuses what is not a number in [0, 1] for each client."""
  if not isinstance(contributions, Sequence | np.ndarray) or isinstance(
    contributions, str
  ):
    raise TypeError(
      'contributions must be a sequence of numbers, one for each client, found'
      f' {contributions!r}.'
    )
  if len(contributions) != num_clients:
    raise ValueError(
      f'contributions must have an entry for each of the {num_clients} clients,'
      f' found {len(contributions)}.'
    )
  for contribution in contributions:
    checks.check_real('An entry of contributions', contribution, 0.0, 1.0)
