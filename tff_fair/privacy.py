"""How private a run is, in numbers: epsilon after each round.

The private mean (`aggregators.private_mean_factory`) clips the update of each
client of a round to the norm C, and adds Gaussian noise of standard deviation
`z C` to their sum; z is the noise multiplier. Neighbouring data differ in all
data of one client: it is replaced by another one, so the number of clients N
and that of a round m are public (`REPLACE_ONE`). Nothing here imports
TensorFlow.
"""

import dataclasses
import functools
from typing import Annotated

import dp_accounting
from dp_accounting.rdp import rdp_privacy_accountant
import numpy as np

from tff_fair import annotations
from tff_fair.annotations import Limits

# One client moves the clipped sum by up to 2 C: it may send the opposite of
# what another one in its place sends. Where it is added or removed, by C.
_SENSITIVITY_IN_CLIPS = 2
_DELTA_EXPONENT = 1.1
# Rényi orders: close to each other where the best one usually is.
_ORDERS = (
  *np.arange(11, 110) / 10,
  *range(11, 64),
  *(72, 80, 96, 112, 128, 160, 192, 256, 384, 512, 1024),
)
# The noise of the number of clipped clients, as a share of the round's clients.
_COUNT_NOISE = 0.05


@dataclasses.dataclass(frozen=True, kw_only=True)
class Accounting:
  """The privacy of training whose rounds each release one private mean.

  A round draws m of N clients without replacement, uniformly, anew each time
  and in secret. Its Rényi divergence of order a is at most that of the
  Gaussian mechanism, whose noise is z / 2 times the sensitivity 2 C
  (Mironov, "Rényi Differential Privacy", CSF 2017, corollary 3),

      D_a = a / (2 (z / 2)^2) = 2 a / z^2,

  and, for m < N, at most the bound of Wang, Balle and Kasiviswanathan,
  "Subsampled Rényi Differential Privacy and Analytical Moments Accountant"
  (AISTATS 2019, https://arxiv.org/abs/1808.00087), theorem 27, which
  `dp_accounting` computes. We take the smaller one at each order: the first
  holds for any sampling, and for m near N the second exceeds it. The
  divergences of rounds add up, and epsilon follows by proposition 12 of
  Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy"
  (NeurIPS 2020, https://arxiv.org/abs/2004.00010).

  Attributes:
    noise_multiplier: z, of the whole round: with adaptive clipping that of the
      sum and the number of clipped clients together.
    num_clients: N, the clients that rounds draw from.
    clients_per_round: m.

  Raises:
    TypeError: If a number is of the wrong kind.
    ValueError: If it is out of range.
  """

  noise_multiplier: Annotated[float, Limits(above=0)]
  num_clients: Annotated[int, Limits(minimum=2)]
  clients_per_round: Annotated[int, Limits(minimum=1)]

  def __post_init__(self) -> None:
    """Checks the numbers."""
    for field in dataclasses.fields(self):
      value = getattr(self, field.name)
      annotations.read(field.type).check(field.name, value)
    if self.clients_per_round > self.num_clients:
      raise ValueError(
        f'clients_per_round must be at most num_clients={self.num_clients},'
        f' found {self.clients_per_round}.'
      )

  @property
  def delta(self) -> float:
    """The delta for which epsilon holds, `N^-1.1`: below one in N clients."""
    return self.num_clients**-_DELTA_EXPONENT

  @property
  def is_sampled(self) -> bool:
    """Whether a round draws some of the clients, and does not take all."""
    return self.clients_per_round < self.num_clients

  def epsilon(self, num_rounds: int, delta: float | None = None) -> float:
    """The epsilon of the first rounds together.

    Args:
      num_rounds: Their number.
      delta: In place of the property.

    Returns:
      Epsilon; 0 without rounds.
    """
    if not num_rounds:
      return 0.0
    rdp = num_rounds * self._rdp_of_a_round
    delta = self.delta if delta is None else delta
    found, _ = rdp_privacy_accountant.compute_epsilon(_ORDERS, rdp, delta)
    return float(found)

  @functools.cached_property
  def _rdp_of_a_round(self) -> np.ndarray:
    """The bound of the Rényi divergence at each order."""
    # The accountant takes noise by sensitivity: it does not know the factor 2.
    event = dp_accounting.GaussianDpEvent(
      self.noise_multiplier / _SENSITIVITY_IN_CLIPS
    )
    rdp = _rdp(event)
    if self.is_sampled:
      sampled = dp_accounting.SampledWithoutReplacementDpEvent(
        self.num_clients, self.clients_per_round, event
      )
      rdp = np.minimum(rdp, _rdp(sampled))
    return rdp


def split_noise(
  noise_multiplier: float, clients_per_round: int
) -> tuple[float, float]:
  """The two noises of adaptive clipping that together are as one.

  A round then releases two sums: of the clipped updates, with noise of
  multiplier `z_u`, and of `b_i - 1/2`, where `b_i` says whether the update of
  client i is within the clipping norm, with noise of deviation s. The second
  is bounded by 1/2, so its multiplier is `2 s`, and

      z^-2 = z_u^-2 + (2 s)^-2

  is theorem 1 of Andrew, Thakkar, McMahan and Ramaswamy, "Differentially
  Private Learning with Adaptive Clipping" (NeurIPS 2021,
  https://arxiv.org/abs/1905.03871), with `s = 0.05 m` as there. Where a client
  is replaced, both sensitivities double, and the equation stays.

  Args:
    noise_multiplier: z.
    clients_per_round: m.

  Returns:
    `z_u`, which is above z, and s.

  Raises:
    ValueError: If z is not below 0.1 m: then no `z_u` is large enough.
  """
  deviation = _COUNT_NOISE * clients_per_round
  if noise_multiplier >= 2 * deviation:
    raise ValueError(
      f'noise_multiplier must be below {2 * deviation:g}, a tenth of the'
      f' {clients_per_round} clients of a round, for adaptive clipping, whose'
      ' count of clipped clients would need more noise than it has, found'
      f' {noise_multiplier:g}.'
    )
  of_updates = (noise_multiplier**-2 - (2 * deviation) ** -2) ** -0.5
  return of_updates, deviation


def _rdp(event) -> np.ndarray:
  """The Rényi divergences of an event at each order."""
  accountant = rdp_privacy_accountant.RdpAccountant(
    _ORDERS, dp_accounting.NeighboringRelation.REPLACE_ONE
  )
  return accountant.compose(event).rdp
