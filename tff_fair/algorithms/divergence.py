"""Distances of the clients' models of a round from its global model.

CoRe-Fed (AAAI 2026) measures fairness by two distances between the parameters
of a client's model and those of the global one. The same distances between the
mean embeddings that both models give the client's data are ours.
"""

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client
from tff_fair import models
from tff_fair.metrics import distances
from tff_fair.tensors import client_table
from tff_fair.tensors import flat

ModelWeights = tff.learning.models.ModelWeights


def build_divergence(
  model: models.StatelessModel,
  client_work: tff.learning.templates.ClientWorkProcess,
  prepare_inputs: Callable[[Any, Any], Any] | None = None,
) -> tff.Computation:
  """Builds the measurement for a method.

  A client's local model after the round's training is its own, where the method
  has a `model` for each client in the client table; else it is what the client
  received minus the update it sends. In FedMDFG that is one step of gradient
  descent, where the other methods train for an epoch.

  `prepare_inputs(x, client_id)` is what the method makes of a client's inputs
  before the model sees them, for clients with ids.

  Returns:
    `<client_work_state@SERVER, before=W@SERVER, after=W@SERVER, {data}@CLIENTS>
    -> OrderedDict@SERVER` of float64, means over the clients that sent another
    model than they received: `parameters_d_cosine` (radians) and
    `parameters_d_manhattan` between the trainable weights of the local model
    and of `after`; for a model with an embedding, `embedding_d_cosine` and
    `embedding_d_manhattan` between the means over the client's training
    examples of the (not normalised) embeddings under both. NaN if there is no
    such client.
  """
  state_type, _, data_type = client_work.next.type_signature.parameter
  result_type = client_work.next.type_signature.result.result.member
  local_models = _build_local_models(model, client_work)

  @tff.tensorflow.computation(data_type.member)
  @tf.function(autograph=False)
  def gather_inputs(data):
    plain = isinstance(data_type.member, tff.SequenceType)
    x = client.gather_examples(data if plain else data['train'])['x']
    if prepare_inputs is None:
      return x
    return prepare_inputs(x, data['client_id'].get_single_element())

  @tff.tensorflow.computation(result_type)
  def has_moved(client_result):
    update = flat.flatten(client_result.update.trainable)
    return tf.math.count_nonzero(update) > 0

  @tff.tensorflow.computation(
    model.weights_type,
    model.weights_type,
    gather_inputs.type_signature.result,
    np.bool_,
  )
  @tf.function(autograph=False)
  def measure(local, after, x, moved):
    pairs = collections.OrderedDict(
      parameters=(flat.flatten(local.trainable), flat.flatten(after.trainable))
    )
    if model.embedding_size is not None:
      pairs['embedding'] = tuple(
        client.mean_embedding(model, weights, x, normalize=False)
        for weights in (local, after)
      )
    values = collections.OrderedDict()
    for space, (u, v) in pairs.items():
      values[f'{space}_d_cosine'] = distances.angle(u, v)
      values[f'{space}_d_manhattan'] = distances.manhattan(u, v)
    return collections.OrderedDict(
      values=tf.nest.map_structure(
        lambda value: tf.where(moved, value, tf.zeros_like(value)), values
      ),
      number=tf.cast(moved, tf.float64),
    )

  @tff.tensorflow.computation(measure.type_signature.result)
  def mean(sums):
    return tf.nest.map_structure(
      lambda total: total / sums['number'], sums['values']
    )

  @tff.federated_computation(
    state_type,
    tff.FederatedType(model.weights_type, tff.SERVER),
    tff.FederatedType(model.weights_type, tff.SERVER),
    data_type,
  )
  def divergence(state, before, after, data):
    sent = tff.federated_broadcast(before)
    output = client_work.next(state, sent, data)
    values = tff.federated_map(
      measure,
      (
        local_models(sent, output, data),
        tff.federated_broadcast(after),
        tff.federated_map(gather_inputs, data),
        tff.federated_map(has_moved, output.result),
      ),
    )
    return tff.federated_map(mean, tff.federated_sum(values))

  return divergence


def _build_local_models(model, client_work):
  """`(received, output of the client work, data) -> local models`."""
  state_type, _, data_type = client_work.next.type_signature.parameter
  table_type = state_type.member['table']
  if 'model' in tff.structure.name_list(table_type):
    select_rows = client_table.build_select(table_type['model'])

    @tff.tensorflow.computation(data_type.member)
    def client_id(data):
      return data['client_id'].get_single_element()

    def local_models(received, output, data):
      del received  # The client has its own model.
      return select_rows(
        output.state.table.model, tff.federated_map(client_id, data)
      )

    return local_models

  result_type = client_work.next.type_signature.result.result.member

  @tff.tensorflow.computation(model.weights_type, result_type)
  def received_minus_sent(received, client_result):
    return tf.nest.map_structure(tf.subtract, received, client_result.update)

  def local_models(received, output, data):
    del data  # What the client sent is enough.
    return tff.federated_map(received_minus_sent, (received, output.result))

  return local_models
