"""FedFV's server: updates are freed of conflicts before they are averaged.

Wang, Fan, Qi, Wen, Wang and Yu, "Federated Learning with Fair Averaging" (IJCAI
2021, https://arxiv.org/abs/2104.14937; FedFV). Two updates are in conflict if
their inner product is negative. The pure functions take float64.
"""

import collections
import dataclasses
from typing import Annotated, Any

import numpy as np
import tensorflow as tf

from tff_fair.aggregators import factory
from tff_fair.aggregators import gathered
from tff_fair.annotations import Limits
from tff_fair.tensors import client_table

# Of the number of clients that are projected.
_ROUNDING = 1e-9


def internal_weights(
  gram: Any, losses: Any, keep_share: float
) -> tuple[tf.Tensor, tf.Tensor]:
  """Weights c of the mean update without internal conflicts (algorithm 2).

  The updates `g_j` of all clients, in the order of ascending losses, project
  each `g_i` but that of j itself:

      g_i <- g_i - <g_i, g_j> / |g_j|^2 g_j, if <g_i, g_j> < 0

  The last ones of this order keep theirs: all from the place
  `ceil((k - 1) (1 - keep_share))` on, counted from 0; none for a share of 0.

  Args:
    gram: The inner products of the updates, `float64[k, k]`.
    losses: `float64[k]`; of equal ones the first comes first.
    keep_share: The paper's alpha.

  Returns:
    `float64[k]`, so that `sum_j c_j g_j` is the mean of the projected updates,
    and the number of projections.
  """
  # Small sequential steps, which are slow on a GPU.
  with tf.device('/device:CPU:0'):
    number = tf.size(losses)
    order = tf.argsort(losses, stable=True)
    is_kept = tf.zeros_like(losses, tf.bool)
    if keep_share:
      others = tf.cast(number - 1, tf.float64) * (1 - keep_share)
      first = tf.cast(tf.math.ceil(others - _ROUNDING), tf.int32)
      is_kept = tf.argsort(order) >= first

    def project(place, mixtures, count):
      j = order[place]
      products = tf.linalg.matvec(mixtures, gram[j])
      is_own = tf.equal(tf.range(number), j)
      conflicts = (products < 0) & ~is_kept & ~is_own
      factors = tf.math.divide_no_nan(products, gram[j, j])
      factors = tf.where(conflicts, factors, tf.zeros_like(factors))
      mixtures -= factors[:, tf.newaxis] * tf.one_hot(
        j, number, dtype=tf.float64
      )
      return place + 1, mixtures, count + _count(conflicts)

    _, mixtures, count = tf.while_loop(
      lambda place, *_: place < number,
      project,
      (0, tf.eye(number, dtype=tf.float64), 0),
    )
    weights = tf.math.divide_no_nan(
      tf.reduce_sum(mixtures, axis=0), tf.cast(number, tf.float64)
    )
    return weights, count


def without_conflict(
  direction: Any, updates: Any
) -> tuple[tf.Tensor, tf.Tensor]:
  """The direction, freed of conflict with absent clients (algorithm 3).

  With c the sum of those updates in conflict with the direction g:

      g <- g - <g, c> / |c|^2 c

  Args:
    direction: `float64[d]`.
    updates: `float64[k, d]`, those of clients of one earlier round.

  Returns:
    `float64[d]`, and the number of updates in conflict.
  """
  conflicts = tf.linalg.matvec(updates, direction) < 0
  against = tf.reduce_sum(tf.boolean_mask(updates, conflicts), axis=0)
  factor = tf.math.divide_no_nan(
    tf.reduce_sum(direction * against), tf.reduce_sum(against**2)
  )
  return direction - factor * against, _count(conflicts)


@dataclasses.dataclass(eq=False, repr=False)
class FairAveragingFactory(factory.Factory):
  """The server side of FedFV.

  Values are updates, the received weights minus the trained ones, `g_i`. Round
  t, counted from 0:

  1. g, the mean update without internal conflicts, see `internal_weights`.
  2. If `t >= memory_rounds`: for the rounds `t - memory_rounds`, ..., `t - 1`,
     in this order, `without_conflict` with the stored updates of the absent
     clients whose last round this was.
  3. The result is g, scaled to the length of the mean of the updates.

  A client takes no part if `accepted` is not positive, or one of its numbers is
  not finite or too large (`summable.LARGEST`). If no client takes part, the
  result is zero. If values are `tff.learning.models.ModelWeights`, this is for
  the trainable part; batch-norm statistics are averaged.

  The created process:

  * `initialize`: `OrderedDict(round=int32, updates=float32[K, d],
    last_round=int32[K])`: t; the last update of each client, the only entry of
    this size; one more than its round, or 0.
  * `next`: `<state@SERVER, {value}@CLIENTS, {weight}@CLIENTS> -> <state,
    result=value@SERVER, measurements@SERVER>` with the weight
    `<client_id=int32,accepted=float32,loss=float32>`. An id that is out of
    range, or that two clients that take part have, is an error at run time.
  * measurements: `num_aggregated`, `num_non_finite` (clients with non-finite or
    too large numbers), `num_internal_conflicts` (projections),
    `num_external_conflicts` (updates of absent clients in conflict) and `scale`
    (the factor of step 3, 0 if g is 0).

  Args:
    num_clients: K; ids are 0..K-1.
    keep_share: The paper's alpha, the share of clients, those with the highest
      losses, that keep their updates; in [0, 1].
    memory_rounds: The paper's tau, how many rounds absent clients count.
  """

  num_clients: Annotated[int, Limits(minimum=1)]
  _: dataclasses.KW_ONLY
  keep_share: Annotated[float, Limits(minimum=0, maximum=1)] = 0.1
  memory_rounds: Annotated[int, Limits(minimum=0)] = 1

  def _required_weight_type(self, value_type):
    return collections.OrderedDict(
      client_id=np.int32, accepted=np.float32, loss=np.float32
    )

  def _create(self, value_type, weight_type):
    specs, size = gathered.specs_and_size(value_type)

    def initial_state():
      return collections.OrderedDict(
        round=tf.constant(0),
        updates=client_table.zeros([self.num_clients, size]),
        last_round=tf.zeros([self.num_clients], tf.int32),
      )

    return gathered.build_process(
      value_type,
      weight_type,
      initial_state,
      lambda state, uploads: self._server_round(state, uploads, specs),
      prepare=_prepare,
    )

  def _server_round(self, state, uploads, specs) -> gathered.ServerOutput:
    non_finite = uploads['non_finite']
    uploads = gathered.taking_part(uploads, self.num_clients)
    # Runtimes gather in any order.
    uploads = gathered.sort_rows(uploads['client_id'], uploads)
    number = tf.size(uploads['client_id'])
    state = _store(state, uploads)
    updates = tf.cast(uploads['update'], tf.float64)
    gram = tf.matmul(updates, updates, transpose_b=True)
    weights, num_internal = internal_weights(
      gram, tf.cast(uploads['loss'], tf.float64), self.keep_share
    )
    direction = tf.linalg.matvec(updates, weights, transpose_a=True)
    direction, num_external = self._recall(state, direction)
    share = tf.math.divide_no_nan(1.0, tf.cast(number, tf.float64))
    length = share * tf.sqrt(tf.maximum(tf.reduce_sum(gram), 0.0))
    scale = tf.math.divide_no_nan(length, tf.norm(direction))
    statistics = [
      tf.reduce_sum(tf.cast(share, rows.dtype) * rows, axis=0)
      for rows in uploads['statistics']
    ]
    return gathered.ServerOutput(
      state=state,
      result=gathered.from_flat(
        tf.cast(scale * direction, tf.float32), statistics, specs
      ),
      measurements=collections.OrderedDict(
        num_aggregated=number,
        num_non_finite=_count(non_finite),
        num_internal_conflicts=num_internal,
        num_external_conflicts=num_external,
        scale=scale,
      ),
    )

  def _recall(self, state, direction) -> tuple[tf.Tensor, tf.Tensor]:
    """Step 2 of a round whose number `state['round']` is, from 1."""

    def free(age, direction, count):
      is_old = tf.equal(state['last_round'], state['round'] - age)
      rows = tf.boolean_mask(state['updates'], is_old)
      direction, more = without_conflict(direction, tf.cast(rows, tf.float64))
      return age - 1, direction, count + more

    has_begun = state['round'] > self.memory_rounds
    first = tf.where(has_begun, self.memory_rounds, 0)
    return tf.while_loop(lambda age, *_: age > 0, free, (first, direction, 0))[
      1:
    ]


def _prepare(value, weight) -> collections.OrderedDict:
  upload = gathered.flat_upload(value, weight)
  return collections.OrderedDict(upload, loss=weight['loss'])


def _store(state, uploads) -> collections.OrderedDict:
  ids, now = uploads['client_id'], state['round'] + 1
  table = collections.OrderedDict(
    updates=state['updates'], last_round=state['last_round']
  )
  rows = collections.OrderedDict(
    updates=uploads['update'], last_round=tf.fill(tf.shape(ids), now)
  )
  return collections.OrderedDict(
    round=now, **client_table.write_rows(table, ids, rows)
  )


def _count(mask) -> tf.Tensor:
  return tf.math.count_nonzero(mask, dtype=tf.int32)
