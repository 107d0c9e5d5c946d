import asyncio
import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import fedakd_reference
from tests.algorithms import linear_task
from tff_fair import algorithms
from tff_fair import checkpoints

pytestmark = pytest.mark.usefixtures('default_runtime')

# The last two have no data, and data that is not finite.
_SIZES = (5, 9, 12, 7, 0, 6)
_EMPTY, _BROKEN = 4, 5
_COHORTS = ([0, 1, 2], [2, 0, 3], [1, 3, 2, 0])
_NAMES = {
  'alpha': 'down_weight',
  'beta': 'up_weight',
  'temperature': 'distillation_temperature',
}
_START = linear_task.initial_model()


def _clients(*ids):
  clients = linear_task.make_clients(_SIZES)
  clients[_BROKEN].x[1, 2] = np.nan
  return linear_task.pick(clients, ids)


def _labelled(label, *ids):
  """All inputs are near 1, so of class 2 to the initial model."""
  clients = _clients(*ids)
  for data in clients.values():
    data.x[:] = 1 + data.x / 10
    data.y[:] = label
  return clients


@functools.cache
def _process(**options):
  """The process for the reference's options."""
  options.setdefault('batch_size', fedakd_reference.Options.batch_size)
  return linear_task.build_process(
    algorithms.build_fedakd,
    num_clients=len(_SIZES),
    **{_NAMES.get(k, k): v for k, v in options.items()},
  )


def _orders(options, round_number, client_id, phase, size):
  """The library's shuffles: a function of seed, round, client and epoch."""
  fold_in = tf.random.experimental.stateless_fold_in
  seed = fold_in(fold_in([options.seed, 0], round_number), client_id)
  if phase == 'down':  # No epoch of the other phase has this seed.
    seed = fold_in(seed, options.local_epochs)
  return [
    np.argsort(tf.random.stateless_uniform([size], fold_in(seed, epoch)))
    for epoch in range(options.local_epochs)
  ]


def _reference(**options):
  return fedakd_reference.FedAkd(_START, len(_SIZES), _orders, **options)


def _run(rounds, **options):
  """Runs the process and the reference, and compares them after every round.

  Args:
    rounds: The clients of each round, dictionaries from ids to data.
    **options: The reference's.

  Returns:
    The process, its outputs, and the reference after the last round with its
    reports.
  """
  process, expected = _process(**options), _reference(**options)
  state, outputs, reports = process.initialize(), [], []
  for clients in rounds:
    before = state
    outputs.append(linear_task.next_round(process, state, clients))
    reports.append(expected.next(clients))
    state = outputs[-1].state
    linear_task.assert_model(process.get_model_weights(state), expected.model)
    if options.get('variant') != 'single_dist':
      for i, model in enumerate(expected.models):
        found = process.get_client_model_weights(state, i)
        linear_task.assert_model(found, model)
      _assert_unchanged(process, before, state, present=reports[-1])
    _assert_metrics(outputs[-1].metrics, reports[-1], **options)
  return process, outputs, expected, reports


def _distance(one, other):
  """The largest difference between two references in any kernel."""
  kernels = [
    [f.model.kernel, *(m.kernel for m in f.models)] for f in (one, other)
  ]
  return np.abs(np.subtract(*kernels)).max()


def _assert_unchanged(process, before, after, present):
  """The models of clients that were not present are equal bit for bit."""
  absent = [i for i in range(len(_SIZES)) if i not in present]
  before, after = (
    [rows[absent] for rows in tf.nest.flatten(process.client_model_table(s))]
    for s in (before, after)
  )
  linear_task.assert_equal(before, after)


def _assert_metrics(metrics, report, order='down_up', **_):
  first = {'up_loss': [], 'correct_share': []}
  second = {'loss': [], 'accuracy': []}
  for found in report.values():
    first['up_loss'].append(found['up'][0])
    first['correct_share'].append(found['selected'] / found['size'])
    for name, value in zip(second, found.get('down', ()), strict=False):
      second[name].append(value)
  assert ('second_exchange' in metrics) == (order == 'up_down')
  if order == 'up_down':
    _assert_means(metrics['second_exchange'], report, second)
  elif second['loss']:
    first.update(second)
  _assert_means(metrics['client_work'], report, first)
  clients = metrics['client_work']['clients']
  counts = dict(zip(clients['client_id'], clients['num_correct'], strict=True))
  for i, found in report.items():
    assert counts[i] == found['selected']


def _assert_means(measurements, report, columns):
  """The metrics are these, for each client, and their means over examples."""
  assert set(columns) == {
    name
    for name in measurements
    if name != 'clients' and not name.startswith('num_')
  }
  clients = measurements['clients']
  rows = [list(clients['client_id']).index(i) for i in report]
  sizes = [found['size'] for found in report.values()]
  for name, column in columns.items():
    mean = np.average(column, weights=sizes)
    np.testing.assert_allclose(measurements[name], mean, rtol=1e-5)
    np.testing.assert_allclose(clients[name][rows], column, rtol=1e-5)


_OPTIONS = [
  {},
  {
    'variant': 'all_data',
    'local_epochs': 3,
    'batch_size': 3,
    'seed': 5,
    'decay': 0.5,
  },
  {'variant': 'single_dist'},
  {'variant': 'correct_agg', 'alpha': 0.3, 'beta': 2.0, 'temperature': 3.0},
  {'order': 'up_down'},
  {
    'order': 'up_down',
    'variant': 'correct_agg',
    'alpha': 2.0,
    'beta': 0.5,
    'decay': 0.5,
    'granularity': 'single_step',
    'batch_size': 3,  # It must not matter.
  },
]


@pytest.mark.parametrize('options', _OPTIONS, ids=str)
def test_three_rounds_against_numpy(options):
  """Client 3 comes late; each option makes a difference."""
  rounds = [_clients(*ids) for ids in _COHORTS]
  _, _, expected, reports = _run(rounds, **options)
  selected, size = (
    sum(found[name] for found in reports[-1].values())
    for name in ('selected', 'size')
  )
  assert 0 < selected <= size
  assert (selected == size) == (options.get('variant') == 'all_data')
  for name, value in options.items():
    if name == 'batch_size' and 'granularity' in options:
      continue
    usual = getattr(fedakd_reference.Options, name)
    other = _reference(**{**options, name: usual})
    for clients in rounds:
      other.next(clients)
    assert value != usual
    assert _distance(other, expected) > 1e-4, name


def test_models_start_as_the_global_one():
  process = _process()
  state = process.initialize()
  for rows in linear_task.client_weights(process, state):
    np.testing.assert_array_equal(rows, linear_task.weights(process, state))


@pytest.mark.full
class TestNothingToTeach:
  """In a single step a phase: in more, models would learn the label."""

  _CORRECT_AGG = _OPTIONS[3]

  @pytest.mark.parametrize(
    ('options', 'share'), [({}, 9 / 21), (_CORRECT_AGG, 1.0)], ids=str
  )
  def test_the_global_weights_are_sent_unchanged(self, options, share):
    """They count as 12 of 21 examples, or as 0 correct ones."""
    process, outputs, _, reports = _run(
      [{**_clients(1), **_labelled(0, 2)}],
      granularity='single_step',
      **options,
    )
    assert reports[0][1]['selected'] > 0 == reports[0][2]['selected']
    alone = linear_task.next_round(process, process.initialize(), _clients(1))
    start, moved, expected = (
      linear_task.weights(process, state)
      for state in (process.initialize(), outputs[0].state, alone.state)
    )
    np.testing.assert_allclose(
      moved - start, share * (expected - start), atol=1e-6
    )

  @pytest.mark.parametrize('options', [{}, _CORRECT_AGG], ids=str)
  def test_no_client_has_a_correct_example(self, options):
    clients = _labelled(0, 0, 1, 2)
    process, outputs, _, reports = _run(
      [clients] * 2, granularity='single_step', **options
    )
    assert not any(f['selected'] for r in reports for f in r.values())
    linear_task.assert_equal(
      process.get_model_weights(outputs[-1].state),
      process.get_model_weights(process.initialize()),
    )


@pytest.mark.full
@pytest.mark.parametrize('order', ['down_up', 'up_down'])
def test_empty_and_non_finite_clients_do_not_count(order):
  repaired = linear_task.make_clients(_SIZES)[_BROKEN]
  process, outputs, _, reports = _run(
    [
      _clients(0, _EMPTY, _BROKEN, 1),
      _clients(_BROKEN, 2, _EMPTY),
      {**_clients(0), _BROKEN: repaired},
    ],
    order=order,
  )
  for output in outputs[:2]:
    exchanges = [output.metrics['client_work']]
    if order == 'up_down':
      exchanges.append(output.metrics['second_exchange'])
    for found in exchanges:
      assert found['num_empty_clients'] == 1
      assert found['num_rejected_clients'] == 1
    assert np.isfinite(output.metrics['client_work']['up_loss'])
  if order == 'up_down':
    # The rejected client now comes for the first time, with all of its data.
    assert reports[2][_BROKEN]['selected'] == _SIZES[_BROKEN]
    assert reports[2][0]['selected'] < _SIZES[0]
  before = outputs[-1].state
  for ids in ((), (_EMPTY,)):
    after = linear_task.next_round(process, before, _clients(*ids)).state
    _assert_unchanged(process, before, after, present=())
    linear_task.assert_equal(
      process.get_model_weights(before), process.get_model_weights(after)
    )


@pytest.mark.full
class TestUpDown:
  _ROUNDS = [_clients(0, 1), _clients(0, 1, 2), _clients(1, 2)]

  def test_resumes_from_a_saved_state(self, tmp_path):
    process, outputs, _, _ = _run(self._ROUNDS, order='up_down')
    manager = checkpoints.SafetensorsStateManager(tmp_path)

    async def save_and_load():
      await manager.save(outputs[0].state, 1)
      return await manager.load(1, process.initialize())

    state = asyncio.run(save_and_load())
    for clients, expected in zip(self._ROUNDS[1:], outputs[1:], strict=True):
      output = linear_task.next_round(process, state, clients)
      linear_task.assert_equal(output, expected)
      state = output.state


@pytest.mark.full
def test_only_the_global_model():
  for options in ({'variant': 'single_dist'}, {'evaluate': 'global'}):
    assert not hasattr(_process(**options), 'get_client_model_weights')


@pytest.mark.full
def test_all_data_without_distillation_is_fed_avg_bit_for_bit():
  linear_task.assert_is_fed_avg(
    algorithms.build_fedakd,
    'sgd',
    only_weights=True,
    variant='all_data',
    up_weight=0,
  )


@pytest.mark.full
def test_teachers_and_selection_use_moving_statistics():
  """Students use those of their batch; a rate of 0 keeps all weights."""

  def model_fn():
    x = tf.keras.Input([linear_task.NUM_FEATURES])
    h = tf.keras.layers.BatchNormalization(momentum=0.5)(x)
    return tf.keras.Model(x, linear_task.model_fn()(h))

  process = algorithms.build_fedakd(
    model_fn,
    num_clients=1,
    client_optimizer=linear_task.sgd(0.0),
    granularity='single_step',
  )
  (data,) = linear_task.make_clients((12,))
  data.x += 1.0  # The client's statistics are not the initial ones.
  output = linear_task.run(process, [data], [[0]])

  def logits(x, mean, variance):
    return _START.logits((x - mean) / np.sqrt(variance + 1e-3))

  def loss(x, y, of_teacher):
    of_student = logits(x, x.mean(axis=0), x.var(axis=0))
    return fedakd_reference.cross_entropy(
      of_student, y
    ) + fedakd_reference.distillation(of_student, of_teacher, 1.0)

  def moved(x):
    return x.mean(axis=0) / 2, (1 + x.var(axis=0)) / 2

  x, y = data.x.astype(np.float64), data.y
  of_own = logits(x, *moved(x))
  right = of_own.argmax(axis=1) == y
  assert 0 < right.sum() < len(y)
  found = output.metrics['client_work']
  assert found['correct_share'] == pytest.approx(right.mean())
  expected = loss(x, y, logits(x, 0.0, 1.0))
  assert found['loss'] == pytest.approx(expected, rel=1e-5)
  expected = loss(x[right], y[right], of_own[right])
  assert found['up_loss'] == pytest.approx(expected, rel=1e-5)
  # Each model has the statistics of the examples it was trained on.
  for weights, examples in (
    (process.get_client_model_weights(output.state, 0), x),
    (process.get_model_weights(output.state), x[right]),
  ):
    linear_task.assert_close(weights.non_trainable, list(moved(examples)))


def test_bad_arguments():
  build = functools.partial(
    algorithms.build_fedakd,
    linear_task.model_fn,
    num_clients=2,
    client_optimizer=linear_task.sgd(0.1),
  )
  linear_task.assert_refused(
    build,
    ('order', 'up_down', "'down_up' .*'single_dist'.*found 'up_down'"),
    variant='single_dist',
  )
