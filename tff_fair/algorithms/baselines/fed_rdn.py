"""FedRDN: images normalised by the statistics of a client drawn at random.

Yan, Fu, Li, Xie, Ma, Yang and Zhu, "A Simple Data Augmentation for Feature
Distribution Skewed Federated Learning" (CVPR 2025,
https://arxiv.org/abs/2306.09363). Before round 0 every client sends, for each
channel, the mean and the standard deviation of its images; all clients receive
all of them.
"""

import collections
from collections.abc import Callable, Mapping
import functools
from typing import Annotated, Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import arguments
from tff_fair.algorithms import processes
from tff_fair.annotations import Limits, Symbol
from tff_fair.client import client_data
from tff_fair.tensors import client_table

# A bound, as a channel of one colour has no deviation to divide by.
_HIGHEST = 1e3


def build_fed_rdn(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int,
  client_optimizer: tff.learning.optimizers.Optimizer,
  statistics: Annotated[Mapping[str, Any], Symbol('μ, σ')],
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  max_update_norm: float | None = arguments.MAX_UPDATE_NORM,
  focal_gamma: float = 0.0,
  epsilon: Annotated[float, Limits(above=0)] = 1e-6,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
  robust: bool = False,
) -> processes.FairLearningProcess:
  """Builds FedRDN: FedAvg on images that look like those of other clients.

  In each minibatch every image x becomes `(x - mu_j) / (sigma_j + epsilon)`,
  clipped to [-1e3, 1e3], with the statistics of a client j drawn uniformly from
  all clients that have some, independently for each image and each step. The
  clients' data are raw images: they are not normalised otherwise, nor by the
  model. For evaluation, images must be normalised by `normalize_for_client`.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    model_fn: Builds a model of images `[height, width, channels]`.
    statistics: The result of `build_channel_statistics`.
      `OrderedDict(mean=float32[N, C], std=float32[N, C])`; a row that is not
      finite belongs to a client without images.
    epsilon: Keeps the divisor away from 0.

  Returns:
    A `FairLearningProcess`, whose `divergence` takes the embeddings of each
    client's images as `normalize_for_client` gives them. Metrics are FedAvg's.

  Raises:
    ValueError: Also if the model does not take images, or the statistics do not
      fit.
  """
  shared = arguments.check_arguments(build_fed_rdn, locals())
  model = models.StatelessModel(model_fn)
  statistics = _checked(statistics, num_clients, _num_channels(model))
  normalize = functools.partial(_normalized, epsilon=epsilon)
  own = _own_statistics(statistics)

  def prepare_inputs(x, client_id):
    return normalize(x, client_table.read_row(own, [client_id]))

  objective = client.classification_objective(focal_gamma)
  return shared.fed_avg(
    model,
    _augmented(objective, statistics, normalize),
    prepare_inputs=prepare_inputs,
  )


def build_channel_statistics(
  model_fn: Callable[[], tf.keras.Model], *, num_clients: int
) -> tff.Computation:
  """Builds the computation of the clients' statistics before the first round.

  For each channel, mu is the mean over a client's training images of an image's
  mean, and sigma that of its standard deviation (dividing by the number of
  pixels).

  Args:
    model_fn: As for `build_fed_rdn`.
    num_clients: N.

  Returns:
    `{<client_id=int32*,train=D*,holdout=D*>}@CLIENTS ->
    <mean=float32[N,C],std=float32[N,C]>@SERVER`; rows of NaN for clients that
    are absent, have no images, or some that are not finite.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If the model does not take images.
  """
  checks.check_integer('num_clients', num_clients, 1)
  model = models.StatelessModel(model_fn)
  num_channels = _num_channels(model)
  data_type = client.client_data_type(model.input_spec, num_clients)
  gather_client = client_data.build_gather_client(
    data_type, model.num_classes, num_clients
  )

  @tff.tensorflow.computation(gather_client.type_signature.result)
  @tf.function(autograph=False)
  def measure(examples):
    return collections.OrderedDict(
      client_id=examples['key'], row=channel_statistics(examples['train']['x'])
    )

  row_type = measure.type_signature.result
  gather = client_table.build_gather(row_type)

  @tff.tensorflow.computation(client_table.gathered_type(row_type))
  def write(gathered):
    nothing = np.full([num_channels], np.nan, np.float32)
    table = client_table.build_table(
      collections.OrderedDict(mean=nothing, std=nothing), num_clients
    )
    return client_table.write_rows(
      table, gathered['client_id'], gathered['row']
    )

  @tff.federated_computation(tff.FederatedType(data_type, tff.CLIENTS))
  def gather_statistics(data):
    rows = tff.federated_map(measure, tff.federated_map(gather_client, data))
    return tff.federated_map(write, gather(rows))

  return gather_statistics


def channel_statistics(images: Any) -> collections.OrderedDict:
  """The mean over images of each channel's mean and standard deviation.

  Args:
    images: `float32[n, height, width, C]`.

  Returns:
    `OrderedDict(mean=float32[C], std=float32[C])`, both NaN if there is no
    image, or one that is not finite.
  """
  pixels = [1, 2]
  means = tf.reduce_mean(tf.reduce_mean(images, pixels), axis=0)
  deviations = tf.reduce_mean(tf.math.reduce_std(images, pixels), axis=0)
  finite = tf.reduce_all(tf.math.is_finite([means, deviations]))
  return collections.OrderedDict(
    mean=tf.where(finite, means, np.nan),
    std=tf.where(finite, deviations, np.nan),
  )


def normalize_for_client(
  images: Any,
  statistics: Mapping[str, Any],
  client_id: int | None,
  *,
  epsilon: float = 1e-6,
) -> np.ndarray:
  """Normalises images for the evaluation of the model.

  Args:
    images: `float32[n, height, width, C]`.
    statistics: As for `build_fed_rdn`.
    client_id: The client whose test images they are. They are normalised by
      its statistics or, if it has none, by the mean statistics of the clients.
      None, for images of no particular client, takes that mean.
    epsilon: As for `build_fed_rdn`.

  Returns:
    `(images - mu) / (sigma + epsilon)`, clipped, float32.
  """
  if client_id is None:
    mean = _mean_statistics(statistics)
    row = {name: value[np.newaxis] for name, value in mean.items()}
  else:
    own = _own_statistics(statistics)
    row = {name: value[[client_id]] for name, value in own.items()}
  images = np.asarray(images, np.float32)
  return _normalized(images, row, epsilon=epsilon).numpy()


def _augmented(objective, statistics, normalize) -> client.Objective:
  """The objective on images normalised by the statistics of random clients."""
  known = _has_statistics(statistics)
  num_known = int(known.sum())
  table = {name: statistics[name][known] for name in ('mean', 'std')}

  def compute(forward, batch, context):
    drawn = tf.random.stateless_uniform(
      tf.shape(batch['y']), forward.seed, maxval=num_known, dtype=tf.int32
    )
    x = normalize(batch['x'], client_table.read_row(table, drawn))
    return objective.compute(
      forward, collections.OrderedDict(batch, x=x), context
    )

  return client.Objective(compute, objective.metric_names)


def _normalized(x, rows, *, epsilon) -> tf.Tensor:
  """Normalises `[n, height, width, C]` by rows `[n, C]`, or one for all."""
  mean, std = (
    tf.cast(rows[name], tf.float32)[:, tf.newaxis, tf.newaxis]
    for name in ('mean', 'std')
  )
  return tf.clip_by_value((x - mean) / (std + epsilon), -_HIGHEST, _HIGHEST)


def _has_statistics(statistics) -> np.ndarray:
  """`bool[N]`: which clients have statistics."""
  both = np.concatenate([statistics['mean'], statistics['std']], axis=1)
  return np.isfinite(both).all(axis=1)


def _mean_statistics(statistics) -> dict[str, np.ndarray]:
  known = _has_statistics(statistics)
  return {name: statistics[name][known].mean(0) for name in ('mean', 'std')}


def _own_statistics(statistics) -> dict[str, np.ndarray]:
  """Each client's statistics, or the mean of all for a client without any."""
  known = _has_statistics(statistics)[:, np.newaxis]
  return {
    name: np.where(known, statistics[name], mean)
    for name, mean in _mean_statistics(statistics).items()
  }


def _num_channels(model) -> int:
  """C; refuses a model that does not take images."""
  shape = model.input_spec.shape
  if shape.rank != 4:
    raise ValueError(
      'model_fn must build a model of images [height, width, channels] for'
      f' FedRDN, found inputs of shape {list(shape[1:])}.'
    )
  return shape[-1]


def _checked(statistics, num_clients, num_channels) -> collections.OrderedDict:
  """The statistics as float32 arrays."""
  required = (
    'statistics must hold mean and std, arrays of shape'
    f' {[num_clients, num_channels]}'
  )
  if not isinstance(statistics, Mapping):
    raise TypeError(f'{required}, found {type(statistics).__name__}.')
  if set(statistics) != {'mean', 'std'}:
    raise ValueError(f'{required}, found {sorted(statistics)}.')
  arrays = collections.OrderedDict(
    (name, np.asarray(value, np.float32)) for name, value in statistics.items()
  )
  for name, array in arrays.items():
    if array.shape != (num_clients, num_channels):
      raise ValueError(
        f'{required}, found {name} of shape {list(array.shape)}.'
      )
  known = _has_statistics(arrays)
  if not known.any():
    raise ValueError(f'{required}, some of them finite, found none that is.')
  lowest = arrays['std'][known].min()
  if lowest < 0:
    raise ValueError(f'{required}, std not negative, found {lowest}.')
  return arrays
