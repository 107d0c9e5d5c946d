"""FedDC's server: the mean of the models, and the mean drift of all clients.

Gao et al., "FedDC: Federated Learning with Non-IID Data via Local Drift
Decoupling and Correction" (CVPR 2022, https://arxiv.org/abs/2203.11751).
"""

import collections

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair.aggregators import largest_values
from tff_fair.client import client_table

_WEIGHT_TYPE = tff.TensorType(np.float32)


class MeanDriftFactory(tff.aggregators.WeightedAggregationFactory):
  """`w <- mean_S y + mean_i h_i`, as an aggregate of updates.

  Values are updates in TFF's sign, `w - y`. The drift `h_i` of client i adds up
  its `y - w`; the server needs only their mean over all N clients:

      h <- h - (1/N) sum_S (w - y),    result = mean_S (w - y) - h

  Clients with weight 0 count in neither; with nobody left, the result is 0 and
  h stays.

  The created process has the state h, a structure like the value, float32, the
  weight type float32, of which only the sign matters, and no measurements.
  """

  def __init__(self, num_clients: int):
    """Keeps the parameter.

    Args:
      num_clients: N.

    Raises:
      TypeError: If it is not an integer.
      ValueError: If it is not positive.
    """
    self._num_clients = checks.check_integer('num_clients', num_clients, 1)

  def create(
    self, value_type: tff.Type, weight_type: tff.Type
  ) -> tff.templates.AggregationProcess:
    """Creates the process.

    Args:
      value_type: Structure of float32 tensors of known shape.
      weight_type: float32.

    Returns:
      A weighted `tff.templates.AggregationProcess`.

    Raises:
      TypeError: If a type is not as required.
    """
    largest_values.check_float32('MeanDriftFactory', value_type)
    if not _WEIGHT_TYPE.is_equivalent_to(weight_type):
      raise TypeError(
        'MeanDriftFactory requires the weight type float32. Found type:'
        f' {weight_type!r}.'
      )

    @tff.tensorflow.computation
    def no_drift():
      return tff.types.structure_from_tensor_type_tree(
        lambda t: client_table.zeros(t.shape), value_type
      )

    @tff.tensorflow.computation(value_type, np.float32)
    def counted(value, weight):
      present = tf.cast(weight > 0, tf.float32)
      return collections.OrderedDict(
        value=tf.nest.map_structure(
          lambda v: tf.where(weight > 0, v, tf.zeros_like(v)), value
        ),
        present=present,
      )

    @tff.tensorflow.computation(
      no_drift.type_signature.result, counted.type_signature.result
    )
    def decide(drift, total):
      number = total['present']
      drift = tf.nest.map_structure(
        lambda h, t: h - t / self._num_clients, drift, total['value']
      )
      result = tf.nest.map_structure(
        lambda h, t: tf.where(number > 0, t / number - h, tf.zeros_like(h)),
        drift,
        total['value'],
      )
      return collections.OrderedDict(drift=drift, result=result)

    @tff.federated_computation
    def init_fn():
      return tff.federated_eval(no_drift, tff.SERVER)

    @tff.federated_computation(
      init_fn.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
      tff.FederatedType(np.float32, tff.CLIENTS),
    )
    def next_fn(state, value, weight):
      total = tff.federated_sum(tff.federated_map(counted, (value, weight)))
      decided = tff.federated_map(decide, (state, total))
      return tff.templates.MeasuredProcessOutput(
        decided.drift, decided.result, tff.federated_value((), tff.SERVER)
      )

    return tff.templates.AggregationProcess(init_fn, next_fn)
