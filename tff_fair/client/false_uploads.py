"""False uploads of clients that break the protocol: one registry of kinds.

Free riders (`FreeRiders`) have no data and want a model; attackers
(`Attackers`) have data and want to harm it.
"""

from collections.abc import Callable, Mapping
import dataclasses
from typing import Any

import tensorflow as tf

from tff_fair import checks


def _uniform(update, seed, size):
  return tf.random.stateless_uniform(update.shape, seed, -size, size)


def _clipped_gaussian(update, seed, size):
  noise = tf.random.stateless_normal(update.shape, seed, stddev=size)
  return tf.clip_by_value(noise, -size, size)


def _gaussian(update, seed, size):
  return tf.random.stateless_normal(update.shape, seed, stddev=size)


# Kind -> (a tensor of the update, a seed, the kind's size) -> what is sent.
_UPLOADS: Mapping[str, Callable[[Any, Any, float], tf.Tensor]] = {
  'uniform': _uniform,
  'gaussian': _clipped_gaussian,
  'zero': lambda update, seed, size: tf.zeros(update.shape),
  'sign_flip': lambda update, seed, size: -size * update,
  'scaled_update': lambda update, seed, size: size * update,
  'gaussian_noise': _gaussian,
}


def replaced(
  kind: str, update: list[Any], seed: Any, size: float
) -> list[tf.Tensor]:
  """An upload in the place of an update.

  Args:
    kind: One of the registry.
    update: float32 tensors.
    seed: `int32[2]`.
    size: The bound, deviation or factor of the kind.

  Returns:
    float32 tensors of the same shapes.
  """
  fold_in = tf.random.experimental.stateless_fold_in
  upload = _UPLOADS[kind]
  return [upload(u, fold_in(seed, i), size) for i, u in enumerate(update)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChosenClients:
  """Some of the clients.

  Attributes:
    client_ids: Their ids.
  """

  client_ids: tuple[int, ...]

  def include(self, client_id: Any) -> tf.Tensor:
    """Returns whether a client is among them.

    Args:
      client_id: int32 scalar.

    Returns:
      bool scalar.
    """
    ids = tf.constant(self.client_ids, tf.int32)
    return tf.reduce_any(tf.equal(ids, client_id))

  def _check_ids(self, title: str) -> None:
    for client_id in self.client_ids:
      checks.check_integer(f'The id of {title}', client_id, 0)
