"""Servers that rate clients and reward them with parts of an aggregate.

CGSV and FedAVE: a client's reputation determines its share of the aggregate's
entries; it receives those of largest magnitude. The state holds the aggregate
and the shares; `rewards` computes each client's part from them.
"""

import collections
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.aggregators import gathered
from tff_fair.aggregators import largest_values
from tff_fair.tensors import client_table
from tff_fair.tensors import flat
from tff_fair.tensors import geometry

# Keeps products such as 0.29 * 100 = 28.999... at their integer value.
_ROUNDING = 1e-6


class RatedRound(NamedTuple):
  """A rule's results for the uploads of a round.

  Attributes:
    aggregate: `float32[d]`, to be added to weights.
    reputation: `float64[m]`, of the present clients, before normalisation.
    share_fn: From normalised reputations, `float64[m]`, to shares of the
      aggregate's entries, `float64[m]` in [0, 1].
    measurements: OrderedDict of vectors `[m]`.
  """

  aggregate: Any
  reputation: Any
  share_fn: Callable[[Any], Any]
  measurements: collections.OrderedDict


def build_process(
  value_type: tff.Type,
  weight_type: tff.Type,
  *,
  num_clients: int,
  initial_reputation: float,
  rate: Callable[[Any, Any, Any], RatedRound],
) -> tff.templates.AggregationProcess:
  """Builds the process of a rule.

  Values are updates with TFF's sign. The rule applies to the trainable part;
  statistics are averaged with the numbers of examples. A client that sends a
  non-finite number, or one too large (`summable.LARGEST`), counts as one with 0
  examples, whose update is 0.

  The state is `OrderedDict(reputation=float64[N], share=float64[N],
  aggregate=<trainable part>)`: reputations sum to 1 over all N once there are
  any, and absent clients have the share 0. The result is minus the aggregate.
  Measurements: `num_non_finite` (clients with non-finite or too large numbers),
  and `clients`, with `client_id`, `reputation`, `share` and those of the rule.

  `rate` maps the updates that clients would add to their weights, `float32[m,
  d]`, the uploads and the reputations of the last round, all sorted by client
  id, to a `RatedRound`.
  """

  def initial_state():
    reputation = np.full(num_clients, initial_reputation)
    return collections.OrderedDict(
      reputation=tf.constant(reputation, tf.float64),
      share=tf.zeros([num_clients], tf.float64),
      aggregate=gathered.trainable_part(
        tff.types.structure_from_tensor_type_tree(
          lambda t: tf.zeros(t.shape), value_type
        )
      ),
    )

  def server_round(state, uploads):
    uploads = gathered.by_client(uploads, num_clients)
    value, weight = uploads['value'], uploads['weight']
    ids = weight['client_id']
    updates = -flat.flatten_rows(gathered.trainable_part(value))
    rated = rate(updates, uploads, tf.gather(state['reputation'], ids))
    reputation = client_table.write_rows(
      state['reputation'], ids, rated.reputation
    )
    reputation = gathered.divide_by_sum(reputation)
    own_reputation = tf.gather(reputation, ids)
    own_share = rated.share_fn(own_reputation)
    share = client_table.write_rows(
      tf.zeros_like(state['share']), ids, own_share
    )
    sizes = gathered.divide_by_sum(weight['num_examples'])
    # Only the statistics of this sum are used.
    result = gathered.weighted_sum(value, tf.zeros_like(sizes), sizes)
    like = gathered.trainable_part(result)
    aggregate = flat.unflatten(rated.aggregate, like)
    trainable = tf.nest.map_structure(tf.negative, aggregate)
    result = gathered.with_trainable_part(result, trainable)
    return gathered.ServerOutput(
      state=collections.OrderedDict(
        reputation=reputation, share=share, aggregate=aggregate
      ),
      result=result,
      measurements=collections.OrderedDict(
        num_non_finite=tf.reduce_sum(uploads['non_finite']),
        clients=collections.OrderedDict(
          client_id=ids,
          reputation=own_reputation,
          share=own_share,
          **rated.measurements,
        ),
      ),
    )

  return gathered.build_process(
    value_type,
    weight_type,
    initial_state,
    server_round,
    prepare=gathered.summable_or_zeros,
  )


def rewards(state: Any, *, per_layer: bool) -> Any:
  """Each client's part of the aggregate: its largest entries, 0 elsewhere.

  It has `ceil(share * size)` entries of each variable with `per_layer`, else
  `floor(share * d)` of all variables together; of equal magnitudes those of
  lowest index.
  """
  aggregate, share = state['aggregate'], state['share']

  def kept(vector, counts):
    return largest_values.keep_largest_of_each(vector, tf.cast(counts, 'int32'))

  if not per_layer:
    vector = flat.flatten(aggregate)
    size = vector.shape.num_elements()
    counts = tf.floor(share * size + _ROUNDING)
    return flat.unflatten(kept(vector, counts), aggregate)

  def of_variable(values):
    size = values.shape.num_elements()
    counts = tf.math.ceil(share * size - _ROUNDING)
    counts = tf.maximum(counts, tf.cast(share > 0, counts.dtype))
    rows = kept(tf.reshape(values, [-1]), counts)
    return tf.reshape(rows, [-1, *values.shape])

  return tf.nest.map_structure(of_variable, aggregate)


def unit_updates(updates: Any, length: float) -> tf.Tensor:
  """`length * D / (||D|| + 1e-7)` of each row, 0 for an update of 0."""
  updates, scale = geometry.scale_down_large(updates)
  norms = tf.norm(updates, axis=1, keepdims=True) + 1e-7 / scale
  return length * updates / norms
