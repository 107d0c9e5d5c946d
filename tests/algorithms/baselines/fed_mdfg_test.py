import math

import numpy as np
import pytest
from scipy import optimize
import tensorflow as tf

from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_SIZES = (5, 9, 12, 7)
_RATE, _S = 0.1, 2


def _build(model_fn=linear_task.model_fn, **options):
  options = {
    'num_clients': len(_SIZES),
    'client_optimizer': linear_task.sgd(_RATE),
    'batch_size': 4,
    'line_search_scale': _S,
    **options,
  }
  return algorithms.build_fed_mdfg(model_fn, **options)


@pytest.fixture(scope='module', name='process')
def _process():
  return _build(
    client_learning_rate_fn=lambda r: _RATE * 0.9 ** tf.cast(r, tf.float32)
  )


def _outputs(process, clients, cohorts, state=None):
  state = process.initialize() if state is None else state
  outputs = []
  for cohort in cohorts:
    data = [linear_task.client_data(i, clients[i]) for i in cohort]
    outputs.append(process.next(state, data))
    state = outputs[-1].state
  return outputs


def _vector(model):
  return np.concatenate([np.ravel(model.kernel), model.bias])


def _linear(vector):
  shape = linear_task.NUM_FEATURES, linear_task.NUM_CLASSES
  return numpy_reference.Linear(
    vector[: math.prod(shape)].reshape(shape), vector[math.prod(shape) :]
  )


def _loss(vector, data):
  logits = _linear(vector).logits(data.x)
  true = logits[np.arange(len(data.y)), data.y]
  return np.mean(np.log(np.exp(logits).sum(axis=1)) - true)


def _gradient(vector, data):
  return _vector(
    numpy_reference.focal_gradient(_linear(vector), data.x, data.y, 0.0)
  )


def _shortest_mix(rows):
  number = len(rows)
  best = optimize.minimize(
    lambda x: np.sum((x @ rows) ** 2),
    np.full(number, 1 / number),
    jac=lambda x: 2 * rows @ (x @ rows),
    bounds=[(0, 1)] * number,
    constraints={'type': 'eq', 'fun': lambda x: x.sum() - 1},
    method='SLSQP',
    options={'ftol': 1e-16, 'maxiter': 1000},
  )
  return best.x @ rows


class _Reference:
  """The method as its authors' description goes, a step tried at a time."""

  def __init__(self, angle):
    self.angle = angle
    self.last = {}
    self.expected, self.count = {}, {}

  def round(self, w, clients, rate):
    ids = sorted(clients)
    losses = np.array([_loss(w, clients[i]) for i in ids])
    gradients = np.array([_gradient(w, clients[i]) for i in ids])
    forced = 0 < self._count_increased(ids, losses) < len(ids)
    lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
    gradients *= lengths.mean() / lengths
    left = [g for i, g in self.last.items() if i not in clients]
    p = np.full(len(ids), 1 / np.sqrt(len(ids)))
    unit = losses / np.linalg.norm(losses)
    self.active = len(ids) > 1 and (np.arccos(unit @ p) > self.angle or forced)
    rows = [*gradients, *left]
    if self.active:
      guide = (unit @ p) * unit - p
      rows.append(guide / np.linalg.norm(guide) @ gradients)
    shortest = _shortest_mix(np.array(rows))
    ratio = np.linalg.norm(gradients.mean(axis=0)) / np.linalg.norm(shortest)
    self.last = dict(zip(ids, gradients, strict=True))

    def losses_at(step):
      moved = w - step * ratio * shortest
      return np.array([_loss(moved, clients[i]) for i in ids])

    self.step = self._search(
      rate, ratio, bool(left), losses, losses_at, gradients @ shortest * ratio
    )
    return w - self.step * ratio * shortest

  def _count_increased(self, ids, losses):
    increased = 0
    for i, loss in zip(ids, losses, strict=True):
      count = self.count.get(i, 0)
      if count and loss > self.expected[i]:
        increased += 1
      else:
        total = self.expected.get(i, 0) * count + loss
        self.expected[i] = total / (count + 1)
      self.count[i] = count + 1
    return increased

  def _search(self, rate, ratio, left, losses, losses_at, slopes):
    step = rate if left else 2**_S * rate
    tried = {}
    while step >= 0.5**_S * rate / ratio * (1 - 1e-9):
      after = losses_at(step)
      evens = after.sum() / np.linalg.norm(after) > losses.sum() / (
        np.linalg.norm(losses)
      )
      if np.all(after <= losses - 1e-4 * step * slopes) and (
        evens or not self.active
      ):
        return step
      tried[step] = after.sum()
      step /= 2
    lower = [s for s, total in tried.items() if total < losses.sum()]
    return max(lower) if lower else min(tried, key=tried.get)


@pytest.mark.parametrize(
  ('angle', 'rate', 'cohorts', 'active'),
  [
    (
      math.pi / 180,
      0.1,
      [[0, 1, 2], [2, 0, 1, 3], [3, 1], [0, 2], [0, 2]],
      [1, 1, 1, 0, 0],
    ),
    # No angle is that large, but some losses rise above what they were.
    (
      math.pi / 2,
      1.0,
      [[0, 1, 2], [3], [3], [0, 1, 2], [0, 1]],
      [0, 0, 0, 1, 1],
    ),
  ],
  ids=['uneven', 'forced'],
)
def test_five_rounds_against_numpy(angle, rate, cohorts, active):
  clients = linear_task.make_clients(_SIZES)
  process = _build(angle=angle, client_optimizer=linear_task.sgd(rate))
  outputs = _outputs(process, clients, cohorts)
  found = [o.metrics['aggregator'] for o in outputs]
  assert [f['active'] for f in found] == active
  reference = _Reference(angle)
  w = _vector(linear_task.initial_model())
  for cohort, output in zip(cohorts, outputs, strict=True):
    num_left = len(set(reference.last) - set(cohort))
    w = reference.round(w, {i: clients[i] for i in cohort}, rate)
    found = output.metrics['aggregator']
    assert found['active'] == reference.active
    assert found['num_absent'] == num_left
    assert found['step_length'] == pytest.approx(reference.step)
    linear_task.assert_model(
      output.state.global_model_weights, _linear(w), rtol=1e-4
    )
  table = outputs[-1].state.client_work['table']
  counts, losses = reference.count, reference.expected
  np.testing.assert_array_equal(
    table['num_rounds'], [counts[i] for i in range(4)]
  )
  np.testing.assert_allclose(
    table['expected_loss'], [losses[i] for i in range(4)], rtol=1e-4
  )


def test_one_client_descends_along_its_gradient(process):
  (data,) = linear_task.make_clients([9])
  first, second = _outputs(process, [data], [[0], [0]])
  start = linear_task.initial_model()
  steps = [o.metrics['aggregator']['step_length'] for o in (first, second)]
  assert steps[0] == pytest.approx(2**_S * _RATE)
  assert steps[1] == pytest.approx(2**_S * _RATE * 0.9)
  for step, output in zip(steps, (first, second), strict=True):
    start = numpy_reference.train(start, data, learning_rate=step, epochs=1)
    linear_task.assert_model(output.state.global_model_weights, start)
    assert output.metrics['aggregator']['active'] == 0
    assert output.metrics['aggregator']['accepted'] == 1


def test_metrics_are_those_of_the_received_model(process):
  clients = linear_task.make_clients(_SIZES)
  (output,) = _outputs(process, clients, [[2, 0]])
  w = _vector(linear_task.initial_model())
  losses = [_loss(w, clients[i]) for i in (0, 2)]
  found = output.metrics['client_work']
  order = np.argsort(found['clients']['client_id'])
  np.testing.assert_allclose(found['clients']['loss'][order], losses, rtol=1e-5)
  assert found['loss'] == pytest.approx(np.average(losses, weights=[5, 12]))
  phi = np.arccos(np.sum(losses) / np.linalg.norm(losses) / np.sqrt(2))
  assert output.metrics['aggregator']['phi'] == pytest.approx(phi, abs=1e-5)


def test_bad_and_empty_clients_do_not_matter(process):
  clients = linear_task.make_clients((5, 6, 0, 7))
  clients[1].x[0, 0] = np.nan
  *_, alone = _outputs(process, clients, [[0, 3], [3]])
  *_, together = _outputs(process, clients, [[0, 3], [1, 2, 3]])
  counts = together.metrics['client_work']
  assert counts['num_rejected_clients'] == 1
  assert counts['num_empty_clients'] == 1
  assert together.metrics['aggregator'] == alone.metrics['aggregator']
  tf.nest.map_structure(
    np.testing.assert_array_equal, together.state, alone.state
  )


def test_nobody_usable_keeps_the_model_and_the_memory(process):
  clients = linear_task.make_clients((5, 6, 0, 7))
  clients[1].x[0, 0] = np.nan
  (before,) = _outputs(process, clients, [[0, 3]])
  for cohort in ([1, 2], []):
    (after,) = _outputs(process, clients, [cohort], before.state)
    assert after.metrics['aggregator']['step_length'] == 0
    tf.nest.map_structure(
      np.testing.assert_array_equal,
      (after.state.global_model_weights, after.state.aggregator),
      (before.state.global_model_weights, before.state.aggregator),
    )


def test_divergence_is_that_of_one_gradient_step(process):
  clients = linear_task.make_clients(_SIZES)
  state = process.initialize()
  (output,) = _outputs(process, clients, [[0, 1]])
  data = [linear_task.client_data(i, clients[i]) for i in (0, 1)]
  found = process.divergence(state, output.state, data)
  w = _vector(linear_task.initial_model())
  kernel, bias = output.state.global_model_weights.trainable
  after = np.concatenate([kernel.ravel(), bias])
  expected = np.mean(
    [
      np.abs(w - _RATE * _gradient(w, data) - after).sum()
      for data in clients[:2]
    ]
  )
  assert found['parameters_d_manhattan'] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
  ('options', 'message'),
  [
    ({'local_epochs': 2}, 'local_epochs must be 1 for FedMDFG.*found 2'),
    ({'angle': -0.1}, 'angle must be at least 0.0, found -0.1'),
    ({'angle': 1.6}, 'angle must be at most 1.57.*, found 1.6'),
    ({'line_search_scale': -1}, 'line_search_scale must be at least 0, found'),
    (
      {'model_fn': linear_task.batch_norm_model_fn},
      'without batch normalisation for FedMDFG',
    ),
  ],
)
def test_bad_arguments(options, message):
  with pytest.raises(ValueError, match=message):
    _build(**options)
