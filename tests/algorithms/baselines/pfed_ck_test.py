import functools

import numpy as np
import pytest

from tests.algorithms import linear_task
from tests.algorithms import reward_reference
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_RATE = 0.2
_NETWORK = reward_reference.Network(
  (
    linear_task.NUM_FEATURES,
    linear_task.EMBEDDING_SIZE,
    linear_task.NUM_CLASSES,
  )
)
_COHORTS = ([0, 1, 2, 3], [3, 1], [2, 0, 1, 3])
_close = functools.partial(linear_task.assert_close, atol=2e-6)


_build = functools.partial(
  linear_task.build_process,
  algorithms.build_pfed_ck,
  model_fn=linear_task.embedding_model_fn,
  learning_rate=_RATE,
  num_clients=4,
  num_clusters=2,
)


_process = functools.cache(_build)


def _clients(sizes=(5, 9, 12, 7)):
  return dict(enumerate(linear_task.make_clients(sizes)))


def _reference(epochs=1, num_clusters=2, **options):
  return reward_reference.PFedCk(
    reward_reference.Training(_NETWORK, _RATE, epochs),
    linear_task.vector(linear_task.embedding_model_fn().get_weights()),
    4,
    num_clusters=num_clusters,
    **options,
  )


def _models(state):
  """The clients' personal and interaction models."""
  table = state.client_work['table']
  return [
    linear_task.client_vectors(table[name].trainable)
    for name in ('model', 'interaction')
  ]


def _assert_rounds(process, expected, rounds):
  """Runs both, and compares them after every round; returns the outputs."""
  state, outputs = process.initialize(), []
  for clients in rounds:
    outputs.append(linear_task.next_round(process, state, clients))
    state = outputs[-1].state
    before = expected.interactions.copy()
    expected.next(clients)
    _close(_models(state), [expected.models, expected.interactions])
    _close(linear_task.weights(process, state), expected.weights)
    found = outputs[-1].metrics['aggregator']
    clusters = np.full(len(before), -1)
    for group in expected.clusters:
      clusters[group] = min(group)
    unmoved = np.all(before == expected.interactions, axis=1)
    clusters[unmoved] = -1
    np.testing.assert_array_equal(state.aggregator['cluster'], clusters)
    np.testing.assert_array_equal(
      found['clients']['cluster'], clusters[found['clients']['client_id']]
    )
    assert found['num_clusters'] == len(set(clusters) - {-1})
  return outputs


def test_three_rounds_against_numpy():
  rounds = [linear_task.pick(_clients(), ids) for ids in _COHORTS]
  outputs = _assert_rounds(_process(), _reference(), rounds)
  for first, second in zip(
    *(_models(o.state) for o in outputs[:2]), strict=True
  ):
    np.testing.assert_array_equal(first[[0, 2]], second[[0, 2]])
  clusters = outputs[0].metrics['aggregator']['clients']['cluster']
  assert len(set(clusters)) == 2
  metrics = outputs[-1].metrics['client_work']
  assert metrics['personal_loss'] < metrics['loss']


def test_options_against_numpy():
  options = {
    'knowledge_weight': 2.0,
    'feature_weight': 0.3,
    'distillation_temperature': 3.0,
    'num_clusters': 3,
  }
  _assert_rounds(
    _build(local_epochs=3, **options),
    _reference(epochs=3, **options),
    [_clients()] * 2,
  )


@pytest.mark.full
def test_clients_without_data_or_with_nan_keep_both_models():
  broken = _clients()
  broken[1].x[0, 0] = np.nan
  for clients, count in (
    (_clients((5, 0, 12, 7)), 'num_empty_clients'),
    (broken, 'num_rejected_clients'),
  ):
    outputs = _assert_rounds(_process(), _reference(), [clients] * 2)
    assert outputs[0].metrics['client_work'][count] == 1
    for models in _models(outputs[1].state):
      np.testing.assert_array_equal(models[1], _reference().models[1])


@pytest.mark.full
def test_without_teaching_one_cluster_is_fed_avg():
  """And personal models are those of clients that train alone.

  With a new optimiser state every round: FedAvg with one client.
  """
  options = {
    'num_clients': 4,
    'client_optimizer': linear_task.decaying_optimizer('adam'),
    'local_epochs': 2,
    'batch_size': 4,
  }
  process = _build(
    num_clusters=1, knowledge_weight=0.0, feature_weight=0.0, **options
  )
  average = algorithms.build_fed_avg(linear_task.embedding_model_fn, **options)
  state, together, alone = (
    linear_task.run(p, _clients(), [ids] * 2).state
    for p, ids in ((process, range(4)), (average, range(4)), (average, [1]))
  )
  expected = linear_task.weights(average, together)
  _close(linear_task.weights(process, state), expected)
  personal, interactions = _models(state)
  _close(interactions, np.tile(expected, (4, 1)))
  _close(personal[1], linear_task.weights(average, alone))


@pytest.mark.full
def test_statistics_are_the_client_s():
  process = _build(model_fn=linear_task.embedding_behind_batch_norm_model_fn)
  clients = _clients()
  table = linear_task.run(process, clients, [[0, 1, 2]]).state.client_work[
    'table'
  ]
  for name in ('model', 'interaction'):
    mean, variance = table[name].non_trainable
    # Momentum .5, from 0 and 1, and one minibatch.
    for i in (0, 1, 2):
      x = clients[i].x
      _close(mean[i], 0.5 * x.mean(axis=0))
      _close(variance[i], 0.5 + 0.5 * x.var(axis=0))
    np.testing.assert_array_equal(mean[3], np.zeros(4))


def test_bad_arguments():
  linear_task.assert_refused(
    _build,
    ('model_fn', linear_task.model_fn, "build a model with an output 'embed"),
  )
