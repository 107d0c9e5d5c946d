import functools

import numpy as np
import pytest

from tests.aggregators import rounds
from tff_fair import aggregators
from tff_fair.aggregators import cosine_shapley

# The example of three clients and two rounds, by hand.
_UPDATES = np.float32([[0.3, 0.1], [0.1, 0.2], [-0.1, 0.05]])
_COUNTS = (3, 2, 1)
_ROUNDS = (
  {
    'aggregate': [0.237171, 0.265396],
    'contribution': [0.867943, 0.964923, -0.262534],
    'reputation': [0.468433, 0.520773, 0.010794],
    'share': [0.913517, 1, 0.022567],
  },
  {
    'aggregate': [0.333818, 0.309376],
    'contribution': [0.910764, 0.935991, -0.352025],
    'reputation': [0.474840, 0.524192, 0.000968],
    'share': [0.919266, 1, 0.002013],
  },
)


def _close(found, expected):
  np.testing.assert_allclose(found, expected, atol=1e-6)


class TestFunctions:
  def test_a_vector_of_zeros_contributes_nothing(self):
    updates = np.float32([[0, 0], [1, 0]])
    zero = np.zeros(2, np.float32)
    _close(cosine_shapley.contributions(updates, np.float32([2, 0])), [0, 1])
    _close(cosine_shapley.contributions(updates, zero), [0, 0])


@functools.cache
def _process(**options):
  factory = aggregators.CosineShapleyFactory(3, **options)
  return rounds.create(factory, _UPDATES[0], rounds.weight(0, num_examples=1))


def _next(process, state, ids, updates=_UPDATES, counts=_COUNTS):
  # TFF's sign: an update is old weights minus new.
  weights = [rounds.weight(i, num_examples=counts[i]) for i in ids]
  return rounds.run(process, [-updates[i] for i in ids], weights, state)


@pytest.mark.usefixtures('default_runtime')
class TestFactory:
  def test_two_rounds_by_hand(self):
    process = _process()
    state = process.initialize()
    np.testing.assert_array_equal(state['reputation'], np.zeros(3))
    for expected in _ROUNDS:
      output = _next(process, state, [2, 0, 1])
      state, clients = output.state, output.measurements['clients']
      _close(output.result, np.negative(expected['aggregate']))
      _close(state['aggregate'], expected['aggregate'])
      np.testing.assert_array_equal(clients['client_id'], [0, 1, 2])
      for name in ('reputation', 'share'):
        _close(state[name], expected[name])
        _close(clients[name], expected[name])
        assert state[name].dtype == np.float64
      _close(clients['contribution'], expected['contribution'])

  def test_an_update_of_0_falls_to_the_floor(self):
    process = _process(history_weight=0.1)
    updates = _UPDATES.copy()
    updates[1] = 0
    state = _next(process, process.initialize(), [0, 1, 2]).state
    before = state['reputation'][1]
    output = _next(process, state, [0, 1, 2], updates)
    assert output.measurements['clients']['contribution'][1] == 0
    found = output.state['reputation']
    # 0.1 r, and once more the floor, by the same norm as the others.
    phi = output.measurements['clients']['contribution']
    scores = np.maximum(0.1 * state['reputation'] + 0.9 * phi, 1e-3)
    assert scores[1] == 0.1 * before > 1e-3
    _close(found, scores / scores.sum())
    for _ in range(2):
      output = _next(process, output.state, [0, 1, 2], updates)
    found = output.state['reputation']
    phi = output.measurements['clients']['contribution']
    # The third, which contributes less than nothing, has the floor, too.
    assert found[1] == found[2] > 0
    assert found[1] == pytest.approx(1e-3, rel=0.2)
    assert np.all(np.isfinite(output.result))

  def test_a_client_without_examples_weighs_nothing_at_first(self):
    process = _process()
    updates = _UPDATES.copy()
    updates[0] = 0
    output = _next(process, process.initialize(), [0, 1, 2], updates, (0, 2, 1))
    units = updates[1:] / np.linalg.norm(updates[1:], axis=1, keepdims=True)
    _close(output.state['aggregate'], 0.5 * (2 * units[0] + units[1]) / 3)
    np.testing.assert_array_equal(
      output.measurements['clients']['contribution'][0], 0
    )

  def test_the_absent_keep_their_reputation_but_for_the_norm(self):
    process = _process()
    first = _next(process, process.initialize(), [0, 1, 2]).state
    output = _next(process, first, [1, 0])
    r = first['reputation']
    units = _UPDATES / np.linalg.norm(_UPDATES, axis=1, keepdims=True)
    # The reputations of those present weigh, by their sum.
    aggregate = 0.5 * r[:2] @ units[:2] / r[:2].sum()
    _close(output.state['aggregate'], aggregate)
    phi = output.measurements['clients']['contribution']
    _close(phi, units[:2] @ aggregate / np.linalg.norm(aggregate))
    scores = np.append(0.95 * r[:2] + 0.05 * phi, r[2])
    _close(output.state['reputation'], scores / scores.sum())
    assert output.state['share'][2] == 0

  def test_statistics_are_averaged_and_have_no_part_in_the_rest(self):
    values = [
      rounds.ModelWeights([-u], [np.float32([10 * i])])
      for i, u in enumerate(_UPDATES)
    ]
    weights = [rounds.weight(i, num_examples=n) for i, n in enumerate(_COUNTS)]
    factory = aggregators.CosineShapleyFactory(3)
    process = rounds.create(factory, values[0], weights[0])
    output = rounds.run(process, values, weights)
    expected = np.negative(_ROUNDS[0]['aggregate'])
    _close(output.result.trainable[0], expected)
    np.testing.assert_allclose(
      output.result.non_trainable[0], [(20 + 20) / 6], rtol=1e-6
    )
