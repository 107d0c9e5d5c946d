"""What the norm bound and the robust rule do to whole processes."""

import numpy as np
import pytest

from tests.algorithms import linear_task
from tff_fair import algorithms

pytestmark = [
  pytest.mark.full,
  pytest.mark.usefixtures('default_runtime'),
]


# SCAFFOLD also makes its control variates of the bounded model.
@pytest.mark.parametrize(
  'build', (algorithms.build_fed_avg, algorithms.build_scaffold)
)
def test_the_default_bound_changes_no_bit_of_an_honest_run(build):
  bounded, unbounded = (
    linear_task.regularised_rounds(build, 'plain', **options)
    for options in ({}, {'max_update_norm': None})
  )
  # Weights, metrics (none is clipped) and the control variates.
  linear_task.assert_equal(bounded, unbounded)
  for _, metrics, table in bounded:
    assert metrics['num_clipped_clients'] == 0
    if build is algorithms.build_scaffold:
      assert all(np.any(rows, axis=-1).any() for rows in table['control'])


def test_a_robust_rule_leaves_a_huge_update_out():
  clients = linear_task.make_clients((5, 9, 12))
  process = linear_task.build_process(
    algorithms.build_fed_avg, num_clients=3, robust=True
  )
  start = process.initialize()
  for scale, number in ((1.0, 0), (1e18, 1)):
    clients[1].x[:] *= np.float32(scale)
    output = linear_task.next_round(process, start, dict(enumerate(clients)))
    moved = linear_task.weights(process, output.state) - linear_task.weights(
      process, start
    )
    # The first bound of a length.
    assert 0 < np.linalg.norm(moved) <= 1
    assert output.metrics['aggregator']['num_zeroed'] == number
    assert output.metrics['client_work']['num_clipped_clients'] == number


def test_statistics_stay_if_their_mean_is_not_finite():
  """Without a bound: a variance of 4e36 is finite, 200 times it is not."""
  clients = dict(enumerate(linear_task.make_clients((5, 200, 12))))
  process = linear_task.build_process(
    algorithms.build_fed_avg,
    linear_task.batch_norm_model_fn,
    num_clients=3,
    batch_size=10,
    max_update_norm=None,
  )
  output = linear_task.next_round(process, process.initialize(), clients)
  before = process.get_model_weights(output.state)
  clients[1].x[:] *= np.float32(2e18)
  output = linear_task.next_round(process, output.state, clients)
  after = process.get_model_weights(output.state)
  assert output.metrics['client_work']['num_rejected_clients'] == 0
  linear_task.assert_equal(after.non_trainable, before.non_trainable)
  assert np.isfinite(linear_task.vector(after.trainable)).all()
