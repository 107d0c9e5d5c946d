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
from tff_fair.client import false_uploads

ModelWeights = tff.learning.models.ModelWeights

Kind = Literal['uniform', 'gaussian', 'zero']
KINDS = get_args(Kind)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FreeRiders(false_uploads.ChosenClients):
  """The clients that are free riders, and their uploads.

  Attributes:
    client_ids: Their ids.
    kind: The values, drawn in each round: 'uniform', in [-bound, bound];
      'gaussian', of standard deviation `bound` and clipped to [-bound, bound];
      or 'zero'.
    bound: Largest magnitude, positive.
  """

  kind: Kind = 'uniform'
  bound: float = 0.01

  def __post_init__(self):
    self._check_ids('a free rider')
    checks.check_choice('kind', self.kind, KINDS)
    checks.check_positive('bound', self.bound)

  def noise(self, like: list[Any], seed: Any) -> list[tf.Tensor]:
    """The noise that a free rider uploads instead of an update.

    Args:
      like: float32 tensors.
      seed: `int32[2]`, the client's seed for the round.

    Returns:
      Tensors of the same shapes.
    """
    return false_uploads.replaced(self.kind, like, seed, self.bound)


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
