import asyncio
import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms
from tff_fair import checkpoints

pytestmark = pytest.mark.usefixtures('default_runtime')

_COHORTS = ([0, 1, 2], [2, 4, 0, 3, 5], [1, 3, 2, 0])
_NAMES = {
  'alpha': 'down_weight',
  'beta': 'up_weight',
  'temperature': 'distillation_temperature',
}
_START = linear_task.start()
_LINEAR = reference.LINEAR


def _labelled(label, *ids):
  """All inputs are near 1, so of class 2 to the initial model."""
  (clients,) = linear_task.rounds([ids])
  for data in clients.values():
    data.x[:] = 1 + data.x / 10
    data.y[:] = label
  return clients


@dataclasses.dataclass(frozen=True)
class _Options:
  """The builder's options.

  `alpha` and `beta` are the factors on the distillation down and up, and
  `decay` is by round.
  """

  learning_rate: float = 0.1
  decay: float = 1.0
  local_epochs: int = 1
  batch_size: int = 4
  granularity: str = 'epochs'
  seed: int = 0
  variant: str = 'full'
  order: str = 'down_up'
  alpha: float = 1.0
  beta: float = 1.0
  temperature: float = 1.0


@functools.cache
def _process(**options):
  """The process for the reference's options."""
  options.setdefault('batch_size', _Options.batch_size)
  return linear_task.build_process(
    algorithms.build_fedakd,
    num_clients=len(linear_task.SIZES),
    **{_NAMES.get(k, k): v for k, v in options.items()},
  )


def _distillation(student, teacher, temperature):
  """`Temp^2 mean_x sum_c q_c (ln q_c - ln p_c)`, of logits."""
  log_p, log_q = (
    tf.nn.log_softmax(logits / temperature) for logits in (student, teacher)
  )
  each = tf.reduce_sum(tf.exp(log_q) * (log_q - log_p), axis=1)
  return temperature**2 * tf.reduce_mean(each)


def _phase(w, teacher, data, factor, options, rate, orders):
  """The student after a phase; its mean loss and accuracy over examples."""
  if not len(data.y):
    return w, {'loss': 0.0, 'accuracy': 0.0}
  size = options.batch_size
  if options.granularity == 'single_step':
    orders, size = orders[:1], len(data.y)

  def loss(v, batch):
    logits, targets = (
      _LINEAR.logits_of(v, batch),
      _LINEAR.logits(teacher, batch.x),
    )
    kd = _distillation(logits, targets, options.temperature)
    accuracy = _LINEAR.right(v, batch.x, batch.y).mean()
    return _LINEAR.loss(v, batch) + factor * kd, {'accuracy': accuracy}

  return reference.descend_on_minibatches(loss, w, data, rate, orders, size)


def _fedakd(rounds, **options):
  options = _Options(**options)
  w, seen = _START, set()
  models = np.tile(w, (len(linear_task.SIZES), 1))
  for number, clients in enumerate(rounds):

    def train(phase, i, student, teacher, data, number=number):
      factor = options.alpha if phase == 'down' else options.beta
      rate = options.learning_rate * options.decay**number
      epochs = options.local_epochs
      # No epoch of the other phase has this seed.
      more = {'phase': epochs} if phase == 'down' else {}
      orders = reference.orders(
        options.seed, number, i, epochs, len(data.y), **more
      )
      return _phase(student, teacher, data, factor, options, rate, orders)

    def down(w=w, clients=clients, train=train):
      """Every client's model learns from the global one."""
      found = []
      for i, data in clients.items():
        models[i], metrics = train('down', i, models[i], w, data)
        found.append(metrics)
      return {name: [m[name] for m in found] for name in found[0]}

    first, second = {}, {}
    if options.variant == 'single_dist':
      models[:] = w
    elif options.order == 'down_up':
      first = down()
    uploads, weights, selected = [], [], []
    first |= {'up_loss': [], 'correct_share': []}
    sizes = [len(data.y) for data in clients.values()]
    for i, data in clients.items():
      chosen = _LINEAR.right(models[i], data.x, data.y)
      new = options.order == 'up_down' and i not in seen
      if new or options.variant == 'all_data':
        chosen[:] = True
      part = linear_task.Client(data.x[chosen], data.y[chosen], None, None)
      upload, metrics = train('up', i, w, models[i], part)
      first['up_loss'].append(metrics['loss'])
      first['correct_share'].append(chosen.mean())
      uploads.append(upload)
      selected.append(chosen.sum())
    weights = selected if options.variant == 'correct_agg' else sizes
    if sum(weights):
      w = reference.mean(uploads, weights)
    if options.order == 'up_down':
      second = down(w)
    seen.update(clients)
    yield {
      'weights': w,
      **({} if options.variant == 'single_dist' else {'models': models.copy()}),
      'client_work/clients/num_correct': selected,
      **_measured('client_work', first, sizes),
      **_measured('second_exchange', second, sizes),
    }


def _measured(part, columns, sizes):
  """Each client's metrics and their means over examples."""
  found = {}
  for name, column in columns.items():
    found[f'{part}/clients/{name}'] = column
    found[f'{part}/{name}'] = np.average(column, weights=sizes)
  return found


def _run(rounds, **options):
  """Compares with the reference in every round."""
  process = _process(**options)
  outputs = linear_task.assert_rounds(
    process, functools.partial(_fedakd, **options), rounds
  )
  for output in outputs:
    assert ('second_exchange' in output.metrics) == (
      options.get('order') == 'up_down'
    )
  return process, outputs


_CORRECT_AGG = {'variant': 'correct_agg', 'alpha': 0.3, 'beta': 2.0}


@pytest.mark.parametrize(
  'options',
  [
    {'temperature': 3.0, 'seed': 5},
    pytest.param(
      {'variant': 'all_data', 'local_epochs': 2, 'decay': 0.5},
      marks=pytest.mark.full,
    ),
    pytest.param({'variant': 'single_dist'}, marks=pytest.mark.full),
    pytest.param(
      {
        'order': 'up_down',
        'variant': 'correct_agg',
        'alpha': 2.0,
        'beta': 0.5,
        'temperature': 3.0,
        'decay': 0.5,
        'granularity': 'single_step',
        'batch_size': 3,  # It must not matter.
      },
      marks=pytest.mark.full,
    ),
  ],
  ids=str,
)
def test_three_rounds(options, tmp_path):
  """Client 3 comes late; the last minibatches of most clients are shorter."""
  rounds = linear_task.rounds(_COHORTS)
  if options.get('variant') == 'single_dist':
    # Without a phase on all examples, one that is not finite is not selected.
    del rounds[1][5]
  process, outputs = _run(rounds, **options)
  if options.get('order') == 'up_down':
    _check_resume(process, outputs, rounds, tmp_path)


def _check_resume(process, outputs, rounds, folder):
  """A state that was saved after the first round goes on as before."""
  states = checkpoints.SafetensorsStateManager(folder)
  asyncio.run(states.save(outputs[0].state, 1))
  state = asyncio.run(states.load(1, process.initialize()))
  for output, clients in zip(outputs[1:], rounds[1:], strict=True):
    state = linear_task.next_round(process, state, clients).state
    linear_task.assert_equal(state, output.state)


@pytest.mark.full
@pytest.mark.parametrize('options', [{}, _CORRECT_AGG], ids=str)
def test_a_client_without_a_correct_example_sends_the_global_weights(options):
  """In a single step a phase: in more, models would learn the label."""
  (alone,) = linear_task.rounds([[1]])
  process, (output, _) = _run(
    [{**alone, **_labelled(0, 2)}, _labelled(0, 2)],
    granularity='single_step',
    **options,
  )
  counts = linear_task.reports(output)['num_correct']
  assert counts[0] > 0 == counts[1]
  # If nobody has one, the model stays.
  silent = linear_task.next_round(
    process, process.initialize(), _labelled(0, 0, 1, 2)
  )
  assert not any(linear_task.reports(silent)['num_correct'])
  linear_task.assert_equal(
    process.get_model_weights(silent.state),
    process.get_model_weights(process.initialize()),
  )


@pytest.mark.full
@pytest.mark.parametrize('order', ['down_up', 'up_down'])
def test_clients_that_do_not_count_in_the_order(order):
  """A client that was rejected comes for the first time later."""
  rounds = linear_task.rounds([[0, 4, 5, 1], [5, 2, 4], [0, 5]])
  rounds[2][5] = linear_task.make_clients(linear_task.SIZES)[5]
  _, outputs = _run(rounds, order=order, local_epochs=2)
  for output in outputs[:2]:
    assert np.isfinite(output.metrics['client_work']['up_loss'])
    if order == 'up_down':
      counts = output.metrics['second_exchange']
      assert counts['num_empty_clients'] == counts['num_rejected_clients'] == 1
  if order == 'up_down':
    found = linear_task.reports(outputs[2])['num_correct']
    assert found[0] < 5 and found[1] == 6


@pytest.mark.full
def test_only_the_global_model():
  for options in ({'variant': 'single_dist'}, {'evaluate': 'global'}):
    assert not hasattr(_process(**options), 'get_client_model_weights')


@pytest.mark.full
def test_teachers_and_selection_use_moving_statistics():
  """Students use those of their batch; a rate of 0 keeps all weights."""
  process = algorithms.build_fedakd(
    functools.partial(linear_task.batch_norm_model_fn, linear_task.model_fn),
    num_clients=1,
    client_optimizer=linear_task.sgd(0.0),
    granularity='single_step',
  )
  (data,) = linear_task.make_clients((12,))
  data.x += 1.0  # The client's statistics are not the initial ones.
  output = linear_task.run(process, [data], [[0]])

  def logits(x, mean, variance):
    return _LINEAR.logits(_START, (x - mean) / np.sqrt(variance + 1e-3))

  def loss(x, y, of_teacher):
    of_student = logits(x, x.mean(axis=0), x.var(axis=0))
    entropy = np.mean(reference.focal_losses(of_student, y))
    return entropy + _distillation(of_student, of_teacher, 1.0)

  def moved(x):
    return x.mean(axis=0) / 2, (1 + x.var(axis=0)) / 2

  x, y = data.x.astype(np.float64), data.y
  of_own = logits(x, *moved(x))
  right = of_own.argmax(axis=1) == y
  assert 0 < right.sum() < len(y)
  found = output.metrics['client_work']
  assert found['correct_share'] == pytest.approx(right.mean())
  expected = float(loss(x, y, logits(x, 0.0, 1.0)))
  assert found['loss'] == pytest.approx(expected, rel=1e-5)
  expected = float(loss(x[right], y[right], of_own[right]))
  assert found['up_loss'] == pytest.approx(expected, rel=1e-5)
  # Each model has the statistics of the examples it was trained on.
  for weights, examples in (
    (process.get_client_model_weights(output.state, 0), x),
    (process.get_model_weights(output.state), x[right]),
  ):
    linear_task.assert_close(weights.non_trainable, list(moved(examples)))


def test_without_a_down_phase_there_is_no_order():
  linear_task.assert_refused(
    functools.partial(linear_task.build_process, algorithms.build_fedakd),
    ('order', 'up_down', "'down_up' .*'single_dist'.*found 'up_down'"),
    variant='single_dist',
    num_clients=2,
  )
