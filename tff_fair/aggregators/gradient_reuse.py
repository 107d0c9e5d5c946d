"""CoRe-Fed's server: weights by participation and agreement, gradients reused.

"CoRe-Fed: Bridging Collaborative and Representation Fairness via Federated
Embedding Distillation" (AAAI 2026). Equation numbers are the paper's. Rounds
count from 1. The pure functions take float64.
"""

import collections
from collections.abc import Callable
import dataclasses
from typing import Annotated, Any, Literal

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import losses
from tff_fair.aggregators import factory
from tff_fair.aggregators import gathered
from tff_fair.annotations import Limits
from tff_fair.tensors import client_table
from tff_fair.tensors import geometry

GlobalEmbedding = Literal['mean', 'first']


def participation_window(num_seen: Any, num_online: Any) -> tf.Tensor:
  """`tau = max(1, floor(M_t / |S_t|))`, rounds (Algorithm 1, line 18).

  M_t clients took part in any round so far, |S_t| in this one. The paper has
  `M_t / |S_t|`; a whole number of rounds is ours.
  """
  return tf.maximum(1, num_seen // tf.maximum(num_online, 1))


def participation_frequencies(
  participation: Any, ages: Any, window: Any
) -> tf.Tensor:
  """`f_i`, the share of the last `window` rounds with client i (equation 10).

  That the count is at least 1 is ours: a client that is reused after exactly
  `window` rounds has 0. The divisor is the window in the first rounds too.
  `participation` is `bool[rounds, k]`; `ages` is how many rounds ago each was.
  """
  counted = participation & (ages < window)[:, tf.newaxis]
  counts = tf.math.count_nonzero(counted, axis=0, dtype=tf.float64)
  return tf.maximum(counts, 1) / tf.cast(window, tf.float64)


def alignment_scores(
  embeddings: Any, global_embedding: Any, distillation_rate: float
) -> tf.Tensor:
  """`rho_i = cos(r_i, z_g)` of refined embeddings (Algorithm 1, line 21)."""
  refined = geometry.refined(embeddings, global_embedding, distillation_rate)
  return geometry.cosines(refined, global_embedding)


def global_embedding(online: Any, kind: GlobalEmbedding) -> tf.Tensor:
  """`z_g`: the mean of the embeddings `[k, p]`, or the 'first' of them."""
  if kind == 'first':
    online = online[:1]
  number = tf.cast(tf.shape(online)[0], online.dtype)
  return tf.math.divide_no_nan(tf.reduce_sum(online, axis=0), number)


def contributions(
  frequencies: Any,
  alignments: Any,
  *,
  fairness_exponent: float,
  sharpness: float,
) -> tf.Tensor:
  """The aggregation weights `w~_i` (equation 11).

      u_i = (1 / f_i)^gamma sigma(k rho_i),  w~_i = u_i / sum u

  The sum is over the given clients; the paper's is over those of the round.
  """
  scores = frequencies**-fairness_exponent * tf.sigmoid(sharpness * alignments)
  return tf.math.divide_no_nan(scores, tf.reduce_sum(scores))


@dataclasses.dataclass(eq=False, repr=False)
class GradientReuseFactory(factory.Factory):
  """The server side of CoRe-Fed.

  Values are updates, the received weights minus the trained ones: `lr_t g_i`.
  Round t, with S_t the clients that take part:

  1. `z_g`, the mean of the embeddings of S_t (or see `global_embedding`); the
     contrastive loss L_i of each client of S_t against the others (equation 6),
     which is only reported.
  2. `tau = participation_window(...)`; the active clients are
     `A_t = S_t + {i: t - t_i <= tau}`, where t_i is the last round with client
     i (equation 12).
  3. `w~_i = contributions(f_i, rho_i)` over A_t, with the stored `z_i`.
  4. The result is `lr_t sum_A w~_i g_i`, with the stored `g_i` of clients that
     are active but absent. Without such clients it is a mean of updates.

  Equations 11 and 13 sum over S_t alone, which would leave equation 12 without
  effect; here both are over A_t. `gradient_reuse=False` is the other reading,
  A_t = S_t.

  A client takes no part if `accepted` is not positive, or one of its numbers is
  not finite or too large (`summable.LARGEST`). If no client takes part, the
  result is zero and no gradient is reused.
  If values are `tff.learning.models.ModelWeights`, the trainable part is stored
  and reused; batch-norm statistics are averaged over S_t with weights `w~_i`.

  The created process:

  * `initialize`: `OrderedDict(round=int32, updates=float32[K, d],
    embeddings=float32[K, p], last_round=int32[K], learning_rate=float32[K],
    participation=bool[K, K])`: t; the last update of each client, the only
    entry of this size; z_i; t_i, or 0; lr of that round, so that the update is
    this times g_i; which clients took part in the last K rounds (no window is
    longer), with round r in row r modulo K.
  * `next`: `<state@SERVER, {value}@CLIENTS, {weight}@CLIENTS> -> <state,
    result=value@SERVER, measurements@SERVER>` with the weight
    `<client_id=int32,accepted=float32,embedding=float32[p]>`. An id that is out
    of range, or that two clients that take part have, is an error at run time.
  * measurements: `window` (tau), `contrastive_loss` (the mean L_i over S_t, NaN
    if it is empty), `num_stale` (active and absent), `num_not_taking_part`,
    `num_non_finite` (those of them with non-finite or too large numbers), and
    `clients`, vectors with an entry for each active client, by ascending
    `client_id`: `frequency` (f_i), `alignment` (rho_i), `weight` (w~_i),
    `stale` (1 if absent).

  Args:
    num_clients: K; ids are 0..K-1.
    fairness_exponent: The paper's gamma, how strongly rare participation is
      favoured; not negative.
    sharpness: The paper's k, how strongly agreement is favoured; not negative.
    distillation_rate: The paper's beta, how far embeddings are refined; in
      [0, 1].
    temperature: The paper's tau of the contrastive loss, positive.
    gradient_reuse: Whether absent clients are active.
    include_positive: As in `losses.contrastive_loss`.
    global_embedding: See `global_embedding`.
    learning_rate_fn: `round (int32, from 0) -> float32`, the clients' lr_t: a
      reused gradient is scaled by the current one. None means constant.
  """

  num_clients: Annotated[int, Limits(minimum=1)]
  _: dataclasses.KW_ONLY
  fairness_exponent: Annotated[float, Limits(minimum=0)] = 0.5
  sharpness: Annotated[float, Limits(minimum=0)] = 2.0
  distillation_rate: Annotated[float, Limits(minimum=0, maximum=1)] = 0.5
  temperature: Annotated[float, Limits(above=0)] = 0.07
  gradient_reuse: bool = True
  include_positive: bool = False
  global_embedding: GlobalEmbedding = 'mean'
  learning_rate_fn: Callable[[Any], Any] | None = None

  def _required_weight_type(self, value_type):
    return collections.OrderedDict(
      client_id=np.int32,
      accepted=np.float32,
      embedding=tff.TensorType(np.float32, [None]),
    )

  def _create(self, value_type, weight_type):
    specs, size = gathered.specs_and_size(value_type)
    [embedding_size] = weight_type['embedding'].shape

    def initial_state():
      k = self.num_clients
      return collections.OrderedDict(
        round=tf.constant(0),
        updates=client_table.zeros([k, size]),
        embeddings=tf.zeros([k, embedding_size]),
        last_round=tf.zeros([k], tf.int32),
        learning_rate=tf.ones([k]),
        participation=tf.zeros([k, k], tf.bool),
      )

    return gathered.build_process(
      value_type,
      weight_type,
      initial_state,
      lambda state, uploads: self._server_round(state, uploads, specs),
      prepare=_prepare,
    )

  def _server_round(self, state, uploads, specs) -> gathered.ServerOutput:
    non_finite, takes_part = uploads['non_finite'], uploads['takes_part']
    uploads = gathered.taking_part(uploads, self.num_clients)
    ids = uploads['client_id']
    state = self._store(state, uploads)
    weighed = self._weigh(state, tf.size(ids))
    rates = tf.gather(state['learning_rate'], weighed['client_id'])
    scales = tf.math.divide_no_nan(self._learning_rate(state['round']), rates)
    factors = tf.scatter_nd(
      weighed['client_id'][:, tf.newaxis],
      tf.cast(weighed['weight'], tf.float32) * scales,
      [self.num_clients],
    )
    update = tf.tensordot(factors, state['updates'], axes=1)
    shares = gathered.divide_by_sum(tf.gather(factors, ids))
    statistics = [
      tf.tensordot(shares, rows, axes=1) for rows in uploads['statistics']
    ]
    stale = weighed['stale']
    return gathered.ServerOutput(
      state=state,
      result=gathered.from_flat(update, statistics, specs),
      measurements=collections.OrderedDict(
        window=weighed.pop('window'),
        contrastive_loss=weighed.pop('contrastive_loss'),
        num_stale=tf.reduce_sum(stale),
        num_not_taking_part=tf.math.count_nonzero(~takes_part, dtype=tf.int32),
        num_non_finite=tf.math.count_nonzero(non_finite, dtype=tf.int32),
        clients=weighed,
      ),
    )

  def _store(self, state, uploads) -> collections.OrderedDict:
    """Step 7 of the round: stores what the clients that take part sent."""
    ids, now = uploads['client_id'], state['round'] + 1
    rows = collections.OrderedDict(
      updates=uploads['update'],
      embeddings=uploads['embedding'],
      last_round=tf.fill(tf.shape(ids), now),
      learning_rate=tf.fill(tf.shape(ids), self._learning_rate(now)),
    )
    table = collections.OrderedDict((name, state[name]) for name in rows)
    stored = client_table.write_rows(table, ids, rows)
    present = tf.equal(stored['last_round'], now)
    this_round = tf.equal(tf.range(self.num_clients), now % self.num_clients)
    participation = client_table.choose_rows(
      this_round, present, state['participation']
    )
    return collections.OrderedDict(
      round=now, **stored, participation=participation
    )

  def _weigh(self, state, num_online) -> collections.OrderedDict:
    """The active clients and their weights, by ascending id."""
    now, last_round = state['round'], state['last_round']
    present = tf.equal(last_round, now)
    seen = last_round > 0
    window = participation_window(
      tf.math.count_nonzero(seen, dtype=tf.int32), num_online
    )
    active = present
    if self.gradient_reuse:
      active = seen & (now - last_round <= window) & (num_online > 0)

    embeddings = tf.cast(state['embeddings'], tf.float64)
    online = tf.boolean_mask(embeddings, present)
    target = global_embedding(online, self.global_embedding)
    ages = (now - tf.range(self.num_clients)) % self.num_clients
    frequencies = participation_frequencies(
      tf.boolean_mask(state['participation'], active, axis=1), ages, window
    )
    alignments = alignment_scores(
      tf.boolean_mask(embeddings, active),
      target,
      self.distillation_rate,
    )
    return collections.OrderedDict(
      window=window,
      contrastive_loss=self._contrastive_loss(online, target),
      client_id=tf.cast(tf.where(active)[:, 0], tf.int32),
      frequency=frequencies,
      alignment=alignments,
      weight=contributions(
        frequencies,
        alignments,
        fairness_exponent=self.fairness_exponent,
        sharpness=self.sharpness,
      ),
      stale=tf.cast(tf.boolean_mask(~present, active), tf.int32),
    )

  def _contrastive_loss(self, online, target) -> tf.Tensor:
    """The mean loss over S_t, each client against all others."""
    number = tf.shape(online)[0]

    def loss(index):
      return losses.contrastive_loss(
        online[index],
        target,
        online,
        tf.not_equal(tf.range(number), index),
        temperature=self.temperature,
        include_positive=self.include_positive,
      )

    each = tf.map_fn(
      loss, tf.range(number), fn_output_signature=tf.TensorSpec([], tf.float64)
    )
    return tf.reduce_mean(each)

  def _learning_rate(self, number) -> tf.Tensor:
    """lr_t of rounds that count from 1."""
    if self.learning_rate_fn is None:
      return tf.constant(1.0)
    return tf.cast(self.learning_rate_fn(number - 1), tf.float32)


def _prepare(value, weight) -> collections.OrderedDict:
  """A client's upload: its update as a row of the server's table."""
  upload = gathered.flat_upload(value, weight)
  return collections.OrderedDict(upload, embedding=weight['embedding'])
