import collections
import dataclasses
import functools
import itertools

import numpy as np
import pytest

from tests.algorithms import cffl_reference
from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
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
_START = linear_task.initial_model().vector


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
    linear_task.initial_model(),
    amounts or found,
    tuple(map(np.array, validation or _plain_validation())),
    **{**_DEFAULTS, **options},
  )


def _scored_validation(clients, right, wrong=0, **options):
  """Participant j's first model classifies only `right[j]` correctly."""
  trial = _reference(clients, **options)
  trial.next(clients)
  models = [numpy_reference.Linear.of(shadow) for shadow in trial.shadows]
  return _hashable(*linear_task.make_validation(models, right, wrong=wrong))


def _assert_state(process, state, expected):
  models = linear_task.client_weights(process, state)
  linear_task.assert_close(models, expected.models)
  for j, model in enumerate(models):
    found = process.get_client_model_weights(state, j).trainable
    np.testing.assert_array_equal(linear_task.vector(found), model)
  auxiliary = linear_task.weights(process, state)
  linear_task.assert_close(auxiliary, expected.auxiliary)
  found = state.aggregator
  np.testing.assert_array_equal(found['reputable'], expected.reputable)
  assert found['reputation'].dtype == np.float64
  linear_task.assert_close(found['reputation'], expected.reputations, atol=0)
  allocated = linear_task.client_vectors(found['allocation'])
  linear_task.assert_close(allocated, -expected.allocations)
  if expected.options.upload_rate == 1:
    shadows = linear_task.client_vectors(found['shadow'])
    linear_task.assert_close(shadows, expected.shadows)
  else:
    server = linear_task.vector(found['auxiliary'])
    linear_task.assert_close(server, expected.auxiliary)


def _assert_metrics(output, report, expected):
  found = output.metrics['aggregator']
  for name in ('num_isolated', 'num_non_finite'):
    assert found[name] == report[name]
  assert found['num_reputable'] == expected.reputable.sum()
  np.testing.assert_allclose(found['threshold'], report['threshold'])
  ids = found['clients']['client_id']
  assert list(ids) == sorted(set(ids))
  of_report = np.isin(ids, report['client_id'])
  for name, dtype in (
    ('validation_accuracy', np.floating),
    ('reputation', np.floating),
    ('num_allocated', np.integer),
    ('reputable', np.integer),
  ):
    values = found['clients'][name][of_report]
    assert np.issubdtype(values.dtype, dtype)
    np.testing.assert_allclose(values, report[name], rtol=1e-5)


def _run(rounds, validation=None, *, free_riders=None, seed=None, **options):
  """Runs the process and the reference, and compares them after every round.

  Args:
    rounds: The clients of each round.
    validation: From `_plain_validation`, the default, or `_scored_validation`.
    free_riders: As for `build_cffl`, for `upload_rate=1`.
    seed: As for `build_cffl`; None for its default.
    **options: Of both.

  Returns:
    The process, the outputs, the reference after the last round and its
    reports.
  """
  validation = validation or _plain_validation()
  everyone = collections.ChainMap(*rounds)
  expected = _reference(everyone, validation, **options)
  process = _process(
    validation, len(everyone), free_riders=free_riders, seed=seed, **options
  )
  state, outputs, reports = process.initialize(), [], []
  for clients in rounds:
    outputs.append(linear_task.next_round(process, state, clients))
    noise = {}
    if free_riders is not None:
      noise = _uploads(state, outputs[-1].state, free_riders.client_ids)
    state = outputs[-1].state
    reports.append(expected.next(clients, noise))
    _assert_state(process, state, expected)
    _assert_metrics(outputs[-1], reports[-1], expected)
  return process, outputs, expected, reports


def _uploads(before, after, ids):
  """The uploads of some clients, from the server's record."""
  before, after = (
    linear_task.client_vectors(state.aggregator['shadow'])
    for state in (before, after)
  )
  return {j: after[j] - before[j] for j in ids}


def _model_of(process, outputs, j):
  """Participant j's model after each round."""
  return [linear_task.client_weights(process, o.state)[j] for o in outputs]


_OPTIONS = [
  {},
  {'upload_rate': 0.4, 'scenario': 'class'},
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
  {'pretrain': True, 'pretrain_epochs': 2, 'upload_rate': 0.4},
  {'pretrain': True, 'amounts': (1, 20, 17)},
  {'pretrain': True, 'pretrain_learning_rate': 0.05},
]


@pytest.mark.parametrize('options', _OPTIONS, ids=str)
def test_two_rounds_against_numpy(options):
  """Each option makes a difference."""
  by_class = options.get('scenario') == 'class'
  clients = _clients((4, 9), (1, 3)) if by_class else _clients()
  _, _, expected, reports = _run([clients] * 2, **options)
  assert np.ptp([report['validation_accuracy'] for report in reports]) > 0
  found = np.append(expected.models, expected.reputations)
  for name in set(options) - {'scenario', 'upload_rate', 'clip_value'}:
    others = {k: v for k, v in options.items() if k != name}
    usual = _reference(clients, **others)
    for _ in range(2):
      usual.next(clients)
    difference = np.append(usual.models, usual.reputations) - found
    assert np.abs(difference).max() > 1e-5, name


def test_pretraining_changes_the_client_s_model_and_not_the_server_s():
  """With a participant that joins in the second round."""
  clients = _clients()
  rounds = [linear_task.pick(clients, ids) for ids in ([0, 1], [0, 2, 1])]
  process, outputs, _, _ = _run(rounds, pretrain=True)
  state = outputs[0].state
  shadows = linear_task.client_vectors(state.aggregator['shadow'])
  assert np.abs(shadows - _START).max() < 0.0501  # One clipped upload.
  # Five more epochs, unclipped.
  models = linear_task.client_weights(process, state)
  assert np.abs(models - _START).max() > 0.2


@pytest.mark.parametrize(('rate', 'of_pretraining'), [(None, 0.15), (0.6, 0.6)])
def test_pretraining_s_own_rate_does_not_decay(rate, of_pretraining):
  """Of a participant that joins in the second round, in which .3 is halved."""
  clients = _clients()
  rounds = [linear_task.pick(clients, ids) for ids in ([0, 1], [2])]
  # Bounds so small that pretraining alone moves the model.
  process, outputs, _, _ = _run(
    rounds,
    pretrain=True,
    pretrain_learning_rate=rate,
    decay=0.5,
    clip_value=1e-6,
  )
  expected = numpy_reference.train(
    linear_task.initial_model(),
    clients[2],
    learning_rate=of_pretraining,
    epochs=5,
  )
  found = linear_task.client_weights(process, outputs[-1].state)[2]
  np.testing.assert_allclose(found, expected.vector, atol=1e-5)


@pytest.mark.full
@pytest.mark.parametrize('upload_rate', [1.0, 0.4])
def test_partial_attendance(upload_rate):
  clients = _clients()
  cohorts = ([0, 1, 2], [2, 0], [0], [1, 2])
  process, outputs, _, _ = _run(
    [linear_task.pick(clients, ids) for ids in cohorts], upload_rate=upload_rate
  )
  before, after, *_ = _model_of(process, outputs, 1)
  np.testing.assert_array_equal(before, after)
  first, second = (outputs[t].state.aggregator['reputation'] for t in (0, 1))
  assert first[1] == second[1]
  assert second[0] + second[2] == pytest.approx(1.0)
  # Alone in the third round, client 0 receives the whole aggregate.
  found = outputs[2].metrics['aggregator']['clients']
  (row,) = np.flatnonzero(found['client_id'] == 0)
  assert found['reputation'][row] == 1 and found['num_allocated'][row] == 15


@pytest.mark.full
class TestIsolation:
  """Mostly of the second of three participants, with the largest amount."""

  _CLIENTS = _clients()

  @pytest.mark.parametrize(
    ('isolation', 'reputable'), [('once', [1, 0, 1]), ('cascade', [1, 0, 0])]
  )
  def test_once_or_in_a_cascade(self, isolation, reputable):
    # c is (.805, .066, .129), and the second is below 1/9. Then c is
    # (.862, 0, .138), and the third is below 1/6.
    validation = _scored_validation(self._CLIENTS, (12, 3, 5), **_LARGE)
    process, outputs, _, _ = _run(
      [self._CLIENTS], validation, isolation=isolation, **_LARGE
    )
    before = outputs[0].state
    np.testing.assert_array_equal(before.aggregator['reputable'], reputable)
    # A round of isolated or no clients changes nothing.
    for present in ([1], []):
      clients = linear_task.pick(self._CLIENTS, present)
      output = linear_task.next_round(process, before, clients)
      linear_task.assert_equal(
        process.client_model_table(output.state),
        process.client_model_table(before),
      )
      for name in ('reputation', 'reputable', 'shadow'):
        linear_task.assert_equal(
          output.state.aggregator[name], before.aggregator[name]
        )
      assert output.metrics['aggregator']['num_isolated'] == 0

  @pytest.mark.parametrize('upload_rate', [1.0, 0.4])
  def test_isolated_clients_are_frozen(self, upload_rate):
    options = {'upload_rate': upload_rate, **_LARGE}
    validation = _scored_validation(self._CLIENTS, (12, 3, 5), **options)
    process, outputs, _, reports = _run(
      [self._CLIENTS] * 3, validation, **options
    )
    np.testing.assert_array_equal(reports[0]['reputable'], [1, 0, 1])
    models = _model_of(process, outputs, 1)
    np.testing.assert_array_equal(models[1], models[0])
    np.testing.assert_array_equal(models[2], models[0])
    # The participant keeps its update of the round of its removal.
    assert np.abs(models[0] - _START).max() > 0.1

  def test_isolated_clients_may_continue_alone(self):
    options = {**_LARGE, 'clip_value': 0.2}
    validation = _scored_validation(self._CLIENTS, (12, 3, 5), **options)
    process, outputs, _, reports = _run(
      [self._CLIENTS] * 3, validation, after_isolation='standalone', **options
    )
    np.testing.assert_array_equal(reports[0]['reputable'], [1, 0, 1])
    first, second, _ = _model_of(process, outputs, 1)
    # Its updates are still clipped.
    assert np.abs(first - second).max() == pytest.approx(0.2, rel=1e-5)


@pytest.mark.full
class TestEdgeCases:
  _CLIENTS = _clients()

  @pytest.mark.parametrize('upload_rate', [1.0, 0.4])
  def test_a_non_finite_upload_loses_the_reputation(self, upload_rate):
    clients = _clients()
    clients[1].x[0, 0] = np.inf
    process, outputs, _, _ = _run([clients] * 2, upload_rate=upload_rate)
    metrics = outputs[0].metrics
    assert metrics['client_work']['num_rejected_clients'] == 1
    assert metrics['aggregator']['num_non_finite'] == 1
    np.testing.assert_array_equal(
      metrics['aggregator']['clients']['reputable'], [1, 0, 1]
    )
    linear_task.assert_close(_model_of(process, outputs, 1)[1], _START)

  @pytest.mark.parametrize('upload_rate', [1.0, 0.4])
  def test_a_non_finite_upload_still_receives(self, upload_rate):
    clients = _clients()
    bad = dataclasses.replace(clients[1], x=np.full_like(clients[1].x, np.inf))
    process, outputs, expected, reports = _run(
      [clients, {**clients, 1: bad}, clients],
      upload_rate=upload_rate,
      normalize_before_mixing=True,  # Its history outweighs one bad round.
    )
    assert outputs[1].metrics['aggregator']['num_non_finite'] == 1
    assert reports[1]['num_allocated'][1] > 0
    assert expected.reputable.all()
    before, after, _ = _model_of(process, outputs, 1)
    # Only entries of the aggregate come in, as many as were allocated.
    changed = np.sum(np.abs(after - before) > 1e-6)
    assert changed == reports[1]['num_allocated'][1]

  @pytest.mark.parametrize('pretrain', [False, True])
  def test_non_finite_data_leave_no_trace(self, pretrain):
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
class TestLimits:
  @pytest.mark.parametrize(
    ('own_share', 'threshold_absolute'), [('paper', None), ('aggregation', 1.0)]
  )
  def test_one_participant_alone_is_plain_training(
    self, own_share, threshold_absolute
  ):
    """`G = U - U`; never removed, even with an accuracy of 0."""
    clients = _clients((9,))
    x, y = clients[0].holdout_x, clients[0].holdout_y
    model = linear_task.initial_model()
    for _ in range(2):
      y = np.where(model.logits(x).argmax(axis=1) == y, (y + 1) % 3, y)
    process, outputs, _, _ = _run(
      [clients] * 2,
      _hashable(x, y),
      own_share=own_share,
      threshold_absolute=threshold_absolute,
      clip_value=100.0,
      local_epochs=2,
    )
    found = outputs[-1].metrics['aggregator']['clients']
    assert found['reputation'][0] == 1 and found['num_allocated'][0] == 15
    expected = numpy_reference.train(
      model, clients[0], learning_rate=0.3, epochs=4
    )
    linear_task.assert_model(
      process.get_client_model_weights(outputs[-1].state, 0), expected
    )

  def test_equal_participants_get_fed_avg(self):
    """`w + Dw_j + sum_i Dw_i / P - Dw_j`, if all amounts and scores are equal.

    So all models, which start equal, stay equal: those of FedAvg.
    """
    clients = _clients((8, 8, 8))
    model = linear_task.initial_model()
    validation = linear_task.make_validation([model], (0,), wrong=20)
    process, outputs, _, _ = _run(
      [clients] * 2,
      _hashable(*validation),
      clip_value=100.0,
      learning_rate=1e-3,
    )
    for _ in range(2):
      model = numpy_reference.fed_avg_round(
        model, list(clients.values()), learning_rate=1e-3, epochs=1
      )
    linear_task.assert_close(
      linear_task.client_weights(process, outputs[-1].state),
      np.tile(model.vector, (3, 1)),
    )


@pytest.mark.full
class TestFreeRiders:
  """The last two of four participants have no data."""

  _CLIENTS = _clients((8, 12, 0, 0))
  _IDS = (2, 3)
  _OPTIONS = {
    'amounts': (8, 12, 10, 10),
    'clip_value': 0.01,
    'threshold_absolute': 0.001,
  }

  def _run(self, kind, seed=None):
    """Returns the outputs, and the uploads [round, free rider, d]."""
    riders = client.FreeRiders(client_ids=self._IDS, kind=kind, bound=0.01)
    process, outputs, _, _ = _run(
      [self._CLIENTS] * 2, free_riders=riders, seed=seed, **self._OPTIONS
    )
    states = [process.initialize(), *(output.state for output in outputs)]
    uploads = [
      list(_uploads(before, after, self._IDS).values())
      for before, after in itertools.pairwise(states)
    ]
    return outputs, np.array(uploads)

  def test_uniform_noise_differs_and_repeats_by_seed(self):
    outputs, uploads = self._run('uniform')
    assert np.abs(uploads).max() <= 0.01 + 1e-6
    # Of 60 values, far from all of one sign or near 0.
    assert uploads.min() < -0.008 and uploads.max() > 0.008
    _, others = self._run('uniform', seed=1)
    each = [*uploads.reshape(4, -1), others[0, 0]]
    for one, other in itertools.combinations(each, 2):
      assert np.abs(one - other).max() > 1e-3
    again, _ = self._run('uniform')
    linear_task.assert_equal(outputs, again)

  def test_gaussian_noise_is_clipped(self):
    _, uploads = self._run('gaussian')
    magnitude = np.abs(uploads)
    assert magnitude.max() <= 0.01 + 1e-6
    # 32 % of 60 are expected beyond a standard deviation.
    assert 8 <= np.sum(magnitude > 0.01 - 1e-6) <= 30

  def test_only_the_largest_values_are_uploaded(self):
    options = {**self._OPTIONS, 'upload_rate': 0.4}
    process = _process(
      _plain_validation(),
      4,
      free_riders=client.FreeRiders(client_ids=(2,)),
      **options,
    )
    clients = {**self._CLIENTS, 3: self._CLIENTS[0]}
    output = linear_task.next_round(process, process.initialize(), clients)
    silent = _reference(clients, **options)
    silent.next(clients, {2: np.zeros(15)})
    difference = linear_task.weights(process, output.state)
    upload = (difference - silent.auxiliary) / (10 / 40)
    assert np.sum(np.abs(upload) > 1e-5) == 6
    expected = _reference(clients, **options)
    expected.next(clients, {2: np.where(np.abs(upload) > 1e-5, upload, 0.0)})
    _assert_state(process, output.state, expected)


def _riders(**options):
  return client.FreeRiders(**{'client_ids': (0,), **options})


def test_bad_arguments():
  validation = tuple(map(np.array, _plain_validation()))
  linear_task.assert_refused(
    _build,
    ('amounts', (1, 2), 'an entry for each of the 4 clients, found 2'),
    ('amounts', (1, 2, 3, -1), 'at least 0'),
    ('amounts', (1, 2, 3, 'x'), 'an integer', TypeError),
    ('amounts', 3, 'a sequence of integers', TypeError),
    ('amounts', (0, 0, 0, 0), 'at least one positive'),
    ('validation', None, 'a pair of inputs and labels', TypeError),
    ('free_riders', [3], 'a tff_fair.client.FreeRiders', TypeError),
    validation=validation,
    num_clients=4,
  )
  with pytest.raises(ValueError, match='amounts must be given where there are'):
    _build(validation, 4, free_riders=_riders())
  for client_id in (-1, 4):
    with pytest.raises(ValueError, match=f'a free rider .*found {client_id}'):
      _build(
        validation,
        4,
        free_riders=_riders(client_ids=(client_id,)),
        amounts=(1, 2, 3, 4),
      )
  for options in ({'kind': 'random'}, {'bound': -1.0}):
    with pytest.raises(ValueError, match=f'{next(iter(options))} must'):
      _riders(**options)
