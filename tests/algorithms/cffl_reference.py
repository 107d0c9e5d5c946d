"""CFFL in NumPy, for a linear model and full batches.

Lyu, Xu, Wang and Yu, "Collaborative Fairness in Federated Learning" (2020,
https://arxiv.org/abs/2008.12161). Written from the paper's formulas, without
the library. A model is one vector: the kernel row by row, then the bias.
"""

import dataclasses

import numpy as np

from tests.algorithms import reference


def clip(update, value, mode='value'):
  if mode == 'norm':
    return update * min(1.0, value / max(np.linalg.norm(update), 1e-12))
  return np.clip(update, -value, value)


def top(vector, count, ties='index', unclipped=0.0):
  """The `count` entries of largest magnitude, 0 elsewhere."""
  found = reference.largest(
    vector, count, unclipped if ties == 'preclip' else 0.0
  )
  if ties == 'keep' and count:
    found = vector * (np.abs(vector) >= np.abs(found[found != 0]).min())
  return found


@dataclasses.dataclass(frozen=True)
class Options:
  """What the builder's options of the same names mean; `decay` is by round."""

  learning_rate: float = 0.1
  decay: float = 1.0
  local_epochs: int = 1
  scenario: str = 'size'
  upload_rate: float = 1.0
  pretrain: bool = False
  pretrain_epochs: int = 5
  pretrain_learning_rate: float | None = None
  punishment_factor: float = 5.0
  history_weight: float = 0.5
  clip_value: float = 0.01
  clip_mode: str = 'value'
  threshold_absolute: float | None = None
  agg_norm: str = 'paper'
  own_share: str = 'paper'
  normalize_before_mixing: bool = False
  isolation: str = 'once'
  after_isolation: str = 'frozen'
  ties: str = 'index'


def aggregation_weights(amounts, options):
  """`lambda_j`."""
  paper = {'size': 'sum', 'class': 'max'}[options.scenario]
  norm = paper if options.agg_norm == 'paper' else options.agg_norm
  return amounts / {'sum': np.sum, 'max': np.max}[norm](amounts)


def reputations(accuracy, previous, options):
  """Over reputable participants; `previous` is NaN in their first round."""
  total = np.sum(accuracy)
  uniform = np.full(len(accuracy), 1 / len(accuracy))
  score = np.sinh(
    options.punishment_factor * (accuracy / total if total else uniform)
  )
  if options.normalize_before_mixing:
    score = score / score.sum()
  if not np.isnan(previous).all():  # Otherwise it is the first round of all.
    history = options.history_weight
    previous = np.where(np.isnan(previous), uniform, previous)
    score = history * previous + (1 - history) * score
  return score / score.sum()


def threshold(num_reputable, options):
  if options.threshold_absolute is not None:
    return options.threshold_absolute
  return {'size': 1 / 3, 'class': 1 / 6}[options.scenario] / num_reputable


def isolate(reputation, options):
  """Returns who stays, and the reputations normalised over them."""
  stays = np.ones(len(reputation), bool)
  while True:
    bound = threshold(stays.sum(), options)
    falls = (reputation < bound) & (reputation < reputation.max()) & stays
    stays &= ~falls
    reputation = np.where(stays, reputation, 0.0)
    reputation = reputation / reputation.sum()
    if options.isolation == 'once' or not falls.any():
      return stays, reputation


def serve(uploads, accuracy, amounts, previous, options):
  """What the server computes from the uploads of reputable participants.

  Args:
    uploads: `U_j`, float64[m, d].
    accuracy: `vacc_j`, float64[m].
    amounts: `a_j`, float64[m].
    previous: The reputations before, float64[m], NaN in their first round.
    options: Options.

  Returns:
    The aggregate [d], who stays bool[m], the reputations [m], `num_j` int[m]
    and the allocations `G_j` [m, d].
  """
  weights = aggregation_weights(amounts, options)
  # In the same order for every entry, so that equal entries stay equal.
  update = sum(w * u for w, u in zip(weights, uploads, strict=True))
  stays, reputation = isolate(reputations(accuracy, previous, options), options)
  largest = amounts[stays].max()
  share = reputation / reputation.max() * (amounts / largest)
  count = np.floor(stays * share * len(update) + 1e-9).astype(int)
  own = weights if options.own_share == 'aggregation' else amounts / largest
  allocations = np.stack(
    [
      top(update, count[i], options.ties) - own[i] * uploads[i]
      for i in range(len(uploads))
    ]
  )
  return update, stays, reputation, count, stays[:, np.newaxis] * allocations


class Cffl:
  """The server and all participants.

  Attributes:
    models: `w_j`, float64[P, d].
    shadows: `s_j`, float64[P, d].
    auxiliary: `w_srv`, float64[d].
    allocations: `G_j` of the last round, or 0, float64[P, d].
    reputations: `c_j`, float64[P].
    reputable: Who is in R, bool[P].
  """

  def __init__(self, model, amounts, validation, **options):
    self.options = Options(**options)
    self.auxiliary = model
    self.models = np.tile(self.auxiliary, (len(amounts), 1))
    self.shadows = self.models.copy()
    self.allocations = np.zeros_like(self.models)
    self.reputations = np.full(len(amounts), 1 / len(amounts))
    self.reputable = np.ones(len(amounts), bool)
    self._amounts = np.asarray(amounts, float)
    self._validation = validation
    self._seen = np.zeros(len(amounts), bool)
    self._num_rounds = 0

  def next(self, clients, noise=None):
    """One round.

    Args:
      clients: Maps the ids of those present to their data.
      noise: Maps the ids of free riders to what they upload.

    Returns:
      What `linear_task.assert_found` compares; vectors have an entry for each
      participant that is in R and present.
    """
    present = sorted(clients)
    ids = np.array([j for j in present if self.reputable[j]])
    if self.options.after_isolation == 'standalone':
      for j in set(present) - set(ids):
        self.models[j] += self._updates(j, clients[j])[0]
    noise = noise or {}
    uploads = np.stack(
      [noise[j] if j in noise else self._work(j, clients[j]) for j in ids]
    )
    finite = np.isfinite(uploads).all(axis=1)
    uploads[~finite] = 0.0
    accuracy = finite * self._accuracies(ids, uploads)
    update, stays, reputation, count, allocations = serve(
      uploads,
      accuracy,
      self._amounts[ids],
      np.where(self._seen, self.reputations, np.nan)[ids],
      self.options,
    )
    self.shadows[ids] += uploads
    self.auxiliary = self.auxiliary + update
    self.reputations[ids], self.reputable[ids] = reputation, stays
    self.allocations[:] = 0.0
    self.allocations[ids] = allocations
    self.models += self.allocations
    self._seen[ids] = True
    self._num_rounds += 1
    whole = self.options.upload_rate == 1
    each = {
      'validation_accuracy': accuracy,
      'reputation': reputation,
      'num_allocated': count,
      'reputable': stays,
    }
    return {
      'models': self.models.copy(),
      'weights': self.auxiliary,
      'server/reputable': self.reputable.copy(),
      'server/reputation': self.reputations.copy(),
      'server/allocation': -self.allocations,
      **({'server/shadow': self.shadows.copy()} if whole else {}),
      'aggregator/threshold': threshold(len(ids), self.options),
      'aggregator/num_isolated': np.sum(~stays),
      'aggregator/num_reputable': np.sum(self.reputable),
      'aggregator/num_non_finite': np.sum(~finite),
      **{f'aggregator/clients/{name}': v for name, v in each.items()},
    }

  def _train(self, j, data, epochs, learning_rate=None):
    """Participant `j`'s model after some epochs; None is the round's rate."""
    options = self.options
    usual = options.learning_rate * options.decay**self._num_rounds
    return reference.LINEAR.train(
      self.models[j], data, rate=learning_rate or usual, epochs=epochs
    )

  def _updates(self, j, data):
    """Participant `j`'s update, clipped and unclipped."""
    options = self.options
    with np.errstate(invalid='ignore'):  # Data may be infinite.
      update = self._train(j, data, options.local_epochs) - self.models[j]
    return clip(update, options.clip_value, options.clip_mode), update

  def _work(self, j, data):
    """Trains participant `j`; returns the upload."""
    options = self.options
    if options.pretrain and not self._seen[j]:
      self.models[j] = self._train(
        j, data, options.pretrain_epochs, options.pretrain_learning_rate
      )
    update, unclipped = self._updates(j, data)
    if not np.isfinite(unclipped).all():
      return unclipped
    self.models[j] += update
    if options.upload_rate == 1:
      return update
    count = max(1, int(options.upload_rate * len(update) + 1e-9))
    return top(update, count, options.ties, unclipped)

  def _accuracies(self, ids, uploads):
    x, y = self._validation
    whole = self.options.upload_rate == 1
    starts = self.shadows[ids] if whole else [self.auxiliary] * len(ids)
    judged = [s + u for s, u in zip(starts, uploads, strict=True)]
    return np.array([reference.LINEAR.right(w, x, y).mean() for w in judged])
