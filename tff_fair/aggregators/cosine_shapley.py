"""CGSV's server: contributions are cosines with the aggregate.

Xu, Lyu, Ma, Miao, Foo and Low, "Gradient Driven Rewards to Guarantee Fairness
in Collaborative Machine Learning" (NeurIPS 2021): the cosine gradient Shapley
value.
"""

import collections
import dataclasses
import functools
from typing import Annotated, Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.aggregators import factory
from tff_fair.aggregators import gathered
from tff_fair.aggregators import sparse_rewards
from tff_fair.annotations import Limits
from tff_fair.tensors import geometry

WEIGHT_TYPE = tff.types.to_type(
  collections.OrderedDict(client_id=np.int32, num_examples=np.float32)
)

# The lowest reputation of a client.
_FLOOR = 1e-3


def contributions(updates: Any, aggregate: Any) -> tf.Tensor:
  """`phi_i = cos(u_i, u)`, `float64[m]`, 0 where a vector is 0."""
  updates, aggregate = (tf.cast(t, tf.float64) for t in (updates, aggregate))
  return geometry.cosines(updates, aggregate)


def reputations(
  history: Any, contribution: Any, history_weight: float
) -> tf.Tensor:
  """`r_i = max(alpha r_i + (1 - alpha) phi_i, 1e-3)`, before normalisation."""
  mixed = history_weight * history + (1 - history_weight) * contribution
  return tf.maximum(mixed, tf.constant(_FLOOR, tf.float64))


def reward_shares(reputation: Any, altruism: float) -> tf.Tensor:
  """`q_i = tanh(b r_i) / max_j tanh(b r_j)`, `float64[m]`."""
  return gathered.divide_by_max(tf.tanh(altruism * reputation))


@dataclasses.dataclass(eq=False, repr=False)
class CosineShapleyFactory(factory.Factory):
  """The server side of CGSV.

  With `D_i` the update that client i would add to its weights:

  1. `u_i = Gamma D_i / (||D_i|| + 1e-7)`.
  2. `u = sum_i a_i u_i`, with `a` the reputations of the present clients
     divided by their sum, or, while none of them has a reputation, their shares
     of the examples.
  3. `phi_i` by `contributions`, `r_i` by `reputations`, then `r <- r / sum r`
     over all clients.
  4. Shares `q_i` by `reward_shares`: the fraction of u that the client gets.

  The created process is that of `sparse_rewards.build_process` with the weight
  `<client_id=int32,num_examples=float32>` and `contribution` among the
  measurements of clients.

  Args:
    num_clients: N.
    update_length: Gamma, positive.
    history_weight: alpha, in [0, 1].
    altruism: b, positive.
  """

  num_clients: Annotated[int, Limits(minimum=1)]
  _: dataclasses.KW_ONLY
  update_length: Annotated[float, Limits(above=0)] = 0.5
  history_weight: Annotated[float, Limits(minimum=0, maximum=1)] = 0.95
  altruism: Annotated[float, Limits(above=0)] = 1.0

  def _required_weight_type(self, value_type):
    return WEIGHT_TYPE

  def _create(self, value_type, weight_type):
    return sparse_rewards.build_process(
      value_type,
      weight_type,
      num_clients=self.num_clients,
      initial_reputation=0.0,
      rate=self._rate,
    )

  def _rate(self, updates, uploads, reputation) -> sparse_rewards.RatedRound:
    updates = sparse_rewards.unit_updates(updates, self.update_length)
    counts = tf.cast(uploads['weight']['num_examples'], tf.float64)
    known = tf.reduce_sum(reputation) > 0
    factors = gathered.divide_by_sum(tf.where(known, reputation, counts))
    aggregate = tf.tensordot(tf.cast(factors, tf.float32), updates, axes=1)
    contribution = contributions(updates, aggregate)
    mixed = reputations(reputation, contribution, self.history_weight)
    return sparse_rewards.RatedRound(
      aggregate=aggregate,
      reputation=mixed,
      share_fn=functools.partial(reward_shares, altruism=self.altruism),
      measurements=collections.OrderedDict(contribution=contribution),
    )
