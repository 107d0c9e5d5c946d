"""The seed of the clients' draws is in the state, and nowhere else."""

import numpy as np
import pytest

from tests.algorithms import linear_task
from tff_fair import algorithms
from tff_fair.client import local_training

pytestmark = pytest.mark.usefixtures('default_runtime')

_CLIENTS = dict(enumerate(linear_task.make_clients([20, 30])))
# Other halves of the words.
_SEEDS = (3, 5 * 2**31 + 4)


def _build(seed):
  # Batches of five, so that the shuffles matter.
  return linear_task.build_process(
    algorithms.build_fed_avg, num_clients=2, batch_size=5, seed=seed
  )


def test_a_state_brings_its_seed_to_any_process():
  first, second = map(_build, _SEEDS)
  states = first.initialize(), second.initialize()
  for seed, state in zip(_SEEDS, states, strict=True):
    found = state.client_work['seed']
    np.testing.assert_array_equal(found, local_training.seed_words(seed))
  assert [list(s.client_work['seed']) for s in states] == [[3, 0], [4, 5]]
  own, expected, found = (
    linear_task.next_round(process, state, _CLIENTS).state
    for process, state in (
      (first, states[0]),
      (second, states[1]),
      (first, states[1]),
    )
  )
  weights = linear_task.weights(second, expected)
  np.testing.assert_array_equal(linear_task.weights(first, found), weights)
  assert not np.allclose(linear_task.weights(first, own), weights, atol=1e-6)
  # It stays.
  np.testing.assert_array_equal(found.client_work['seed'], [4, 5])
