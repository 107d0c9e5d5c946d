"""Servers that rate their clients and reward them with parts of an aggregate.

CGSV and FedAVE: a client's reputation decides what share of the aggregate's
entries, those of largest magnitude, it receives. The state holds the aggregate
and the shares; `rewards` makes each client's part of them.
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

# Keeps products such as 0.29 * 100 = 28.999... at their whole number.
_ROUNDING = 1e-6


class Rating(NamedTuple):
  """What a rule makes of a round's uploads.

  Attributes:
    aggregate: `float32[d]`, to be added to weights.
    reputation: `float64[m]`, of those who are present, not yet normalised.
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
  rate: Callable[[Any, Any, Any], Rating],
) -> tff.templates.AggregationProcess:
  """Builds the process of a rule.

  Args:
    value_type: Structure of float32 tensors of known shape, updates in TFF's
      sign; of `ModelWeights` the trainable part is meant, and the other is
      averaged by the numbers of examples.
    weight_type: With the entries `client_id`, int32, and `num_examples`,
      float32: a client with 0 counts as one whose update is 0, and so does one
      that sends something that is not finite.
    num_clients: N.
    initial_reputation: Of each client.
    rate: `(updates, uploads, reputation) -> Rating`: `updates` is `float32[m,
      d]`, what clients would add to their weights, `uploads` the gathered
      values and weights, all by ascending client id, and `reputation`
      `float64[m]` that of before.

  Returns:
    A process with the state `OrderedDict(reputation=float64[N], share=
    float64[N], aggregate=<trainable part>)`, where reputations sum to 1 over
    all N once there are any, and absent clients have the share 0. The result is
    minus the aggregate. Measurements: `clients`, with `client_id`,
    `reputation`, `share` and the rule's.
  """

  def initial_state():
    everyone = np.full(num_clients, initial_reputation)
    return collections.OrderedDict(
      reputation=tf.constant(everyone, tf.float64),
      share=tf.zeros([num_clients], tf.float64),
      aggregate=gathered.trainable_part(
        tff.types.structure_from_tensor_type_tree(
          lambda t: tf.zeros(t.shape), value_type
        )
      ),
    )

  def serve(state, uploads):
    uploads = gathered.by_client(uploads, num_clients)
    value, weight = uploads['value'], uploads['weight']
    ids = weight['client_id']
    updates = -flat.flatten_rows(gathered.trainable_part(value))
    rating = rate(updates, uploads, tf.gather(state['reputation'], ids))
    reputation = client_table.write_rows(
      state['reputation'], ids, rating.reputation
    )
    reputation = normalized(reputation)
    own_reputation = tf.gather(reputation, ids)
    own_share = rating.share_fn(own_reputation)
    share = client_table.write_rows(
      tf.zeros_like(state['share']), ids, own_share
    )
    sizes = normalized(weight['num_examples'])
    # Summed for its statistics only.
    result = gathered.weighted_sum(value, tf.zeros_like(sizes), sizes)
    like = gathered.trainable_part(result)
    aggregate = flat.unflatten(rating.aggregate, like)
    trainable = tf.nest.map_structure(tf.negative, aggregate)
    if isinstance(result, tff.learning.models.ModelWeights):
      result = tff.learning.models.ModelWeights(trainable, result.non_trainable)
    else:
      result = trainable
    return gathered.Served(
      state=collections.OrderedDict(
        reputation=reputation, share=share, aggregate=aggregate
      ),
      result=result,
      measurements=collections.OrderedDict(
        clients=collections.OrderedDict(
          client_id=ids,
          reputation=own_reputation,
          share=own_share,
          **rating.measurements,
        )
      ),
    )

  return gathered.build_process(
    value_type,
    weight_type,
    initial_state,
    serve,
    prepare=gathered.finite_or_zeros,
  )


def rewards(state: Any, *, per_layer: bool) -> Any:
  """Each client's part of the aggregate: its largest entries, 0 elsewhere.

  Args:
    state: The state of `build_process`.
    per_layer: Whether `ceil(share * size)` entries of each variable are kept,
      or `floor(share * d)` of all together. Of equal magnitudes those of lowest
      index; a share of 0 keeps nothing and one of 1 everything.

  Returns:
    A structure like the aggregate, with a leading axis of clients.
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
  """`length * D / (||D|| + 1e-7)` of each row.

  Args:
    updates: `float32[m, d]`.
    length: Gamma.

  Returns:
    `float32[m, d]`, 0 where the update is.
  """
  updates, scale = geometry.shortened(updates)
  norms = tf.norm(updates, axis=1, keepdims=True) + 1e-7 / scale
  return length * updates / norms


def normalized(values: Any) -> tf.Tensor:
  """`values` by their sum, 0 if that is 0."""
  return tf.math.divide_no_nan(values, tf.reduce_sum(values))


def relative(values: Any) -> tf.Tensor:
  """`values` by their largest, 0 if that is 0."""
  return tf.math.divide_no_nan(values, tf.reduce_max(values))
