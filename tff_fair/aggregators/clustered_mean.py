"""pFedCK's server: the mean model of each cluster of clients.

Clients are clustered by the cosine distances of their updates.
"""

import collections
import dataclasses
from typing import Annotated

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.aggregators import clustering
from tff_fair.aggregators import factory
from tff_fair.aggregators import gathered
from tff_fair.annotations import Limits
from tff_fair.tensors import client_table
from tff_fair.tensors import flat


@dataclasses.dataclass(eq=False, repr=False)
class ClusteredMeanFactory(factory.Factory):
  """Averages within clusters, and over all clients.

  Values are `v_i = w - s_i'`, the difference between the global model w and
  the client's trained model; the weight holds the change by training,
  `D_i = s_i' - s_i`. With `n_i` examples:

  1. At most `num_clusters` clusters by average linkage of `1 - cos(D_i, D_j)`
     (see `clustering.average_linkage`). A client whose D_i is 0 is in no
     cluster. A client that sends a non-finite number, or one too large
     (`summable.LARGEST`), is treated as one without examples whose values are
     0.
  2. For each cluster c the mean `v_c = sum_c n_i v_i / sum_c n_i`; the result
     is the mean v over all clients.

  So the global model moves to the mean of all s_i', and the model of cluster c
  is the new global model minus `v_c - v`.

  The created process:

  * `initialize`: `OrderedDict(cluster=int32[N], offset=[N, ...])`. `cluster` is
    each client's cluster in the last round, named by the smallest id in it, or
    -1. `offset` has the trainable part of `v_c - v` in the row of that id and
    zeros in all other rows.
  * the weight `<client_id=int32, num_examples=float32, change=<trainable
    part>>`.
  * measurements: `num_clusters`; `num_non_finite` (clients of step 1 with
    non-finite or too large numbers); `clients` with `client_id` and `cluster`.

  Args:
    num_clients: N.
    num_clusters: At least 1.
  """

  num_clients: Annotated[int, Limits(minimum=1)]
  num_clusters: Annotated[int, Limits(minimum=1)] = 3

  def _required_weight_type(self, value_type):
    return collections.OrderedDict(
      client_id=np.int32,
      num_examples=np.float32,
      change=gathered.trainable_type(value_type),
    )

  def _create(self, value_type, weight_type):
    def initial_state():
      zeros = tff.types.structure_from_tensor_type_tree(
        lambda t: client_table.zeros([self.num_clients, *t.shape]), value_type
      )
      return collections.OrderedDict(
        cluster=tf.fill([self.num_clients], -1),
        offset=gathered.trainable_part(zeros),
      )

    return gathered.build_process(
      value_type,
      weight_type,
      initial_state,
      self._server_round,
      prepare=gathered.summable_or_zeros,
    )

  def _server_round(self, state, uploads) -> gathered.ServerOutput:
    uploads = gathered.by_client(uploads, self.num_clients)
    value, weight = uploads['value'], uploads['weight']
    ids, counts = weight['client_id'], weight['num_examples']
    changes = flat.flatten_rows(weight['change'])
    changed = tf.reduce_any(tf.not_equal(changes, 0.0), axis=1)
    labels = clustering.average_linkage(
      clustering.cosine_distances(changes), self.num_clusters, changed
    )
    shares = gathered.divide_by_sum(counts)
    result = gathered.weighted_sum(value, shares, shares)
    offsets = _cluster_offsets(
      gathered.trainable_part(value),
      gathered.trainable_part(result),
      labels,
      counts,
    )
    # Ids ascend, so the smallest position is that of the smallest id.
    cluster = tf.where(labels < 0, -1, tf.gather(ids, tf.maximum(labels, 0)))
    no_cluster = tf.fill([self.num_clients], -1)
    no_offset = tf.nest.map_structure(
      lambda t: client_table.zeros(t.shape), state['offset']
    )
    return gathered.ServerOutput(
      state=collections.OrderedDict(
        cluster=client_table.write_rows(no_cluster, ids, cluster),
        offset=client_table.write_rows(no_offset, ids, offsets),
      ),
      result=result,
      measurements=collections.OrderedDict(
        num_clusters=tf.math.count_nonzero(
          tf.equal(labels, tf.range(tf.size(labels))), dtype=tf.int32
        ),
        num_non_finite=tf.reduce_sum(uploads['non_finite']),
        clients=collections.OrderedDict(client_id=ids, cluster=cluster),
      ),
    )


def _cluster_offsets(value, mean, labels, counts):
  """`v_c - v` in the row of the cluster's smallest id, zeros elsewhere."""
  number = tf.size(labels)
  members = tf.cast(
    tf.equal(tf.range(number)[:, tf.newaxis], labels[tf.newaxis]), tf.float32
  )
  weights = members * counts[tf.newaxis]
  totals = tf.reduce_sum(weights, axis=1, keepdims=True)
  shares = tf.math.divide_no_nan(weights, totals)
  named = totals[:, 0] > 0

  def offset(rows, overall):
    of_cluster = tf.tensordot(shares, rows, axes=1)
    return client_table.choose_rows(
      named, of_cluster - overall, tf.zeros_like(rows)
    )

  return tf.nest.map_structure(offset, value, mean)
