"""CFFL against the paper's formulas, for a linear model and full batches.

Lyu, Xu, Wang and Yu, "Collaborative Fairness in Federated Learning" (2020,
https://arxiv.org/abs/2008.12161).
"""

import collections
import dataclasses
import functools

import numpy as np
import pytest

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms
from tff_fair import client

pytestmark = pytest.mark.usefixtures('default_runtime')

# No two sums of these, each added or subtracted, are equal. So entries of the
# aggregate that hold only clipped values are not equal by accident, and
# rounding does not decide which of them is allocated.
_SIZES = (4, 9, 6)
_START = linear_task.start()


def _clip(update, value, mode='value'):
  if mode == 'norm':
    return update * min(1.0, value / max(np.linalg.norm(update), 1e-12))
  return np.clip(update, -value, value)


def _top(vector, count, ties='index', unclipped=0.0):
  """The `count` entries of largest magnitude, 0 elsewhere."""
  found = reference.largest(
    vector, count, unclipped if ties == 'preclip' else 0.0
  )
  if ties == 'keep' and count:
    found = vector * (np.abs(vector) >= np.abs(found[found != 0]).min())
  return found


@dataclasses.dataclass(frozen=True)
class _Options:
  """The builder's options of the same names; `decay` is by round."""

  learning_rate: float = 0.3
  decay: float = 1.0
  local_epochs: int = 1
  scenario: str = 'size'
  upload_rate: float = 1.0
  pretrain: bool = False
  pretrain_epochs: int = 5
  pretrain_learning_rate: float | None = None
  punishment_factor: float = 5.0
  history_weight: float = 0.5
  clip_value: float = 0.05
  clip_mode: str = 'value'
  threshold_absolute: float | None = None
  agg_norm: str = 'paper'
  own_share: str = 'paper'
  normalize_before_mixing: bool = False
  isolation: str = 'once'
  after_isolation: str = 'frozen'
  ties: str = 'index'


def _aggregation_weights(amounts, options):
  """`lambda_j`."""
  paper = {'size': 'sum', 'class': 'max'}[options.scenario]
  norm = paper if options.agg_norm == 'paper' else options.agg_norm
  return amounts / {'sum': np.sum, 'max': np.max}[norm](amounts)


def _reputations(accuracy, previous, options):
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


def _threshold(num_reputable, options):
  if options.threshold_absolute is not None:
    return options.threshold_absolute
  return {'size': 1 / 3, 'class': 1 / 6}[options.scenario] / num_reputable


def _isolate(reputation, options):
  """Returns who stays, and the reputations normalised over them."""
  stays = np.ones(len(reputation), bool)
  while True:
    bound = _threshold(stays.sum(), options)
    falls = (reputation < bound) & (reputation < reputation.max()) & stays
    stays &= ~falls
    reputation = np.where(stays, reputation, 0.0)
    reputation = reputation / reputation.sum()
    if options.isolation == 'once' or not falls.any():
      return stays, reputation


def _serve(uploads, accuracy, amounts, previous, options):
  """Computes the server's part from the uploads of reputable participants.

  The aggregate [d], who stays bool[m], their reputations [m], `num_j` int[m]
  and the allocations `G_j` [m, d].
  """
  weights = _aggregation_weights(amounts, options)
  # In the same order for every entry, so that equal entries stay equal.
  update = sum(w * u for w, u in zip(weights, uploads, strict=True))
  stays, reputation = _isolate(
    _reputations(accuracy, previous, options), options
  )
  largest = amounts[stays].max()
  share = reputation / reputation.max() * (amounts / largest)
  count = np.floor(stays * share * len(update) + 1e-9).astype(int)
  own = weights if options.own_share == 'aggregation' else amounts / largest
  allocations = np.stack(
    [
      _top(update, count[i], options.ties) - own[i] * uploads[i]
      for i in range(len(uploads))
    ]
  )
  return update, stays, reputation, count, stays[:, np.newaxis] * allocations


class _Cffl:
  """The server and all participants."""

  def __init__(self, amounts, validation, **options):
    self.options = _Options(**options)
    self.auxiliary = _START  # w_srv
    # w_j, s_j and G_j of the last round, float64[P, d]; c_j; who is in R.
    self.models = np.tile(_START, (len(amounts), 1))
    self.shadows = self.models.copy()
    self.allocations = np.zeros_like(self.models)
    self.reputations = np.full(len(amounts), 1 / len(amounts))
    self.reputable = np.ones(len(amounts), bool)
    self._amounts = np.asarray(amounts, float)
    self._validation = validation
    self._seen = np.zeros(len(amounts), bool)
    self._num_rounds = 0

  def next(self, clients, noise=None):
    """One round; `noise` is what free riders upload, by id.

    Returns what `linear_task.assert_found` compares; vectors have an entry for
    each participant that is in R and present.
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
    update, stays, reputation, count, allocations = _serve(
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
      'aggregator/threshold': _threshold(len(ids), self.options),
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
    return _clip(update, options.clip_value, options.clip_mode), update

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
    return _top(update, count, options.ties, unclipped)

  def _accuracies(self, ids, uploads):
    x, y = self._validation
    whole = self.options.upload_rate == 1
    starts = self.shadows[ids] if whole else [self.auxiliary] * len(ids)
    judged = [s + u for s, u in zip(starts, uploads, strict=True)]
    return np.array([reference.LINEAR.right(w, x, y).mean() for w in judged])


def _clients(sizes=_SIZES, num_labels=None):
  """Participants by id; `num_labels` gives each so many distinct labels."""
  clients = linear_task.make_clients(sizes)
  for data, count in zip(clients, num_labels or (), strict=bool(num_labels)):
    data.y[:] = np.arange(len(data.y)) % count
  return dict(enumerate(clients))


@functools.cache
def _plain_validation():
  (data,) = linear_task.make_clients((60,), holdout=0)
  return data.x, data.y


def _process(num_clients, validation=None, **options):
  """Options equal to the builder's default are left to it."""
  options = {'learning_rate': 0.3, 'clip_value': 0.05, **options}
  return linear_task.build_process(
    algorithms.build_cffl,
    num_clients=num_clients,
    validation=validation or _plain_validation(),
    **options,
  )


def _reference(clients, validation=None, amounts=None, **options):
  data = [clients[j] for j in sorted(clients)]
  by_size = options.get('scenario', 'size') == 'size'
  found = [len(c.y) if by_size else len(set(c.y)) for c in data]
  return _Cffl(amounts or found, validation or _plain_validation(), **options)


def _run(rounds, validation=None, *, free_riders=None, **options):
  """Compares the process with the reference after every round.

  Returns the process, the outputs and what the reference gave.
  """
  everyone = collections.ChainMap(*rounds)
  expected = _reference(everyone, validation, **options)
  process = _process(
    len(everyone), validation, free_riders=free_riders, **options
  )
  state, outputs, reports = process.initialize(), [], []
  for clients in rounds:
    in_r = [j for j in sorted(clients) if expected.reputable[j]]
    outputs.append(linear_task.next_round(process, state, clients))
    noise = {}
    if free_riders is not None:
      noise = _uploads(state, outputs[-1].state, free_riders.client_ids)
    state = outputs[-1].state
    reports.append(expected.next(clients, noise))
    linear_task.assert_found(process, outputs[-1], reports[-1], in_r)
  return process, outputs, reports


def _uploads(before, after, ids):
  """The uploads of some clients, from the server's record."""
  before, after = (
    linear_task.client_vectors(state.aggregator['shadow'])
    for state in (before, after)
  )
  return {j: after[j] - before[j] for j in ids}


# After the first pass c is (.86, 0, .14), and the third is below 1/6, too.
_CASCADE = {
  'learning_rate': 2.0,
  'clip_value': 0.2,
  'punishment_factor': 145.0,
  'isolation': 'cascade',
}
_FAST = [{}, {'upload_rate': 0.4, 'scenario': 'class'}]
_OPTIONS = [
  {
    'upload_rate': 0.1,
    'agg_norm': 'max',
    'normalize_before_mixing': True,
    'history_weight': 0.2,
    'punishment_factor': 1.0,
  },
  {
    'own_share': 'aggregation',
    'agg_norm': 'sum',
    'scenario': 'class',
    'clip_mode': 'norm',
    'clip_value': 0.1,
    'local_epochs': 3,
    'decay': 0.5,
  },
  {'ties': 'preclip', 'upload_rate': 0.4, 'clip_value': 0.02},
  {'ties': 'keep', 'upload_rate': 0.4, 'clip_value': 0.02},
  {'pretrain': True, 'pretrain_epochs': 2, 'amounts': (1, 20, 17)},
  _CASCADE,
  # Its updates are still clipped.
  {**_CASCADE, 'isolation': 'once', 'after_isolation': 'standalone'},
]


@pytest.mark.parametrize(
  'options',
  [*_FAST, *(pytest.param(o, marks=pytest.mark.full) for o in _OPTIONS)],
  ids=str,
)
def test_two_rounds(options):
  by_class = options.get('scenario') == 'class'
  clients = _clients((4, 9), (1, 3)) if by_class else _clients()
  process, outputs, _ = _run([clients] * 2, **options)
  if 'isolation' not in options:
    return
  state = outputs[0].state
  reputable = [1, 0, 'after_isolation' in options]
  np.testing.assert_array_equal(state.aggregator['reputable'], reputable)
  if options is not _CASCADE:
    return
  # A round of isolated or no clients changes nothing.
  for present in ([1], []):
    after = linear_task.next_round(
      process, state, linear_task.pick(clients, present)
    ).state
    linear_task.assert_equal(
      process.client_model_table(after), process.client_model_table(state)
    )
    for name in ('reputation', 'reputable'):
      linear_task.assert_equal(after.aggregator[name], state.aggregator[name])


@pytest.mark.parametrize(
  'options',
  [
    {'pretrain': True, 'decay': 0.5},
    pytest.param(
      {
        'pretrain': True,
        'decay': 0.5,
        'pretrain_learning_rate': 0.6,  # This one does not decay.
        'upload_rate': 0.4,
      },
      marks=pytest.mark.full,
    ),
  ],
  ids=str,
)
def test_participants_join_late_and_are_absent(options):
  clients = _clients()
  rounds = [
    linear_task.pick(clients, ids) for ids in ([0, 1], [2, 0, 1], [0], [1, 2])
  ]
  _, outputs, _ = _run(rounds, **options)
  # Alone in the third round, client 0 receives the whole aggregate.
  found = outputs[2].metrics['aggregator']['clients']
  (row,) = np.flatnonzero(found['client_id'] == 0)
  assert found['reputation'][row] == 1 and found['num_allocated'][row] == 15


def test_a_non_finite_upload_loses_the_reputation():
  clients = _clients()
  clients[1].x[0, 0] = np.inf
  process, outputs, _ = _run([clients] * 2)
  counts = outputs[0].metrics['client_work']
  assert counts['num_rejected_clients'] == 1
  found = outputs[0].metrics['aggregator']['clients']['reputable']
  np.testing.assert_array_equal(found, [1, 0, 1])
  models = linear_task.client_weights(process, outputs[1].state)
  linear_task.assert_close(models[1], _START)


@pytest.mark.full
def test_non_finite_data_leave_no_trace_in_pretraining():
  clients = _clients()
  clients[1].x[0, 0] = np.inf
  process = _process(3, pretrain=True)
  output = linear_task.next_round(process, process.initialize(), clients)
  assert output.metrics['aggregator']['num_non_finite'] == 1
  models = linear_task.client_weights(process, output.state)
  linear_task.assert_close(models[1], _START)


@pytest.mark.full
def test_equal_participants_get_fed_avg():
  """`w + Dw_j + sum_i Dw_i / P - Dw_j`, if all amounts and scores are equal.

  So all models, which start equal, stay equal: those of FedAvg.
  """
  clients, w = _clients((8, 8, 8)), _START
  x, _ = _plain_validation()
  wrong = (reference.LINEAR.logits(w, x).argmax(axis=1) + 1) % 3
  _, _, reports = _run(
    [clients] * 2, (x, wrong), clip_value=100.0, learning_rate=1e-3
  )
  for _ in range(2):
    w = reference.fed_avg(w, clients.values(), rate=1e-3, epochs=1)
  linear_task.assert_close(reports[-1]['models'], np.tile(w, (3, 1)))


@pytest.mark.full
def test_free_riders_send_noise():
  """The last two of four participants, who have no data."""
  riders = client.FreeRiders(client_ids=(2, 3), kind='uniform', bound=0.01)
  clients = _clients((8, 12, 0, 0))
  process, outputs, _ = _run(
    [clients] * 2,
    free_riders=riders,
    amounts=(8, 12, 10, 10),
    clip_value=0.01,
    threshold_absolute=0.001,
  )
  first, second = (o.state for o in outputs)
  uploads = [
    *_uploads(process.initialize(), first, (2, 3)).values(),
    *_uploads(first, second, (2, 3)).values(),
  ]
  assert np.abs(uploads).max() <= 0.01 + 1e-6
  # Of 60 values, far from all of one sign or near 0; others each time.
  assert np.min(uploads) < -0.008 and np.max(uploads) > 0.008
  assert min(np.abs(a - uploads[0]).max() for a in uploads[1:]) > 1e-3


@pytest.mark.full
def test_only_the_largest_values_of_a_free_rider_are_uploaded():
  process = _process(
    3,
    free_riders=client.FreeRiders(client_ids=(2,)),
    amounts=(8, 12, 10),
    upload_rate=0.4,
  )
  alone = {2: _clients((0,))[0]}
  state = linear_task.next_round(process, process.initialize(), alone).state
  moved = linear_task.weights(process, state) - _START
  assert np.count_nonzero(moved) == 6


def test_amounts_and_free_riders():
  build = functools.partial(_process, 4)
  linear_task.assert_refused(
    build,
    ('amounts', (1, 2), 'an entry for each of the 4 clients, found 2'),
    ('amounts', (1, 2, 3, -1), 'at least 0'),
    ('amounts', (0, 0, 0, 0), 'at least one positive'),
    ('free_riders', [3], 'a tff_fair.client.FreeRiders', TypeError),
  )
  for rider, message in (
    (3, 'amounts must be given where there are'),
    (4, 'a free rider .*found 4'),
  ):
    with pytest.raises(ValueError, match=message):
      build(free_riders=client.FreeRiders(client_ids=(rider,)))
