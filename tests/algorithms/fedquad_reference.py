"""FedQuad and its baselines in NumPy, for full batches.

Written from the formulas of FedQuad, SupConFL, TripletFL, QuadrupletFL, MOON
and FedProx, without the library, in float64, with gradients derived by hand.
The encoder, whose output is the embedding, and the classifier on top are
linear: weights are a list of four arrays, the encoder's kernel and bias and the
classifier's. Nothing is drawn: the positive and the negatives of an example are
the next ones of a suitable class.
"""

import dataclasses

import numpy as np

from tests.algorithms import corefed_reference

_TINY = 1e-12
_LOSS_NAMES = {
  'fedquad': 'quadruplet_loss',
  'triplet_fl': 'triplet_loss',
  'quadruplet_fl': 'quadruplet_loss',
  'supcon_fl': 'contrastive_loss',
  'moon': 'contrastive_loss',
}


@dataclasses.dataclass
class Options:
  """A method, and what its builder's options mean.

  `weight` is the factor of the term that the method adds to the cross-entropy.
  The triplet loss uses the first of the `margins`.
  """

  method: str
  learning_rate: float = 0.1
  local_epochs: int = 1
  weight: float = 0.5
  margins: tuple[float, float] = (1.0, 0.5)
  squared: bool = False
  temperature: float = 0.5
  use_ce: bool = True

  def __post_init__(self):
    if self.method == 'quadruplet_fl':
      self.squared = True


def next_quadruplet(y, anchor):
  """The positive and the two negatives of one anchor.

  Args:
    y: Labels, int[n].
    anchor: An index.

  Returns:
    For each the next index, starting again at the end; None if there is none.
  """
  after = [(anchor + k) % len(y) for k in range(1, len(y))]
  positive = [j for j in after if y[j] == y[anchor]]
  first = [j for j in after if y[j] != y[anchor]]
  second = [j for j in first if y[j] != y[first[0]]]
  return [found[0] if found else None for found in (positive, first, second)]


def shares(y):
  """`v1_share` and `v2_share`."""
  v1, v2 = [], []
  for anchor in range(len(y)):
    positive, first, second = next_quadruplet(y, anchor)
    v1.append(positive is not None and first is not None)
    v2.append(v1[-1] and second is not None)
  return np.mean(v1), np.mean(v2)


def distance(u, v, squared):
  square = np.sum((u - v) ** 2)
  return square if squared else np.sqrt(max(square, _TINY))


def distance_gradient(u, v, squared):
  """With respect to `u`; that with respect to `v` is its negative."""
  if squared:
    return 2 * (u - v)
  length = np.linalg.norm(u - v)
  return (u - v) / length if length**2 > _TINY else np.zeros_like(u)


def _hinges(y, options):
  """All `(near, far, margin)` of `[d(near) - d(far) + margin]_+`.

  A pair is two indices.
  """
  m1, m2 = options.margins
  for a in range(len(y)):
    p, n1, n2 = next_quadruplet(y, a)
    if p is None or n1 is None:
      continue
    yield (a, p), (a, n1), m1
    if n2 is not None and options.method != 'triplet_fl':
      yield (a, p), (n1 if options.method == 'quadruplet_fl' else a, n2), m2


def hinge_loss(z, y, options):
  """The mean over anchors, and its gradient with respect to embeddings `z`."""
  loss, slope = 0.0, np.zeros_like(z)
  for near, far, margin in _hinges(y, options):
    to_near, to_far = [
      distance(z[u], z[v], options.squared) for u, v in (near, far)
    ]
    if to_near - to_far + margin <= 0:
      continue
    loss += to_near - to_far + margin
    for (u, v), sign in ((near, 1), (far, -1)):
      turn = sign * distance_gradient(z[u], z[v], options.squared)
      slope[u] += turn
      slope[v] -= turn
  return loss / len(y), slope / len(y)


def supervised_contrastive_loss(z, y, temperature):
  """The mean over anchors with a positive, and its gradient."""
  lengths = np.maximum(np.linalg.norm(z, axis=1, keepdims=True), _TINY)
  unit = z / lengths
  similarity = unit @ unit.T / temperature
  losses, slope = [], np.zeros_like(similarity)
  for i in range(len(y)):
    others = np.arange(len(y)) != i
    positive = others & (y == y[i])
    if not positive.any():
      continue
    shifted = np.exp(similarity[i] - similarity[i][others].max()) * others
    log_sum = np.log(shifted.sum()) + similarity[i][others].max()
    losses.append(log_sum - similarity[i][positive].mean())
    slope[i] = shifted / shifted.sum() - positive / positive.sum()
  if not losses:
    return 0.0, np.zeros_like(z)
  slope /= len(losses) * temperature
  d_unit = slope @ unit + slope.T @ unit
  # Only what is orthogonal to a direction turns it.
  along = np.sum(d_unit * unit, axis=1, keepdims=True)
  return np.mean(losses), (d_unit - along * unit) / lengths


def model_contrastive_loss(z, received, previous, temperature):
  """The mean over examples, and its gradient; 0 if `previous` is None."""
  loss, slope = 0.0, np.zeros_like(z)
  if previous is None:
    return loss, slope
  for i, (mine, theirs, old) in enumerate(
    zip(z, received, previous, strict=True)
  ):
    s_g, s_p = [
      corefed_reference.cosine(mine, other) for other in (theirs, old)
    ]
    gap = (s_p - s_g) / temperature
    loss += np.log1p(np.exp(gap))
    away = corefed_reference.cosine_gradient(mine, old)
    to = corefed_reference.cosine_gradient(mine, theirs)
    slope[i] = (away - to) / temperature / (1 + np.exp(-gap))
  return loss / len(z), slope / len(z)


def embeddings(weights, x):
  return x @ weights[0] + weights[1]


def cross_entropy(logits, y):
  """The mean, its gradient with respect to the logits, and the accuracy."""
  p = np.exp(logits - logits.max(axis=1, keepdims=True))
  p /= p.sum(axis=1, keepdims=True)
  rows = np.arange(len(y))
  slope = p.copy()
  slope[rows, y] -= 1
  hits = logits.argmax(axis=1) == y
  return -np.mean(np.log(p[rows, y])), slope / len(y), hits.mean()


def local_loss(weights, data, options, received, previous=None):
  """The local loss on all of a client's data.

  Args:
    weights: The model.
    data: The client's.
    options: Options.
    received: The model that the round began with.
    previous: For MOON the client's last model, or None.

  Returns:
    A dictionary of the loss and the metrics, and the gradient of the loss, a
    list like the weights.
  """
  z, y = embeddings(weights, data.x), data.y
  entropy, d_logits, accuracy = cross_entropy(z @ weights[2] + weights[3], y)
  metrics = dict(loss=entropy, accuracy=accuracy)
  if not options.use_ce:
    metrics['loss'], d_logits = 0.0, np.zeros_like(d_logits)
  d_z = d_logits @ weights[2].T
  if options.method != 'fed_prox':
    added, d_added = _metric_loss(z, data, options, received, previous)
    d_z = d_z + options.weight * d_added
    metrics['loss'] += options.weight * added
    metrics.update(
      {'cross_entropy': entropy, _LOSS_NAMES[options.method]: added}
    )
  if options.method in ('fedquad', 'triplet_fl', 'quadruplet_fl'):
    metrics['v1_share'], metrics['v2_share'] = shares(y)
  slope = [
    data.x.T @ d_z,
    d_z.sum(axis=0),
    z.T @ d_logits,
    d_logits.sum(axis=0),
  ]
  if options.method == 'fed_prox':
    moved = [w - r for w, r in zip(weights, received, strict=True)]
    squares = sum(np.sum(m**2) for m in moved)
    metrics['loss'] += options.weight / 2 * squares
    slope = [s + options.weight * m for s, m in zip(slope, moved, strict=True)]
  return metrics, slope


def _metric_loss(z, data, options, received, previous):
  if options.method == 'supcon_fl':
    return supervised_contrastive_loss(z, data.y, options.temperature)
  if options.method == 'moon':
    of_received = embeddings(received, data.x)
    of_previous = None if previous is None else embeddings(previous, data.x)
    return model_contrastive_loss(
      z, of_received, of_previous, options.temperature
    )
  return hinge_loss(z, data.y, options)


def train(received, data, options, previous=None):
  """A client's model after its epochs, and the means of its metrics."""
  weights, found = received, []
  for _ in range(options.local_epochs):
    metrics, slope = local_loss(weights, data, options, received, previous)
    found.append(metrics)
    weights = [
      w - options.learning_rate * s for w, s in zip(weights, slope, strict=True)
    ]
  return weights, {k: np.mean([m[k] for m in found]) for k in found[0]}


class Federation:
  """The server and its clients.

  Attributes:
    weights: The global model.
    previous: The last models of MOON's clients by id.
  """

  def __init__(self, weights, method, **options):
    self.weights = [np.asarray(w, np.float64) for w in weights]
    self.previous = {}
    self.options = Options(method, **options)

  def next(self, clients):
    """One round of `clients`, which maps ids to data.

    Returns:
      A dictionary of the metrics, means over examples.
    """
    models, sizes, metrics = [], [], []
    for i, data in clients.items():
      if not len(data.y) or not np.isfinite(data.x).all():
        continue
      model, found = train(
        self.weights, data, self.options, self.previous.get(i)
      )
      self.previous[i] = model
      models.append(model)
      sizes.append(len(data.y))
      metrics.append(found)
    self.weights = [
      np.average(rows, axis=0, weights=sizes)
      for rows in zip(*models, strict=True)
    ]
    return {
      name: np.average([m[name] for m in metrics], weights=sizes)
      for name in metrics[0]
    }
