"""The client work that all methods share.

A method provides one function, `client_update`, from the global weights and one
client's tensors to a `ClientOutput`. Around it, this module gathers the data
set into tensors, reads and writes the client table, keeps the round number,
derives the client's seed, rejects non-finite updates, bounds the others, counts
dropped and clipped clients and reports what clients measured.
"""

import collections
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.client import client_data
from tff_fair.client import local_training
from tff_fair.client import update_bound
from tff_fair.models import stateless
from tff_fair.tensors import client_table

ModelWeights = tff.learning.models.ModelWeights


class ClientOutput(NamedTuple):
  """The output of a client's round.

  Attributes:
    update: `ModelWeights`, the received weights minus the trained ones.
    update_weight: For the aggregator: a scalar or a structure of scalars. For a
      dropped client, floats become 0; integers, such as the client id, are
      kept.
    row: The client's new row of the table; `()` without a table.
    metrics: OrderedDict of float32 scalars, averaged over clients by their
      number of training examples.
    report: OrderedDict of scalars, reported for each client with its id; unused
      if clients have no id.
    active: bool scalar, whether the client takes part; None for "if it has
      training data".
    clipped: Whether the method has already scaled the update down to the bound,
      because it also makes the row of it: a bool scalar.
  """

  update: Any
  update_weight: Any
  row: Any
  metrics: collections.OrderedDict
  report: collections.OrderedDict
  active: Any = None
  clipped: Any = False


ClientUpdate = Callable[..., ClientOutput]
"""A method's part of a round on a client; `build_client_work` calls it."""


def build_client_work(
  model: stateless.StatelessModel,
  client_update: ClientUpdate,
  *,
  num_clients: int | None,
  seed: int,
  max_update_norm: float | None = None,
  initial_row: Any = (),
  learning_rate_fn: Callable[[Any], Any] | None = None,
  start_round: Callable[[Any, Any, Any], Any] | None = None,
  share_fn: Callable[[Any, Any], Any] | None = None,
  with_groups: bool = False,
) -> tff.learning.templates.ClientWorkProcess:
  """Builds a client work process around one client's arithmetic.

  Args:
    model: The client model.
    client_update: `(weights, row, examples, seed, learning_rate) ->
      ClientOutput`, a pure function of tensors: `examples` is
      `OrderedDict(key, train[, holdout])` with `train` and `holdout` each
      `OrderedDict(x, y)`, `seed` is `int32[2]`, `learning_rate` is what
      `learning_rate_fn` returned, or None without one. With `share_fn` it has
      one more argument, `shared`.
    num_clients: Number of clients if they have ids; None for plain data.
    seed: Seed of all random draws on clients.
    max_update_norm: Bound of the norm of what a client sends, see
      `bound_update`; None for no bound.
    initial_row: A client's initial row of the table; `()` for no table.
    learning_rate_fn: `round (int32, from 0) -> learning rate`, or None.
    start_round: `(table, round, cohort_size) -> table`, applied at the server
      before clients get their rows, or None.
    share_fn: `(table, round) -> shared`, applied at the server after
      `start_round`: a structure of tensors that is broadcast to all clients; or
      None.
    with_groups: Whether `train` and `holdout` also have `group`, the group 0 or
      1 of each example; clients must have ids.

  Returns:
    A `tff.learning.templates.ClientWorkProcess` whose state is
    `OrderedDict(round=int32, seed=int32[2], table=<rows [num_clients, ...]>)`.
    The seed is in the state, and nowhere else, so that `next` is the same
    computation for all seeds. A client is dropped if it is not active (by
    default: if it has no training data), or if its update, weight or row is not
    finite: it sends an update of zeros with weight 0, and its row is unchanged.
    Measurements: the metrics,
    `num_clients`, `num_examples`, `num_empty_clients` (not active because they
    have no data), `num_rejected_clients`, `num_clipped_clients` (whose update
    exceeded the bound), and, if clients have ids, `clients`, an OrderedDict of
    vectors with an entry for each client, in no particular order: `client_id`,
    `num_examples`, `rejected`, `clipped` and the report. The report of a
    dropped client is NaN, or 0 where it is an integer.
  """
  data_type = client_data.client_data_type(
    model.input_spec, num_clients, with_groups
  )
  gather_client = client_data.build_gather_client(
    data_type, model.num_classes, num_clients
  )
  examples_type = gather_client.type_signature.result

  @tff.tensorflow.computation
  def initial_state():
    table = client_table.build_table(initial_row, num_clients)
    return collections.OrderedDict(
      round=tf.constant(0), seed=local_training.seed_words(seed), table=table
    )

  state_type = initial_state.type_signature.result

  if start_round is not None:

    @tff.tensorflow.computation(state_type, np.int32)
    def start(state, cohort_size):
      table = start_round(state['table'], state['round'], cohort_size)
      return collections.OrderedDict(state, table=table)

  @tff.tensorflow.computation(state_type)
  def share(state):
    if share_fn is None:
      return ()
    return share_fn(state['table'], state['round'])

  table_type = state_type['table']
  select_rows = client_table.build_select(table_type)

  @tff.tensorflow.computation(
    model.weights_type,
    client_table.row_type(table_type),
    share.type_signature.result,
    examples_type,
    np.int32,
    state_type['seed'],
  )
  @tf.function(autograph=False)
  def work(weights, row, shared, examples, round_number, words):
    key_seed = local_training.client_seed(words, round_number, examples['key'])
    rate = None if learning_rate_fn is None else learning_rate_fn(round_number)
    extra = {} if share_fn is None else {'shared': shared}
    output = client_update(weights, row, examples, key_seed, rate, **extra)
    return _client_round(output, row, examples, max_update_norm)

  gathered_type = work.type_signature.result.gathered
  gather = client_table.build_gather(gathered_type)

  @tff.tensorflow.computation(
    state_type, client_table.gathered_type(gathered_type)
  )
  def finish(state, gathered):
    ids = gathered['report']['client_id']
    # A table without rows is not written, so its ids are checked here.
    with tf.control_dependencies(client_table.check_distinct(ids)):
      round_number = state['round'] + 1
    table = client_table.write_rows(state['table'], ids, gathered['row'])
    return collections.OrderedDict(state, round=round_number, table=table)

  @tff.tensorflow.computation(state_type)
  def finish_without_ids(state):
    return collections.OrderedDict(state, round=state['round'] + 1)

  @tff.tensorflow.computation(work.type_signature.result.totals)
  def measure(totals):
    weight = tf.cast(totals['num_examples'], tf.float32)
    means = collections.OrderedDict(
      (name, tf.math.divide_no_nan(total, weight))
      for name, total in totals['metrics'].items()
    )
    counts = list(totals.items())[1:]
    return collections.OrderedDict([*means.items(), *counts])

  @tff.federated_computation
  def init_fn():
    return tff.federated_eval(initial_state, tff.SERVER)

  @tff.federated_computation(
    tff.FederatedType(state_type, tff.SERVER),
    tff.FederatedType(model.weights_type, tff.CLIENTS),
    tff.FederatedType(data_type, tff.CLIENTS),
  )
  def next_fn(state, weights, data):
    if start_round is not None:
      cohort_size = tff.federated_sum(tff.federated_value(1, tff.CLIENTS))
      state = tff.federated_map(start, (state, cohort_size))
    round_number = tff.federated_broadcast(state.round)
    examples = tff.federated_map(gather_client, data)
    row = select_rows(state.table, examples.key)
    if share_fn is None:
      shared = tff.federated_value((), tff.CLIENTS)
    else:
      shared = tff.federated_broadcast(tff.federated_map(share, state))
    words = tff.federated_broadcast(state.seed)
    result = tff.federated_map(
      work, (weights, row, shared, examples, round_number, words)
    )
    measurements = tff.federated_map(measure, tff.federated_sum(result.totals))
    if num_clients is None:
      new_state = tff.federated_map(finish_without_ids, state)
    else:
      gathered = gather(result.gathered)
      new_state = tff.federated_map(finish, (state, gathered))
      measurements = tff.federated_map(
        _with_reports(measurements, gathered), (measurements, gathered.report)
      )
    return tff.templates.MeasuredProcessOutput(
      new_state, result.client_result, measurements
    )

  return tff.learning.templates.ClientWorkProcess(init_fn, next_fn)


class _ClientRound(NamedTuple):
  """A client's uploads: to the aggregator, to be gathered, to be summed."""

  client_result: tff.learning.templates.ClientResult
  gathered: collections.OrderedDict
  totals: collections.OrderedDict


def _client_round(output, row, examples, max_update_norm) -> _ClientRound:
  """Zeroes the output of a dropped client, bounds others, and counts both."""
  num_examples = tf.size(examples['train']['y'])
  has_examples = client_data.has_examples(examples)
  active = has_examples if output.active is None else output.active
  empty = tf.logical_not(has_examples | active)
  checked = [
    t
    for t in tf.nest.flatten((output.update, output.update_weight, output.row))
    if t.dtype.is_floating
  ]

  def as_they_are():
    return output.update, output.row, True, False

  def checked_and_bounded():
    finite = tf.reduce_all(
      [tf.reduce_all(tf.math.is_finite(t)) for t in checked]
    )
    bounded, exceeds = update_bound.bound_update(output.update, max_update_norm)
    update, new_row = tf.cond(
      active & finite,
      lambda: (bounded, output.row),
      lambda: (tf.nest.map_structure(tf.zeros_like, bounded), row),
    )
    return update, new_row, finite, exceeds

  # Nearly always nothing changes, which one pass over the tensors shows.
  update, new_row, finite, exceeds = tf.cond(
    active
    & tf.math.is_finite(update_bound.half_square(checked))
    & update_bound.is_within_bound(output.update, max_update_norm),
    as_they_are,
    checked_and_bounded,
  )
  rejected = active & tf.logical_not(finite)
  accepted = active & finite
  clipped = tf.cast(accepted & (exceeds | output.clipped), tf.int32)

  def if_accepted(new, old):
    return tf.where(accepted, new, old)

  def or_zeros(structure):
    return tf.nest.map_structure(
      lambda t: if_accepted(t, tf.zeros_like(t)), structure
    )

  def weight_or_zero(value):
    return or_zeros(value) if value.dtype.is_floating else value

  def or_missing(value):
    missing = np.nan if value.dtype.is_floating else 0
    return if_accepted(value, tf.constant(missing, value.dtype))

  num_examples = or_zeros(num_examples)
  weight = tf.cast(num_examples, tf.float32)
  return _ClientRound(
    client_result=tff.learning.templates.ClientResult(
      update,
      tf.nest.map_structure(weight_or_zero, output.update_weight),
    ),
    gathered=collections.OrderedDict(
      row=new_row,
      report=collections.OrderedDict(
        client_id=examples['key'],
        num_examples=num_examples,
        rejected=tf.cast(rejected, tf.int32),
        clipped=clipped,
        **tf.nest.map_structure(or_missing, output.report),
      ),
    ),
    totals=collections.OrderedDict(
      metrics=tf.nest.map_structure(
        lambda value: or_zeros(value * weight), output.metrics
      ),
      num_clients=tf.constant(1),
      num_examples=num_examples,
      num_empty_clients=tf.cast(empty, tf.int32),
      num_rejected_clients=tf.cast(rejected, tf.int32),
      num_clipped_clients=clipped,
    ),
  )


def _with_reports(measurements, gathered) -> tff.Computation:
  """Adds the clients' reports to the means."""

  @tff.tensorflow.computation(
    measurements.type_signature.member, gathered.type_signature.member.report
  )
  def add(measurements, report):
    return collections.OrderedDict(measurements, clients=report)

  return add
