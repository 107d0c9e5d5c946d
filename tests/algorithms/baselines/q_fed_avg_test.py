import functools

import pytest

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')


def _q_fed_avg(rounds, q, decay):
  """Sums of Delta_i and of h_i, as in the paper."""
  w = linear_task.start()
  for number, clients in enumerate(rounds):
    rate = 0.1 * decay**number
    losses, deltas, weights = [], [], []
    for data in clients.values():
      loss = float(reference.LINEAR.loss(w, data))
      trained = reference.LINEAR.train(w, data, rate=rate, epochs=2)
      change = (w - trained) / rate
      losses.append(loss)
      deltas.append(loss**q * change)
      weights.append(q * loss ** (q - 1) * change @ change + loss**q / rate)
    w = w - sum(deltas) / sum(weights)
    yield {
      'weights': w,
      'aggregator/weight_sum': sum(weights),
      'client_work/clients/loss_before': losses,
    }


def test_three_rounds():
  options = {'q': 2.0, 'decay': 0.5}
  process = linear_task.build_process(
    algorithms.build_q_fed_avg, num_clients=6, local_epochs=2, **options
  )
  linear_task.assert_rounds(
    process, functools.partial(_q_fed_avg, **options), linear_task.rounds()
  )
