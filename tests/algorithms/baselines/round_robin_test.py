import functools

import numpy as np
import pytest

from tests.algorithms import cffl_reference
from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_SIZES = (5, 9, 12)
_CLIENTS = linear_task.make_clients(_SIZES)
_START = linear_task.initial_model()
_BUILDERS = {
  'fed_avg': functools.partial(
    algorithms.build_round_robin_fed_avg, total_examples=sum(_SIZES)
  ),
  'dssgd': algorithms.build_dssgd,
}


@functools.cache
def _process(name, **options):
  options = {'learning_rate': 0.2, 'num_clients': 3, **options}
  return linear_task.build_process(_BUILDERS[name], local_epochs=2, **options)


def _run(process, num_calls):
  """Calls the process for one client after the other, in passes."""
  turns = [[call % len(_CLIENTS)] for call in range(num_calls)]
  return linear_task.run(process, _CLIENTS, turns)


def _expected(num_calls, merge, learning_rates=(0.2, 0.2)):
  """The server's model, and each participant's last download.

  Args:
    num_calls: Number of turns.
    merge: `(update, client) -> what is added to the model`, flat vectors.
    learning_rates: Of each pass.
  """
  model = _START.vector
  downloaded = [model] * len(_CLIENTS)
  for call in range(num_calls):
    number, i = divmod(call, len(_CLIENTS))
    trained = numpy_reference.train(
      numpy_reference.Linear.of(model),
      _CLIENTS[i],
      learning_rate=learning_rates[number],
      epochs=2,
    )
    update = trained.vector - model
    model = downloaded[i] = model + merge(update, _CLIENTS[i])
  return model, downloaded


def _by_size(update, client):
  return update * len(client.y) / sum(_SIZES)


def _selected(count, clip_value=0.01):
  def merge(update, client):
    del client  # Its size does not count.
    if clip_value is not None:
      update = cffl_reference.clip(update, clip_value)
    return cffl_reference.top(update, count)

  return merge


def _assert_models(process, state, expected):
  model, downloaded = expected
  linear_task.assert_close(linear_task.weights(process, state), model)
  models = linear_task.client_weights(process, state)
  linear_task.assert_close(models, np.array(downloaded))
  found = process.get_client_model_weights(state, 1).trainable
  np.testing.assert_array_equal(linear_task.vector(found), models[1])


def test_fed_avg_against_numpy():
  """After two calls the last participant still has the initial model."""
  process = _process('fed_avg')
  for num_calls in (2, 6):
    output = _run(process, num_calls)
    _assert_models(process, output.state, _expected(num_calls, _by_size))
    assert output.metrics['client_work']['num_clients'] == 1
  # All clients in one call are a round of FedAvg.
  state = linear_task.run(process, _CLIENTS, [[0, 1, 2]]).state
  model = numpy_reference.fed_avg_round(
    _START, _CLIENTS, learning_rate=0.2, epochs=2
  ).vector
  _assert_models(process, state, (model, [model] * 3))


@pytest.mark.full
def test_a_pass_of_small_steps_is_a_round_of_fed_avg():
  process = _process('fed_avg', learning_rate=1e-4)
  expected = numpy_reference.fed_avg_round(
    _START, _CLIENTS, learning_rate=1e-4, epochs=2
  )
  state = _run(process, 3).state
  linear_task.assert_model(process.get_model_weights(state), expected)


@pytest.mark.full
def test_weights_are_relative_to_total_examples():
  process = _process('fed_avg', total_examples=10)
  expected = _expected(2, lambda u, client: u * len(client.y) / 10)
  _assert_models(process, _run(process, 2).state, expected)


@pytest.mark.parametrize(
  ('upload_rate', 'count', 'clip_value'),
  [
    (0.4, 6, None),
    pytest.param(1.0, 15, 0.05, marks=pytest.mark.full),
    pytest.param(0.1, 1, 0.05, marks=pytest.mark.full),
    # .9 of an entry is none.
    pytest.param(0.06, 0, 0.05, marks=pytest.mark.full),
  ],
)
def test_two_passes_of_dssgd_against_numpy(upload_rate, count, clip_value):
  process = _process('dssgd', upload_rate=upload_rate, clip_value=clip_value)
  expected = _expected(6, _selected(count, clip_value))
  _assert_models(process, _run(process, 6).state, expected)


@pytest.mark.full
def test_ties_go_to_the_lowest_index():
  process = _process('dssgd', upload_rate=0.4, clip_value=1e-3)
  state = _run(process, 1).state
  trained = numpy_reference.train(
    _START, _CLIENTS[0], learning_rate=0.2, epochs=2
  )
  update = trained.plus(_START, -1.0).vector
  assert np.all(np.abs(update[:6]) > 1e-3)  # More than 6 are clipped.
  assert np.sum(np.abs(update) > 1e-3) > 6
  found = linear_task.weights(process, state) - _START.vector
  expected = np.where(np.arange(15) < 6, 1e-3 * np.sign(update), 0.0)
  np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.full
def test_everything_unclipped_is_local_training_in_turns():
  process = _process('dssgd', clip_value=None)
  model = _START
  for data in _CLIENTS:
    model = numpy_reference.train(model, data, learning_rate=0.2, epochs=2)
  state = _run(process, 3).state
  linear_task.assert_model(process.get_model_weights(state), model)


@pytest.mark.parametrize('name', _BUILDERS)
def test_learning_rate_by_pass(name):
  process = _process(name, decay=0.5)
  merge = {'fed_avg': _by_size, 'dssgd': _selected(15)}[name]
  expected = _expected(5, merge, learning_rates=(0.2, 0.1))
  _assert_models(process, _run(process, 5).state, expected)
