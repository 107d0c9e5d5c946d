"""CGSV, FedAVE, FedSAC and pFedCK in NumPy, for full batches.

Written from the methods' formulas, without the library: layers are dense and
without activation, gradients are derived by hand, and a full batch makes the
order of the examples irrelevant, so nothing is random. A model is one vector:
for each layer the kernel row by row, then the bias.
"""

import dataclasses

import numpy as np

from tests.algorithms import numpy_reference

# Number of examples in a minibatch over which losses are measured.
_BATCH_SIZE = 64


@dataclasses.dataclass(frozen=True)
class Network:
  """Dense layers of these widths; the first is that of the input."""

  widths: tuple[int, ...]

  @property
  def shapes(self):
    pairs = zip(self.widths[:-1], self.widths[1:], strict=True)
    return [shape for n, m in pairs for shape in ((n, m), (m,))]

  def split(self, vector):
    """The variables."""
    ends = np.cumsum([np.prod(shape) for shape in self.shapes])
    parts = np.split(np.asarray(vector, float), ends[:-1])
    return [p.reshape(s) for p, s in zip(parts, self.shapes, strict=True)]

  def forward(self, vector, x):
    """The inputs of every layer, and the logits."""
    values = [np.asarray(x, float)]
    variables = self.split(vector)
    for kernel, bias in zip(variables[::2], variables[1::2], strict=True):
      values.append(values[-1] @ kernel + bias)
    return values

  def gradient(self, vector, values, slope, hidden_slope=0.0):
    """With respect to the weights, from the slopes of the loss.

    Args:
      vector: The model.
      values: From `forward`.
      slope: The derivative with respect to the logits, [n, classes].
      hidden_slope: The direct derivative with respect to the last layer's
        input.

    Returns:
      The gradient, a vector.
    """
    kernels = self.split(vector)[::2]
    parts = []
    for depth in reversed(range(len(kernels))):
      parts = [(values[depth].T @ slope).ravel(), slope.sum(axis=0), *parts]
      slope = slope @ kernels[depth].T
      if depth == len(kernels) - 1:
        slope = slope + hidden_slope
    return np.concatenate(parts)

  def cross_entropy(self, vector, x, y):
    """Of every example."""
    p = numpy_reference.softmax(self.forward(vector, x)[-1])
    return -np.log(p[np.arange(len(y)), y])

  def accuracy(self, vector, x, y):
    return np.mean(self.forward(vector, x)[-1].argmax(axis=1) == y)

  def train(self, vector, data, *, learning_rate, epochs=1, mask=1.0):
    """Full-batch gradient descent on what `mask` leaves."""
    if not len(data.y):
      return vector
    for _ in range(epochs):
      values = self.forward(vector, data.x)
      slope = cross_entropy_slope(values[-1], data.y)
      gradient = self.gradient(vector, values, slope)
      vector = vector - learning_rate * mask * gradient
    return vector


def cross_entropy_slope(logits, y):
  """Of the mean over the examples, with respect to the logits."""
  return (numpy_reference.softmax(logits) - np.eye(logits.shape[1])[y]) / len(y)


def largest(vector, count):
  """The entries of largest magnitude, of ties the first, 0 elsewhere."""
  # `lexsort` keeps the order of ties.
  kept = np.lexsort([-np.abs(vector)])[: int(count)]
  result = np.zeros_like(vector)
  result[kept] = vector[kept]
  return result


def top(vector, share):
  """The largest magnitudes, `floor(share * size)` of them."""
  return largest(vector, np.floor(share * len(vector)))


def top_layer(network, vector, share):
  """The same for each variable, `ceil(share * size)` of it."""
  return np.concatenate(
    [
      largest(part.ravel(), np.ceil(share * part.size))
      for part in network.split(vector)
    ]
  )


def cosine(x, y):
  return x @ y / max(np.linalg.norm(x) * np.linalg.norm(y), 1e-12)


def divergence(p, q):
  p, q = np.maximum(p, 1e-12), np.maximum(q, 1e-12)
  return np.sum(p * np.log(p / q))


def bounded_updates(updates, gamma):
  """`u_i`, all of length `gamma`, or 0."""
  lengths = np.linalg.norm(updates, axis=1, keepdims=True)
  return gamma * updates / (lengths + 1e-7)


def tanh_shares(reputation, altruism):
  shares = np.tanh(altruism * reputation)
  return shares / shares.max()


def loss_divergence(mine, servers):
  """`KL_i` from two vectors of losses, None if one is too short."""
  length = min(len(mine), len(servers))
  if length < 2:
    return None
  a, b = mine[:length], servers[:length]
  return divergence(a / a.sum(), b / b.sum())


def similarities(divergences):
  """`k_i`; a missing divergence counts as the largest of the others."""
  worst = max((d for d in divergences if d is not None), default=1.0)
  divergences = [worst if d is None else d for d in divergences]
  inverse = 1 / (np.array(divergences) + 1e-12)
  return inverse / inverse.max()


def submodel_reputations(contributions, beta):
  """`r_i`; the best is 100."""
  contributions = np.asarray(contributions)
  return 100 * np.exp(beta * (contributions - contributions.max()))


def neuron_masks(importances, reputations):
  """Bool[clients, neurons]: the least important ones within the budget."""
  order = np.lexsort([importances])
  sums = np.cumsum(importances[order])
  masks = np.zeros((len(reputations), len(importances)), bool)
  for mask, reputation in zip(masks, reputations, strict=True):
    mask[order[: max(1, np.sum(sums <= reputation + 1e-9))]] = True
  return masks


def entrywise_mean(values, masks, old):
  """Over the clients that hold an entry; the old value if there is none."""
  holders = masks.sum(axis=0)
  total = np.sum(values * masks, axis=0)
  return np.where(holders, total / np.maximum(holders, 1), old)


def clusters(updates, number):
  """Average linkage on `1 - cos`, one merge at a time.

  Args:
    updates: [rows, d]; a row of zeros is a cluster of its own.
    number: Of clusters; not below 1.

  Returns:
    A list of lists of rows.
  """
  groups = [[i] for i in range(len(updates)) if np.any(updates[i])]
  alone = [[i] for i in range(len(updates)) if not np.any(updates[i])]
  while len(groups) > number:
    distances = {
      (a, b): np.mean(
        [1 - cosine(updates[i], updates[j]) for i in one for j in groups[b]]
      )
      for a, one in enumerate(groups)
      for b in range(a + 1, len(groups))
    }
    a, b = min(distances, key=distances.get)
    groups[a] = groups[a] + groups.pop(b)
  return groups + alone


def mutual_slopes(values, other, y, kl_weight, feature_weight, temperature=1.0):
  """Slopes of a model's loss in pFedCK, of the logits and of the features.

  Args:
    values: From `forward` of the model.
    other: From `forward` of its teacher.
    y: Labels.
    kl_weight: `a`.
    feature_weight: `b`.
    temperature: `T`.

  Returns:
    Both slopes.
  """
  slope = cross_entropy_slope(values[-1], y)
  # The derivative of KL(q || p) with respect to p's logits / T is p - q.
  gap = numpy_reference.softmax(
    values[-1] / temperature
  ) - numpy_reference.softmax(other[-1] / temperature)
  features = values[-2] - other[-2]
  return (
    slope + kl_weight * gap / (temperature * len(y)),
    feature_weight * 2 * features / features.size,
  )


@dataclasses.dataclass(frozen=True)
class Training:
  """How clients train."""

  network: Network
  learning_rate: float = 0.1
  epochs: int = 1

  def updates(self, starts, clients, masks=None):
    """What clients would add to their weights.

    Args:
      starts: [m, d].
      clients: A list of data.
      masks: [m, d], or None.

    Returns:
      The updates [m, d] and the numbers of examples [m], both 0 where an update
      is not finite.
    """
    masks = np.ones_like(starts) if masks is None else masks
    rows = []
    for start, data, mask in zip(starts, clients, masks, strict=True):
      with np.errstate(invalid='ignore'):  # Data may be infinite.
        trained = self.network.train(
          start,
          data,
          learning_rate=self.learning_rate,
          epochs=self.epochs,
          mask=mask,
        )
      rows.append(trained - start)
    finite = np.isfinite(rows).all(axis=1)
    numbers = finite * np.array([len(data.y) for data in clients], float)
    return np.where(finite[:, np.newaxis], rows, 0.0), numbers


class _Rewarding:
  """A server that adds part of an aggregate to every client's model.

  Attributes:
    weights: w, [d].
    models: The clients' models at the end of a round, [N, d].
    reputations: r, [N].
    shares: The share of the aggregate each got in the last round, [N].
  """

  def __init__(self, training, model, num_clients, original):
    self.weights = np.array(model, float)
    self.models = np.tile(self.weights, (num_clients, 1))
    first = 0.0 if original else 1 / num_clients
    self.reputations = np.full(num_clients, first)
    self.shares = np.zeros(num_clients)
    self._training, self._original = training, original

  def _updates(self, ids, data):
    starts = self.models[ids]
    if not self._original:
      starts = np.tile(self.weights, (len(ids), 1))
    return starts, *self._training.updates(starts, data)

  def _rate(self, ids, score):
    self.reputations[ids] = score
    self.reputations /= self.reputations.sum()
    return self.reputations[ids]

  def _reward(self, ids, updates, numbers, aggregate, shares):
    self.shares[:] = 0.0
    self.shares[ids] = shares
    for i, update, number in zip(ids, updates, numbers, strict=True):
      if self._original:
        part = top_layer(self._training.network, aggregate, self.shares[i])
        self.models[i] += part
        continue
      if number:
        self.models[i] = self.weights + update
      self.models[i] += top(aggregate, self.shares[i])
    self.weights = self.weights + aggregate


class Cgsv(_Rewarding):
  """CGSV."""

  def __init__(
    self,
    training,
    model,
    num_clients,
    *,
    update_length=0.5,
    history_weight=0.95,
    altruism=1.0,
    variant='original',
  ):
    super().__init__(training, model, num_clients, variant == 'original')
    self._length, self._history = update_length, history_weight
    self._altruism = altruism

  def next(self, clients):
    """One round of the clients present, a dictionary from ids to data."""
    ids = np.array(sorted(clients))
    _, updates, numbers = self._updates(ids, [clients[i] for i in ids])
    before = self.reputations[ids]
    factors = numbers > 0
    uploads = updates
    if self._original:
      uploads = bounded_updates(updates, self._length)
      factors = before if before.any() else numbers
    aggregate = factors / factors.sum() @ uploads
    phi = np.array([cosine(upload, aggregate) for upload in uploads])
    if not self._original:
      phi = np.maximum(phi, 0.0)
    score = self._history * before + (1 - self._history) * phi
    reputation = self._rate(ids, np.maximum(score, 1e-3))
    shares = tanh_shares(reputation, self._altruism)
    self._reward(ids, updates, numbers, aggregate, shares)
    return dict(client_id=ids, contribution=phi)


class FedAve(_Rewarding):
  """FedAVE."""

  def __init__(
    self,
    training,
    model,
    num_clients,
    validation,
    *,
    update_length=0.5,
    history_weight=0.9,
    altruism=1.0,
    upload_fraction=0.5,
    download_base=0.3,
    variant='original',
  ):
    super().__init__(training, model, num_clients, variant == 'original')
    self._validation = validation
    self._length, self._history = update_length, history_weight
    self._altruism = altruism
    self._upload, self._base = upload_fraction, download_base

  def next(self, clients):
    """One round of the clients present, a dictionary from ids to data."""
    ids = np.array(sorted(clients))
    data = [clients[i] for i in ids]
    starts, updates, numbers = self._updates(ids, data)
    accuracies = (numbers > 0) * np.array(
      [
        self._training.network.accuracy(start + update, *self._validation)
        for start, update in zip(starts, updates, strict=True)
      ]
    )
    rate = self._rate_original if self._original else self._rate_as_fedakd
    divergences = np.zeros(len(ids))
    if self._original:
      divergences = [
        self._divergence(start, each) if number else None
        for start, each, number in zip(starts, data, numbers, strict=True)
      ]
    uploads, shares = rate(ids, updates, accuracies, divergences)
    aggregate = numbers / numbers.sum() @ uploads
    self._reward(ids, updates, numbers, aggregate, shares)
    return dict(
      client_id=ids, validation_accuracy=accuracies, divergence=divergences
    )

  def _rate_original(self, ids, updates, accuracies, divergences):
    close = similarities(divergences)
    before = self.reputations[ids]
    score = accuracies * close**2
    first = not before.any()
    if not first:
      score = self._history * before + (1 - self._history) * score
    reputation = self._rate(ids, np.maximum(score, 1e-3))
    shares = close * tanh_shares(reputation, self._altruism)
    uploads = bounded_updates(updates, self._length)
    return uploads, 0.0 * shares if first else shares

  def _rate_as_fedakd(self, ids, updates, accuracies, divergences):
    del divergences  # Unused.
    score = self._history * self.reputations[ids]
    reputation = self._rate(ids, score + (1 - self._history) * accuracies)
    earned = (1 - self._base) * np.tanh(self._altruism * reputation)
    uploads = np.array([top(update, self._upload) for update in updates])
    shares = np.clip(self._base + earned, 0.0, 1.0)
    return uploads, shares

  def _divergence(self, model, data):
    return loss_divergence(
      self._batch_losses(model, data.x, data.y),
      self._batch_losses(model, *self._validation),
    )

  def _batch_losses(self, model, x, y):
    losses = self._training.network.cross_entropy(model, x, y)
    cuts = range(_BATCH_SIZE, len(y), _BATCH_SIZE)
    return np.array([np.mean(part) for part in np.split(losses, cuts)])


class FedSac:
  """FedSAC, for a network with one hidden layer.

  Attributes:
    weights: w, [d].
    masks: Bool[N, H], of the next round.
    importances: Those of the last masks, [H].
  """

  def __init__(
    self,
    training,
    model,
    validation,
    contributions,
    *,
    contribution_sharpness=2.0,
    importance_every=10,
    mid_round=15,
    variant='original',
  ):
    self.weights = np.array(model, float)
    self._training, self._validation = training, validation
    self._reputations = submodel_reputations(
      contributions, contribution_sharpness
    )
    self._every, self._mid_round = importance_every, mid_round
    self._original = variant == 'original'
    self._num_rounds = 0
    self._rate()

  @property
  def models(self):
    """`w * M_i`, [N, d]."""
    return self.weights * self.entries(self.masks)

  def entries(self, masks):
    """The masks of all weights, [m, d], from the masks of the neurons."""
    size, hidden, classes = self._training.network.widths
    head = np.ones((len(masks), (hidden + 1) * classes))
    # The kernel, row by row, and the bias have a column for each neuron.
    return np.hstack([np.tile(masks, size + 1), head])

  def next(self, clients):
    """One round of the clients present, a dictionary from ids to data."""
    ids = np.array(sorted(clients))
    masks = self.entries(self.masks[ids])
    starts = np.tile(self.weights, (len(ids), 1))
    if self._original:
      starts *= masks
    updates, numbers = self._training.updates(
      starts, [clients[i] for i in ids], masks
    )
    counted = numbers > 0
    uploads = ((starts + updates) * masks)[counted]
    if self._original:
      self.weights = entrywise_mean(uploads, masks[counted], self.weights)
    else:
      self.weights = uploads.mean(axis=0)
    self._num_rounds += 1
    self._rate()

  def _rate(self):
    """The masks of the next round."""
    clients, neurons = len(self._reputations), self._training.network.widths[1]
    if self._original:
      if self._num_rounds % self._every == 0:
        self.importances = self._importances()
        self.masks = neuron_masks(self.importances, self._reputations)
      return
    self.masks = np.ones((clients, neurons), bool)
    if self._num_rounds == self._mid_round:
      self.importances = self._importances()
      order = np.lexsort([-self.importances])
      for mask, reputation in zip(self.masks, self._reputations, strict=True):
        mask[order[int(np.clip(np.floor(reputation), 1, neurons)) :]] = False

  def _importances(self):
    neurons = self._training.network.widths[1]
    without = self.weights * self.entries(1 - np.eye(neurons))
    rises = np.array([self._loss(model) for model in without])
    rises = np.maximum(0.0, rises - self._loss(self.weights))
    if not rises.any():
      return np.full(neurons, 100 / neurons)
    return 100 * rises / rises.sum()

  def _loss(self, model):
    network = self._training.network
    return np.mean(network.cross_entropy(model, *self._validation))


class PFedCk:
  """pFedCK; the features are the last layer's input.

  Attributes:
    interactions: s_i, [N, d].
    models: p_i, [N, d].
    weights: The mean of the s_i sent in the last round.
    clusters: In the last round, a list of lists of clients.
  """

  def __init__(
    self,
    training,
    model,
    num_clients,
    *,
    knowledge_weight=1.0,
    feature_weight=1.0,
    distillation_temperature=1.0,
    num_clusters=3,
  ):
    self.weights = np.array(model, float)
    self.models = np.tile(self.weights, (num_clients, 1))
    self.interactions = self.models.copy()
    self.clusters = []
    self._training = training
    self._teaching = (
      knowledge_weight,
      feature_weight,
      distillation_temperature,
    )
    self._num_clusters = num_clusters

  def next(self, clients):
    """One round of the clients present, a dictionary from ids to data."""
    ids = np.array(sorted(clients))
    before = self.interactions[ids]
    for i in ids:
      with np.errstate(invalid='ignore'):  # Data may be infinite.
        trained = self._train(self.interactions[i], self.models[i], clients[i])
      if np.isfinite(trained).all():
        self.interactions[i], self.models[i] = trained
    updates = self.interactions[ids] - before
    numbers = updates.any(axis=1) * [len(clients[i].y) for i in ids]
    self.weights = numbers / numbers.sum() @ self.interactions[ids]
    groups = clusters(updates, self._num_clusters)
    for group in groups:
      if numbers[group].any():
        share = numbers[group] / numbers[group].sum()
        self.interactions[ids[group]] = share @ self.interactions[ids[group]]
    self.clusters = [list(ids[group]) for group in groups]

  def _train(self, shared, personal, data):
    network = self._training.network
    if not len(data.y):
      return shared, personal
    for _ in range(self._training.epochs):
      pair = [network.forward(model, data.x) for model in (shared, personal)]
      steps = [
        network.gradient(
          model, own, *mutual_slopes(own, other, data.y, *self._teaching)
        )
        for model, own, other in zip(
          (shared, personal), pair, reversed(pair), strict=True
        )
      ]
      shared = shared - self._training.learning_rate * steps[0]
      personal = personal - self._training.learning_rate * steps[1]
    return shared, personal
