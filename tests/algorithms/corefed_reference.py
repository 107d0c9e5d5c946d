"""CoRe-Fed in NumPy, for a network of two layers and full batches.

Mukhtiar, Mahmood and Sheng, "CoRe-Fed: Bridging Collaborative and
Representation Fairness via Federated Embedding Distillation" (AAAI 2026,
https://arxiv.org/abs/2602.00647). Written from the paper's formulas, without
the library. Weights are a list of four arrays: the kernel and the bias of the
first layer, whose output is the embedding, and of the second. A client's memory
is an entry of a dictionary, and the rounds are a list of sets: no ring buffer.
"""

import dataclasses

import numpy as np

_TINY = 1e-12


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


def flatten(weights):
  return np.concatenate([np.ravel(w) for w in weights])


def unflatten(vector, like):
  ends = np.cumsum([np.size(w) for w in like])[:-1]
  return [
    part.reshape(np.shape(w))
    for part, w in zip(np.split(vector, ends), like, strict=True)
  ]


def cosine(a, b):
  return a @ b / max(np.linalg.norm(a) * np.linalg.norm(b), _TINY)


def cosine_gradient(a, b):
  """Of `cosine(a, b)` with respect to `a`; 0 where the cosine is constant."""
  product = np.linalg.norm(a) * np.linalg.norm(b)
  if product <= _TINY:
    return np.zeros_like(a)
  return b / product - cosine(a, b) * a / (a @ a)


def _similarities(z, z_g, others, options):
  """Of the denominator's terms, and the vectors they are with."""
  terms = [z_g, *others] if options.include_positive else list(others)
  return np.array([cosine(z, t) for t in terms]) / options.temperature, terms


def contrastive_loss(z, z_g, others, options):
  """Equation 6: small close to `z_g` and far from the others.

  An empty denominator makes it 0.
  """
  if not len(others):
    return 0.0
  logits, _ = _similarities(z, z_g, others, options)
  log_sum = logits.max() + np.log(np.sum(np.exp(logits - logits.max())))
  return log_sum - cosine(z, z_g) / options.temperature


def contrastive_gradient(z, z_g, others, options):
  """With respect to `z`."""
  if not len(others):
    return np.zeros_like(z)
  logits, terms = _similarities(z, z_g, others, options)
  shares = np.exp(logits - logits.max())
  shares /= shares.sum()
  pushed = sum(
    share * cosine_gradient(z, term)
    for share, term in zip(shares, terms, strict=True)
  )
  return (pushed - cosine_gradient(z, z_g)) / options.temperature


def refined(z, z_g, beta):
  """`r`: the embedding, moved towards its alignment vector."""
  return z + beta * (cosine(z, z_g) * z_g - z)


def features(weights, x, activation):
  """`phi(x)`, float64[n, p]."""
  hidden_kernel, hidden_bias, _, _ = weights
  hidden = x @ hidden_kernel + hidden_bias
  return np.maximum(hidden, 0.0) if activation == 'relu' else hidden


def directions(phi):
  """`phi / ||phi||` by row, and the floored lengths."""
  lengths = np.maximum(np.linalg.norm(phi, axis=1, keepdims=True), _TINY)
  return phi / lengths, lengths


def embedding(weights, x, activation):
  """`z`: the mean direction of the features; a zero vector still counts."""
  return directions(features(weights, x, activation))[0].mean(axis=0)


def aligning_loss(z, target, z_g, others, options):
  """A client's terms besides the cross-entropy; `target`, `r`, is constant."""
  contrast = contrastive_loss(z, z_g, others, options)
  distance = np.sum((z - target) ** 2)
  return (
    options.contrastive_weight * contrast
    + options.distillation_weight * distance
  )


def aligning_gradient(z, z_g, others, options):
  """Of `aligning_loss` with respect to `z`, with the target computed at `z`."""
  contrast = contrastive_gradient(z, z_g, others, options)
  distance = z - refined(z, z_g, options.distillation_rate)
  return (
    options.contrastive_weight * contrast
    + options.distillation_weight * 2 * distance
  )


def cross_entropy(weights, x, y, activation):
  logits = features(weights, x, activation) @ weights[2] + weights[3]
  logits = logits - logits.max(axis=1, keepdims=True)
  log_sum = np.log(np.exp(logits).sum(axis=1))
  return np.mean(log_sum - logits[np.arange(len(y)), y])


def gradient(weights, x, y, received, options):
  """Of the local loss, in the form of weights.

  Args:
    weights: The model.
    x: Inputs, float64[n, features].
    y: Labels, int[n].
    received: `z_g` and the others' embeddings, or None for cross-entropy alone.
    options: Options.
  """
  phi = features(weights, x, options.activation)
  logits = phi @ weights[2] + weights[3]
  p = np.exp(logits - logits.max(axis=1, keepdims=True))
  p /= p.sum(axis=1, keepdims=True)
  d_logits = (p - np.eye(p.shape[1])[y]) / len(y)
  d_phi = d_logits @ weights[2].T
  if received is not None:
    unit, lengths = directions(phi)
    d_z = aligning_gradient(unit.mean(axis=0), *received, options)
    # Only what is orthogonal to a direction turns it.
    d_phi = d_phi + (d_z - (unit @ d_z)[:, np.newaxis] * unit) / (
      lengths * len(y)
    )
  d_hidden = d_phi * (phi > 0) if options.activation == 'relu' else d_phi
  return [
    x.T @ d_hidden,
    d_hidden.sum(axis=0),
    phi.T @ d_logits,
    d_logits.sum(axis=0),
  ]


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
    fresh = sorted(i for i in uploads if np.isfinite(_joined(uploads[i])).all())
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
      tau=tau,
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
    return cosine(r, self.global_embedding)

  def _shares(self, frequency, alignment):
    """`u_i`."""
    trust = 1 / (1 + np.exp(-self._options.sharpness * alignment))
    return frequency**-self._options.fairness_exponent * trust


def _joined(upload):
  return np.concatenate(upload)


class CoreFed:
  """The server and its clients."""

  def __init__(self, weights, **options):
    self.options = Options(**options)
    self.server = Server(flatten(weights), self.options)
    self._shapes = weights

  def weights(self):
    return unflatten(self.server.weights, self._shapes)

  def next(self, clients):
    """One round of `clients`, which maps ids to data."""
    options = self.options
    rate = options.learning_rate * options.decay ** len(self.server.cohorts)
    with np.errstate(invalid='ignore'):  # Data may be infinite.
      uploads = {i: self._work(i, data, rate) for i, data in clients.items()}
    sizes = None
    if options.variant == 'refed':
      sizes = {i: len(data.y) for i, data in clients.items()}
    return self.server.next(uploads, rate, sizes)

  def _work(self, i, data, learning_rate):
    """A client's model and embedding."""
    options = self.options
    weights, received = self.weights(), self._received(i)
    sent = embedding(weights, data.x, options.activation)
    for _ in range(options.local_epochs):
      slope = gradient(weights, data.x, data.y, received, options)
      weights = [
        w - learning_rate * s for w, s in zip(weights, slope, strict=True)
      ]
    if options.embedding_of == 'local':
      sent = embedding(weights, data.x, options.activation)
    return flatten(weights), sent

  def _received(self, i):
    """`z_g` and the others' embeddings, if there is something to send."""
    if self.options.alignment == 'server':
      return None
    if self.server.global_embedding is None:
      return None
    others = [z for j, z in self.server.embeddings.items() if j != i]
    return self.server.global_embedding, others
