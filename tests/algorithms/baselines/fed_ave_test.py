import functools

import numpy as np
import pytest

from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tests.algorithms import reward_reference
from tff_fair import algorithms

# Losses are measured over minibatches of 64: here 2, 3, 1 and 3 of them.
_SIZES = (70, 150, 40, 130)
_RATE = 0.3
_NETWORK = reward_reference.Network(
  (linear_task.NUM_FEATURES, linear_task.NUM_CLASSES)
)
_COHORTS = ([0, 1, 2, 3], [3, 1], [2, 0, 1, 3])


@functools.cache
def _validation():
  (data,) = linear_task.make_clients((150,), holdout=0, seed=5)
  return data.x, data.y


def _build(model_fn=linear_task.model_fn, **options):
  options = {
    'num_clients': len(_SIZES),
    'client_optimizer': linear_task.sgd(_RATE),
    'batch_size': 200,
    'validation': _validation(),
    **options,
  }
  return algorithms.build_fed_ave(model_fn, **options)


_process = functools.cache(_build)


def _clients(sizes=_SIZES):
  return dict(enumerate(linear_task.make_clients(sizes)))


def _reference(epochs=1, num_clients=4, **options):
  return reward_reference.FedAve(
    reward_reference.Training(_NETWORK, _RATE, epochs),
    reward_reference.vector(linear_task.model_fn().get_weights()),
    num_clients,
    _validation(),
    **options,
  )


def _next(process, state, clients):
  # The order in which clients come must not matter.
  data = [linear_task.client_data(i, clients[i]) for i in reversed(clients)]
  return process.next(state, data)


def _models(process, state):
  return reward_reference.rows(process.client_model_table(state).trainable)


def _weights(process, state):
  return reward_reference.vector(process.get_model_weights(state).trainable)


def _close(found, expected, rtol=1e-5):
  np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-6)


def _assert_rounds(process, expected, rounds):
  """Runs both, and compares them after every round; returns the outputs."""
  state, outputs = process.initialize(), []
  for clients in rounds:
    outputs.append(_next(process, state, clients))
    state = outputs[-1].state
    report = expected.next(clients)
    # Divergences are squares of what float32 losses differ by.
    _close(state.aggregator['reputation'], expected.reputations, rtol=1e-4)
    _close(state.aggregator['share'], expected.shares, rtol=1e-4)
    _close(_models(process, state), expected.models)
    _close(_weights(process, state), expected.weights)
    found = outputs[-1].metrics['aggregator']['clients']
    np.testing.assert_array_equal(found['client_id'], report['client_id'])
    _close(found['validation_accuracy'], report['validation_accuracy'])
    known = [d for d in report['divergence'] if d is not None]
    for one, other in zip(
      found['divergence'], report['divergence'], strict=True
    ):
      _close(one, max(known) if other is None else other, rtol=1e-4)
  return outputs


def test_the_reference_on_the_example():
  close = reward_reference.similarities([0.02, 0.04, 0.1])
  np.testing.assert_allclose(close, [1, 0.5, 0.2], atol=1e-9)
  reputation = np.array([0.8, 0.15, 0.02]) / 0.97
  shares = close * reward_reference.tanh_shares(reputation, 5.0)
  np.testing.assert_allclose(shares, [1, 0.324562, 0.020557], atol=1e-6)
  divergence = reward_reference.loss_divergence(
    np.array([0.5, 1, 1.5]), np.ones(3)
  )
  assert divergence == pytest.approx(0.087208, abs=1e-6)


@pytest.mark.usefixtures('default_runtime')
class TestAgainstNumpy:
  @pytest.mark.parametrize('variant', ['original', 'fedakd'])
  def test_three_rounds(self, variant):
    clients = _clients()
    process = _process(variant=variant)
    expected = _reference(variant=variant)
    rounds = [{i: clients[i] for i in ids} for ids in _COHORTS]
    outputs = _assert_rounds(process, expected, rounds)
    first, second = (_models(process, o.state) for o in outputs[:2])
    np.testing.assert_array_equal(first[[0, 2]], second[[0, 2]])
    found = outputs[-1].metrics['aggregator']['clients']
    assert np.ptp(found['validation_accuracy']) > 0
    shares = outputs[-1].state.aggregator['share']
    assert 0 < shares.min() < 0.9

  def test_nobody_is_rewarded_in_the_first_round(self):
    process = _process(variant='original')
    state = _next(process, process.initialize(), _clients()).state
    np.testing.assert_array_equal(state.aggregator['share'], np.zeros(4))
    np.testing.assert_array_equal(
      _models(process, state), _models(process, process.initialize())
    )

  def test_options(self):
    options = {'update_length': 0.2, 'history_weight': 0.3, 'altruism': 5.0}
    _assert_rounds(
      _build(local_epochs=2, **options),
      _reference(epochs=2, **options),
      [_clients()] * 2,
    )

  def test_options_of_the_variant(self):
    options = {
      'upload_fraction': 0.3,
      'download_base': 0.1,
      'history_weight': 0.5,
      'altruism': 4.0,
      'variant': 'fedakd',
    }
    _assert_rounds(_build(**options), _reference(**options), [_clients()] * 2)


@pytest.mark.usefixtures('default_runtime')
class TestEdgeCases:
  @pytest.mark.parametrize('variant', ['original', 'fedakd'])
  def test_a_client_without_data(self, variant):
    process = _process(variant=variant)
    outputs = _assert_rounds(
      process, _reference(variant=variant), [_clients((70, 0, 40, 130))] * 2
    )
    assert outputs[0].metrics['client_work']['num_empty_clients'] == 1

  @pytest.mark.parametrize(
    'variant',
    ['original', 'fedakd'],
  )
  def test_a_client_with_infinite_data_harms_nobody(self, variant):
    clients = _clients()
    clients[1].x[0, 0] = np.nan
    process = _process(variant=variant)
    outputs = _assert_rounds(
      process, _reference(variant=variant), [clients] * 2
    )
    assert outputs[0].metrics['client_work']['num_rejected_clients'] == 1
    found = outputs[0].metrics['aggregator']['clients']
    assert found['validation_accuracy'][1] == 0

  def test_who_has_the_validation_set_is_closest_by_far(self):
    clients = _clients()
    x, y = _validation()
    clients[1] = numpy_reference.Client(x, y, x[:0], y[:0])
    process = _process(variant='original')
    state = _next(process, process.initialize(), clients).state
    before = _models(process, state)
    output = _next(process, state, clients)
    found = output.metrics['aggregator']['clients']
    assert found['divergence'][1] == 1e-12
    share = output.state.aggregator['share']
    assert share[1] == 1 and share[[0, 2, 3]].max() < 1e-6
    gain = _models(process, output.state) - before
    aggregate = _weights(process, output.state) - _weights(process, state)
    _close(gain[1], aggregate)
    # At most the largest entry of the kernel, and of the bias.
    assert np.count_nonzero(gain[[0, 2, 3]], axis=1).max() <= 2
    reputation = output.state.aggregator['reputation']
    assert np.all(np.isfinite(reputation)) and reputation.argmax() == 1

  def test_a_short_validation_set_makes_all_equally_close(self):
    x, y = _validation()
    process = _build(validation=(x[:64], y[:64]))
    state = _next(process, process.initialize(), _clients()).state
    output = _next(process, state, _clients())
    found = output.metrics['aggregator']['clients']
    np.testing.assert_array_equal(found['divergence'], np.ones(4))
    shares = np.tanh(found['reputation'])
    _close(found['share'], shares / shares.max())

  def test_one_client_alone_gets_all_of_its_own(self):
    process = _build(num_clients=1)
    _assert_rounds(process, _reference(num_clients=1), [_clients((70,))] * 2)
    state = process.initialize()
    for share in (0, 1):
      state = _next(process, state, _clients((70,))).state
      np.testing.assert_array_equal(state.aggregator['share'], [share])


@pytest.mark.parametrize(
  ('options', 'error', 'message'),
  [
    ({'validation': None}, TypeError, 'validation must be a pair of inputs an'),
    ({'update_length': 0.0}, ValueError, 'update_length must be positive, fou'),
    ({'history_weight': 2.0}, ValueError, 'history_weight must be at most 1.0'),
    ({'altruism': -1.0}, ValueError, 'altruism must be positive, found -1.0'),
    ({'upload_fraction': 2.0}, ValueError, 'upload_fraction must be at most 1'),
    ({'download_base': -1.0}, ValueError, 'download_base must be at least 0.0'),
    ({'variant': 'x'}, ValueError, "variant must be one of 'original', 'feda"),
  ],
)
def test_bad_arguments(options, error, message):
  with pytest.raises(error, match=message):
    _build(**options)
