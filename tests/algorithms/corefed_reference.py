"""CoRe-Fed's server in float64, without the library.

Mukhtiar, Mahmood and Sheng, "CoRe-Fed: Bridging Collaborative and
Representation Fairness via Federated Embedding Distillation" (AAAI 2026,
https://arxiv.org/abs/2602.00647). A client's memory is an entry of a
dictionary, and the rounds are a list of sets: no ring buffer.
"""

import dataclasses

import numpy as np
import tensorflow as tf

from tests.algorithms import reference


@dataclasses.dataclass
class Options:
  """What the builder's options of the same names mean; `decay` is by round."""

  learning_rate: float = 0.1
  decay: float = 1.0
  local_epochs: int = 1
  activation: str = 'relu'
  variant: str = 'corefed'
  alignment: str = 'server'
  gradient_reuse: bool = True
  global_embedding: str = 'mean'
  embedding_of: str = 'local'
  include_positive: bool = False
  fairness_exponent: float = 0.5
  sharpness: float = 2.0
  distillation_rate: float = 0.5
  temperature: float = 0.07
  contrastive_weight: float = 0.1
  distillation_weight: float = 0.1

  def __post_init__(self):
    if self.variant == 'cofed':  # No distillation.
      self.distillation_rate = 0.0


def contrastive_loss(z, z_g, others, options):
  """Equation 6: small close to `z_g` and far from the others.

  An empty denominator makes it 0.
  """
  if not len(others):
    return 0.0
  terms = [z_g, *others] if options.include_positive else others
  logits = [reference.cosine(z, t) / options.temperature for t in terms]
  close = reference.cosine(z, z_g) / options.temperature
  return tf.reduce_logsumexp(logits) - close


def refined(z, z_g, beta):
  """`r`: the embedding, moved towards its alignment vector."""
  return z + beta * (reference.cosine(z, z_g) * z_g - z)


class Server:
  """The server's memory and its rule.

  Attributes:
    weights: `w`, float64[d].
    updates: `g_i` by id.
    embeddings: `z_i` by id.
    last_round: `t_i` by id, from 1.
    cohorts: `S_1, S_2, ...`.
    global_embedding: The last `z_g`, or None.
  """

  def __init__(self, weights, options):
    self.weights = np.asarray(weights, np.float64)
    self.updates, self.embeddings, self.last_round = {}, {}, {}
    self.cohorts = []
    self.global_embedding = None
    self._options = options

  def next(self, uploads, learning_rate=1.0, sizes=None):
    """One round.

    Args:
      uploads: `(w_i, z_i)` by id, of the clients present.
      learning_rate: `lr_t`.
      sizes: `n_i` by id, the weights of the variant without fairness.

    Returns:
      A dictionary of measurements, vectors by client of the active set; None if
      that is empty.
    """
    fresh = sorted(
      i for i in uploads if np.isfinite(np.concatenate(uploads[i])).all()
    )
    self.cohorts.append(set(fresh))
    if not fresh:
      return None
    for i in fresh:
      model, self.embeddings[i] = uploads[i]
      self.updates[i] = (self.weights - model) / learning_rate
      self.last_round[i] = len(self.cohorts)
    z = [self.embeddings[i] for i in fresh]
    self.global_embedding = np.mean(z, axis=0)
    if self._options.global_embedding == 'first':
      self.global_embedding = z[0]  # `fresh` is sorted.
    tau, active = self._active()
    frequency = np.array([self._frequency(i, tau) for i in active])
    alignment = np.array([self._alignment(i) for i in active])
    weight = self._shares(frequency, alignment)
    if sizes is not None:
      active, weight = fresh, np.array([sizes[i] for i in fresh], float)
    weight = weight / weight.sum()
    for i, share in zip(active, weight, strict=True):
      self.weights = self.weights - learning_rate * share * self.updates[i]
    losses = [
      contrastive_loss(
        z[i], self.global_embedding, z[:i] + z[i + 1 :], self._options
      )
      for i in range(len(z))
    ]
    return dict(
      window=tau,
      contrastive_loss=np.mean(losses),
      num_stale=len(active) - len(fresh),
      client_id=active,
      frequency=frequency,
      alignment=alignment,
      weight=weight,
      stale=[i not in fresh for i in active],
    )

  def _active(self):
    """`tau` and `A_t`."""
    present = self.cohorts[-1]
    tau = max(1, len(set.union(*self.cohorts)) // len(present))
    if not self._options.gradient_reuse:
      return tau, sorted(present)
    now = len(self.cohorts)
    return tau, sorted(
      i for i, last in self.last_round.items() if now - last <= tau
    )

  def _frequency(self, i, tau):
    """`f_i`: rounds of the window with the client, at least one, over tau."""
    count = sum(i in cohort for cohort in self.cohorts[-tau:])
    return max(1, count) / tau

  def _alignment(self, i):
    """`rho_i`."""
    r = refined(
      self.embeddings[i], self.global_embedding, self._options.distillation_rate
    )
    return float(reference.cosine(r, self.global_embedding))

  def _shares(self, frequency, alignment):
    """`u_i`."""
    trust = 1 / (1 + np.exp(-self._options.sharpness * alignment))
    return frequency**-self._options.fairness_exponent * trust
