import collections
import dataclasses
import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import cffl_reference
from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tff_fair import algorithms
from tff_fair import client

# No two sums of some of these, each added or subtracted, are equal. So entries
# of the aggregate that hold only clipped values are not equal by accident, and
# rounding does not decide which of them is allocated.
_SIZES = (4, 9, 6)
_DEFAULTS = {'learning_rate': 0.3, 'clip_value': 0.05}
# Updates so different that participants can be told apart by a validation set.
_LARGE = {'learning_rate': 2.0, 'clip_value': 0.7}


def _clients(sizes=_SIZES, num_labels=None):
  """Participants by id; `num_labels` gives each so many distinct labels."""
  clients = linear_task.make_clients(sizes)
  for data, count in zip(clients, num_labels or (), strict=bool(num_labels)):
    data.y[:] = np.arange(len(data.y)) % count
  return dict(enumerate(clients))


def _hashable(x, y):
  """A validation set that `_process` takes."""
  return tuple(map(tuple, x)), tuple(y)


def _clients_by_class():
  return _clients((4, 9), (1, 3))


@functools.cache
def _plain_validation():
  (data,) = linear_task.make_clients((60,), holdout=0)
  return _hashable(data.x, data.y)


def _some(clients, ids):
  return {j: clients[j] for j in ids}


def _process(validation, num_clients, **options):
  """The process for the reference's options, built once.

  What has the default value is left out, for the builder to fill in.
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


def _build(validation, num_clients, learning_rate=0.1, decay=1.0, **options):
  def learning_rate_fn(round_number):
    return learning_rate * decay ** tf.cast(round_number, tf.float32)

  return algorithms.build_cffl(
    linear_task.model_fn,
    num_clients=num_clients,
    client_optimizer=linear_task.sgd(learning_rate),
    client_learning_rate_fn=None if decay == 1.0 else learning_rate_fn,
    validation=validation,
    batch_size=50,
    **options,
  )


def _amounts(clients, scenario='size', **_):
  """What the clients' training data hold."""
  if scenario == 'size':
    return [len(clients[j].y) for j in sorted(clients)]
  return [len(set(clients[j].y)) for j in sorted(clients)]


def _reference(clients, validation, amounts=None, **options):
  return cffl_reference.Cffl(
    linear_task.initial_model(),
    amounts or _amounts(clients, **options),
    tuple(map(np.array, validation)),
    **{**_DEFAULTS, **options},
  )


def _scored_validation(clients, right, wrong=0, **options):
  """Of which participant j's model has `right[j]` right in the first round."""
  trial = _reference(clients, _plain_validation(), **options)
  trial.next(clients)
  models = [
    cffl_reference.unflatten(shadow, linear_task.NUM_CLASSES)
    for shadow in trial.shadows
  ]
  return _hashable(*linear_task.make_validation(models, right, wrong=wrong))


def _rows(structure):
  """A structure `[P, ...]` of weights as float64[P, d]."""
  leaves = tf.nest.flatten(structure)
  return np.concatenate(
    [np.reshape(leaf, [len(leaf), -1]) for leaf in leaves], axis=1
  )


def _models(process, state):
  return _rows(process.client_model_table(state).trainable)


def _flat(weights):
  kernel, bias = weights.trainable
  return cffl_reference.flatten(numpy_reference.Linear(kernel, bias))


def _next(process, state, clients):
  # The order in which participants come must not matter.
  data = [linear_task.client_data(j, clients[j]) for j in reversed(clients)]
  return process.next(state, data)


def _assert_close(found, expected):
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def _assert_state(process, state, expected):
  for j, model in enumerate(expected.models):
    _assert_close(_flat(process.get_client_model_weights(state, j)), model)
  _assert_close(_models(process, state), expected.models)
  _assert_close(_flat(process.get_model_weights(state)), expected.auxiliary)
  found = state.aggregator
  np.testing.assert_array_equal(found['reputable'], expected.reputable)
  assert found['reputation'].dtype == np.float64
  np.testing.assert_allclose(
    found['reputation'], expected.reputations, rtol=1e-5
  )
  _assert_close(_rows(found['allocation']), -expected.allocations)
  if expected.options.upload_rate == 1:
    _assert_close(_rows(found['shadow']), expected.shadows)
  else:
    auxiliary = tf.nest.map_structure(
      lambda value: value[np.newaxis], found['auxiliary']
    )
    _assert_close(_rows(auxiliary)[0], expected.auxiliary)


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
  """Runs both, and compares them after every round.

  Args:
    rounds: The clients of each round.
    validation: From `_plain_validation` or `_scored_validation`; None for the
      former.
    free_riders: As for `build_cffl`, for `upload_rate=1`.
    seed: As for `build_cffl`; None for its default.
    **options: Of either.

  Returns:
    The process, the outputs, the reference after the last round and its
    reports.
  """
  validation = validation or _plain_validation()
  everybody = collections.ChainMap(*rounds)
  expected = _reference(everybody, validation, **options)
  process = _process(
    validation, len(everybody), free_riders=free_riders, seed=seed, **options
  )
  state, outputs, reports = process.initialize(), [], []
  for clients in rounds:
    outputs.append(_next(process, state, clients))
    noise = {}
    if free_riders is not None:
      noise = _uploads(state, outputs[-1].state, free_riders.client_ids)
    state = outputs[-1].state
    reports.append(expected.next(clients, noise))
    _assert_state(process, state, expected)
    _assert_metrics(outputs[-1], reports[-1], expected)
  return process, outputs, expected, reports


def _uploads(before, after, ids):
  """What some uploaded, by the server's record of them."""
  before, after = (
    _rows(state.aggregator['shadow']).astype(np.float64)
    for state in (before, after)
  )
  return {j: after[j] - before[j] for j in ids}


class TestReference:
  """The reference itself, on numbers worked by hand."""

  def test_worked_example(self):
    uploads = np.array(
      [[0.01, 0, 0, -0.01], [0, 0.01, -0.01, 0], [0.01, 0.01, 0, 0.005]]
    )
    update, stays, reputation, count, allocations = cffl_reference.serve(
      uploads,
      np.array([0.5, 0.3, 0.8]),
      np.array([1.0, 2.0, 3.0]),
      np.full(3, np.nan),
      cffl_reference.Options(),
    )
    # lambda = (1, 2, 3) / 6.
    np.testing.assert_allclose(
      update, [0.04 / 6, 0.05 / 6, -0.02 / 6, 0.005 / 6]
    )
    # sinh(5 * (.3125, .1875, .5)) = (2.280446, 1.080937, 6.050204); 1/9 falls.
    assert stays.all()
    np.testing.assert_allclose(
      reputation, [0.242310, 0.114855, 0.642835], atol=1e-6
    )
    # floor(4 * (.3769 / 3, .1787 * 2 / 3, 1)).
    np.testing.assert_array_equal(count, [0, 0, 4])
    np.testing.assert_allclose(
      allocations,
      [
        [-0.01 / 3, 0, 0, 0.01 / 3],
        [0, -0.02 / 3, 0.02 / 3, 0],
        [-0.02 / 6, -0.01 / 6, -0.02 / 6, -0.025 / 6],
      ],
    )

  @pytest.mark.parametrize(
    ('ties', 'expected'),
    [('index', [2, -2, 0, 0]), ('preclip', [0, -2, 0, 2])],
  )
  def test_ties(self, ties, expected):
    unclipped = np.array([2.0, -4.0, 1.0, 3.0])
    clipped = cffl_reference.clip(unclipped, 2.0)
    found = cffl_reference.top(clipped, 2, ties, unclipped)
    np.testing.assert_array_equal(found, expected)

  def test_ties_may_all_be_kept(self):
    vector = np.array([2.0, -2.0, 1.0, 2.0])
    for count, expected in ((2, [2, -2, 0, 2]), (0, [0, 0, 0, 0])):
      found = cffl_reference.top(vector, count, 'keep')
      np.testing.assert_array_equal(found, expected)


@pytest.mark.usefixtures('default_runtime')
class TestRoundsAgainstNumpy:
  @pytest.mark.parametrize(
    ('scenario', 'upload_rate'),
    [
      ('size', 1.0),
      ('size', 0.4),
      ('size', 0.1),
      ('class', 1.0),
      ('class', 0.4),
    ],
  )
  def test_two_rounds(self, scenario, upload_rate):
    clients = {'size': _clients, 'class': _clients_by_class}[scenario]()
    _, _, expected, reports = _run(
      [clients] * 2, scenario=scenario, upload_rate=upload_rate
    )
    assert expected.reputable.all()
    accuracy = [report['validation_accuracy'] for report in reports]
    assert np.ptp(accuracy) > 0
    assert 0 < min(reports[-1]['num_allocated']) < 15

  def test_some_entries_are_clipped_and_some_are_not(self):
    model = linear_task.initial_model()
    for data in _clients().values():
      trained = numpy_reference.train(model, data, learning_rate=0.3, epochs=1)
      update = np.abs(cffl_reference.flatten(trained.plus(model, -1.0)))
      assert 0 < np.sum(update > 0.05) < 15

  @pytest.mark.parametrize(
    'options',
    [
      {'agg_norm': 'max'},
      {'own_share': 'aggregation'},
      {'own_share': 'aggregation', 'agg_norm': 'sum', 'scenario': 'class'},
      {'normalize_before_mixing': True},
      {'history_weight': 0.2, 'punishment_factor': 1.0},
      {'clip_mode': 'norm', 'clip_value': 0.1},
      {'ties': 'preclip', 'upload_rate': 0.4, 'clip_value': 0.02},
      {'ties': 'keep', 'upload_rate': 0.4, 'clip_value': 0.02},
      {'ties': 'keep', 'clip_value': 0.01},
      {'local_epochs': 3, 'decay': 0.5},
      {'pretrain': True},
      {'pretrain': True, 'pretrain_epochs': 2, 'upload_rate': 0.4},
      {'amounts': (1, 20, 17)},
    ],
    ids=str,
  )
  def test_an_option(self, options):
    classes = options.get('scenario') == 'class'
    clients = _clients_by_class() if classes else _clients()
    _, _, expected, _ = _run([clients] * 2, **options)
    kept = ('scenario', 'upload_rate', 'clip_value')
    usual = _reference(
      clients,
      _plain_validation(),
      **{name: options[name] for name in kept if name in options},
    )
    for _ in range(2):
      usual.next(clients)
    one, other = (
      np.append(found.models, found.reputations) for found in (usual, expected)
    )
    assert np.abs(one - other).max() > 1e-5

  def test_the_own_model_of_pretraining_is_not_the_server_s(self):
    clients = _clients()
    process, outputs, _, _ = _run([clients], pretrain=True)
    state = outputs[0].state
    start = cffl_reference.flatten(linear_task.initial_model())
    shadows = _rows(state.aggregator['shadow'])
    assert np.abs(shadows - start).max() < 0.0501  # One clipped upload.
    # Five epochs more, unclipped.
    assert np.abs(_models(process, state) - start).max() > 0.2

  @pytest.mark.parametrize('upload_rate', [1.0, 0.4])
  def test_partial_attendance(self, upload_rate):
    clients = _clients()
    cohorts = ([0, 1, 2], [2, 0], [0], [1, 2])
    process, outputs, _, _ = _run(
      [_some(clients, cohort) for cohort in cohorts], upload_rate=upload_rate
    )
    before, after = (_models(process, outputs[t].state) for t in (0, 1))
    np.testing.assert_array_equal(before[1], after[1])
    first, second = (outputs[t].state.aggregator['reputation'] for t in (0, 1))
    assert first[1] == second[1]
    assert second[0] + second[2] == pytest.approx(1.0)

  def test_one_who_comes_late(self):
    clients = _clients()
    _run([_some(clients, ids) for ids in ([0, 1], [0, 2, 1])], pretrain=True)


@pytest.mark.usefixtures('default_runtime')
class TestIsolation:
  """Mostly of the second of three, whose amount is the largest."""

  _CLIENTS = _clients()

  @pytest.mark.parametrize(
    ('isolation', 'reputable'), [('once', [1, 0, 1]), ('cascade', [1, 0, 0])]
  )
  def test_once_or_in_a_cascade(self, isolation, reputable):
    # c is (.805, .066, .129), and the second is below 1/9. Then c is
    # (.862, 0, .138), and the third is below 1/6.
    validation = _scored_validation(self._CLIENTS, (12, 3, 5), **_LARGE)
    _, outputs, _, _ = _run(
      [self._CLIENTS], validation, isolation=isolation, **_LARGE
    )
    found = outputs[0].state.aggregator['reputable']
    np.testing.assert_array_equal(found, reputable)

  def test_the_bound_of_the_class_scenario_is_half(self):
    clients = _clients(num_labels=(1, 2, 3))
    options = {'scenario': 'class', **_LARGE}
    # c is (.066, .129, .805), and the bound 1/18.
    validation = _scored_validation(clients, (3, 5, 12), **options)
    _, outputs, _, _ = _run([clients], validation, **options)
    assert outputs[0].metrics['aggregator']['num_isolated'] == 0
    assert outputs[0].metrics['aggregator']['clients']['reputation'][0] < 1 / 9

  @pytest.mark.parametrize('upload_rate', [1.0, 0.4])
  def test_the_isolated_are_frozen(self, upload_rate):
    options = {'upload_rate': upload_rate, **_LARGE}
    validation = _scored_validation(self._CLIENTS, (12, 3, 5), **options)
    process, outputs, _, reports = _run(
      [self._CLIENTS] * 3, validation, **options
    )
    np.testing.assert_array_equal(reports[0]['reputable'], [1, 0, 1])
    tables = [_models(process, output.state)[1] for output in outputs]
    np.testing.assert_array_equal(tables[1], tables[0])
    np.testing.assert_array_equal(tables[2], tables[0])
    # The update of the round of removal is still the participant's.
    start = cffl_reference.flatten(linear_task.initial_model())
    assert np.abs(tables[0] - start).max() > 0.1

  def test_the_isolated_go_on_alone_on_request(self):
    options = {**_LARGE, 'clip_value': 0.2}
    validation = _scored_validation(self._CLIENTS, (12, 3, 5), **options)
    process, outputs, _, reports = _run(
      [self._CLIENTS] * 3, validation, after_isolation='standalone', **options
    )
    np.testing.assert_array_equal(reports[0]['reputable'], [1, 0, 1])
    first, second = (_models(process, outputs[t].state)[1] for t in (0, 1))
    # Its updates are clipped as ever.
    assert np.abs(first - second).max() == pytest.approx(0.2, rel=1e-5)

  def test_the_best_is_never_removed(self):
    validation = _scored_validation(self._CLIENTS, (5, 12, 3), **_LARGE)
    _, outputs, _, _ = _run(
      [self._CLIENTS] * 2, validation, threshold_absolute=0.99, **_LARGE
    )
    for output, num_isolated in zip(outputs, (2, 0), strict=True):
      found = output.state.aggregator
      np.testing.assert_array_equal(found['reputable'], [0, 1, 0])
      np.testing.assert_array_equal(found['reputation'], [0, 1, 0])
      assert output.metrics['aggregator']['num_isolated'] == num_isolated
      assert output.metrics['aggregator']['num_reputable'] == 1

  def test_a_round_of_the_isolated_changes_nothing(self):
    validation = _scored_validation(self._CLIENTS, (12, 3, 5), **_LARGE)
    process, outputs, _, _ = _run([self._CLIENTS], validation, **_LARGE)
    before = outputs[0].state
    for present in ([1], []):
      output = _next(process, before, _some(self._CLIENTS, present))
      after = output.state
      np.testing.assert_array_equal(
        _models(process, after), _models(process, before)
      )
      for name in ('reputation', 'reputable', 'shadow'):
        tf.nest.map_structure(
          np.testing.assert_array_equal,
          after.aggregator[name],
          before.aggregator[name],
        )
      assert output.metrics['aggregator']['num_isolated'] == 0


@pytest.mark.usefixtures('default_runtime')
class TestEdgeCases:
  _CLIENTS = _clients()

  def test_all_accuracies_are_zero(self):
    """All reputations are equal, so all are the best, and nobody is removed."""
    validation = _scored_validation(self._CLIENTS, (0, 0, 0), wrong=8, **_LARGE)
    _, outputs, _, _ = _run(
      [self._CLIENTS], validation, threshold_absolute=0.5, **_LARGE
    )
    found = outputs[0].metrics['aggregator']['clients']
    np.testing.assert_array_equal(found['validation_accuracy'], 0.0)
    np.testing.assert_allclose(found['reputation'], 1 / 3)
    # floor(15 * (4, 9, 6) / 9)
    np.testing.assert_array_equal(found['num_allocated'], [6, 15, 10])

  @pytest.mark.parametrize(
    ('threshold_absolute', 'stays'), [(None, 0), (0.0, 1)]
  )
  def test_one_accuracy_is_zero(self, threshold_absolute, stays):
    validation = _scored_validation(self._CLIENTS, (6, 4, 0), **_LARGE)
    _, outputs, _, _ = _run(
      [self._CLIENTS],
      validation,
      threshold_absolute=threshold_absolute,
      **_LARGE,
    )
    found = outputs[0].metrics['aggregator']
    assert found['clients']['reputation'][2] == 0
    assert found['clients']['num_allocated'][2] == 0
    assert found['clients']['reputable'][2] == stays
    assert found['num_non_finite'] == 0

  @pytest.mark.parametrize('upload_rate', [1.0, 0.4])
  def test_non_finite_upload_loses_the_reputation(self, upload_rate):
    clients = _clients()
    clients[1].x[0, 0] = np.inf
    process, outputs, _, _ = _run([clients] * 2, upload_rate=upload_rate)
    metrics = outputs[0].metrics
    assert metrics['client_work']['num_rejected_clients'] == 1
    assert metrics['aggregator']['num_non_finite'] == 1
    np.testing.assert_array_equal(
      metrics['aggregator']['clients']['reputable'], [1, 0, 1]
    )
    _assert_close(
      _models(process, outputs[1].state)[1],
      cffl_reference.flatten(linear_task.initial_model()),
    )

  @pytest.mark.parametrize('upload_rate', [1.0, 0.4])
  def test_non_finite_upload_still_receives(self, upload_rate):
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
    before, after = (_models(process, outputs[t].state)[1] for t in (0, 1))
    # Only entries of the aggregate come in, as many as were allocated.
    assert (
      np.sum(np.abs(after - before) > 1e-6) == (reports[1]['num_allocated'][1])
    )

  def test_isolated_later_it_keeps_what_it_received_before(self):
    clients = _clients()
    bad = dataclasses.replace(clients[1], x=np.full_like(clients[1].x, np.inf))
    process, outputs, _, reports = _run([clients, {**clients, 1: bad}, clients])
    assert reports[0]['num_allocated'][1] > 0
    np.testing.assert_array_equal(reports[1]['reputable'], [1, 0, 1])
    tables = [_models(process, output.state)[1] for output in outputs]
    _assert_close(tables[1], tables[0])
    np.testing.assert_array_equal(tables[2], tables[1])

  def test_everybody_s_upload_is_non_finite(self):
    clients = _clients()
    for data in clients.values():
      data.x[0, 0] = np.nan
    process, outputs, _, _ = _run([clients])
    assert outputs[0].metrics['aggregator']['num_non_finite'] == 3
    start = cffl_reference.flatten(linear_task.initial_model())
    _assert_close(_models(process, outputs[0].state), np.tile(start, (3, 1)))

  def test_pretraining_on_infinite_data_leaves_no_trace(self):
    clients = _clients()
    clients[1].x[0, 0] = np.inf
    process = _process(_plain_validation(), 3, pretrain=True)
    output = _next(process, process.initialize(), clients)
    assert output.metrics['aggregator']['num_non_finite'] == 1
    _assert_close(
      _models(process, output.state)[1],
      cffl_reference.flatten(linear_task.initial_model()),
    )

  def test_nothing_allocated_still_subtracts_the_own_share(self):
    # 15 / 20 < 1.
    _, outputs, expected, _ = _run([self._CLIENTS], amounts=(1, 20, 17))
    assert outputs[0].metrics['aggregator']['clients']['num_allocated'][0] == 0
    start = cffl_reference.flatten(linear_task.initial_model())
    _assert_close(expected.allocations[0], -(expected.shadows[0] - start) / 20)

  def test_one_participant_of_several_present(self):
    """Reputation 1 among those present, and the whole aggregate."""
    _, outputs, _, _ = _run([self._CLIENTS, _some(self._CLIENTS, [0])])
    found = outputs[1].metrics['aggregator']['clients']
    (row,) = np.flatnonzero(found['client_id'] == 0)
    assert found['reputation'][row] == 1
    assert found['num_allocated'][row] == 15


@pytest.mark.usefixtures('default_runtime')
class TestLimits:
  @pytest.mark.parametrize(
    ('own_share', 'threshold_absolute'), [('paper', None), ('aggregation', 1.0)]
  )
  def test_one_participant_alone_is_plain_training(
    self, own_share, threshold_absolute
  ):
    """`G = U - U`; never removed, though all it says of V is wrong."""
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

    So all models, which start alike, stay alike: those of federated averaging.
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
    for j in range(3):
      linear_task.assert_model(
        process.get_client_model_weights(outputs[-1].state, j), model
      )


@pytest.mark.usefixtures('default_runtime')
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
      for before, after in zip(states[:-1], states[1:], strict=True)
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
    tf.nest.map_structure(np.testing.assert_array_equal, outputs, again)

  def test_gaussian_noise_is_clipped(self):
    _, uploads = self._run('gaussian')
    magnitude = np.abs(uploads)
    assert magnitude.max() <= 0.01 + 1e-6
    # 32 % of 60 are expected beyond a standard deviation.
    assert 8 <= np.sum(magnitude > 0.01 - 1e-6) <= 30

  def test_zero(self):
    _, uploads = self._run('zero')
    np.testing.assert_array_equal(uploads, 0.0)

  def test_only_the_largest_values_are_uploaded(self):
    options = {**self._OPTIONS, 'upload_rate': 0.4}
    process = _process(
      _plain_validation(),
      4,
      free_riders=client.FreeRiders(client_ids=(2,)),
      **options,
    )
    clients = {**self._CLIENTS, 3: self._CLIENTS[0]}
    output = _next(process, process.initialize(), clients)
    silent = _reference(clients, _plain_validation(), **options)
    silent.next(clients, {2: np.zeros(15)})
    difference = _flat(process.get_model_weights(output.state))
    upload = (difference - silent.auxiliary) / (10 / 40)
    assert np.sum(np.abs(upload) > 1e-5) == 6
    expected = _reference(clients, _plain_validation(), **options)
    expected.next(clients, {2: np.where(np.abs(upload) > 1e-5, upload, 0.0)})
    _assert_state(process, output.state, expected)


def _zeros(x=(5, 4), y=(0, 1, 2, 0, 1)):
  return np.zeros(x, np.float32), np.array(y, np.int32)


@pytest.mark.parametrize(
  ('options', 'error'),
  [
    ({'upload_rate': 0.0}, ValueError),
    ({'upload_rate': 1.1}, ValueError),
    ({'upload_rate': 'all'}, TypeError),
    ({'scenario': 'sizes'}, ValueError),
    ({'amounts': (1, 2)}, ValueError),
    ({'amounts': (1, 2, 3, -1)}, ValueError),
    ({'amounts': 3}, TypeError),
    ({'amounts': (0, 0, 0, 0)}, ValueError),
    ({'free_riders': [3]}, TypeError),
    ({'amounts': (1, 2, 3, 'x')}, TypeError),
    ({'pretrain_epochs': 0}, ValueError),
    ({'punishment_factor': -1.0}, ValueError),
    ({'history_weight': 1.5}, ValueError),
    ({'history_weight': -0.1}, ValueError),
    ({'clip_value': -0.01}, ValueError),
    ({'clip_mode': 'max'}, ValueError),
    ({'threshold_absolute': -0.1}, ValueError),
    ({'agg_norm': 'mean'}, ValueError),
    ({'own_share': 'none'}, ValueError),
    ({'isolation': 'never'}, ValueError),
    ({'after_isolation': 'gone'}, ValueError),
    ({'ties': 'random'}, ValueError),
    ({'validation': _zeros((0, 4), ())}, ValueError),
    ({'validation': _zeros((5, 3))}, ValueError),
    ({'validation': _zeros((5,))}, ValueError),
    ({'validation': _zeros((4, 4))}, ValueError),
    ({'validation': _zeros(y=(0, 1, 2, 3, 0))}, ValueError),
    ({'validation': _zeros(y=(0, 1, -1, 1, 0))}, ValueError),
    ({'validation': None}, TypeError),
    ({'validation': (1, 2, 3)}, TypeError),
  ],
  ids=lambda value: str(value)[:50],
)
def test_bad_arguments(options, error):
  (name,) = options
  options = {'validation': _zeros(), 'num_clients': 4, **options}
  with pytest.raises(error, match=name):
    _build(**options)


@pytest.mark.parametrize(
  ('options', 'name'),
  [
    ({'client_ids': (0,), 'kind': 'random'}, 'kind'),
    ({'client_ids': (0,), 'bound': -1.0}, 'bound'),
    ({'client_ids': (4,)}, 'free.rider'),
    ({'client_ids': (-1,)}, 'free.rider'),
  ],
  ids=str,
)
def test_bad_free_riders(options, name):
  with pytest.raises(ValueError, match=name):
    _process(
      _plain_validation(),
      4,
      amounts=(1, 2, 3, 4),
      free_riders=client.FreeRiders(**options),
    )


def test_free_riders_without_amounts_are_refused():
  with pytest.raises(ValueError, match='amounts must be given'):
    _process(
      _plain_validation(), 4, free_riders=client.FreeRiders(client_ids=(3,))
    )
