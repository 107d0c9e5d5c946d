import collections
import dataclasses
import functools

import numpy as np
import pytest

from tests.algorithms import cffl_reference
from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms
from tff_fair import client

pytestmark = pytest.mark.usefixtures('default_runtime')

# No two sums of these, each added or subtracted, are equal. So entries of the
# aggregate that hold only clipped values are not equal by accident, and
# rounding does not decide which of them is allocated.
_SIZES = (4, 9, 6)
_DEFAULTS = {'learning_rate': 0.3, 'clip_value': 0.05}
# Updates so different that a validation set can tell participants apart.
_LARGE = {'learning_rate': 2.0, 'clip_value': 0.7}
_START = linear_task.start()
_train = reference.LINEAR.train


def _clients(sizes=_SIZES, num_labels=None):
  """Participants by id; `num_labels` gives each so many distinct labels."""
  clients = linear_task.make_clients(sizes)
  for data, count in zip(clients, num_labels or (), strict=bool(num_labels)):
    data.y[:] = np.arange(len(data.y)) % count
  return dict(enumerate(clients))


def _hashable(x, y):
  """A validation set that `_process` takes."""
  return tuple(map(tuple, x)), tuple(y)


@functools.cache
def _plain_validation():
  (data,) = linear_task.make_clients((60,), holdout=0)
  return _hashable(data.x, data.y)


def _process(validation, num_clients, **options):
  """The process for the reference's options, built once.

  Options equal to the reference's default are left to the builder.
  """
  options = {**_DEFAULTS, **options}
  defaults = cffl_reference.Options
  changed = {
    name: value
    for name, value in options.items()
    if value != getattr(defaults, name, None)
  }
  return _cached(validation, num_clients, **changed)


@functools.cache
def _cached(validation, num_clients, **options):
  return _build(tuple(map(np.array, validation)), num_clients, **options)


def _build(validation, num_clients, **options):
  return linear_task.build_process(
    algorithms.build_cffl,
    num_clients=num_clients,
    validation=validation,
    **options,
  )


def _reference(clients, validation=None, amounts=None, **options):
  data = [clients[j] for j in sorted(clients)]
  by_size = options.get('scenario', 'size') == 'size'
  found = [len(c.y) if by_size else len(set(c.y)) for c in data]
  return cffl_reference.Cffl(
    _START,
    amounts or found,
    tuple(map(np.array, validation or _plain_validation())),
    **{**_DEFAULTS, **options},
  )


def _scored_validation(clients, right, **options):
  """Participant j's first model alone classifies `right[j]` correctly.

  No two logits are nearly equal, so that rounding does not matter.
  """
  trial = _reference(clients, **options)
  trial.next(clients)
  rng = np.random.default_rng(0)
  x = rng.normal(size=[5000, linear_task.NUM_FEATURES]).astype(np.float32)
  logits = np.stack([reference.LINEAR.logits(w, x) for w in trial.shadows])
  ordered = np.sort(logits, axis=2)
  clear = np.all(ordered[:, :, -1] - ordered[:, :, -2] > 1e-2, axis=0)
  predicted = logits.argmax(axis=2)
  rows, labels = [], []
  for j, count in enumerate(right):
    alone = clear & np.all(
      np.delete(predicted, j, axis=0) != predicted[j], axis=0
    )
    rows.extend(np.flatnonzero(alone)[:count])
    labels.extend(predicted[j][alone][:count])
  assert len(rows) == sum(right)
  return _hashable(x[rows], labels)


def _run(rounds, validation=None, *, free_riders=None, **options):
  """Compares the process with the reference after every round.

  Args:
    rounds: The clients of each round.
    validation: From `_plain_validation`, the default, or `_scored_validation`.
    free_riders: As for `build_cffl`, for `upload_rate=1`.
    **options: Of both.

  Returns:
    The process, the outputs and what the reference gave.
  """
  validation = validation or _plain_validation()
  everyone = collections.ChainMap(*rounds)
  expected = _reference(everyone, validation, **options)
  process = _process(
    validation, len(everyone), free_riders=free_riders, **options
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


_FAST = [{}, {'upload_rate': 0.4, 'scenario': 'class'}]
_OPTIONS = [
  {'upload_rate': 0.1, 'agg_norm': 'max', 'normalize_before_mixing': True},
  {'own_share': 'aggregation', 'agg_norm': 'sum', 'scenario': 'class'},
  {
    'history_weight': 0.2,
    'punishment_factor': 1.0,
    'clip_mode': 'norm',
    'clip_value': 0.1,
    'local_epochs': 3,
    'decay': 0.5,
  },
  {'ties': 'preclip', 'upload_rate': 0.4, 'clip_value': 0.02},
  {'ties': 'keep', 'upload_rate': 0.4, 'clip_value': 0.02},
  {'ties': 'keep', 'clip_value': 0.01, 'own_share': 'aggregation'},
  {'pretrain': True, 'pretrain_epochs': 2, 'amounts': (1, 20, 17)},
]


@pytest.mark.parametrize(
  'options',
  [*_FAST, *(pytest.param(o, marks=pytest.mark.full) for o in _OPTIONS)],
  ids=str,
)
def test_two_rounds(options):
  """Each option makes a difference."""
  by_class = options.get('scenario') == 'class'
  clients = _clients((4, 9), (1, 3)) if by_class else _clients()
  _, _, reports = _run([clients] * 2, **options)

  def result(values):
    return np.append(values['models'], values['server/reputation'])

  for name in set(options) - {'scenario', 'upload_rate', 'clip_value'}:
    usual = _reference(
      clients, **{k: v for k, v in options.items() if k != name}
    )
    usual.next(clients)
    difference = result(usual.next(clients)) - result(reports[-1])
    assert np.abs(difference).max() > 1e-5, name


@pytest.mark.parametrize(
  'options',
  [
    {'pretrain': True, 'decay': 0.5},
    # This one does not decay.
    pytest.param(
      {'pretrain': True, 'decay': 0.5, 'pretrain_learning_rate': 0.6},
      marks=pytest.mark.full,
    ),
    pytest.param({'upload_rate': 0.4}, marks=pytest.mark.full),
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


@pytest.mark.full
@pytest.mark.parametrize(
  ('options', 'reputable'),
  [
    ({}, [1, 0, 1]),
    ({'isolation': 'cascade'}, [1, 0, 0]),
    ({'upload_rate': 0.4}, [1, 0, 1]),
    # Its updates are still clipped.
    ({'after_isolation': 'standalone', 'clip_value': 0.2}, [1, 0, 1]),
  ],
  ids=str,
)
def test_isolation(options, reputable):
  """Mostly of the second of three participants, with the largest amount."""
  # c is (.805, .066, .129), and the second is below 1/9. Then c is
  # (.862, 0, .138), and the third is below 1/6.
  clients, options = _clients(), {**_LARGE, **options}
  of_trial = {k: v for k, v in options.items() if not k.endswith('isolation')}
  validation = _scored_validation(clients, (12, 3, 5), **of_trial)
  process, outputs, _ = _run([clients] * 3, validation, **options)
  state = outputs[0].state
  np.testing.assert_array_equal(state.aggregator['reputable'], reputable)
  if 'after_isolation' in options:
    return
  # A round of isolated or no clients changes nothing.
  for present in ([1], []):
    output = linear_task.next_round(
      process, state, linear_task.pick(clients, present)
    )
    linear_task.assert_equal(
      process.client_model_table(output.state),
      process.client_model_table(state),
    )
    for name in ('reputation', 'reputable'):
      linear_task.assert_equal(
        output.state.aggregator[name], state.aggregator[name]
      )


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
def test_a_non_finite_upload_still_receives():
  clients = _clients()
  bad = dataclasses.replace(clients[1], x=np.full_like(clients[1].x, np.inf))
  _, _, reports = _run(
    [clients, {**clients, 1: bad}, clients],
    upload_rate=0.4,
    normalize_before_mixing=True,  # Its history outweighs one bad round.
  )
  assert reports[1]['aggregator/num_non_finite'] == 1
  assert reports[1]['aggregator/clients/num_allocated'][1] > 0
  assert reports[2]['server/reputable'].all()


@pytest.mark.full
@pytest.mark.parametrize('pretrain', [False, True])
def test_non_finite_data_leave_no_trace(pretrain):
  """Of all clients, or in one's pretraining."""
  clients = _clients()
  for j in (1,) if pretrain else clients:
    clients[j].x[0, 0] = np.inf
  process = _process(_plain_validation(), 3, pretrain=pretrain)
  output = linear_task.next_round(process, process.initialize(), clients)
  number = output.metrics['aggregator']['num_non_finite']
  assert number == (1 if pretrain else 3)
  models = linear_task.client_weights(process, output.state)
  linear_task.assert_close(models[1], _START)
  if not pretrain:
    linear_task.assert_close(models, np.tile(_START, (3, 1)))


@pytest.mark.full
def test_one_participant_alone_is_plain_training():
  """`G = U - U`; never removed, even with an accuracy of 0."""
  clients = _clients((9,))
  x, y = clients[0].holdout_x, clients[0].holdout_y
  for _ in range(2):
    y = np.where(reference.LINEAR.right(_START, x, y), (y + 1) % 3, y)
  _, _, reports = _run(
    [clients] * 2,
    _hashable(x, y),
    own_share='aggregation',
    threshold_absolute=1.0,
    clip_value=100.0,
    local_epochs=2,
  )
  expected = _train(_START, clients[0], rate=0.3, epochs=4)
  linear_task.assert_close(reports[-1]['models'], expected[np.newaxis])


@pytest.mark.full
def test_equal_participants_get_fed_avg():
  """`w + Dw_j + sum_i Dw_i / P - Dw_j`, if all amounts and scores are equal.

  So all models, which start equal, stay equal: those of FedAvg.
  """
  clients, w = _clients((8, 8, 8)), _START
  x, _ = map(np.array, _plain_validation())
  wrong = (reference.LINEAR.logits(w, x).argmax(axis=1) + 1) % 3
  _, _, reports = _run(
    [clients] * 2, _hashable(x, wrong), clip_value=100.0, learning_rate=1e-3
  )
  for _ in range(2):
    w = reference.fed_avg(w, clients.values(), rate=1e-3, epochs=1)
  linear_task.assert_close(reports[-1]['models'], np.tile(w, (3, 1)))


_RIDDEN = {
  'amounts': (8, 12, 10, 10),
  'clip_value': 0.01,
  'threshold_absolute': 0.001,
}


@pytest.mark.full
def test_free_riders_send_noise():
  """The last two of four participants, who have no data."""
  riders = client.FreeRiders(client_ids=(2, 3), kind='uniform', bound=0.01)
  clients = _clients((8, 12, 0, 0))
  process, outputs, _ = _run([clients] * 2, free_riders=riders, **_RIDDEN)
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
  options = {**_RIDDEN, 'upload_rate': 0.4}
  process = _process(
    _plain_validation(),
    4,
    free_riders=client.FreeRiders(client_ids=(2,)),
    **options,
  )
  clients = _clients((8, 12, 0, 0))
  clients[3] = clients[0]
  output = linear_task.next_round(process, process.initialize(), clients)
  silent = _reference(clients, **options)
  silent.next(clients, {2: np.zeros(15)})
  difference = linear_task.weights(process, output.state)
  upload = (difference - silent.auxiliary) / (10 / 40)
  sent = np.abs(upload) > 1e-5
  assert np.sum(sent) == 6
  expected = _reference(clients, **options)
  values = expected.next(clients, {2: np.where(sent, upload, 0.0)})
  linear_task.assert_found(process, output, values, clients)


def test_amounts_and_free_riders():
  build = functools.partial(
    _build, tuple(map(np.array, _plain_validation())), 4
  )
  linear_task.assert_refused(
    build,
    ('amounts', (1, 2), 'an entry for each of the 4 clients, found 2'),
    ('amounts', (1, 2, 3, -1), 'at least 0'),
    ('amounts', (1, 2, 3, 'x'), 'an integer', TypeError),
    ('amounts', 3, 'a sequence of integers', TypeError),
    ('amounts', (0, 0, 0, 0), 'at least one positive'),
    ('free_riders', [3], 'a tff_fair.client.FreeRiders', TypeError),
  )
  riders = client.FreeRiders(client_ids=(0,))
  with pytest.raises(ValueError, match='amounts must be given where there are'):
    build(free_riders=riders)
  for client_id in (-1, 4):
    with pytest.raises(ValueError, match=f'a free rider .*found {client_id}'):
      riders = client.FreeRiders(client_ids=(client_id,))
      build(free_riders=riders, amounts=(1, 2, 3, 4))
