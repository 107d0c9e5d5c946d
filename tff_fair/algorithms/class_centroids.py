"""Class centroids: a classifier for methods that train only an embedding.

FedQuad does not say how it measures the accuracy of runs without cross-entropy.
Here an example is assigned to the class whose mean embedding is nearest.
"""

import collections
from collections.abc import Callable

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair import client
from tff_fair import models
from tff_fair.client import client_data


def build_class_centroids(
  model_fn: Callable[[], tf.keras.Model], *, num_clients: int | None = None
) -> tff.Computation:
  """Builds the computation of sums of the clients' embeddings by class.

  The embeddings are those of a global model. Only sums leave the clients. A
  client whose embeddings are not finite is excluded, and counted.
  `metrics.Evaluator` takes the result.

  Args:
    model_fn: Builds a fresh, uncompiled Keras model (see `StatelessModel`) with
      an output `embedding` of p numbers.
    num_clients: None for plain client data, `D*`. A number for clients with
      ids, `<client_id=int32*,train=D*,holdout=D*>`.

  Returns:
    `<W@SERVER, {client data}@CLIENTS> -> <sums=float32[C,p], counts=int32[C],
    num_rejected_clients=int32>@SERVER`, with W `ModelWeights` of the model.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If `num_clients` is out of range, or the model has no embedding.
  """
  if num_clients is not None:
    checks.check_integer('num_clients', num_clients, 1)
  model = models.StatelessModel(model_fn)
  client.check_embedding('build_class_centroids', model)
  data_type = client.client_data_type(model.input_spec, num_clients)
  gather_client = client_data.build_gather_client(
    data_type, model.num_classes, num_clients
  )

  @tff.tensorflow.computation(
    model.weights_type, gather_client.type_signature.result
  )
  @tf.function(autograph=False)
  def sum_up(weights, examples):
    sums, counts = client.class_sums(model, weights, examples['train'])
    finite = tf.reduce_all(tf.math.is_finite(sums))
    return collections.OrderedDict(
      sums=tf.where(finite, sums, 0.0),
      counts=tf.where(finite, counts, 0),
      num_rejected_clients=tf.cast(tf.logical_not(finite), tf.int32),
    )

  @tff.federated_computation(
    tff.FederatedType(model.weights_type, tff.SERVER),
    tff.FederatedType(data_type, tff.CLIENTS),
  )
  def class_centroids(weights, data):
    examples = tff.federated_map(gather_client, data)
    sent = tff.federated_broadcast(weights)
    return tff.federated_sum(tff.federated_map(sum_up, (sent, examples)))

  return class_centroids
