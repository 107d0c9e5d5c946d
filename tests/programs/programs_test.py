"""The five methods in TFF's own training programs.

`tff.simulation.run_training_process` and `tff.learning.programs.train_model`
end with the same state as a plain loop over `next`, bit for bit. For the first,
`tests/algorithms/contract.py` checks every method.
"""

import asyncio
import collections
import datetime
import functools

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tff_fair import algorithms
from tff_fair import checkpoints
from tff_fair import client
from tff_fair import runtime

_SIZES = (5, 9, 12, 7)
_COHORT_SIZE, _ROUNDS, _SEED = 3, 4, 8
_DATA = linear_task.make_clients(_SIZES)
_METHODS = ('fedaboost', 'cffl', 'corefed', 'fedquad', 'fedakd')

pytestmark = pytest.mark.full


@pytest.fixture(scope='module', autouse=True)
def _runtime():
  """A context that programs accept; other tests get theirs back."""
  tff.framework.set_default_context(
    runtime.create_federated_context('device', device='cpu')
  )
  yield
  runtime.set_execution_context('device', device='cpu')


def _model_fn():
  """The same initial weights each time."""
  x = tf.keras.Input([linear_task.NUM_FEATURES])
  dense = [
    tf.keras.layers.Dense(
      units, kernel_initializer=tf.keras.initializers.GlorotNormal(seed=units)
    )
    for units in (linear_task.EMBEDDING_SIZE, linear_task.NUM_CLASSES)
  ]
  embedding = dense[0](x)
  return tf.keras.Model(
    x, {'logits': dense[1](embedding), 'embedding': embedding}
  )


@functools.cache
def _process(method):
  own = {'cffl': {'validation': (_DATA[0].holdout_x, _DATA[0].holdout_y)}}
  return getattr(algorithms, f'build_{method}')(
    _model_fn,
    num_clients=len(_SIZES),
    client_optimizer=linear_task.sgd(0.1),
    local_epochs=2,
    batch_size=3,
    **own.get(method, {}),
  )


@functools.cache
def _client_data(client_id):
  return linear_task.client_data(client_id, _DATA[client_id])


@functools.cache
def _test_data(client_id):
  data = _DATA[client_id]
  return tf.data.Dataset.from_tensor_slices(
    collections.OrderedDict(x=data.holdout_x, y=data.holdout_y.astype(np.int32))
  ).batch(4)


def _source(data_fn=_client_data, **options):
  ids = range(len(_SIZES))
  return client.ClientDataSource(data_fn, ids, seed=_SEED, **options)


def _recording_source(drawn):
  """Gives references to clients, and notes which of them are loaded."""
  return _source(
    lambda i: drawn.append(i) or _client_data(i), by_reference=True
  )


@functools.cache
def _plain_states(method):
  """The states of a plain loop, including the initial one."""
  process = _process(method)
  sample = tff.simulation.build_uniform_sampling_fn(
    range(len(_SIZES)), random_seed=_SEED
  )
  states = [process.initialize()]
  for number in range(1, _ROUNDS + 1):
    data = [_client_data(i) for i in sample(number, _COHORT_SIZE)]
    states.append(process.next(states[-1], data).state)
  return states


@functools.cache
def _evaluation():
  input_spec = _test_data(0).element_spec

  def model_fn():
    model = _model_fn()
    return tff.learning.models.from_keras_model(
      tf.keras.Model(model.input, model.output['logits']),
      loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      input_spec=input_spec,
      metrics=[tf.keras.metrics.SparseCategoricalAccuracy(name='accuracy')],
    )

  return tff.learning.algorithms.build_fed_eval(model_fn)


def _evaluate(process, state, data):
  """TFF's evaluation of the global model."""
  evaluation = _evaluation()
  start = evaluation.set_model_weights(
    evaluation.initialize(), process.get_model_weights(state)
  )
  metrics = evaluation.next(start, data).metrics
  return metrics['client_work']['eval']['current_round_metrics']


def _accuracies(method, rounds):
  """Of the global model on all clients, by round, from NumPy."""
  x = np.concatenate([data.holdout_x for data in _DATA])
  y = np.concatenate([data.holdout_y for data in _DATA])
  found = {}
  for number in rounds:
    weights = _process(method).get_model_weights(_plain_states(method)[number])
    first, bias, second, last_bias = weights.trainable
    logits = (x @ first + bias) @ second + last_bias
    found[number] = np.mean(logits.argmax(axis=1) == y)
  return found


class _Stop(Exception):
  """Ends a program early."""


def _stopping_source(after):
  """Gives the clients of `after` rounds, then stops the program."""
  drawn = []

  def client_data(client_id):
    drawn.append(client_id)
    # One client was asked for its type.
    if len(drawn) > 1 + after * _COHORT_SIZE:
      raise _Stop
    return _client_data(client_id)

  return _source(client_data)


def _run_training_process(folder, source, **options):
  # It takes the thread's event loop, which `asyncio.run` may have closed.
  asyncio.set_event_loop(asyncio.new_event_loop())
  return tff.simulation.run_training_process(
    training_process=_process('corefed'),
    training_selection_fn=lambda n: source.round_data(n, _COHORT_SIZE),
    total_rounds=_ROUNDS,
    program_state_manager=checkpoints.SafetensorsStateManager(folder),
    rounds_per_saving_program_state=2,
    **options,
  )


def test_run_training_process_gives_the_state_of_a_plain_loop(tmp_path):
  tested = [_test_data(i) for i in range(len(_SIZES))]
  released = tff.program.MemoryReleaseManager()
  state = _run_training_process(
    tmp_path / 'state',
    _source(),
    evaluation_fn=functools.partial(_evaluate, _process('corefed')),
    evaluation_selection_fn=lambda n: tested,
    metrics_managers=[
      released,
      tff.program.CSVFileReleaseManager(tmp_path / 'metrics.csv'),
    ],
  )
  linear_task.assert_equal(state, _plain_states('corefed')[-1])
  rows = pd.read_csv(tmp_path / 'metrics.csv', index_col='key')
  accuracies = _accuracies('corefed', range(_ROUNDS + 1))
  assert rows['evaluation/accuracy'].to_dict() == pytest.approx(accuracies)
  assert list(released.values()) == list(range(_ROUNDS + 1))
  last = released.values()[_ROUNDS]
  assert last['client_work']['num_clients'] == _COHORT_SIZE


def test_run_training_process_resumes_after_the_last_saved_round(tmp_path):
  with pytest.raises(_Stop):
    _run_training_process(tmp_path, _stopping_source(after=3))
  drawn = []
  source = _recording_source(drawn)
  state = _run_training_process(tmp_path, source)
  linear_task.assert_equal(state, _plain_states('corefed')[-1])
  # Rounds 3 and 4; and one client for its type.
  assert len(drawn) == 1 + 2 * _COHORT_SIZE


class _Program:
  """`train_model` in a folder, with an evaluation every second round."""

  def __init__(self, folder):
    self.folder = folder
    self.models = tff.program.MemoryReleaseManager()
    self.evaluated = tff.program.MemoryReleaseManager()
    self.per_round = tff.program.MemoryReleaseManager()

  def train(self, process, source=None, rounds=_ROUNDS, **options):
    program = tff.learning.programs.train_model(
      train_process=process,
      train_data_source=source or _source(),
      train_per_round_clients=_COHORT_SIZE,
      train_total_rounds=rounds,
      program_state_manager=self._states('training'),
      model_output_manager=self.models,
      evaluation_periodicity=2,
      **{'evaluation_manager': self._evaluation_manager(), **options},
    )
    asyncio.run(program)

  def model(self):
    """The state released at the end."""
    return self.models.values()[f'training_checkpoint_round_{_ROUNDS}']

  def accuracies(self):
    """Of the evaluated models, by round."""
    return {
      number: metrics['model_metrics']['accuracy']
      for number, metrics in self.evaluated.values().items()
    }

  def _evaluation_manager(self):
    return tff.learning.programs.EvaluationManager(
      data_source=_source(_test_data, by_reference=True),
      aggregated_metrics_manager=self.evaluated,
      create_state_manager_fn=self._states,
      create_process_fn=lambda name: (_evaluation(), self.per_round),
      cohort_size=len(_SIZES),
      duration=datetime.timedelta(0),
    )

  def _states(self, name):
    return checkpoints.SafetensorsStateManager(self.folder / name)


@pytest.mark.parametrize('method', _METHODS)
def test_train_model_gives_the_state_of_a_plain_loop(method, tmp_path):
  """Started again after two rounds, it continues with the third."""
  started = _Program(tmp_path)
  started.train(_process(method), rounds=2)
  assert started.accuracies() == pytest.approx(_accuracies(method, [2]))
  drawn = []
  source = _recording_source(drawn)
  program = _Program(tmp_path)
  program.train(_process(method), source)
  linear_task.assert_equal(program.model(), _plain_states(method)[-1])
  expected = pytest.approx(_accuracies(method, [4]))
  assert program.accuracies() == expected
  one_round = program.per_round.values().items()
  assert {
    number: metrics['model_metrics']['accuracy']
    for number, metrics in one_round
  } == expected
  # Rounds 3 and 4; and one client for its type.
  assert len(drawn) == 1 + 2 * _COHORT_SIZE


def test_it_gives_the_same_after_a_stop_in_any_round(tmp_path):
  process, options = _process('fedaboost'), {'evaluation_manager': None}
  for after in (0, 1, 3):
    with pytest.raises(_Stop):
      _Program(tmp_path).train(process, _stopping_source(after), **options)
  program = _Program(tmp_path)
  program.train(process, **options)
  linear_task.assert_equal(program.model(), _plain_states('fedaboost')[-1])


def test_a_stopped_evaluation_is_repeated(tmp_path):
  class Stops(tff.program.ReleaseManager):
    async def release(self, value, key):
      raise _Stop

  program = _Program(tmp_path)
  program.per_round = Stops()
  with pytest.raises(_Stop):
    program.train(_process('fedquad'))
  program = _Program(tmp_path)
  program.train(_process('fedquad'))
  expected = _accuracies('fedquad', (2, 4))
  assert program.accuracies() == pytest.approx(expected)


def test_a_discarded_round_is_repeated_with_the_same_clients(tmp_path):
  seen = []

  def discard_second(output):
    seen.append(output.metrics['client_work']['clients']['client_id'])
    return len(seen) == 2

  program = _Program(tmp_path)
  program.train(_process('fedaboost'), should_discard_round=discard_second)
  assert len(seen) == _ROUNDS + 1
  linear_task.assert_equal(seen[1], seen[2])
  linear_task.assert_equal(program.model(), _plain_states('fedaboost')[-1])


def test_metrics_of_training_are_released(tmp_path):
  process = _process('fedaboost')
  released = tff.program.MemoryReleaseManager()
  program = _Program(tmp_path)
  program.train(
    algorithms.with_train_metrics(process),
    train_metrics_manager=tff.program.GroupingReleaseManager(
      [
        released,
        tff.program.LoggingReleaseManager(),
        tff.program.CSVFileReleaseManager(tmp_path / 'train.csv'),
        tff.program.TensorBoardReleaseManager(tmp_path / 'tensorboard'),
      ]
    ),
  )
  linear_task.assert_equal(program.model(), _plain_states('fedaboost')[-1])
  data = _source().round_data(1, _COHORT_SIZE)
  expected = process.next(process.initialize(), data).metrics
  first = released.values()[1]
  linear_task.assert_equal(first['model_metrics'], expected['client_work'])
  linear_task.assert_equal(first['aggregator'], expected['aggregator'])
  rows = pd.read_csv(tmp_path / 'train.csv', index_col='key')
  column = rows.sort_index()['model_metrics/num_clients']
  assert column.to_dict() == dict.fromkeys(range(1, _ROUNDS + 1), _COHORT_SIZE)
  assert any((tmp_path / 'tensorboard').iterdir())
