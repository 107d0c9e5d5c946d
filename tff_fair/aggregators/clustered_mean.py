"""pFedCK's server: a mean of the models of each cluster of clients.

Clients are clustered by the cosine distances of their updates.
"""

import collections

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair.aggregators import clustering
from tff_fair.aggregators import gathered
from tff_fair.aggregators import largest_values
from tff_fair.aggregators import sparse_rewards
from tff_fair.tensors import client_table
from tff_fair.tensors import flat


class ClusteredMeanFactory(tff.aggregators.WeightedAggregationFactory):
  """Averages within clusters, and over all clients.

  Values are `v_i = w - s_i'`, the difference of a reference w that all clients
  share, the global model, and the client's trained model; the weight tells what
  the training changed, `D_i = s_i' - s_i`. With `n_i` examples:

  1. Clusters by average linkage of `1 - cos(D_i, D_j)` (see
     `clustering.average_linkage`), at most `num_clusters`. A client whose D_i
     is 0 is in none. Who sends something that is not finite counts as one
     without examples whose values are 0.
  2. Of each cluster c the mean `v_c = sum_c n_i v_i / sum_c n_i`; the result is
     the mean v over all clients.

  So the global model moves to the mean of all s_i', and the model of cluster c
  is the new global model minus `v_c - v`.

  The created process:

  * `initialize`: `OrderedDict(cluster=int32[N], offset=[N, ...])`: a client's
    cluster in the last round, as the smallest id in it, -1 for none; and
    `v_c - v` in the row of that id, zeros in other rows; its trainable part.
  * the weight `<client_id=int32, num_examples=float32, change=<trainable
    part>>`; measurements: `num_clusters`, and `clients` with `client_id` and
    `cluster`.
  """

  def __init__(self, num_clients: int, num_clusters: int = 3):
    """Keeps the parameters.

    Args:
      num_clients: N.
      num_clusters: At least 1.

    Raises:
      TypeError: If a number is not an integer.
      ValueError: If a number is out of range.
    """
    self._num_clients = checks.check_integer('num_clients', num_clients, 1)
    self._num_clusters = checks.check_integer('num_clusters', num_clusters, 1)

  def create(
    self, value_type: tff.Type, weight_type: tff.Type
  ) -> tff.templates.AggregationProcess:
    """Creates the process.

    Args:
      value_type: Structure of float32 tensors of known shape.
      weight_type: See the class.

    Returns:
      A weighted `tff.templates.AggregationProcess`.

    Raises:
      TypeError: If a type is not as required.
    """
    largest_values.check_float32('ClusteredMeanFactory', value_type)
    _check_weight(weight_type)

    def initial_state():
      zeros = tff.types.structure_from_tensor_type_tree(
        lambda t: client_table.zeros([self._num_clients, *t.shape]), value_type
      )
      return collections.OrderedDict(
        cluster=tf.fill([self._num_clients], -1),
        offset=gathered.trainable_part(zeros),
      )

    return gathered.build_process(
      value_type,
      weight_type,
      initial_state,
      self._serve,
      prepare=gathered.finite_or_zeros,
    )

  def _serve(self, state, uploads) -> gathered.Served:
    uploads = gathered.by_client(uploads, self._num_clients)
    value, weight = uploads['value'], uploads['weight']
    ids, counts = weight['client_id'], weight['num_examples']
    changes = flat.flatten_rows(weight['change'])
    changed = tf.reduce_any(tf.not_equal(changes, 0.0), axis=1)
    labels = clustering.average_linkage(
      clustering.cosine_distances(changes), self._num_clusters, changed
    )
    shares = sparse_rewards.normalized(counts)
    result = gathered.weighted_sum(value, shares, shares)
    offsets = _cluster_offsets(
      gathered.trainable_part(value),
      gathered.trainable_part(result),
      labels,
      counts,
    )
    # Ids ascend, so the smallest position is that of the smallest id.
    cluster = tf.where(labels < 0, -1, tf.gather(ids, tf.maximum(labels, 0)))
    everyone = tf.fill([self._num_clients], -1)
    nobody = tf.nest.map_structure(
      lambda t: client_table.zeros(t.shape), state['offset']
    )
    return gathered.Served(
      state=collections.OrderedDict(
        cluster=client_table.write_rows(everyone, ids, cluster),
        offset=client_table.write_rows(nobody, ids, offsets),
      ),
      result=result,
      measurements=collections.OrderedDict(
        num_clusters=tf.math.count_nonzero(
          tf.equal(labels, tf.range(tf.size(labels))), dtype=tf.int32
        ),
        clients=collections.OrderedDict(client_id=ids, cluster=cluster),
      ),
    )


def _cluster_offsets(value, mean, labels, counts):
  """`v_c - v` in the row that names the cluster, zeros in other rows."""
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


def _check_weight(weight_type) -> None:
  names = ('client_id', 'num_examples', 'change')
  found = ()
  if isinstance(weight_type, tff.StructType):
    found = tuple(tff.structure.name_list(weight_type))
  if found != names or weight_type.client_id != tff.TensorType(np.int32):
    raise TypeError(
      f'ClusteredMeanFactory requires a weight with the entries {names}, an'
      f' int32, a float32 and an update. Found type: {weight_type!r}.'
    )
