import functools
import math

import numpy as np
import pytest
from scipy import optimize

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms

pytestmark = [pytest.mark.full, pytest.mark.usefixtures('default_runtime')]

_SIZES = (5, 9, 12, 7, 8)
_RATE, _S = 0.1, 2
_loss = reference.LINEAR.loss
_build = functools.cache(
  functools.partial(
    linear_task.build_process,
    algorithms.build_fed_mdfg,
    num_clients=len(_SIZES),
    batch_size=4,
    line_search_scale=_S,
  )
)


def _rounds(cohorts):
  clients = linear_task.make_clients(_SIZES)
  return [linear_task.pick(clients, cohort) for cohort in cohorts]


def _gradient(w, data):
  return reference.gradient(lambda v: _loss(v, data), w)


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


def _fed_mdfg(rounds, angle, rate):
  """The method as its authors describe it; steps are tried one by one."""
  w = linear_task.start()
  last, online = {}, set()
  expected, count = np.zeros(len(_SIZES)), np.zeros(len(_SIZES))
  for clients in rounds:
    ids = list(clients)
    losses = np.array([_loss(w, data) for data in clients.values()])
    gradients = np.array([_gradient(w, data) for data in clients.values()])
    rose = [
      count[i] > 0 and loss > expected[i]
      for i, loss in zip(ids, losses, strict=True)
    ]
    for i, loss, more in zip(ids, losses, rose, strict=True):
      if not more:
        expected[i] = (expected[i] * count[i] + loss) / (count[i] + 1)
      count[i] += 1
    lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
    gradients *= lengths.mean() / lengths
    left = [g for i, g in last.items() if i not in clients]
    p = np.full(len(ids), 1 / np.sqrt(len(ids)))
    unit = losses / np.linalg.norm(losses)
    forced = 0 < sum(rose) < len(ids)
    active = len(ids) > 1 and (np.arccos(unit @ p) > angle or forced)
    rows = [*gradients, *left]
    if active:
      guide = (unit @ p) * unit - p
      rows.append(guide / np.linalg.norm(guide) @ gradients)
    shortest = _shortest_mix(np.array(rows))
    ratio = np.linalg.norm(gradients.mean(axis=0)) / np.linalg.norm(shortest)
    step = _search(
      lambda step, w=w, d=ratio * shortest, clients=clients: np.array(
        [_loss(w - step * d, data) for data in clients.values()]
      ),
      losses,
      gradients @ shortest * ratio,
      steps=(rate if left else 2**_S * rate, 0.5**_S * rate / ratio),
      evens=active,
      fallback=np.inf if online in (set(), set(ids)) else rate,
    )
    last, online = dict(zip(ids, gradients, strict=True)), set(ids)
    w = w - step * ratio * shortest
    sizes = [len(data.y) for data in clients.values()]
    yield {
      'weights': w,
      # Of the received model.
      'client_work/clients/loss': losses,
      'client_work/loss': np.average(losses, weights=sizes),
      'aggregator/active': active,
      'aggregator/phi': np.arccos(min(1.0, unit @ p)),
      'aggregator/num_absent': len(left),
      'aggregator/step_length': step,
      'table/num_rounds': count.copy()[:, np.newaxis],
      'table/expected_loss': expected.copy()[:, np.newaxis],
    }


def _search(losses_at, losses, slopes, steps, evens, fallback):
  """The first step that lowers all losses enough, from long to short."""
  step, shortest = steps
  tried = {}
  while step >= shortest * (1 - 1e-9):
    after = losses_at(step)
    evener = after.sum() / np.linalg.norm(after) > (
      losses.sum() / np.linalg.norm(losses)
    )
    if np.all(after <= losses - 1e-4 * step * slopes) and (evener or not evens):
      return step
    tried[step] = after.sum()
    step /= 2
  lower = [
    s for s, total in tried.items() if total < losses.sum() and s <= fallback
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
    (
      0.0,
      1.0,
      [[0, 2], [0, 2, 4], [0, 1, 2, 4], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]],
      [1, 1, 1, 1, 1],
    ),
  ],
  ids=['uneven', 'forced', 'joined'],
)
def test_five_rounds(angle, rate, cohorts, active):
  outputs = linear_task.assert_rounds(
    _build(angle=angle, learning_rate=rate),
    functools.partial(_fed_mdfg, angle=angle, rate=rate),
    _rounds(cohorts),
    loose=['weights', 'table/expected_loss', 'aggregator/phi'],
  )
  found = [output.metrics['aggregator']['active'] for output in outputs]
  assert found == active


def test_divergence_after_a_gradient_step():
  process = _build(angle=math.pi / 180, learning_rate=_RATE)
  w = linear_task.start()
  (clients,) = _rounds([[0, 2]])
  output = linear_task.next_round(process, process.initialize(), clients)
  found = process.divergence(
    process.initialize(),
    output.state,
    [linear_task.client_data(i, data) for i, data in clients.items()],
  )
  after = linear_task.weights(process, output.state)
  distances = [
    np.abs(w - _RATE * _gradient(w, data) - after).sum()
    for data in clients.values()
  ]
  assert found['parameters_d_manhattan'] == pytest.approx(
    np.mean(distances), rel=1e-4
  )


def test_one_gradient_of_a_model_without_batch_statistics():
  linear_task.assert_refused(
    _build,
    ('local_epochs', 2, '1 for FedMDFG.*found 2'),
    (
      'model_fn',
      linear_task.batch_norm_model_fn,
      'without batch normalisation for FedMDFG',
    ),
  )
