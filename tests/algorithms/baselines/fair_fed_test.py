"""FairFed against its formulas: two groups, absent and dropped clients."""

import functools

import numpy as np
import pytest

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms
from tff_fair import client

pytestmark = [pytest.mark.full, pytest.mark.usefixtures('default_runtime')]

_NETWORK = reference.Network((4, 2))
_COHORTS = ([0, 1, 2, 3], [2, 4, 3, 5], [1, 0, 2, 3])


def _build(name='fair_fed', **options):
  return linear_task.build_process(
    getattr(algorithms, f'build_{name}'),
    linear_task.binary_model_fn,
    **{'num_clients': 6, 'local_epochs': 2, **options},
  )


def _rounds():
  """Client 3 has nobody of group 1."""
  found = []
  for clients in linear_task.rounds(_COHORTS):
    clients = {i: linear_task.of_two_groups(c) for i, c in clients.items()}
    if 3 in clients:
      groups = clients[3].groups
      clients[3].groups = 0 * groups[0], groups[1]
    found.append(clients)
  return found


def _gap(w, clients, positive, condition):
  """F of the examples of all these clients together; NaN if not defined."""
  x, y, group = (
    np.concatenate(parts)
    for parts in zip(*((c.x, c.y, c.groups[0]) for c in clients), strict=True)
  )
  chosen = _NETWORK.logits(w, x).argmax(axis=1) == positive
  counted = [(group == a) & ((y == positive) | ~condition) for a in (0, 1)]
  if not all(map(np.any, counted)):
    return np.nan
  return chosen[counted[0]].mean() - chosen[counted[1]].mean()


def _accuracy(w, clients):
  right = [_NETWORK.right(w, c.x, c.y) for c in clients]
  return np.concatenate(right).mean()


def _fair_fed(rounds, budget, condition, positive, decay):
  """Shares of all clients, in units of their first ones."""
  w, factors = linear_task.start(linear_task.binary_model_fn), np.ones(6)
  for number, clients in enumerate(rounds):
    ids, parts = list(clients), list(clients.values())
    everyone = _gap(w, parts, positive, condition), _accuracy(w, parts)
    deltas = []
    for part in parts:
      own = _gap(w, [part], positive, condition), _accuracy(w, [part])
      place = int(np.isnan(own[0]))
      deltas.append(abs(everyone[place] - own[place]))
    sizes = np.array([len(part.y) for part in parts])
    total = np.sum(sizes * factors[ids])
    shares = sizes * factors[ids] / total
    moved = shares - budget * (np.array(deltas) - np.mean(deltas))
    shares = np.maximum(moved, 0) / np.maximum(moved, 0).sum()
    factors[ids] = shares * total / sizes
    rate = 0.1 * decay**number
    models = [_NETWORK.train(w, p, rate=rate, epochs=2) for p in parts]
    w = shares @ models
    yield {
      'weights': w,
      'server/factor': factors.copy(),
      'aggregator/clients/distance': deltas,
      'aggregator/clients/share': shares,
    }


@pytest.mark.parametrize(
  ('gap', 'positive', 'budget'),
  [
    ('equal_opportunity', 1, 0.1),
    # Some weights would be negative.
    ('statistical_parity', 0, 2.0),
  ],
)
def test_rounds(gap, positive, budget):
  process = _build(
    fairness_gap=gap,
    positive_class=positive,
    fairness_budget=budget,
    decay=0.5,
  )
  expected = functools.partial(
    _fair_fed,
    budget=budget,
    condition=np.bool_(gap == 'equal_opportunity'),
    positive=positive,
    decay=0.5,
  )
  outputs = linear_task.assert_rounds(process, expected, _rounds())
  shares = np.concatenate(
    [o.metrics['aggregator']['clients']['share'] for o in outputs]
  )
  assert (shares == 0).any() == (budget == 2)
  assert outputs[0].metrics['aggregator']['num_without_gap'] == 1


def test_without_budget_it_is_fed_avg_bit_for_bit():
  options = {
    'batch_size': 4,
    'client_optimizer': client.with_weight_decay(
      linear_task.sgd(0.05, momentum=0.9), 0.1
    ),
  }
  found = _build(fairness_budget=0, **options)
  expected = _build('fed_avg', **options)
  states = [found.initialize(), expected.initialize()]
  for clients in _rounds():
    outputs = [linear_task.next_round(found, states[0], clients)]
    for data in clients.values():
      data.groups = None
    outputs.append(linear_task.next_round(expected, states[1], clients))
    states = [output.state for output in outputs]
    linear_task.assert_equal(
      found.get_model_weights(states[0]), expected.get_model_weights(states[1])
    )


def test_what_is_refused():
  linear_task.assert_refused(_build, ('positive_class', 2, '0 or 1, found 2'))
  with pytest.raises(ValueError, match='a model of 2 classes .*, found 3'):
    linear_task.build_process(algorithms.build_fair_fed, num_clients=2)
  x, y = np.zeros([3, 4]), np.zeros(3, int)
  for group in ([0, 1], [0, 1, 2], [0, 1, np.nan]):
    with pytest.raises(ValueError, match='must have the group 0 or 1 of each'):
      client.build_client_data(0, (x, y, group), (x, y, y))
