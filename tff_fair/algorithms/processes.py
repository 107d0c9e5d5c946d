"""The learning processes that builders return."""

import collections
from collections.abc import Callable, Mapping
import functools
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair import models
from tff_fair import summary
from tff_fair.tensors import client_table

ModelWeights: TypeAlias = tff.learning.models.ModelWeights


class Description(NamedTuple):
  """The method and arguments of a process.

  Attributes:
    method: The name of its builder without `build_`.
    arguments: Name -> text, of the arguments that matter.
    rule: The aggregation rule; empty if the method has no single one.
  """

  method: str
  arguments: Mapping[str, str]
  rule: str = ''


class FairLearningProcess(
  summary.Summarized, tff.learning.templates.LearningProcess
):
  """A learning process that knows its model.

  It gives the trained model as a Keras model, and measures how far apart the
  clients' models are. `tff_fair.summary.describe` shortens its states and
  outputs.

  Attributes:
    model: The client model.
    description: How it was built, or None.
  """

  def __init__(
    self,
    process: tff.learning.templates.LearningProcess,
    model: models.StatelessModel,
    build_divergence: Callable[[], tff.Computation],
    next_fn: tff.Computation | None = None,
    description: Description | None = None,
  ) -> None:
    """Adds `to_keras` and `divergence` to a process.

    Args:
      process: The process.
      model: The client model.
      build_divergence: Builds what `divergence.build_divergence` returns.
      next_fn: Replaces `next` of the process, or None.
      description: How it was built, for `repr`; or None.
    """
    super().__init__(
      process.initialize,
      next_fn or process.next,
      process.get_model_weights,
      process.set_model_weights,
      get_hparams_fn=process.get_hparams,
      set_hparams_fn=process.set_hparams,
    )
    self.model = model
    self.description = description
    self.build_divergence = functools.cache(build_divergence)

  def derive(
    self,
    process: tff.learning.templates.LearningProcess | None = None,
    next_fn: tff.Computation | None = None,
  ) -> 'FairLearningProcess':
    """The process of the same method with other computations.

    Args:
      process: It has them; None for those of this process.
      next_fn: Replaces `next`, or None.

    Returns:
      A process with the model, the divergence and the description of this one.
    """
    return FairLearningProcess(
      process or self,
      self.model,
      self.build_divergence,
      next_fn,
      self.description,
    )

  def _summary(self) -> summary.Summary:
    method, arguments, rule = self.description or Description('Learning', {})
    weights = self.model.initial_weights
    size = sum(map(np.size, weights.trainable))
    other = sum(map(np.size, weights.non_trainable))
    title = f'{method} process: {size + other} parameters'
    arguments = dict(arguments)
    num_clients = arguments.pop('num_clients', 'None')
    if num_clients != 'None':
      title += f', {num_clients} clients'
    inputs = self.model.input_spec.shape.as_list()[1:]
    facts = [
      ('model', f'inputs {inputs}, {self.model.num_classes} classes'),
      ('parameters', f'{size} trainable, {other} non-trainable'),
      *([('aggregation', rule)] if rule else []),
      *arguments.items(),
    ]
    return summary.Summary(title, facts)

  def to_keras(self, state: Any) -> tf.keras.Model:
    """The global model, as a plain Keras model.

    Args:
      state: A state of this process.

    Returns:
      A fresh model of the builder's `model_fn` with the weights of the state.
      Its outputs are those of `model_fn`: logits, or a dictionary with `logits`
      and `embedding`.
    """
    return self.model.to_keras(self.get_model_weights(state))

  def divergence(
    self, before: Any, after: Any, data: list[Any]
  ) -> collections.OrderedDict:
    """Measures the distances of a round's local models from its global model.

    The clients train again, exactly as in that round.

    Args:
      before: The state before the round.
      after: The state after the round.
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
  """A learning process in which every client also has its own model.

  Attributes:
    get_client_model_weights: `tff.Computation`, `<S, int32> -> W`: the model of
      the client with that id.
  """

  def __init__(
    self,
    process: FairLearningProcess,
    get_client_model_weights: tff.Computation,
    client_model_table: Callable[[Any], ModelWeights] | None = None,
  ) -> None:
    """Adds `get_client_model_weights` to a composed process.

    Args:
      process: The process.
      get_client_model_weights: See above.
      client_model_table: Gives what the method of this name returns; None if
        that is the entry `model` of the client table.
    """
    super().__init__(
      process,
      process.model,
      process.build_divergence,
      description=process.description,
    )
    self.get_client_model_weights = get_client_model_weights
    self._client_model_table = client_model_table

  def _summary(self) -> summary.Summary:
    found = super()._summary()
    return found._replace(title=f'{found.title}, with a model for each client')

  def to_keras(
    self, state: Any, client_id: int | None = None
  ) -> tf.keras.Model:
    """The global model or that of a client, as a plain Keras model.

    Args:
      state: A state of this process.
      client_id: The client, `0..num_clients-1`; None for the global model.

    Returns:
      A fresh model with the outputs of `model_fn`, see
      `FairLearningProcess.to_keras`.

    Raises:
      TypeError: If `client_id` is not an integer.
      ValueError: If there is no such client.
    """
    if client_id is None:
      return super().to_keras(state)
    table = self.client_model_table(state)
    last = len(tf.nest.flatten(table)[0]) - 1
    checks.check_integer('client_id', client_id, 0, last)
    weights = tf.nest.map_structure(lambda w: w[client_id], table)
    return self.model.to_keras(weights)

  def client_model_table(self, state: Any) -> ModelWeights:
    """All clients' models in one structure, with a leading axis of clients.

    Args:
      state: A state of this process.

    Returns:
      `ModelWeights` of arrays `[num_clients, ...]`, not copied.
    """
    if self._client_model_table is not None:
      return self._client_model_table(state)
    return state.client_work['table']['model']


def add_client_models(
  process: FairLearningProcess,
) -> PersonalizedLearningProcess:
  """Gives access to the clients' models, the entry `model` of the client table.

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
