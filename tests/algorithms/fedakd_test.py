import asyncio
import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import fedakd_reference
from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tff_fair import algorithms

# The last two have no data, and data that is not finite.
_SIZES = (5, 9, 12, 7, 0, 6)
_EMPTY, _BROKEN = 4, 5
_COHORTS = ([0, 1, 2], [2, 0, 3], [1, 3, 2, 0])
_NAMES = {
  'alpha': 'down_weight',
  'beta': 'up_weight',
  'temperature': 'distillation_temperature',
}


def _clients(*ids):
  clients = linear_task.make_clients(_SIZES)
  clients[_BROKEN].x[1, 2] = np.nan
  return {i: clients[i] for i in ids}


def _labelled(label, *ids):
  """Clients whose inputs are all near 1, so of class 2 to the first model."""
  clients = _clients(*ids)
  for data in clients.values():
    data.x[:] = 1 + data.x / 10
    data.y[:] = label
  return clients


@functools.cache
def _process(learning_rate=0.1, decay=1.0, **options):
  """The process for the reference's options.

  Its phases are single steps, which must not heed the batch size, unless there
  are epochs.
  """

  def learning_rate_fn(round_number):
    return learning_rate * decay ** tf.cast(round_number, tf.float32)

  steps = {'granularity': 'single_step', 'batch_size': 3}
  if 'local_epochs' in options:
    steps = {'batch_size': 50}
  return algorithms.build_fedakd(
    linear_task.model_fn,
    num_clients=len(_SIZES),
    client_optimizer=linear_task.sgd(learning_rate),
    client_learning_rate_fn=None if decay == 1.0 else learning_rate_fn,
    **{**steps, **{_NAMES.get(k, k): v for k, v in options.items()}},
  )


def _reference(**options):
  return fedakd_reference.FedAkd(
    linear_task.initial_model(), len(_SIZES), **options
  )


def _next(process, state, clients):
  data = [linear_task.client_data(i, c) for i, c in clients.items()]
  return process.next(state, data)


def _run(rounds, **options):
  """Runs both, and compares models and metrics after every round.

  Args:
    rounds: The clients of each round, dictionaries from ids to data.
    **options: The reference's.

  Returns:
    The process, its outputs, the reference after the last round, and what it
    found in each.
  """
  process, expected = _process(**options), _reference(**options)
  state, outputs, reports = process.initialize(), [], []
  for clients in rounds:
    before = state
    outputs.append(_next(process, state, clients))
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
  """Between two references, the largest between entries of any kernel."""
  kernels = [
    [f.model.kernel, *(m.kernel for m in f.models)] for f in (one, other)
  ]
  return np.abs(np.subtract(*kernels)).max()


def _assert_unchanged(process, before, after, present=()):
  """All clients' models are the same bit for bit, but those of some ids."""
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
  counts = dict(
    zip(
      metrics['client_work']['clients']['client_id'],
      metrics['client_work']['clients']['num_correct'],
      strict=True,
    )
  )
  assert {i: counts[i] for i in report} == {
    i: found['selected'] for i, found in report.items()
  }


def _assert_means(measurements, report, columns):
  """The metrics are these, of each client, and their means over examples."""
  assert set(columns) == {
    name
    for name in measurements
    if name != 'clients' and not name.startswith('num_')
  }
  clients = measurements['clients']
  rows = [list(clients['client_id']).index(i) for i in report]
  sizes = [found['size'] for found in report.values()]
  for name, column in columns.items():
    np.testing.assert_allclose(
      measurements[name], np.average(column, weights=sizes), rtol=1e-5
    )
    np.testing.assert_allclose(clients[name][rows], column, rtol=1e-5)


class TestReference:
  """The reference itself, on the worked example."""

  _STUDENT = np.array([[1.0, 0, 0], [0, 2, 1]])
  _TEACHER = np.array([[2.0, 1, 0], [0, 1, 2]])
  _LABELS = np.array([0, 1])

  def test_losses(self):
    entropy = fedakd_reference.cross_entropy(self._STUDENT, self._LABELS)
    assert entropy == pytest.approx(0.479525, abs=1e-6)
    for temperature, expected in ((1.0, 0.237160), (2.0, 0.241175)):
      found = fedakd_reference.distillation(
        self._STUDENT, self._TEACHER, temperature
      )
      assert found == pytest.approx(expected, abs=1e-6)

  def test_gradient(self):
    np.testing.assert_allclose(
      fedakd_reference.slope(
        self._STUDENT, self._TEACHER, self._LABELS, 1.0, 1.0
      ),
      [[-0.256504, 0.089577, 0.166926], [0.045015, 0.042877, -0.087892]],
      atol=1e-6,
    )

  def test_a_step_of_the_whole_loss(self):
    """Inputs of one 1 each, so that the kernel is the student's logits."""
    student, teacher = (
      numpy_reference.Linear(logits, np.zeros(3))
      for logits in (self._STUDENT, self._TEACHER)
    )
    data = np.eye(2), self._LABELS
    model, (loss, accuracy) = fedakd_reference.train(
      student, teacher, data, 1.0, fedakd_reference.Options(), 0.1
    )
    assert loss == pytest.approx(0.716686, abs=1e-6)
    assert accuracy == 1.0
    np.testing.assert_allclose(
      model.kernel[0] - self._STUDENT[0],
      [0.0256504, -0.0089577, -0.0166926],
      atol=1e-7,
    )
    np.testing.assert_array_equal(
      fedakd_reference.correct(teacher, data), [True, False]
    )

  def test_gradient_by_differences(self):
    def loss(logits):
      entropy = fedakd_reference.cross_entropy(logits, self._LABELS)
      return entropy + 0.7 * fedakd_reference.distillation(
        logits, self._TEACHER, 3.0
      )

    steps = 1e-6 * np.eye(6).reshape(6, 2, 3)
    expected = [
      (loss(self._STUDENT + s) - loss(self._STUDENT - s)) / 2e-6 for s in steps
    ]
    found = fedakd_reference.slope(
      self._STUDENT, self._TEACHER, self._LABELS, 0.7, 3.0
    )
    np.testing.assert_allclose(found.ravel(), expected, atol=1e-8)


@pytest.mark.usefixtures('default_runtime')
class TestRoundsAgainstNumpy:
  _ROUNDS = [_clients(*ids) for ids in _COHORTS]

  @pytest.mark.parametrize(
    'options',
    [
      {},
      {'variant': 'all_data', 'local_epochs': 3, 'decay': 0.5},
      {'variant': 'single_dist'},
      {
        'variant': 'correct_agg',
        'alpha': 0.3,
        'beta': 2.0,
        'temperature': 3.0,
      },
      {'order': 'up_down'},
      {
        'order': 'up_down',
        'variant': 'correct_agg',
        'alpha': 2.0,
        'beta': 0.5,
        'decay': 0.5,
      },
    ],
    ids=str,
  )
  def test_three_rounds(self, options):
    """Client 3 comes late; an option must make a difference."""
    _, _, expected, reports = _run(self._ROUNDS, **options)
    selected, size = (
      sum(found[name] for found in reports[-1].values())
      for name in ('selected', 'size')
    )
    assert 0 < selected <= size
    assert (selected == size) == (options.get('variant') == 'all_data')
    for name, value in options.items():
      usual = getattr(fedakd_reference.Options, name)
      other = _reference(**{**options, name: usual})
      for clients in self._ROUNDS:
        other.next(clients)
      assert value != usual
      assert _distance(other, expected) > 1e-4, name

  def test_without_distillation_each_model_trains_alone(self):
    process, outputs, _, _ = _run(self._ROUNDS, alpha=0.0, beta=0.0)
    for i, data in _clients(0, 1, 2, 3).items():
      alone = numpy_reference.train(
        linear_task.initial_model(),
        data,
        learning_rate=0.1,
        epochs=sum(i in cohort for cohort in _COHORTS),
      )
      linear_task.assert_model(
        process.get_client_model_weights(outputs[-1].state, i), alone
      )

  def test_models_start_as_the_global_one(self):
    process = _process()
    state = process.initialize()
    whole = process.get_model_weights(state)
    for i in range(len(_SIZES)):
      linear_task.assert_equal(
        process.get_client_model_weights(state, i), whole
      )


@pytest.mark.usefixtures('default_runtime')
class TestNothingToTeach:
  _CORRECT_AGG = {
    'variant': 'correct_agg',
    'alpha': 0.3,
    'beta': 2.0,
    'temperature': 3.0,
  }

  @pytest.mark.parametrize(
    ('options', 'share'), [({}, 9 / 21), (_CORRECT_AGG, 1.0)], ids=str
  )
  def test_the_global_weights_are_sent_unchanged(self, options, share):
    """By 12 of 21 examples, or by 0 of those that are right."""
    process, outputs, _, reports = _run(
      [{**_clients(1), **_labelled(0, 2)}], **options
    )
    assert reports[0][1]['selected'] > 0 == reports[0][2]['selected']
    alone = _next(process, process.initialize(), _clients(1))
    start, moved, expected = (
      process.get_model_weights(state).trainable[0]
      for state in (process.initialize(), outputs[0].state, alone.state)
    )
    np.testing.assert_allclose(
      moved - start, share * (expected - start), atol=1e-6
    )

  @pytest.mark.parametrize('options', [{}, _CORRECT_AGG], ids=str)
  def test_nobody_has_any_right(self, options):
    clients = _labelled(0, 0, 1, 2)
    process, outputs, _, reports = _run([clients] * 2, **options)
    assert not any(f['selected'] for r in reports for f in r.values())
    linear_task.assert_equal(
      process.get_model_weights(outputs[-1].state),
      process.get_model_weights(process.initialize()),
    )

  def test_who_has_all_right_teaches_all(self):
    _, outputs, _, _ = _run([_labelled(2, 0, 1)])
    assert outputs[0].metrics['client_work']['correct_share'] == 1


@pytest.mark.usefixtures('default_runtime')
class TestWhoDoesNotCount:
  @pytest.mark.parametrize('order', ['down_up', 'up_down'])
  def test_no_data_and_data_that_is_not_finite(self, order):
    rounds = [_clients(0, _EMPTY, _BROKEN, 1), _clients(_BROKEN, 2, _EMPTY)]
    process, outputs, _, _ = _run(rounds, order=order)
    for output in outputs:
      exchanges = [output.metrics['client_work']]
      if order == 'up_down':
        exchanges.append(output.metrics['second_exchange'])
      for found in exchanges:
        assert found['num_empty_clients'] == 1
        assert found['num_rejected_clients'] == 1
      assert np.isfinite(output.metrics['client_work']['up_loss'])
    _assert_unchanged(
      process, process.initialize(), outputs[-1].state, present=(0, 1, 2)
    )

  @pytest.mark.parametrize('ids', [(), (_EMPTY,), (_BROKEN, _EMPTY)])
  def test_nobody_else(self, ids):
    process = _process()
    before = _next(process, process.initialize(), _clients(0, 1)).state
    after = _next(process, before, _clients(*ids)).state
    _assert_unchanged(process, before, after)
    linear_task.assert_equal(
      process.get_model_weights(before), process.get_model_weights(after)
    )

  def test_who_was_rejected_comes_for_the_first_time_later(self):
    repaired = linear_task.make_clients(_SIZES)[_BROKEN]
    rounds = [_clients(0, _BROKEN), {**_clients(0), _BROKEN: repaired}]
    _, _, _, reports = _run(rounds, order='up_down')
    assert reports[1][_BROKEN]['selected'] == _SIZES[_BROKEN]
    assert reports[1][0]['selected'] < _SIZES[0]


@pytest.mark.usefixtures('default_runtime')
class TestUpDown:
  _ROUNDS = [_clients(0, 1), _clients(0, 1, 2), _clients(1, 2)]

  def test_the_first_round_of_each_uses_all_of_its_data(self):
    _, outputs, _, reports = _run(self._ROUNDS, order='up_down')
    assert outputs[0].metrics['client_work']['correct_share'] == 1
    everything = [
      {i for i, found in r.items() if found['selected'] == found['size']}
      for r in reports
    ]
    assert everything == [{0, 1}, {2}, set()]

  def test_down_is_taught_by_the_new_global_model(self):
    process, (output,), _, _ = _run(self._ROUNDS[:1], order='up_down')
    new, x = process.get_model_weights(output.state), self._ROUNDS[0][0].x
    teacher = numpy_reference.Linear(*new.trainable)
    (client,) = _clients(0).values()
    start = linear_task.initial_model()
    options = fedakd_reference.Options()
    for model, is_found in ((teacher, True), (start, False)):
      expected, _ = fedakd_reference.train(
        start, model, (x, client.y), 1.0, options, 0.1
      )
      found = process.get_client_model_weights(output.state, 0).trainable[0]
      assert np.allclose(found, expected.kernel, atol=1e-5) == is_found

  def test_goes_on_from_a_saved_state(self, tmp_path):
    process, outputs, _, _ = _run(self._ROUNDS, order='up_down')
    managed = tff.program.FileProgramStateManager(tmp_path)

    async def save_and_load():
      await managed.save(outputs[0].state, 1)
      return await managed.load(1, process.initialize())

    state = asyncio.run(save_and_load())
    for clients, expected in zip(self._ROUNDS[1:], outputs[1:], strict=True):
      output = _next(process, state, clients)
      linear_task.assert_equal(output, expected)
      state = output.state


@pytest.mark.usefixtures('default_runtime')
class TestWhoseModel:
  @pytest.mark.parametrize(
    'options',
    [{'variant': 'single_dist'}, {'evaluate': 'global'}],
    ids=str,
  )
  def test_only_the_global_one(self, options):
    process = _process(**options)
    assert not hasattr(process, 'get_client_model_weights')


def _with_minibatches(build, **options):
  """Global weights after two rounds of all that a model may have."""
  clients = linear_task.make_clients(_SIZES[:3])
  process = build(
    functools.partial(linear_task.embedding_behind_batch_norm_model_fn, 0.5),
    num_clients=3,
    client_optimizer=linear_task.decaying_optimizer('sgd'),
    local_epochs=2,
    batch_size=4,
    seed=3,
    focal_gamma=0.5,
    **options,
  )
  state = linear_task.run(process, clients, [[0, 1, 2], [2, 0]]).state
  return process.get_model_weights(state)


@pytest.mark.usefixtures('default_runtime')
def test_all_data_without_distillation_is_fed_avg_bit_for_bit():
  found = _with_minibatches(
    algorithms.build_fedakd, variant='all_data', up_weight=0
  )
  linear_task.assert_equal(found, _with_minibatches(algorithms.build_fed_avg))


@pytest.mark.usefixtures('default_runtime')
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
  data.x += 1.0  # Its own statistics are not the first ones.
  output = linear_task.run(process, [data], [[0]])

  def logits(x, mean, variance):
    normalized = (x - mean) / np.sqrt(variance + 1e-3)
    return linear_task.initial_model().logits(normalized)

  def loss(x, y, of_teacher):
    of_student = logits(x, x.mean(axis=0), x.var(axis=0))
    return fedakd_reference.cross_entropy(
      of_student, y
    ) + fedakd_reference.distillation(of_student, of_teacher, 1.0)

  x, y = data.x.astype(np.float64), data.y
  own = x.mean(axis=0) / 2, (1 + x.var(axis=0)) / 2
  of_own = logits(x, *own)
  right = of_own.argmax(axis=1) == y
  assert 0 < right.sum() < len(y)
  found = output.metrics['client_work']
  assert found['correct_share'] == pytest.approx(right.mean())
  expected = loss(x, y, logits(x, 0.0, 1.0))
  assert found['loss'] == pytest.approx(expected, rel=1e-5)
  expected = loss(x[right], y[right], of_own[right])
  assert found['up_loss'] == pytest.approx(expected, rel=1e-5)
  # Each model has the statistics of what it was trained on.
  for weights, examples in (
    (process.get_client_model_weights(output.state, 0), x),
    (process.get_model_weights(output.state), x[right]),
  ):
    for statistic, value in zip(
      weights.non_trainable,
      (examples.mean(axis=0) / 2, (1 + examples.var(axis=0)) / 2),
      strict=True,
    ):
      np.testing.assert_allclose(statistic, value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
  ('options', 'error', 'message'),
  [
    ({'alpha': -0.1}, ValueError, 'down_weight must be at least 0.*found -0.1'),
    ({'beta': -1}, ValueError, 'up_weight must be at least 0.*found -1'),
    ({'beta': np.inf}, ValueError, 'up_weight must be finite, found inf'),
    ({'alpha': '1'}, TypeError, "down_weight must be a real number, found '1'"),
    (
      {'temperature': 0},
      ValueError,
      'distillation_temperature must be positive, found 0',
    ),
    (
      {'temperature': -2.0},
      ValueError,
      'distillation_temperature must be positive, found -2',
    ),
    (
      {'variant': 'half'},
      ValueError,
      "variant must be one of 'full', 'all_data', .*found 'half'",
    ),
    (
      {'order': 'down'},
      ValueError,
      "order must be one of 'down_up', 'up_down', found 'down'",
    ),
    (
      {'variant': 'single_dist', 'order': 'up_down'},
      ValueError,
      "order must be 'down_up' .*'single_dist'.*found 'up_down'",
    ),
    (
      {'granularity': 'batches'},
      ValueError,
      "granularity must be one of .*'single_step', found 'batches'",
    ),
    ({'evaluate': 'both'}, ValueError, "evaluate must be .*found 'both'"),
  ],
  ids=str,
)
def test_bad_arguments(options, error, message):
  options = {_NAMES.get(k, k): v for k, v in options.items()}
  with pytest.raises(error, match=message) as raised:
    algorithms.build_fedakd(
      linear_task.model_fn,
      **{
        'num_clients': 2,
        'client_optimizer': linear_task.sgd(0.1),
        **options,
      },
    )
  assert str(raised.value).count('. ') == 0
