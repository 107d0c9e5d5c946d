"""Batch-norm statistics: averaged by the server, or each client's own."""

import functools

import numpy as np
import pytest

from tests.algorithms import contract
from tests.algorithms import linear_task
from tff_fair import algorithms

pytestmark = [pytest.mark.full, pytest.mark.usefixtures('default_runtime')]

_SIZES = (5, 9, 12, 7)
_UNIFORM = np.ones(3) / 3
_BY_SIZE = np.array(_SIZES[:3]) / sum(_SIZES[:3])


_linear = linear_task.batch_norm_model_fn
_embedding = linear_task.embedding_behind_batch_norm_model_fn
_REWARD = {'validation': contract.VALIDATION}
# Model, options, the clients' shares in the global statistics, and whether each
# client keeps its own.
_METHODS = {
  'fed_avg': (_linear, {}, _BY_SIZE, False),
  'q_fed_avg': (_linear, {'q': 0}, _UNIFORM, False),
  # The server's learning rate is for weights.
  'scaffold': (_linear, {'server_learning_rate': 0.1}, _UNIFORM, False),
  'ditto': (_linear, {}, _BY_SIZE, True),
  'standalone': (_linear, {}, np.zeros(3), True),
  'fed_ave': (_linear, _REWARD, _BY_SIZE, True),
  'cffl': (_linear, _REWARD, _BY_SIZE, True),
  'fed_sac': (
    _embedding,
    {**_REWARD, 'contributions': (0.2, 0.4, 0.9, 0.5)},
    _UNIFORM,
    True,
  ),
  'pfed_ck': (_embedding, {}, _BY_SIZE, True),
}


@pytest.mark.parametrize('name', _METHODS)
def test_statistics_after_a_round(name):
  """Momentum .5, from a mean of 0 and a variance of 1, and one minibatch."""
  model_fn, options, shares, own = _METHODS[name]
  process = linear_task.build_process(
    getattr(algorithms, f'build_{name}'),
    model_fn,
    num_clients=len(_SIZES),
    **options,
  )
  clients = linear_task.make_clients(_SIZES)
  state = linear_task.run(process, clients, [[0, 1, 2]]).state
  moved = np.array(
    [[c.x.mean(axis=0) / 2, (c.x.var(axis=0) - 1) / 2] for c in clients[:3]]
  )
  first = np.array([np.zeros(4), np.ones(4)])
  close = functools.partial(linear_task.assert_close, rtol=1e-4)
  close(
    np.array(process.get_model_weights(state).non_trainable),
    first + np.tensordot(shares, moved, 1),
  )
  if own:
    found = np.array(process.client_model_table(state).non_trainable)
    close(found[:, :3], np.moveaxis(first + moved, 0, 1))
    np.testing.assert_array_equal(found[:, 3], first)


def test_statistics_stay_if_their_mean_is_not_finite():
  """Without a bound: a variance of 4e36 is finite, 200 times it is not."""
  clients = dict(enumerate(linear_task.make_clients((5, 200, 12))))
  process = linear_task.build_process(
    algorithms.build_fed_avg,
    _linear,
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
