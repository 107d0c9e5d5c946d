"""Rounds in which server and clients exchange more than weights and updates."""

import collections
from collections.abc import Callable
import functools
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.algorithms import divergence
from tff_fair.algorithms import processes
from tff_fair.client import client_data
from tff_fair.models import stateless
from tff_fair.tensors import client_table

_State = tff.learning.templates.LearningAlgorithmState


def add_download(
  process: processes.FairLearningProcess,
  download: Callable[[Any], Any],
  *,
  at_start: bool = False,
) -> processes.FairLearningProcess:
  """Lets clients receive, at the end of a round, what the server has for them.

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
    return _State(
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
    return process.derive(next_fn=next_fn)

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
  return process.derive(started)


def add_exchange(
  process: processes.FairLearningProcess,
  client_work: tff.learning.templates.ClientWorkProcess,
) -> processes.FairLearningProcess:
  """Lets clients work again at the end of a round, with the new global model.

  Of the second work, the rows are kept, and the metrics as `second_exchange`.
  """
  state_type, data_type = process.next.type_signature.parameter
  work_state_type = state_type.member.client_work

  @tff.tensorflow.computation(work_state_type, work_state_type)
  def with_round_of(before, after):
    return collections.OrderedDict(before, table=after['table'])

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
    new_state = _State(
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

  return process.derive(next_fn=next_fn)


class Plan(NamedTuple):
  """The server's result of the first exchange of `compose_two_exchanges`."""

  question: Any  # What all clients receive.
  notes: Any  # What the server keeps until they have answered.
  memory: Any  # The new state of the server.


class Decision(NamedTuple):
  """The server's result of the second exchange."""

  weights: Any
  measurements: collections.OrderedDict


def compose_two_exchanges(
  model: stateless.StatelessModel,
  client_work: tff.learning.templates.ClientWorkProcess,
  *,
  num_clients: int,
  initial_memory: Callable[[], Any],
  plan: Callable[[Any, Any, Any], Plan],
  answer: Callable[[Any, Any, Any], Any],
  decide: Callable[[Any, Plan, Any], Decision],
  description: processes.Description | None = None,
) -> processes.FairLearningProcess:
  """Composes a process whose server asks the clients once more in every round.

  1. Clients: the client work.
  2. Server: `plan(memory, round, results)`.
  3. Clients: `answer(weights, question, examples)`, with the weights as they
     were at the start of the round.
  4. Server: `decide(weights, plan, answers)`.

  All four are pure functions of tensors. Results and answers have a leading
  axis of the clients that are present, in no particular order; an answer must
  say whose it is.
  `results` are the updates and weights, `examples` those of
  `client.build_client_work`. The server's state is `state.aggregator`.
  """
  weights_type = model.weights_type
  work_state_type, _, data_type = client_work.next.type_signature.parameter
  gather_client = client_data.build_gather_client(
    data_type.member, model.num_classes, num_clients
  )

  @tff.tensorflow.computation
  def initial_weights():
    return tf.nest.map_structure(tf.constant, model.initial_weights)

  @tff.tensorflow.computation
  def first_memory():
    return initial_memory()

  @tff.tensorflow.computation(
    client_work.next.type_signature.result.result.member
  )
  def upload(client_result):
    return collections.OrderedDict(
      value=client_result.update, weight=client_result.update_weight
    )

  upload_type = upload.type_signature.result
  gather_uploads = client_table.build_gather(upload_type)

  @tff.tensorflow.computation(
    first_memory.type_signature.result,
    np.int32,
    client_table.gathered_type(upload_type),
  )
  @tf.function(autograph=False)
  def make_plan(memory, round_number, uploads):
    return plan(memory, round_number, uploads)

  plan_type = make_plan.type_signature.result

  @tff.tensorflow.computation(
    weights_type, plan_type.question, gather_client.type_signature.result
  )
  @tf.function(autograph=False)
  def make_answer(weights, question, examples):
    return answer(weights, question, examples)

  answer_type = make_answer.type_signature.result
  gather_answers = client_table.build_gather(answer_type)

  @tff.tensorflow.computation(
    weights_type, plan_type, client_table.gathered_type(answer_type)
  )
  @tf.function(autograph=False)
  def make_decision(weights, planned, answers):
    return decide(weights, planned, answers)

  @tff.federated_computation
  def init_fn():
    nothing = tff.federated_value((), tff.SERVER)
    return tff.federated_zip(
      _State(
        tff.federated_eval(initial_weights, tff.SERVER),
        nothing,
        client_work.initialize(),
        tff.federated_eval(first_memory, tff.SERVER),
        nothing,
      )
    )

  @tff.federated_computation(init_fn.type_signature.result, data_type)
  def next_fn(state, data):
    weights = tff.federated_broadcast(state.global_model_weights)
    work = client_work.next(state.client_work, weights, data)
    uploads = gather_uploads(tff.federated_map(upload, work.result))
    planned = tff.federated_map(
      make_plan, (state.aggregator, state.client_work.round, uploads)
    )
    question = tff.federated_broadcast(planned.question)
    examples = tff.federated_map(gather_client, data)
    answers = tff.federated_map(make_answer, (weights, question, examples))
    decision = tff.federated_map(
      make_decision,
      (state.global_model_weights, planned, gather_answers(answers)),
    )
    new_state = _State(
      decision.weights,
      state.distributor,
      work.state,
      planned.memory,
      state.finalizer,
    )
    nothing = tff.federated_value((), tff.SERVER)
    metrics = collections.OrderedDict(
      distributor=nothing,
      client_work=work.measurements,
      aggregator=decision.measurements,
      finalizer=nothing,
    )
    return tff.learning.templates.LearningProcessOutput(
      tff.federated_zip(new_state), tff.federated_zip(metrics)
    )

  state_type = init_fn.type_signature.result.member

  @tff.tensorflow.computation(state_type)
  def get_model_weights(state):
    return state.global_model_weights

  @tff.tensorflow.computation(state_type, weights_type)
  def set_model_weights(state, weights):
    return _State(
      weights,
      state.distributor,
      state.client_work,
      state.aggregator,
      state.finalizer,
    )

  return processes.FairLearningProcess(
    tff.learning.templates.LearningProcess(
      init_fn, next_fn, get_model_weights, set_model_weights
    ),
    model,
    functools.partial(divergence.build_divergence, model, client_work),
    description=description,
  )
