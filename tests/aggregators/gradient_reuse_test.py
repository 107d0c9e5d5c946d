import collections
import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.aggregators import rounds
from tff_fair import aggregators
from tff_fair.aggregators import gradient_reuse

_EMBEDDINGS = ((1.0, 0.0), (0.6, 0.8), (0.0, 1.0), (0.0, 1.0))
_ZERO = (0.0, 0.0)
_ZEROS = np.float32(_ZERO)
_close = np.testing.assert_allclose


def _weight(client_id, embedding=None, accepted=1):
  if embedding is None:
    embedding = _EMBEDDINGS[client_id]
  return rounds.weight(client_id, accepted=accepted, embedding=embedding)


def _create(value=_ZEROS, **options):
  factory = aggregators.GradientReuseFactory(4, **options)
  return rounds.create(factory, value, _weight(0))


@functools.cache
def _process():
  """One process for most tests."""
  return _create(learning_rate_fn=lambda round_number: 0.1)


def _run(process, cohorts, values=None):
  """The last of some rounds in which client i sends `values[i]`, or zeros."""
  state = process.initialize()
  for cohort in cohorts:
    sent = [np.float32(values[i] if values else _ZERO) for i in cohort]
    output = process.next(state, sent, [_weight(i) for i in cohort])
    state = output.state
  return output


def _assert_clients(output, **expected):
  for name, values in expected.items():
    _close(
      output.measurements['clients'][name], values, atol=1e-6, err_msg=name
    )


class TestFunctions:
  def _alignments(self, embeddings, rate=0.5):
    mean = np.mean(embeddings, axis=0)
    return gradient_reuse.alignment_scores(
      np.array(embeddings), mean, rate
    ).numpy()

  def test_window_and_frequencies(self):
    # The divisor is the window, the count at least 1.
    assert gradient_reuse.participation_window(7, 2) == 3
    assert gradient_reuse.participation_window(2, 3) == 1
    assert gradient_reuse.participation_window(3, 0) == 3
    participation = np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1], [0, 0, 1]], bool)
    found = gradient_reuse.participation_frequencies(
      participation, np.array([1, 3, 0, 2]), 3
    )
    _close(found, [2 / 3, 2 / 3, 2 / 3])
    found = gradient_reuse.participation_frequencies(
      participation, np.array([2, 0, 3, 1]), 2
    )
    _close(found, [1 / 2, 1 / 2, 1 / 2])

  def test_what_embeddings_are_compared_with_by_hand(self):
    online = np.array([(1.0, 0.0), (0.6, 0.8)])
    for kind, expected in (('mean', (0.8, 0.4)), ('first', (1.0, 0.0))):
      found = gradient_reuse.global_embedding(online, kind)
      _close(found, expected, atol=1e-6)
      _close(gradient_reuse.global_embedding(online[:0], kind), _ZERO)

  def test_weights_by_hand(self):
    # z_g = (.8, .4), cos((.857771, .178885), z_g), and by symmetry.
    alignment = self._alignments([(1.0, 0.0), (0.6, 0.8)])
    _close(alignment, [0.966890, 0.966890], atol=1e-6)
    weights = gradient_reuse.contributions(
      np.array([1, 0.5]), alignment, fairness_exponent=0.5, sharpness=2.0
    )
    _close(weights, [0.414214, 0.585786], atol=1e-6)
    # sigma(0) = .5 and sigma(2) = .880797; rare participation counts (1 / f)^2.
    weights = gradient_reuse.contributions(
      np.array([1, 0.5]),
      np.array([1.0, 0.0]),
      fairness_exponent=2.0,
      sharpness=2.0,
    )
    _close(weights, np.array([0.880797, 2]) / 2.880797)

  def test_agreement_of_special_embeddings(self):
    for embeddings, rate, expected in (
      ([_ZERO, (1.0, 0.0)], 0.5, [0, 1]),
      ([(1.0, 0.0), (-1.0, 0.0)], 0.5, [0, 0]),  # z_g is 0.
      # z_g = (1, 0); wholly refined r_3 = cos((0, 1), z_g) z_g = 0.
      ([(1.5, -0.5), (1.5, -0.5), (0.0, 1.0)], 1.0, [1, 1, 0]),
      ([(1.0, 0.0), (1.0, 0.0), (-1.0, 0.0)], 0.5, [1, 1, -1]),
    ):
      found = self._alignments(embeddings, rate)
      _close(found, expected, atol=1e-6)


@pytest.mark.usefixtures('default_runtime')
class TestRounds:
  def test_a_stale_client_by_hand(self):
    # From (0, 0) to (1, 0), then from there to (1, 1).
    values = [(-1.0, 0.0), (0.0, -1.0)]
    first = _run(_process(), [[0]], values)
    _close(first.result, [-1.0, 0.0], rtol=1e-6)
    second = _run(_process(), [[0], [1]], values)
    assert second.measurements['window'] == 2
    assert second.measurements['num_stale'] == 1
    assert second.measurements['contrastive_loss'] == 0
    _assert_clients(
      second,
      client_id=[0, 1],
      frequency=[0.5, 0.5],
      alignment=[0.832050, 1],
      weight=[0.488380, 0.511620],
      stale=[1, 0],
    )
    _close(np.array([1, 0]) - second.result, [1.488380, 0.511620], atol=1e-6)

  def test_the_window_by_hand(self):
    # 4 seen and 2 present: tau = 2. In round 3 client 0, last seen in round 1,
    # is in no round of the window, and counts as if in one.
    output = _run(_process(), [[0, 1], [2, 3], [2, 1]])
    assert output.measurements['window'] == 2
    _assert_clients(
      output,
      client_id=[0, 1, 2, 3],
      frequency=[0.5, 0.5, 1, 0.5],
      stale=[1, 0, 0, 1],
    )
    # A round later it is outside.
    output = _run(_process(), [[0, 1], [2, 3], [2, 3], [2, 1]])
    _assert_clients(output, client_id=[1, 2, 3], stale=[0, 0, 1])

  def test_a_rate_of_0_leaves_nothing_to_reuse(self):
    process = _create(
      fairness_exponent=0.0,
      sharpness=0.0,
      learning_rate_fn=lambda n: tf.gather([0.0, 0.4, 0.1], n),
    )
    values = [_ZERO, (8.0, 0.0), (0.0, 3.0)]
    output = _run(process, [[0], [1]], values)
    _assert_clients(output, client_id=[0, 1], weight=[0.5, 0.5])
    _close(output.result, [4.0, 0.0], rtol=1e-6)
    # Stored gradients move at the current rate: 8 / .4 * .1, by thirds.
    output = _run(process, [[0], [1], [2]], values)
    _close(output.result, [2 / 3, 1], rtol=1e-6)


@pytest.mark.usefixtures('default_runtime')
class TestWhoTakesPart:
  def _first(self):
    """The state after a round with clients 0 and 1."""
    values = [(1.0, 0.0), (0.0, 1.0)]
    return _process(), _run(_process(), [[0, 1]], values).state

  def test_a_client_that_does_not_changes_nothing_else(self):
    process, state = self._first()
    other = np.float32([3.0, 4.0])
    without = process.next(state, [other], [_weight(1)])
    assert without.measurements.pop('num_not_taking_part') == 0
    assert without.measurements.pop('num_non_finite') == 0
    for value, weight in (
      ((np.nan, 0.0), _weight(2)),
      ((5.0, 5.0), _weight(2, accepted=0)),
      ((5.0, 5.0), _weight(2, accepted=-1)),
    ):
      with_it = process.next(
        state, [other, np.float32(value)], [_weight(1), weight]
      )
      measured = with_it.measurements
      assert measured.pop('num_not_taking_part') == 1
      finite = np.isfinite([*value, *weight['embedding'], weight['accepted']])
      assert measured.pop('num_non_finite') == 1 - finite.all()
      tf.nest.map_structure(np.testing.assert_array_equal, with_it, without)


@pytest.mark.usefixtures('default_runtime')
def test_statistics_are_averaged_over_the_present():
  def model(i):
    kernel = collections.OrderedDict(b=np.float32([[i], [1]]), a=np.float32(i))
    return rounds.ModelWeights([kernel], [np.float32([10 * i])])

  process, state = _create(model(0)), None
  for ids in ([0, 3], [0, 1]):
    sent = map(_weight, ids)
    output = rounds.run(process, map(model, ids), sent, state)
    state = output.state
  _assert_clients(output, client_id=[0, 1, 3], stale=[0, 0, 1])
  share = output.measurements['clients']['weight']
  moved = share[1] + 3 * share[2]
  _close(output.result.trainable[0]['b'], [[moved], [1]], rtol=1e-6)
  _close(output.result.trainable[0]['a'], moved, rtol=1e-6)
  _close(
    output.result.non_trainable[0], [10 * share[1] / (share[0] + share[1])]
  )
  assert state['updates'].shape == (4, 3)
