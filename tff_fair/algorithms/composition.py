"""What every builder does last: check, and compose the four parts of a process.

A method is a `tff.learning` process of a distributor (TFF's broadcast), its own
client work, its own aggregation rule and a finalizer (TFF's).
"""

import collections
from collections.abc import Callable
import functools
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair import checks
from tff_fair.aggregators import type_checks
from tff_fair.algorithms import divergence
from tff_fair.models import stateless
from tff_fair.tensors import client_table

ModelWeights = tff.learning.models.ModelWeights

CLIP_MODES = ('value', 'norm')


class FairLearningProcess(tff.learning.templates.LearningProcess):
  """A learning process that can tell how far the clients' models are apart."""

  def __init__(
    self,
    process: tff.learning.templates.LearningProcess,
    build_divergence: Callable[[], tff.Computation],
    next_fn: tff.Computation | None = None,
  ):
    """Adds `divergence` to a process.

    Args:
      process: The process.
      build_divergence: Builds what `divergence.build_divergence` returns.
      next_fn: Replaces `next` of the process, or None.
    """
    super().__init__(
      process.initialize,
      next_fn or process.next,
      process.get_model_weights,
      process.set_model_weights,
      get_hparams_fn=process.get_hparams,
      set_hparams_fn=process.set_hparams,
    )
    self.build_divergence = functools.cache(build_divergence)

  def divergence(
    self, before: Any, after: Any, data: list[Any]
  ) -> collections.OrderedDict:
    """How far the local models of a round are from its global model.

    The clients train once more, exactly as in that round.

    Args:
      before: The state before the round.
      after: The state after it.
      data: The client data of the round.

    Returns:
      `D_cosine` and `D_manhattan` between parameters and between embeddings,
      see `divergence.build_divergence`.
    """
    return self.build_divergence()(
      before.client_work,
      before.global_model_weights,
      after.global_model_weights,
      data,
    )


class PersonalizedLearningProcess(FairLearningProcess):
  """A learning process in which every client also has a model of its own.

  Attributes:
    get_client_model_weights: `tff.Computation`, `<S, int32> -> W`: the model of
      the client with that id.
  """

  def __init__(self, process, get_client_model_weights):
    """Adds `get_client_model_weights` to a composed process."""
    super().__init__(process, process.build_divergence)
    self.get_client_model_weights = get_client_model_weights

  def client_model_table(self, state: Any) -> ModelWeights:
    """All clients' models in one structure, with a leading axis of clients.

    Args:
      state: A state of this process.

    Returns:
      `ModelWeights` of arrays `[num_clients, ...]`, no copies.
    """
    return state.client_work['table']['model']


def check_arguments(
  *,
  client_optimizer: Any,
  local_epochs: int,
  batch_size: int,
  seed: int,
  num_clients: int | None,
  client_learning_rate_fn: Any,
  focal_gamma: float = 0.0,
  uniform: bool = False,
  server_optimizer: Any = None,
  model_aggregator: Any = None,
  plain_data: bool = False,
  **unused_others: Any,
) -> None:
  """Checks the arguments that builders share, before anything is built.

  A builder calls it first of all, with its `locals()`, and checks what it does
  not share by itself. With `plain_data`, `num_clients` may be None.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If a number is out of range.
  """
  check_optimizer('client_optimizer', client_optimizer)
  checks.check_count('local_epochs', local_epochs, 1)
  checks.check_count('batch_size', batch_size, 1)
  checks.check_integer('seed', seed, 0, 2**62 - 1)  # Two int32 words.
  if num_clients is not None or not plain_data:
    checks.check_count('num_clients', num_clients, 1)
  if client_learning_rate_fn is not None:
    checks.check_function(
      'client_learning_rate_fn', client_learning_rate_fn, 'the round'
    )
  checks.check_real('focal_gamma', focal_gamma, 0.0)
  checks.check_choice('uniform', uniform, (False, True))
  if server_optimizer is not None:
    check_optimizer('server_optimizer', server_optimizer)
  if model_aggregator is not None:
    type_checks.check_weighted('model_aggregator', model_aggregator)


def check_optimizer(name: str, optimizer: Any) -> None:
  """Raises TypeError unless `optimizer` is a TFF optimiser."""
  if not isinstance(optimizer, tff.learning.optimizers.Optimizer):
    raise TypeError(
      f'{name} must be a tff.learning.optimizers.Optimizer, found'
      f' {type(optimizer).__name__}.'
    )


def check_plain_sgd(method: str, optimizer: Any) -> None:
  """Raises ValueError, in the name of `method`, unless a step is `w - rate g`.

  Args:
    method: What the message calls the method.
    optimizer: A TFF optimiser; two steps of it are tried.
  """
  w, g = tf.constant([1.0, -2.0]), tf.constant([0.5, 0.25])
  state = optimizer.initialize(tf.TensorSpec(w.shape, w.dtype))
  rate = optimizer.get_hparams(state)['learning_rate']
  for _ in range(2):
    expected = w - rate * g
    state, w = optimizer.next(state, w, g)
    if not np.allclose(w, expected, rtol=1e-6, atol=0):
      raise ValueError(
        f'client_optimizer must be plain SGD for {method}, without momentum'
        f' and weight decay, found {type(optimizer).__name__.strip("_")} with'
        f' {sorted(optimizer.get_hparams(state))}.'
      )


def check_use_ce(use_ce: bool, weight_name: str, weight: float) -> None:
  """Raises ValueError if neither cross-entropy nor another loss is left."""
  checks.check_choice('use_ce', use_ce, (False, True))
  if not use_ce and not weight:
    raise ValueError(
      f'{weight_name} must be positive with use_ce=False, or nothing is'
      f' trained, found {weight}.'
    )


def compose_process(
  model: stateless.StatelessModel,
  client_work: tff.learning.templates.ClientWorkProcess,
  *,
  rule: tff.aggregators.WeightedAggregationFactory,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
  split_statistics: bool = True,
  prepare_inputs: Callable[[Any, Any], Any] | None = None,
) -> FairLearningProcess:
  """Composes a learning process.

  Args:
    model: The client model.
    client_work: The method's client work.
    rule: The method's aggregation rule.
    server_optimizer: Applies the aggregated update to the trainable weights;
      None applies it as it is.
    model_aggregator: Replaces `rule` for the trainable weights; non-trainable
      weights are always aggregated by `rule`.
    split_statistics: Whether `rule` aggregates trainable and non-trainable
      weights apart; False for a rule that takes `ModelWeights`.
    prepare_inputs: As for `divergence.build_divergence`.

  Returns:
    A `FairLearningProcess`.
  """
  if server_optimizer is None:
    server_optimizer = tff.learning.optimizers.build_sgdm(1.0)
  if split_statistics:
    rule = aggregators.ModelWeightsFactory(model_aggregator or rule, rule)
  client_result = client_work.next.type_signature.result.result.member
  aggregator = rule.create(client_result.update, client_result.update_weight)

  @tff.tensorflow.computation
  def initial_model_weights():
    return tf.nest.map_structure(tf.constant, model.initial_weights)

  process = tff.learning.templates.compose_learning_process(
    initial_model_weights,
    tff.learning.templates.build_broadcast_process(model.weights_type),
    client_work,
    aggregator,
    _build_finalizer(server_optimizer, model.weights_type),
  )
  return FairLearningProcess(
    process,
    functools.partial(
      divergence.build_divergence, model, client_work, prepare_inputs
    ),
  )


def add_download(
  process: FairLearningProcess,
  download: Callable[[Any], Any],
  *,
  at_start: bool = False,
) -> FairLearningProcess:
  """Lets clients take home, at a round's end, what the server has for them.

  Args:
    process: A composed process with a client table.
    download: `state -> table`, the client table after the download, a pure
      function of the state after the round.
    at_start: Whether clients also download before the first round, and whenever
      the global model is replaced.

  Returns:
    The process with the download at the end of each round.
  """
  state_type, data_type = process.next.type_signature.parameter

  @tff.tensorflow.computation(state_type.member)
  def deliver(state):
    client_work = collections.OrderedDict(
      state.client_work, table=download(state)
    )
    return tff.learning.templates.LearningAlgorithmState(
      state.global_model_weights,
      state.distributor,
      client_work,
      state.aggregator,
      state.finalizer,
    )

  @tff.federated_computation(state_type, data_type)
  def next_fn(state, data):
    output = process.next(state, data)
    return tff.learning.templates.LearningProcessOutput(
      tff.federated_map(deliver, output.state), output.metrics
    )

  if not at_start:
    return FairLearningProcess(process, process.build_divergence, next_fn)

  @tff.federated_computation
  def init_fn():
    return tff.federated_map(deliver, process.initialize())

  @tff.tensorflow.computation(
    *process.set_model_weights.type_signature.parameter
  )
  def set_model_weights(state, weights):
    return deliver(process.set_model_weights(state, weights))

  started = tff.learning.templates.LearningProcess(
    init_fn,
    next_fn,
    process.get_model_weights,
    set_model_weights,
    get_hparams_fn=process.get_hparams,
    set_hparams_fn=process.set_hparams,
  )
  return FairLearningProcess(started, process.build_divergence)


def add_exchange(
  process: FairLearningProcess,
  client_work: tff.learning.templates.ClientWorkProcess,
) -> FairLearningProcess:
  """Lets clients work once more at a round's end, with the new global model.

  Args:
    process: A composed process with a client table.
    client_work: Of the same table; what it sends is not aggregated, only its
      rows are kept.

  Returns:
    The process, with the measurements of the second work beside its own, as
    `second_exchange`.
  """
  state_type, data_type = process.next.type_signature.parameter
  work_state_type = state_type.member.client_work

  @tff.tensorflow.computation(work_state_type, work_state_type)
  def with_round_of(before, after):
    return collections.OrderedDict(round=before['round'], table=after['table'])

  @tff.federated_computation(state_type, data_type)
  def next_fn(state, data):
    first = process.next(state, data)
    second = client_work.next(
      tff.federated_map(
        with_round_of, (state.client_work, first.state.client_work)
      ),
      tff.federated_broadcast(first.state.global_model_weights),
      data,
    )
    new_state = tff.learning.templates.LearningAlgorithmState(
      first.state.global_model_weights,
      first.state.distributor,
      second.state,
      first.state.aggregator,
      first.state.finalizer,
    )
    names = tff.structure.name_list(first.metrics.type_signature.member)
    metrics = collections.OrderedDict(
      [(name, getattr(first.metrics, name)) for name in names],
      second_exchange=second.measurements,
    )
    return tff.learning.templates.LearningProcessOutput(
      tff.federated_zip(new_state), tff.federated_zip(metrics)
    )

  return FairLearningProcess(process, process.build_divergence, next_fn)


def add_client_models(
  process: FairLearningProcess,
) -> PersonalizedLearningProcess:
  """Offers the clients' models, which are the table's entry `model`.

  Args:
    process: A composed process with rows `OrderedDict(model=ModelWeights,...)`.

  Returns:
    The process with `get_client_model_weights`.
  """
  state_type = process.initialize.type_signature.result.member

  @tff.tensorflow.computation(state_type, np.int32)
  def get_client_model_weights(state, client_id):
    return client_table.read_row(state.client_work['table']['model'], client_id)

  return PersonalizedLearningProcess(process, get_client_model_weights)


def learning_rate_at(
  client_optimizer: tff.learning.optimizers.Optimizer,
  client_learning_rate_fn: Callable[[Any], Any] | None,
) -> Callable[[Any], tf.Tensor]:
  """The clients' learning rate, for rules that divide or multiply by it.

  Args:
    client_optimizer: The clients' optimiser.
    client_learning_rate_fn: `round (int32, from 0) -> rate`, which replaces the
      optimiser's rate, or None.

  Returns:
    `round (int32, from 0) -> float32`.
  """
  if client_learning_rate_fn is not None:
    return lambda number: tf.cast(client_learning_rate_fn(number), tf.float32)
  state = client_optimizer.initialize(tf.TensorSpec([], tf.float32))
  rate = np.float32(client_optimizer.get_hparams(state)['learning_rate'])
  return lambda number: tf.constant(rate)


def model_update(before: ModelWeights, after: ModelWeights) -> ModelWeights:
  """The update a client sends: old minus new, as TFF's finalizers subtract."""
  return tf.nest.map_structure(tf.subtract, before, after)


def clip_update(update: list[Any], clip_value: float, mode: str) -> list[Any]:
  """Clips a whole local update, not the gradients of its steps.

  Args:
    update: Tensors.
    clip_value: Positive.
    mode: 'value' clips each entry to [-clip_value, clip_value], 'norm' scales
      all of them to an L2 norm of at most clip_value.

  Returns:
    Tensors of the same shapes; NaN where an entry is not finite ('value') or
    everywhere ('norm'), so that such an update is rejected and not clipped.
  """
  if mode == 'norm':
    return tf.clip_by_global_norm(update, clip_value)[0]

  def clip(entries):
    clipped = tf.clip_by_value(entries, -clip_value, clip_value)
    return tf.where(tf.math.is_finite(entries), clipped, np.nan)

  return [clip(u) for u in update]


def _build_finalizer(optimizer, weights_type):
  """TFF's finalizer, which also moves the non-trainable weights."""
  trainable = tff.learning.templates.build_apply_optimizer_finalizer(
    optimizer, weights_type
  )

  @tff.tensorflow.computation(
    weights_type.non_trainable, weights_type.non_trainable
  )
  def subtract(weights, update):
    return tf.nest.map_structure(tf.subtract, weights, update)

  @tff.federated_computation(
    trainable.initialize.type_signature.result,
    tff.FederatedType(weights_type, tff.SERVER),
    tff.FederatedType(weights_type, tff.SERVER),
  )
  def next_fn(state, weights, update):
    output = trainable.next(state, weights, update.trainable)
    statistics = tff.federated_map(
      subtract, (weights.non_trainable, update.non_trainable)
    )
    new_weights = ModelWeights(output.result.trainable, statistics)
    return tff.templates.MeasuredProcessOutput(
      output.state, tff.federated_zip(new_weights), output.measurements
    )

  return tff.learning.templates.FinalizerProcess(
    trainable.initialize,
    next_fn,
    get_hparams_fn=trainable.get_hparams,
    set_hparams_fn=trainable.set_hparams,
  )
