"""Free riders: clients that upload noise to receive a model in return.

Lyu, Xu, Wang and Yu, "Collaborative Fairness in Federated Learning" (2020),
section 4: a free rider has no data and uploads random values.
"""

import collections
from collections.abc import Callable
import dataclasses
from typing import Any, Literal, get_args

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair.client import client_data
from tff_fair.client import client_work

ModelWeights = tff.learning.models.ModelWeights

Kind = Literal['uniform', 'gaussian', 'zero']
KINDS = get_args(Kind)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FreeRiders:
  """The clients that are free riders, and their uploads.

  Attributes:
    client_ids: Their ids.
    kind: The values, drawn in each round: 'uniform', in [-bound, bound];
      'gaussian', of standard deviation `bound` and clipped to [-bound, bound];
      or 'zero'.
    bound: Largest magnitude, positive.
  """

  client_ids: tuple[int, ...]
  kind: Kind = 'uniform'
  bound: float = 0.01

  def __post_init__(self):
    for client_id in self.client_ids:
      checks.check_integer('The id of a free rider', client_id, 0)
    checks.check_choice('kind', self.kind, KINDS)
    checks.check_positive('bound', self.bound)

  def include(self, client_id: Any) -> tf.Tensor:
    """Returns whether a client is a free rider.

    Args:
      client_id: int32 scalar.

    Returns:
      bool scalar.
    """
    ids = tf.constant(self.client_ids, tf.int32)
    return tf.reduce_any(tf.equal(ids, client_id))

  def noise(self, like: list[Any], seed: Any) -> list[tf.Tensor]:
    """The noise that a free rider uploads instead of an update.

    Args:
      like: float32 tensors.
      seed: `int32[2]`, the client's seed for the round.

    Returns:
      Tensors of the same shapes.
    """
    fold_in = tf.random.experimental.stateless_fold_in
    return [self._draw(t.shape, fold_in(seed, i)) for i, t in enumerate(like)]

  def _draw(self, shape, seed) -> tf.Tensor:
    if self.kind == 'zero':
      return tf.zeros(shape)
    if self.kind == 'uniform':
      return tf.random.stateless_uniform(shape, seed, -self.bound, self.bound)
    noise = tf.random.stateless_normal(shape, seed, stddev=self.bound)
    return tf.clip_by_value(noise, -self.bound, self.bound)


def with_free_riders(
  client_update: client_work.ClientUpdate,
  free_riders: FreeRiders,
  compress: Callable[[list[Any]], list[Any]] = lambda update: update,
) -> client_work.ClientUpdate:
  """Turns some clients of any method into free riders.

  A free rider sends the weight that the method gives it and noise as its
  update, leaves its row of the table unchanged, and counts as a client that
  takes part although it has no data.

  Args:
    client_update: The method's client update, as for `build_client_work`.
    free_riders: Which clients are free riders and what they upload.
    compress: The method's compression of the trainable part of an update.

  Returns:
    A client update that differs from `client_update` for free riders only.
  """

  def update_or_noise(weights, row, examples, seed, learning_rate):
    output = client_update(weights, row, examples, seed, learning_rate)
    is_free_rider = free_riders.include(examples['key'])
    noise = ModelWeights(
      compress(free_riders.noise(output.update.trainable, seed)),
      [tf.zeros_like(t) for t in output.update.non_trainable],
    )

    def choose(if_free_rider, otherwise):
      return tf.nest.map_structure(
        lambda a, b: tf.where(is_free_rider, a, b), if_free_rider, otherwise
      )

    active = output.active
    if active is None:
      active = client_data.has_examples(examples)
    return output._replace(
      update=choose(noise, output.update),
      row=choose(row, output.row),
      report=collections.OrderedDict(
        output.report, free_rider=tf.cast(is_free_rider, tf.int32)
      ),
      active=is_free_rider | active,
    )

  return update_or_noise
