import functools
import math

import numpy as np
import pytest
from scipy import optimize
import tensorflow as tf

from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_SIZES = (5, 9, 12, 7, 8)
_RATE, _S = 0.1, 2
_START = linear_task.initial_model()


_build = functools.partial(
  linear_task.build_process,
  algorithms.build_fed_mdfg,
  num_clients=len(_SIZES),
  batch_size=4,
  line_search_scale=_S,
)


def _outputs(process, clients, cohorts):
  state, outputs = process.initialize(), []
  for cohort in cohorts:
    outputs.append(
      linear_task.next_round(process, state, linear_task.pick(clients, cohort))
    )
    state = outputs[-1].state
  return outputs


def _loss(vector, data):
  model = numpy_reference.Linear.of(vector)
  return np.mean(numpy_reference.cross_entropies(model, data.x, data.y))


def _gradient(vector, data):
  model = numpy_reference.Linear.of(vector)
  return numpy_reference.focal_gradient(model, data.x, data.y, 0.0).vector


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
  """The method as its authors describe it; steps are tried one by one."""

  def __init__(self, angle):
    self.angle = angle
    self.last, self.online = {}, set()
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
    changed = self.online not in (set(), set(ids))
    self.online = set(ids)

    def losses_at(step):
      moved = w - step * ratio * shortest
      return np.array([_loss(moved, clients[i]) for i in ids])

    slopes = gradients @ shortest * ratio
    self.step = self._search(
      rate, ratio, bool(left), changed, losses, losses_at, slopes
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

  def _search(self, rate, ratio, left, changed, losses, losses_at, slopes):
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
    lower = [
      s
      for s, total in tried.items()
      if total < losses.sum() and (s <= rate or not changed)
    ]
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
    # No angle is that large, but some losses rise.
    (
      math.pi / 2,
      1.0,
      [[0, 1, 2], [3], [3], [0, 1, 2], [0, 1]],
      [0, 0, 0, 1, 1],
    ),
    # Nobody leaves, so longer steps are tried, but not as a fallback.
    pytest.param(
      0.0,
      1.0,
      [[0, 2], [0, 2, 4], [0, 1, 2, 4], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]],
      [1, 1, 1, 1, 1],
      marks=pytest.mark.full,
    ),
  ],
  ids=['uneven', 'forced', 'joined'],
)
def test_five_rounds_against_numpy(angle, rate, cohorts, active):
  clients = linear_task.make_clients(_SIZES)
  process = _build(angle=angle, learning_rate=rate)
  outputs = _outputs(process, clients, cohorts)
  found = [o.metrics['aggregator'] for o in outputs]
  assert [f['active'] for f in found] == active
  reference, w = _Reference(angle), _START.vector
  for cohort, output in zip(cohorts, outputs, strict=True):
    num_left = len(set(reference.last) - set(cohort))
    w = reference.round(w, linear_task.pick(clients, cohort), rate)
    found = output.metrics['aggregator']
    assert found['active'] == reference.active
    assert found['num_absent'] == num_left
    assert found['step_length'] == pytest.approx(reference.step)
    found = linear_task.weights(process, output.state)
    linear_task.assert_close(found, w, rtol=1e-4)
  table = outputs[-1].state.client_work['table']
  for name, values in (
    ('num_rounds', reference.count),
    ('expected_loss', reference.expected),
  ):
    expected = [values.get(i, 0) for i in range(len(_SIZES))]
    np.testing.assert_allclose(table[name], expected, rtol=1e-4)


def test_without_a_usable_client_the_model_and_the_memory_stay():
  process, clients = _build(), linear_task.make_clients((5, 6, 0, 7, 8))
  clients[1].x[0, 0] = np.nan
  before, after = _outputs(process, clients, [[0, 3], [1, 2]])
  assert after.metrics['aggregator']['step_length'] == 0
  tf.nest.map_structure(
    np.testing.assert_array_equal,
    (after.state.global_model_weights, after.state.aggregator),
    (before.state.global_model_weights, before.state.aggregator),
  )


@pytest.mark.full
def test_metrics_and_divergence_of_one_round():
  """Metrics of the received model, and distances after a gradient step."""
  process, clients = _build(), linear_task.make_clients(_SIZES)
  (output,) = _outputs(process, clients, [[2, 0]])
  losses = [_loss(_START.vector, clients[i]) for i in (0, 2)]
  found = linear_task.reports(output)['loss']
  np.testing.assert_allclose(found, losses, rtol=1e-5)
  mean = output.metrics['client_work']['loss']
  assert mean == pytest.approx(np.average(losses, weights=[5, 12]))
  phi = np.arccos(np.sum(losses) / np.linalg.norm(losses) / np.sqrt(2))
  assert output.metrics['aggregator']['phi'] == pytest.approx(phi, abs=1e-5)
  found = process.divergence(
    process.initialize(),
    output.state,
    [linear_task.client_data(i, clients[i]) for i in (0, 2)],
  )
  w, after = _START.vector, linear_task.weights(process, output.state)
  distances = [
    np.abs(w - _RATE * _gradient(w, clients[i]) - after).sum() for i in (0, 2)
  ]
  assert found['parameters_d_manhattan'] == pytest.approx(
    np.mean(distances), rel=1e-4
  )


def test_bad_arguments():
  linear_task.assert_refused(
    _build,
    ('local_epochs', 2, '1 for FedMDFG.*found 2'),
    (
      'model_fn',
      linear_task.batch_norm_model_fn,
      'without batch normalisation for FedMDFG',
    ),
  )
