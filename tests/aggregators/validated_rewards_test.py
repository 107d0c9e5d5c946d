import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.aggregators import rounds
from tff_fair import aggregators
from tff_fair.aggregators import validated_rewards

_CLOSE = np.array([1, 0.5, 0.2])
_ACCURACIES = np.array([0.8, 0.6, 0.5])
_REPUTATIONS = np.array([0.824742, 0.154639, 0.020619])


def _close(found, expected, atol=1e-6):
  np.testing.assert_allclose(found, expected, atol=atol)


def test_loss_divergences():
  def divergences(losses, reference, numbers):
    return validated_rewards.loss_divergences(
      np.float32(losses), np.float32(reference), np.int32(numbers)
    ).numpy()

  found = divergences([[0.5, 1, 1.5]], [[1, 1, 1]], [3])
  _close(found, [0.087208])
  assert found.dtype == np.float64
  # The level of the losses does not matter.
  found = divergences(
    [[0.5, 1, 1.5], [5, 10, 15]], [[7, 7, 7], [1, 1, 1]], [3, 3]
  )
  _close(found, [0.087208, 0.087208])
  # (1/4, 3/4) against (1/2, 1/2), whatever comes after the shorter.
  found = divergences([[1, 3, 9]], [[2, 2, 5]], [2])
  _close(found, [0.25 * np.log(0.5) + 0.75 * np.log(1.5)])
  # Equal distributions have a divergence of almost 0.
  found = divergences([[1, 2], [1, 3]], [[2, 4], [1, 1]], [2, 2])
  assert found[0] == 1e-12 < found[1]
  # One minibatch has the largest of the others, or makes all alike.
  found = divergences(
    [[1, 0], [1, 3], [1, 2], [0, 0]], np.ones([4, 2]), [1, 2, 2, 0]
  )
  assert found[0] == found[1] == found[3] > found[2]
  found = divergences([[1, 0], [2, 0]], np.ones([2, 2]), [1, 1])
  np.testing.assert_array_equal(found, [1, 1])
  # A loss of 0: ln 2, and 1/2 ln(1/2 / 1e-12) + 1/2 ln(1/2).
  found = divergences([[0, 2], [1, 1]], [[1, 1], [0, 2]], [2, 2])
  _close(found, [np.log(2), 0.5 * (np.log(0.5e12) + np.log(0.5))])


class TestFunctions:
  def test_reputations_have_a_history_and_a_floor(self):
    found = validated_rewards.reputations(
      np.array([0.6, 0.4, 0.0]), np.array([0.5, 0.0, 0.0]), _CLOSE, 0.9
    )
    _close(found, [0.9 * 0.6 + 0.1 * 0.5, 0.36, 1e-3])


# Clients whose trained weights are 1, 2 and 3 have the accuracies and losses of
# the example: KL is .02, .04, .1.
_RECEIVED = np.float32([[0, 1], [1, 2], [4, 3]])
_UPDATES = np.float32([[1, 0], [0, -2], [-0.3, 0.4]])
_COUNTS = (3, 2, 1)


def _accuracy(weights):
  trained = tf.constant(_RECEIVED + _UPDATES)
  nearest = tf.argmin(tf.reduce_sum(tf.abs(trained - weights), axis=1))
  return tf.gather(np.float32(_ACCURACIES), nearest)


def _batch_losses(weights):
  """Two minibatches with the same loss, of whatever level."""
  return tf.ones([2]) * (1 + tf.abs(weights[0]))


def _uneven(divergence):
  """Two losses of which KL(. || (1/2, 1/2)) is so much."""
  low, high = 0.5, 1.0 - 1e-9
  for _ in range(100):
    p = (low + high) / 2
    found = p * np.log(2 * p) + (1 - p) * np.log(2 * (1 - p))
    low, high = (p, high) if found < divergence else (low, p)
  return np.float32([p, 1 - p])


_LOSSES = [_uneven(divergence) for divergence in (0.02, 0.04, 0.1)]


@functools.cache
def _process(altruism=5.0, **options):
  factory = aggregators.ValidatedRewardFactory(
    _accuracy, _batch_losses, num_clients=3, altruism=altruism, **options
  )
  return rounds.create(factory, _UPDATES[0], _weight(0, 1, 2))


def _weight(i, count, num_losses):
  return rounds.weight(
    i,
    num_examples=count,
    received=_RECEIVED[i],
    losses=_LOSSES[i],
    num_losses=np.int32(num_losses),
  )


def _next(process, state, ids, counts=_COUNTS, num_losses=(2, 2, 3)):
  # TFF's sign: an update is old weights minus new.
  return rounds.run(
    process,
    [-_UPDATES[i] * (counts[i] > 0) for i in ids],
    [_weight(i, counts[i], num_losses[i]) for i in ids],
    state,
  )


@pytest.mark.usefixtures('default_runtime')
class TestFactory:
  def test_by_hand(self):
    process = _process()
    output = _next(process, process.initialize(), [2, 0, 1])
    state, clients = output.state, output.measurements['clients']
    # Half of (1, 0), (0, -1) and (-.6, .8), by 3, 2 and 1 sixths.
    aggregate = [0.25 - 0.05, -1 / 6 + 0.4 / 6]
    _close(state['aggregate'], aggregate)
    _close(output.result, np.negative(aggregate))
    np.testing.assert_array_equal(clients['client_id'], [0, 1, 2])
    _close(clients['validation_accuracy'], _ACCURACIES)
    _close(clients['divergence'], [0.02, 0.04, 0.1])
    _close(state['reputation'], _REPUTATIONS, atol=3e-6)
    # No rewards in the first round.
    np.testing.assert_array_equal(state['share'], np.zeros(3))
    # The same scores s once more.
    output = _next(process, state, [0, 1, 2])
    scores = 0.9 * state['reputation'] + 0.1 * np.array([0.8, 0.15, 0.02])
    expected = scores / scores.sum()
    _close(output.state['reputation'], expected, atol=3e-6)
    share = np.tanh(5 * expected)
    share = _CLOSE * share / share.max()
    _close(output.state['share'], share, atol=1e-5)

  def test_a_client_that_did_not_train(self):
    process = _process()
    output = _next(
      process, process.initialize(), [0, 1, 2], (0, 2, 1), (2, 2, 2)
    )
    clients = output.measurements['clients']
    _close(clients['validation_accuracy'], [0, 0.6, 0.5])
    _close(clients['divergence'], [0.1, 0.04, 0.1])
    scores = np.array([1e-3, 0.6, 0.5 * 0.4**2])
    _close(output.state['reputation'], scores / scores.sum(), atol=1e-5)
    _close(output.state['aggregate'], [-0.1, -1 / 3 + 0.4 / 3])
