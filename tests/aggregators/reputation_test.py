import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.aggregators import rounds
from tff_fair import aggregators
from tff_fair.aggregators import reputation

_close = np.testing.assert_allclose
_equal = np.testing.assert_array_equal
_EVERYONE = np.array([True, True, True])
_NOBODY_RATED = np.zeros(3, bool)
_ACCURACIES = np.array([0.5, 0.3, 0.8])


def _reputations(accuracies=_ACCURACIES, **options):
  options = {
    'history': np.full(3, 1 / 3),
    'rated': _NOBODY_RATED,
    'active': _EVERYONE,
    **options,
  }
  return reputation.reputations(accuracies, **options).numpy()


class TestReputations:
  def test_history_is_mixed_with_fresh_reputations(self):
    fresh = np.sinh(5 * _ACCURACIES / 1.6)
    history = np.array([0.2, 0.5, 0.3])
    found = _reputations(history=history, rated=_EVERYONE)
    mixed = 0.5 * history + 0.5 * fresh
    _close(found, mixed / mixed.sum(), rtol=1e-12)
    found = _reputations(
      history=history,
      rated=_EVERYONE,
      history_weight=0.25,
      normalize_before_mixing=True,
    )
    mixed = 0.25 * history + 0.75 * fresh / fresh.sum()
    _close(found, mixed, rtol=1e-12)
    # A client that joins later has an equal share as history.
    history[2] = 0
    found = _reputations(history=history, rated=np.array([True, True, False]))
    mixed = 0.5 * np.array([0.2, 0.5, 1 / 3]) + 0.5 * fresh
    _close(found, mixed / mixed.sum(), rtol=1e-12)

  def test_who_is_not_active_does_not_count(self):
    _close(_reputations(np.zeros(3)), np.full(3, 1 / 3))
    active = np.array([True, False, True])
    found = _reputations(active=active)
    pair = np.sinh(5 * np.array([0.5, 0.8]) / 1.3)
    _close(found[[0, 2]], pair / pair.sum())
    assert found[1] == 0


class TestIsolate:
  def _isolate(self, values, **options):
    active = np.array(values) > 0
    remaining, kept, threshold = reputation.isolate(
      np.array(values), active, **options
    )
    return list(remaining.numpy()), kept.numpy(), float(threshold)

  def test_once(self):
    for values, options, expected in (
      # Below the threshold, 1/9.
      ([0.1, 0.5, 0.4], {'threshold_share': 1 / 3}, [0, 5 / 9, 4 / 9]),
      # At it; and the best is never removed.
      ([0.25, 0.75], {'threshold_absolute': 0.25}, [0.25, 0.75]),
      ([0.4, 0.6], {'threshold_absolute': 0.9}, [0, 1]),
    ):
      remaining, kept, threshold = self._isolate(values, **options)
      assert remaining == [share > 0 for share in expected]
      _close(kept, expected)
      assert threshold == options.get('threshold_absolute', 1 / 9)

  def test_cascade_goes_on(self):
    values = [0.30, 0.32, 0.38]
    once, kept, _ = self._isolate(values, threshold_absolute=0.31)
    assert once == [False, True, True]
    _close(kept, np.array([0, 0.32, 0.38]) / 0.7)
    # One removal lifts the others above the threshold: nobody else falls.
    cascade, _, _ = self._isolate(values, threshold_absolute=0.31, cascade=True)
    assert cascade == once
    # With a share of 1/|R| the threshold rises as |R| shrinks.
    values = [0.05, 0.15, 0.40, 0.40]
    once, _, _ = self._isolate(values, threshold_share=0.5)
    assert once == [False, True, True, True]
    cascade, kept, threshold = self._isolate(
      values, threshold_share=0.5, cascade=True
    )
    assert cascade == [False, False, True, True]
    _close(kept, [0, 0, 0.5, 0.5])
    assert threshold == 0.125


def test_allocation_counts():
  counts = reputation.allocation_counts(
    np.array([0.242310, 0.114855, 0.642835]), np.arange(1.0, 4), _EVERYONE, 4
  )
  # .3769 * 1/3 * 4 = .50, .1787 * 2/3 * 4 = .48, 1 * 1 * 4.
  _equal(counts, [0, 0, 4])
  only_two = reputation.allocation_counts(
    np.array([0.25, 0.5, 0.25]), np.array([2.0, 2, 9]), [True, True, False], 7
  )
  _equal(only_two, [3, 7, 0])


def test_aggregation_weights():
  for norm, expected in (('sum', [0.25, 0.75, 0]), ('max', [1 / 3, 1, 0])):
    weights = reputation.aggregation_weights(
      np.array([1.0, 3.0, 6.0]), np.array([True, True, False]), norm
    )
    _close(weights, expected)


# The example of three participants: U, amounts 1, 2, 3, accuracies by hand.
_UPLOADS = np.float32(
  [
    [0.01, 0, 0, -0.01],
    [0, 0.01, -0.01, 0],
    [0.01, 0.01, 0, 0.005],
  ]
)
_AGGREGATE = [0.006667, 0.008333, -0.003333, 0.000833]
_ALLOCATIONS = [
  [-0.003333, 0, 0, 0.003333],
  [0, -0.006667, 0.006667, 0],
  [-0.003333, -0.001667, -0.003333, -0.004167],
]


def _known_accuracies(weights):
  """Recognises whose upload it is by its distance from the others."""
  distances = tf.reduce_sum(tf.abs(_UPLOADS - weights), axis=1)
  return tf.gather(np.float32(_ACCURACIES), tf.argmin(distances))


@functools.cache
def _process(validation_fn=_known_accuracies, **options):
  factory = aggregators.ReputationMaskedFactory(
    np.zeros(4, np.float32), validation_fn, num_clients=3, **options
  )
  return rounds.create(factory, _UPLOADS[0], _weight(0, 1))


def _weight(client_id, amount, accepted=1):
  amount = np.int32(amount)
  return rounds.weight(client_id, amount=amount, accepted=accepted)


def _run(process, ids, state=None):
  # TFF's sign: an update is old weights minus new.
  weights = [_weight(i, i + 1) for i in ids]
  return rounds.run(process, [-_UPLOADS[i] for i in ids], weights, state)


@pytest.mark.usefixtures('default_runtime')
class TestFactory:
  def test_worked_example(self):
    process = _process()
    output = _run(process, [2, 0, 1])
    _close(output.result, np.negative(_AGGREGATE), atol=1e-6)
    state = output.state
    _close(state['allocation'], np.negative(_ALLOCATIONS), atol=1e-6)
    _close(state['shadow'], _UPLOADS, atol=1e-6)
    _close(state['reputation'], [0.242310, 0.114855, 0.642835], atol=1e-6)
    _equal(state['reputable'], [1, 1, 1])
    _equal(state['rated'], [1, 1, 1])
    measured = output.measurements
    assert measured['num_isolated'] == 0 and measured['num_reputable'] == 3
    assert measured['threshold'] == pytest.approx(1 / 9)
    clients = measured['clients']
    _equal(clients['client_id'], [0, 1, 2])
    _equal(clients['num_allocated'], [0, 0, 4])
    _close(clients['validation_accuracy'], _ACCURACIES)

  def test_without_shadows_all_start_from_one_auxiliary_model(self):
    output = _run(_process(shadows=False), [0, 1, 2])
    assert 'shadow' not in output.state
    _close(output.state['auxiliary'], _AGGREGATE, atol=1e-6)
    clients = output.measurements['clients']
    _close(clients['validation_accuracy'], _ACCURACIES)

  def test_an_upload_that_is_not_accepted(self):
    process = _process()
    weights = [_weight(0, 1), _weight(1, 2), _weight(2, 3, 0)]
    output = rounds.run(process, -_UPLOADS, weights)
    assert output.measurements['num_non_finite'] == 1
    # It counts as zeros: the amounts' sum is still 6.
    expected = -(_UPLOADS[0] + 2 * _UPLOADS[1]) / 6
    _close(output.result, expected, rtol=1e-5)
    assert output.measurements['clients']['validation_accuracy'][2] == 0
    _equal(output.state['reputable'], [1, 1, 0])
    _equal(output.state['shadow'][2], np.zeros(4))

  def test_an_accuracy_that_is_no_number_earns_nothing(self):
    def accuracy(weights):
      known = _known_accuracies(weights)
      return tf.where(known < 0.4, np.float32(np.nan), known)

    output = _run(_process(accuracy), [0, 1, 2])
    pair = np.sinh(5 * _ACCURACIES[[0, 2]] / 1.3)
    _close(output.state['reputation'][[0, 2]], pair / pair.sum(), rtol=1e-6)
    _equal(output.state['reputable'], [1, 0, 1])

  def test_the_isolated_are_out_for_good(self):
    process = _process(lambda w: tf.gather([0.5, 0.01, 0.5], _whose(w)))
    first = _run(process, [0, 1, 2])
    assert first.measurements['num_isolated'] == 1
    _equal(first.state['allocation'][1], np.zeros(4))
    second = _run(process, [0, 1, 2], first.state)
    assert second.measurements['num_isolated'] == 0
    assert second.measurements['num_reputable'] == 2
    expected = -(_UPLOADS[0] + 3 * _UPLOADS[2]) / 4
    _close(second.result, expected, rtol=1e-5)
    _close(second.state['shadow'][1], first.state['shadow'][1])

  def test_shares_are_of_the_largest_amount_that_remains(self):
    # The third, with the largest amount, is isolated: 1/2 and 1, not 1/3, 2/3.
    process = _process(lambda w: tf.gather([0.5, 0.5, 0.01], _whose(w)))
    output = _run(process, [0, 1, 2])
    _equal(output.state['reputable'], [1, 1, 0])
    _equal(output.measurements['clients']['num_allocated'], [2, 4, 0])
    expected = [
      [0.006667 - 0.005, 0.008333, 0, 0.005],
      [0.006667, 0.008333 - 0.01, -0.003333 + 0.01, 0.000833],
      [0, 0, 0, 0],
    ]
    _close(output.state['allocation'], np.negative(expected), atol=1e-6)

  def test_the_absent_keep_what_they_have(self):
    process = _process()
    first = _run(process, [0, 1, 2]).state
    second = _run(process, [2, 0], first)
    assert second.state['reputation'][1] == first['reputation'][1]
    _equal(second.state['shadow'][1], first['shadow'][1])
    _equal(second.state['allocation'][1], np.zeros(4))
    present = second.state['reputation'][[0, 2]]
    assert present.sum() == pytest.approx(1)

  def test_statistics_are_averaged_and_not_masked(self):
    weights = rounds.ModelWeights
    factory = aggregators.ReputationMaskedFactory(
      weights([np.zeros(4, np.float32)], [np.zeros(1, np.float32)]),
      lambda w: _known_accuracies(w.trainable[0]) + 0 * w.non_trainable[0][0],
      num_clients=3,
      scenario='class',
    )
    values = [weights([-u], [np.float32([-i])]) for i, u in enumerate(_UPLOADS)]
    process = rounds.create(factory, values[0], _weight(0, 1))
    sent = [_weight(i, i + 1) for i in range(3)]
    output = rounds.run(process, values, sent)
    # Classes: uploads by a / max a, statistics still by a / sum a.
    expected = -(_UPLOADS * [[1 / 3], [2 / 3], [1]]).sum(axis=0)
    _close(output.result.trainable[0], expected, rtol=1e-5)
    mean = -(0 * 1 + 1 * 2 + 2 * 3) / 6
    _close(output.result.non_trainable[0], [mean])
    shadow = output.state['shadow']
    _close(shadow.non_trainable[0].ravel(), [0, 1, 2])
    assert len(output.state['allocation']) == 1


def _whose(weights):
  return tf.argmin(tf.reduce_sum(tf.abs(_UPLOADS - weights), axis=1))
