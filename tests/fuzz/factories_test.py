"""The servers that reward: cohorts of any size, values and weights."""

import collections

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.fuzz import strategies
from tff_fair import aggregators
from tff_fair.aggregators import cosine_shapley

pytestmark = pytest.mark.full

_N = 5
_D = 2
_PAIR = tff.TensorType(np.float32, [_D])
_VALUES = st.one_of(
  strategies.MODERATE,
  st.sampled_from(np.float32([1e-30, 1e12, -1e12, 1e30]).tolist()),
  strategies.NOT_FINITE,
)
_RECEIVED = np.float32([0.5, -0.5])
_VALIDATED_TYPE = tff.to_type(
  collections.OrderedDict(
    client_id=np.int32,
    num_examples=np.float32,
    received=_PAIR,
    losses=tff.TensorType(np.float32, [3]),
    num_losses=np.int32,
  )
)


@st.composite
def _cohorts(draw):
  """Ids of up to five clients, a row of values and two counts each."""
  ids = draw(st.lists(st.integers(0, _N - 1), unique=True, max_size=_N))
  rows = draw(strategies.arrays([len(ids), _D], _VALUES))
  counts, numbers = (
    draw(strategies.arrays([len(ids)], st.integers(0, most), np.int32))
    for most in (9, 4)
  )
  return np.array(ids, np.int32), rows, np.float32(counts), numbers


_ROUNDS = st.lists(_cohorts(), min_size=1, max_size=2)


def _all_finite(structure):
  return all(
    np.isfinite(t).all()
    for t in tf.nest.flatten(structure)
    if np.asarray(t).dtype.kind == 'f'
  )


def _run(process, rounds, weights):
  """Runs and checks the rounds; yields each cohort and its output.

  Args:
    process: The aggregation process.
    rounds: Drawn from `_ROUNDS`.
    weights: `(counts, numbers) -> list`, each client's weight but for its id.
  """
  state = process.initialize()
  for ids, rows, counts, numbers in rounds:
    weight = [
      collections.OrderedDict(client_id=client_id, **others)
      for client_id, others in zip(ids, weights(counts, numbers), strict=True)
    ]
    output = process.next(state, list(rows), weight)
    _check_rewards(state, ids, output)
    yield ids, rows, output
    state = output.state


def _check_rewards(before, ids, output):
  """What both servers have in common."""
  state, clients = output.state, output.measurements['clients']
  assert _all_finite(state) and _all_finite(output.measurements)
  assert state['reputation'].min() >= 0
  total = state['reputation'].sum()
  assert total == pytest.approx(1) or total == 0
  assert 0 <= state['share'].min() <= state['share'].max() <= 1 + 1e-9
  absent = np.setdiff1d(range(_N), ids)
  assert not np.any(state['share'][absent])
  kept = before['reputation'][absent]
  if kept.sum() > 0:
    own = state['reputation'][absent]
    np.testing.assert_allclose(own / own.sum(), kept / kept.sum(), rtol=1e-6)
  np.testing.assert_array_equal(clients['client_id'], np.sort(ids))
  np.testing.assert_array_equal(output.result, -state['aggregate'])


@pytest.mark.usefixtures('default_runtime')
@pytest.mark.parametrize('variant', ['original', 'fedakd'])
def test_cosine_shapley(variant):
  process = aggregators.CosineShapleyFactory(_N, variant=variant).create(
    _PAIR, cosine_shapley.WEIGHT_TYPE
  )

  def weights(counts, numbers):
    del numbers  # Unused.
    return [{'num_examples': count} for count in counts]

  @strategies.costly
  @given(_ROUNDS)
  def check(rounds):
    for _, _, output in _run(process, rounds, weights):
      if variant == 'original':
        # A mean of updates of length 1/2.
        aggregate = np.float64(output.state['aggregate'])
        assert np.linalg.norm(aggregate) <= 0.5 + 1e-6

  check()


@pytest.mark.usefixtures('default_runtime')
@pytest.mark.parametrize('variant', ['original', 'fedakd'])
def test_validated_reward(variant):
  process = aggregators.ValidatedRewardFactory(
    lambda weights: tf.cast(tf.reduce_sum(weights) > 0, tf.float32),
    lambda weights: tf.fill(
      [3], 1 + tf.abs(tf.clip_by_value(weights[0], 0, 9))
    ),
    num_clients=_N,
    variant=variant,
  ).create(_PAIR, _VALIDATED_TYPE)

  @strategies.costly
  @given(_ROUNDS, strategies.arrays([3], st.floats(0.125, 4, width=32)))
  def check(rounds, losses):
    def weights(counts, numbers):
      return [
        dict(
          num_examples=count,
          received=_RECEIVED,
          losses=losses,
          num_losses=number,
        )
        for count, number in zip(counts, numbers, strict=True)
      ]

    for ids, rows, output in _run(process, rounds, weights):
      accuracies = output.measurements['clients']['validation_accuracy']
      silent = ~np.isfinite(rows).all(axis=1)
      assert not np.any(accuracies[silent[np.argsort(ids)]])

  check()
