import functools

import numpy as np
import pytest

from tests.algorithms import linear_task
from tests.algorithms import reward_reference
from tff_fair import algorithms
from tff_fair import losses

_SIZES = (5, 9, 12, 7)
_RATE = 0.2
_NETWORK = reward_reference.Network(
  (
    linear_task.NUM_FEATURES,
    linear_task.EMBEDDING_SIZE,
    linear_task.NUM_CLASSES,
  )
)
_COHORTS = ([0, 1, 2, 3], [3, 1], [2, 0, 1, 3])
_EVERYBODY = [[0, 1, 2, 3]]


def _build(model_fn=linear_task.embedding_model_fn, **options):
  options = {
    'num_clients': len(_SIZES),
    'client_optimizer': linear_task.sgd(_RATE),
    'batch_size': 50,
    'num_clusters': 2,
    **options,
  }
  return algorithms.build_pfed_ck(model_fn, **options)


_process = functools.cache(_build)


def _clients(sizes=_SIZES):
  return dict(enumerate(linear_task.make_clients(sizes)))


def _some(ids, clients=None):
  clients = clients or _clients()
  return {i: clients[i] for i in ids}


def _reference(epochs=1, num_clients=4, num_clusters=2, **options):
  return reward_reference.PFedCk(
    reward_reference.Training(_NETWORK, _RATE, epochs),
    reward_reference.vector(linear_task.embedding_model_fn().get_weights()),
    num_clients,
    num_clusters=num_clusters,
    **options,
  )


def _next(process, state, clients):
  # The order in which clients come must not matter.
  data = [linear_task.client_data(i, clients[i]) for i in reversed(clients)]
  return process.next(state, data)


def _personal(process, state):
  return reward_reference.rows(process.client_model_table(state).trainable)


def _interactions(state):
  table = state.client_work['table']['interaction']
  return reward_reference.rows(table.trainable)


def _weights(process, state):
  return reward_reference.vector(process.get_model_weights(state).trainable)


def _close(found, expected):
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-6)


def _assert_rounds(process, expected, rounds):
  """Runs both, and compares them after every round; returns the outputs."""
  state, outputs = process.initialize(), []
  for clients in rounds:
    outputs.append(_next(process, state, clients))
    state = outputs[-1].state
    before = expected.interactions.copy()
    expected.next(clients)
    _close(_personal(process, state), expected.models)
    _close(_interactions(state), expected.interactions)
    _close(_weights(process, state), expected.weights)
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


def test_the_divergences_of_the_example():
  personal, shared = np.log([[0.5, 0.5]]), np.log([[0.7, 0.3]])
  found = losses.distillation_loss(shared, personal)
  np.testing.assert_allclose(found, [0.087177], atol=1e-6)
  found = losses.distillation_loss(personal, shared)
  np.testing.assert_allclose(found, [0.082283], atol=1e-6)


def test_the_reference_on_the_example():
  updates = np.array([[1, 0], [0.9, 0.1], [-1, 0.2]])
  assert reward_reference.clusters(updates, 2) == [[0, 1], [2]]
  p, q = np.array([0.5, 0.5]), np.array([0.7, 0.3])
  found = reward_reference.divergence(p, q), reward_reference.divergence(q, p)
  np.testing.assert_allclose(found, [0.087177, 0.082283], atol=1e-6)


def test_the_reference_s_slopes_are_those_of_its_loss():
  """By differences, with another temperature than 1."""
  rng = np.random.default_rng(0)
  own, other = ([rng.normal(size=[2, 3]) for _ in range(2)] for _ in range(2))
  y, temperature = np.array([2, 0]), 3.0

  def loss(logits, features):
    p, q = (
      reward_reference.softmax(z / temperature) for z in (logits, other[1])
    )
    entropy = -np.log(reward_reference.softmax(logits)[np.arange(2), y])
    divergence = np.sum(q * np.log(q / p), axis=1)
    error = np.mean((features - other[0]) ** 2)
    return np.mean(entropy + 0.7 * divergence) + 0.4 * error

  slopes = reward_reference.mutual_slopes(own, other, y, 0.7, 0.4, temperature)
  for slope, direction in zip(slopes, ((1, 0), (0, 1)), strict=True):
    for place in np.ndindex(2, 3):
      step = np.zeros([2, 3])
      step[place] = 1e-6
      ends = [
        loss(own[1] + s * direction[0] * step, own[0] + s * direction[1] * step)
        for s in (-1, 1)
      ]
      assert slope[place] == pytest.approx(np.diff(ends)[0] / 2e-6, abs=1e-7)


@pytest.mark.usefixtures('default_runtime')
class TestAgainstNumpy:
  def test_three_rounds(self):
    process = _process()
    outputs = _assert_rounds(
      process, _reference(), [_some(ids) for ids in _COHORTS]
    )
    first, second = (o.state for o in outputs[:2])
    for models in (
      lambda state: _personal(process, state),
      _interactions,
    ):
      np.testing.assert_array_equal(
        models(first)[[0, 2]], models(second)[[0, 2]]
      )
    clusters = outputs[0].metrics['aggregator']['clients']['cluster']
    assert len(set(clusters)) == 2
    metrics = outputs[-1].metrics['client_work']
    assert metrics['personal_loss'] < metrics['loss']

  def test_options(self):
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

  def test_both_gradients_are_taken_before_either_step(self):
    process = _process()
    state, expected = process.initialize(), _reference()
    for _ in range(2):
      state = _next(process, state, _clients()).state
      expected.next(_clients())
    # What would come of the other order.
    shared, personal = expected.interactions[0], expected.models[0]
    data, teaching = _clients()[0], (1.0, 1.0)
    values = [_NETWORK.forward(m, data.x) for m in (shared, personal)]
    slopes = reward_reference.mutual_slopes(*values, data.y, *teaching)
    moved = shared - _RATE * _NETWORK.gradient(shared, values[0], *slopes)
    gradients = [
      _NETWORK.gradient(
        personal,
        values[1],
        *reward_reference.mutual_slopes(
          values[1], _NETWORK.forward(teacher, data.x), data.y, *teaching
        ),
      )
      for teacher in (shared, moved)
    ]
    assert np.abs(gradients[0] - gradients[1]).max() > 1e-2
    state = _next(process, state, _some([0])).state
    _close(_personal(process, state)[0], personal - _RATE * gradients[0])

  def test_a_client_without_data_keeps_both_models(self):
    clients = _clients((5, 0, 12, 7))
    process = _process()
    outputs = _assert_rounds(process, _reference(), [clients] * 2)
    assert outputs[0].metrics['client_work']['num_empty_clients'] == 1
    start = _reference().models[1]
    np.testing.assert_array_equal(_interactions(outputs[1].state)[1], start)

  def test_a_client_with_infinite_data_harms_nobody(self):
    clients = _clients()
    clients[1].x[0, 0] = np.nan
    process = _process()
    outputs = _assert_rounds(process, _reference(), [clients] * 2)
    assert outputs[0].metrics['client_work']['num_rejected_clients'] == 1
    start = _reference().models[1]
    for models in (
      _interactions(outputs[1].state),
      _personal(process, outputs[1].state),
    ):
      np.testing.assert_array_equal(models[1], start)


@pytest.mark.usefixtures('default_runtime')
class TestLimits:
  def test_without_teaching_one_cluster_is_fed_avg(self):
    """And personal models are those of clients that train alone.

    Each round with a fresh optimiser: FedAvg with one client.
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
    average = algorithms.build_fed_avg(
      linear_task.embedding_model_fn, **options
    )
    state = process.initialize()
    together = alone = average.initialize()
    for _ in range(2):
      state = _next(process, state, _clients()).state
      together = _next(average, together, _clients()).state
      alone = _next(average, alone, _some([1])).state
    expected = _weights(average, together)
    _close(_weights(process, state), expected)
    _close(_interactions(state), np.tile(expected, (4, 1)))
    _close(_personal(process, state)[1], _weights(average, alone))

  def test_one_client(self):
    _assert_rounds(
      _build(num_clients=1),
      _reference(num_clients=1),
      [_clients((9,))] * 2,
    )

  def test_statistics_are_the_client_s_own(self):
    process = _build(linear_task.embedding_behind_batch_norm_model_fn)
    clients = _clients()
    state = _next(process, process.initialize(), _some([0, 1, 2])).state
    table = state.client_work['table']
    for name in ('model', 'interaction'):
      mean, variance = table[name].non_trainable
      # Momentum .5, from 0 and 1, and one minibatch.
      for i in (0, 1, 2):
        _close(mean[i], 0.5 * clients[i].x.mean(axis=0))
        _close(variance[i], 0.5 + 0.5 * clients[i].x.var(axis=0))
      np.testing.assert_array_equal(mean[3], np.zeros(4))


@pytest.mark.parametrize(
  ('options', 'error', 'message'),
  [
    ({'num_clusters': 0}, ValueError, 'num_clusters must be at least 1, found'),
    (
      {'knowledge_weight': -1.0},
      ValueError,
      'knowledge_weight must be at least 0.0, found -1.0',
    ),
    (
      {'feature_weight': 'b'},
      TypeError,
      "feature_weight must be a real number, found 'b'",
    ),
    (
      {'distillation_temperature': 0.0},
      ValueError,
      'distillation_temperature must be positive, found 0.0',
    ),
    (
      {'model_fn': linear_task.model_fn},
      ValueError,
      "model_fn must build a model with an output 'embedding'",
    ),
  ],
)
def test_bad_arguments(options, error, message):
  with pytest.raises(error, match=message):
    _build(**options)
