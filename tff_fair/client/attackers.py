"""Attackers: clients with data that send what harms the model."""

import collections
import dataclasses
from typing import Any, Literal, get_args

import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair.client import client_work
from tff_fair.client import false_uploads

ModelWeights = tff.learning.models.ModelWeights

Attack = Literal['label_flip', 'sign_flip', 'scaled_update', 'gaussian_noise']
ATTACKS = get_args(Attack)
"""All kinds of attack."""

STRENGTHS = {'sign_flip': 1.0, 'scaled_update': 10.0, 'gaussian_noise': 1.0}
"""Attack -> its default strength; there is none of `label_flip`."""

# Of the noise, apart from the draws of the client's training.
_STREAM = 2**31 - 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attackers(false_uploads.ChosenClients):
  """The clients that are attackers, and their attack.

  An attacker has data, and computes its update u as the method says. With the
  strength s, its attack is

  ================ ========================================================
  `label_flip`     it trains on the labels C - 1 - y in place of y, of C
                   classes (with an odd C one class stays), in its training
                   and holdout part, and sends the update of that
  `sign_flip`      it sends -s u
  `scaled_update`  it sends s u
  `gaussian_noise` it sends values of the normal distribution of mean 0 and
                   standard deviation s, drawn in each round, in place of u
  ================ ========================================================

  u are the trainable weights; batch-norm statistics, whose variance would be
  negative, stay as they are.

  Attributes:
    client_ids: Their ids, at least one.
    kind: The attack.
    strength: s, positive; None for that of `STRENGTHS`. `label_flip` has none.
  """

  kind: Attack
  strength: float | None = None

  def __post_init__(self):
    self._check_ids('an attacker')
    if not self.client_ids:
      raise ValueError('client_ids must name an attacker, found none.')
    checks.check_choice('kind', self.kind, ATTACKS)
    if self.strength is None:
      return
    checks.check_positive('strength', self.strength)
    if self.kind not in STRENGTHS:
      raise ValueError(
        f'strength must be None with {self.kind!r}, which has none, found'
        f' {self.strength}.'
      )

  @property
  def size(self) -> float | None:
    """The strength, or the default of the attack."""
    if self.strength is None:
      return STRENGTHS.get(self.kind)
    return self.strength

  def poisoned(self, examples: Any, num_classes: int) -> Any:
    """A client's examples as it trains on them.

    Args:
      examples: `OrderedDict(key, train[, holdout])`, see `build_client_work`.
      num_classes: C.

    Returns:
      The same structure.
    """
    if self.kind != 'label_flip':
      return examples
    is_attacker = self.include(examples['key'])

    def flipped(part):
      labels = part['y']
      labels = tf.where(is_attacker, num_classes - 1 - labels, labels)
      return collections.OrderedDict(part, y=labels)

    return collections.OrderedDict(
      (name, part if name == 'key' else flipped(part))
      for name, part in examples.items()
    )

  def upload(self, update: list[Any], seed: Any) -> list[tf.Tensor]:
    """Returns the update that an attacker sends.

    Args:
      update: u, float32 tensors.
      seed: `int32[2]`, the client's seed for the round.

    Returns:
      float32 tensors of the same shapes.
    """
    if self.size is None:  # With flipped labels, the update has the attack.
      return update
    own = tf.random.experimental.stateless_fold_in(seed, _STREAM)
    return false_uploads.replaced(self.kind, update, own, self.size)


def with_attackers(
  client_update: client_work.ClientUpdate,
  attackers: Attackers,
  num_classes: int,
) -> client_work.ClientUpdate:
  """Turns some clients of any method into attackers.

  The attack is on the update alone. What else a client sends (its weight, a
  loss, an accuracy, an embedding) and its row of the client table, which with
  SCAFFOLD, FedDC and pFedCK is made of its update, are those of a client that
  follows the protocol; with `label_flip` they are of the flipped labels.

  The attack comes after what a client does to its own update, such as CFFL's
  clipping, since an attacker is not bound by that. It comes before what the
  server can check of each update that it receives: `build_client_work` drops an
  update that is not finite, and scales one beyond `max_update_norm` down.

  Args:
    client_update: The method's client update, as for `build_client_work`.
    attackers: Which clients are attackers and what they send.
    num_classes: Number of classes.

  Returns:
    A client update that differs from `client_update` for attackers only. The
    report of each client has `attacker`, 1 or 0.
  """

  def update_or_attack(weights, row, examples, seed, learning_rate, **shared):
    own = attackers.poisoned(examples, num_classes)
    output = client_update(weights, row, own, seed, learning_rate, **shared)
    is_attacker = attackers.include(examples['key'])
    sent = [
      tf.where(is_attacker, attack, honest)
      for attack, honest in zip(
        attackers.upload(output.update.trainable, seed),
        output.update.trainable,
        strict=True,
      )
    ]
    return output._replace(
      update=ModelWeights(sent, output.update.non_trainable),
      report=collections.OrderedDict(
        output.report, attacker=tf.cast(is_attacker, tf.int32)
      ),
    )

  return update_or_attack
