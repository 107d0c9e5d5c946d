import numpy as np
import pytest
import tensorflow_federated as tff

from tff_fair import aggregators

_FLOAT = tff.TensorType(np.float32)
_PAIR = tff.TensorType(np.float32, [2])
_FOUR_CLIENTS = aggregators.MeanDriftFactory(4)


def _run(process, state, updates, weights=None):
  updates = [np.array(u, np.float32) for u in updates]
  weights = weights or np.ones(len(updates))
  return process.next(state, updates, [np.float32(w) for w in weights])


def _assert_close(found, expected):
  np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.usefixtures('default_runtime')
class TestExecution:
  _PROCESS = _FOUR_CLIENTS.create(_PAIR, _FLOAT)

  def _first(self, updates, weights=None):
    return _run(self._PROCESS, self._PROCESS.initialize(), updates, weights)

  def _after_one_round(self):
    return self._first([[1, 0], [3, 2]])

  def test_two_rounds_by_hand(self):
    np.testing.assert_array_equal(self._PROCESS.initialize()['drift'], [0, 0])
    first = self._after_one_round()
    # h = -(4, 2) / 4, though only two of four were there; the mean is (2, 1).
    _assert_close(first.state['drift'], [-1, -0.5])
    _assert_close(first.result, [3, 1.5])
    second = _run(self._PROCESS, first.state, [[2, -4]])
    # h = (-1, -.5) - (2, -4) / 4.
    _assert_close(second.state['drift'], [-1.5, 0.5])
    _assert_close(second.result, [3.5, -4.5])

  def test_excluded_clients_and_weights(self):
    expected = self._after_one_round()
    for found in (
      # Only the sign of a weight is used.
      self._first([[1, 0], [3, 2]], [1e-3, 50]),
      self._first([[9, 9], [1, 0], [np.nan, 0], [3, 2]], [0, 1, 0, 1]),
      self._first([[1, 0], [9, 9], [8, 8], [3, 2]], [1, -1, np.nan, 1]),
      self._first([[1, 0], [np.nan, 1], [np.inf, 1], [3, 2]]),
    ):
      np.testing.assert_array_equal(found.result, expected.result)
      np.testing.assert_array_equal(
        found.state['drift'], expected.state['drift']
      )
