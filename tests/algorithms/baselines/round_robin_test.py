import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import cffl_reference
from tests.algorithms import linear_task
from tests.algorithms import numpy_reference
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_SIZES = (5, 9, 12)
_BUILDERS = {
  'fed_avg': algorithms.build_round_robin_fed_avg,
  'dssgd': algorithms.build_dssgd,
}


def _build(name, **options):
  options = {
    'num_clients': len(_SIZES),
    'client_optimizer': linear_task.sgd(0.2),
    'local_epochs': 2,
    'batch_size': 50,
    **options,
  }
  if name == 'fed_avg':
    options = {'total_examples': sum(_SIZES), **options}
  return _BUILDERS[name](linear_task.model_fn, **options)


@functools.cache
def _process(name, **options):
  return _build(name, **options)


def _run(process, clients, num_calls):
  """Calls the process for one client after the other, in passes."""
  state = process.initialize()
  for call in range(num_calls):
    i = call % len(clients)
    output = process.next(state, [linear_task.client_data(i, clients[i])])
    state = output.state
  return output


def _expected(clients, num_calls, merge, learning_rates=(0.2, 0.2)):
  """The server's model and what each participant downloaded last.

  Args:
    clients: The participants' data.
    num_calls: Number of turns.
    merge: `(update, client) -> what is added to the model`, flat vectors.
    learning_rates: Of each pass.
  """
  model = cffl_reference.flatten(linear_task.initial_model())
  downloaded = [model] * len(clients)
  for call in range(num_calls):
    number, i = divmod(call, len(clients))
    trained = numpy_reference.train(
      cffl_reference.unflatten(model, linear_task.NUM_CLASSES),
      clients[i],
      learning_rate=learning_rates[number],
      epochs=2,
    )
    update = cffl_reference.flatten(trained) - model
    model = downloaded[i] = model + merge(update, clients[i])
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

  def unflatten(vector):
    return cffl_reference.unflatten(vector, linear_task.NUM_CLASSES)

  linear_task.assert_model(process.get_model_weights(state), unflatten(model))
  table = process.client_model_table(state)
  for i, vector in enumerate(downloaded):
    found = process.get_client_model_weights(state, i)
    linear_task.assert_model(found, unflatten(vector))
    for rows, row in zip(table.trainable, found.trainable, strict=True):
      np.testing.assert_array_equal(rows[i], row)


class TestFedAvg:
  # After two calls the last participant has the first model still.
  @pytest.mark.parametrize('num_calls', [2, 6])
  def test_against_numpy(self, num_calls):
    clients = linear_task.make_clients(_SIZES)
    process = _process('fed_avg')
    output = _run(process, clients, num_calls)
    expected = _expected(clients, num_calls, _by_size)
    _assert_models(process, output.state, expected)
    assert output.metrics['client_work']['num_clients'] == 1

  def test_a_pass_of_small_steps_is_a_round_of_fed_avg(self):
    clients = linear_task.make_clients(_SIZES)
    process = _build('fed_avg', client_optimizer=linear_task.sgd(1e-4))
    state = _run(process, clients, 3).state
    expected = numpy_reference.fed_avg_round(
      linear_task.initial_model(), clients, learning_rate=1e-4, epochs=2
    )
    linear_task.assert_model(process.get_model_weights(state), expected)

  def test_all_in_one_call_is_a_round_of_fed_avg(self):
    clients = linear_task.make_clients(_SIZES)
    process = _process('fed_avg')
    data = [linear_task.client_data(i, c) for i, c in enumerate(clients)]
    state = process.next(process.initialize(), data).state
    expected = numpy_reference.fed_avg_round(
      linear_task.initial_model(), clients, learning_rate=0.2, epochs=2
    )
    linear_task.assert_model(process.get_model_weights(state), expected)
    for i in range(len(_SIZES)):
      found = process.get_client_model_weights(state, i)
      linear_task.assert_model(found, expected)

  def test_total_examples_is_what_weights_refer_to(self):
    clients = linear_task.make_clients(_SIZES)
    process = _build('fed_avg', total_examples=10)
    state = _run(process, clients, 2).state
    expected = _expected(clients, 2, lambda u, client: u * len(client.y) / 10)
    _assert_models(process, state, expected)


class TestDssgd:
  @pytest.mark.parametrize(
    ('upload_rate', 'count', 'clip_value'),
    [(1.0, 15, 0.05), (0.4, 6, None), (0.1, 1, 0.05)],
  )
  def test_two_passes_against_numpy(self, upload_rate, count, clip_value):
    clients = linear_task.make_clients(_SIZES)
    process = _process('dssgd', upload_rate=upload_rate, clip_value=clip_value)
    state = _run(process, clients, 6).state
    expected = _expected(clients, 6, _selected(count, clip_value))
    _assert_models(process, state, expected)

  def test_ties_go_to_the_lowest_index(self):
    clients = linear_task.make_clients(_SIZES)
    process = _build('dssgd', upload_rate=0.4, clip_value=1e-3)
    state = _run(process, clients, 1).state
    start = linear_task.initial_model()
    trained = numpy_reference.train(
      start, clients[0], learning_rate=0.2, epochs=2
    )
    update = cffl_reference.flatten(trained.plus(start, -1.0))
    assert np.all(np.abs(update[:6]) > 1e-3)  # A tie, and then some.
    assert np.sum(np.abs(update) > 1e-3) > 6
    kernel, bias = process.get_model_weights(state).trainable
    found = cffl_reference.flatten(numpy_reference.Linear(kernel, bias))
    expected = np.where(np.arange(15) < 6, 1e-3 * np.sign(update), 0.0)
    np.testing.assert_allclose(
      found - cffl_reference.flatten(start), expected, atol=1e-6
    )

  def test_everything_and_no_clipping_is_local_training_in_turns(self):
    clients = linear_task.make_clients(_SIZES)
    process = _build('dssgd', clip_value=None)
    state = _run(process, clients, 3).state
    model = linear_task.initial_model()
    for data in clients:
      model = numpy_reference.train(model, data, learning_rate=0.2, epochs=2)
    linear_task.assert_model(process.get_model_weights(state), model)

  def test_less_than_an_entry_is_nothing(self):
    clients = linear_task.make_clients(_SIZES)
    process = _build('dssgd', upload_rate=0.06)  # .9 of an entry.
    state = _run(process, clients, 3).state
    start = linear_task.initial_model()
    for found in (
      process.get_model_weights(state),
      process.get_client_model_weights(state, 1),
    ):
      linear_task.assert_model(found, start, rtol=0)


@pytest.mark.parametrize('name', _BUILDERS)
class TestBoth:
  def test_learning_rate_by_pass(self, name):
    clients = linear_task.make_clients(_SIZES)
    process = _build(
      name,
      client_learning_rate_fn=lambda p: 0.2 * 0.5 ** tf.cast(p, tf.float32),
    )
    state = _run(process, clients, 5).state
    merge = {'fed_avg': _by_size, 'dssgd': _selected(15)}[name]
    expected = _expected(clients, 5, merge, learning_rates=(0.2, 0.1))
    _assert_models(process, state, expected)

  def test_a_bad_client_changes_nothing_and_is_counted(self, name):
    clients = linear_task.make_clients(_SIZES)
    clients[0].x[0, 0] = np.inf
    process = _process(name)
    output = _run(process, clients, 1)
    assert output.metrics['client_work']['num_rejected_clients'] == 1
    start = linear_task.initial_model()
    for found in (
      process.get_model_weights(output.state),
      process.get_client_model_weights(output.state, 0),
    ):
      linear_task.assert_model(found, start, rtol=0)


@pytest.mark.parametrize(
  ('name', 'options', 'error'),
  [
    ('fed_avg', {'total_examples': 0}, ValueError),
    ('fed_avg', {'total_examples': 2.5}, TypeError),
    ('dssgd', {'upload_rate': 0.0}, ValueError),
    ('dssgd', {'upload_rate': 1.5}, ValueError),
    ('dssgd', {'clip_value': -0.01}, ValueError),
    ('dssgd', {'clip_value': 'none'}, TypeError),
  ],
)
def test_bad_arguments_of_one(name, options, error):
  (argument,) = options
  with pytest.raises(error, match=argument):
    _build(name, **options)
