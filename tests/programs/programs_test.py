"""Our methods in TFF's own training program.

`tff.learning.programs.train_model` ends with the same state as a plain loop
over `next`, bit for bit. `tests/algorithms/contract.py` checks that of
`tff.simulation.run_training_process` for every method.
"""

import asyncio
import functools

import pandas as pd
import pytest
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tff_fair import algorithms
from tff_fair import checkpoints
from tff_fair import client
from tff_fair import runtime

_SIZES = (5, 9, 12, 7)
_COHORT_SIZE, _ROUNDS, _SEED = 3, 4, 8
_DATA = linear_task.make_clients(_SIZES)
_METHODS = ('fedaboost', 'cffl')

pytestmark = pytest.mark.full


@pytest.fixture(scope='module', autouse=True)
def _runtime():
  """A context that programs accept; other tests get theirs back."""
  tff.framework.set_default_context(
    runtime.create_federated_context('device', device='cpu')
  )
  yield
  runtime.set_execution_context('device', device='cpu')


@functools.cache
def _process(method):
  own = {'cffl': {'validation': (_DATA[0].holdout_x, _DATA[0].holdout_y)}}
  return getattr(algorithms, f'build_{method}')(
    linear_task.model_fn,
    num_clients=len(_SIZES),
    client_optimizer=linear_task.sgd(0.1),
    local_epochs=2,
    batch_size=3,
    **own.get(method, {}),
  )


@functools.cache
def _client_data(client_id):
  return linear_task.client_data(client_id, _DATA[client_id])


def _source(data_fn=_client_data, **options):
  ids = range(len(_SIZES))
  return client.ClientDataSource(data_fn, ids, seed=_SEED, **options)


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


class _Stop(Exception):
  """Ends a program early."""


def _stopping_source(after):
  """Gives the clients of `after` rounds, then stops the program."""
  # One client is asked for its type.
  left = iter(range(1 + after * _COHORT_SIZE))

  def client_data(client_id):
    if next(left, None) is None:
      raise _Stop
    return _client_data(client_id)

  return _source(client_data)


class _Program:
  """`train_model` in a folder."""

  def __init__(self, folder):
    self.folder = folder
    self.models = tff.program.MemoryReleaseManager()

  def train(self, process, source=None, rounds=_ROUNDS, **options):
    program = tff.learning.programs.train_model(
      train_process=process,
      train_data_source=source or _source(),
      train_per_round_clients=_COHORT_SIZE,
      train_total_rounds=rounds,
      program_state_manager=checkpoints.SafetensorsStateManager(self.folder),
      model_output_manager=self.models,
      evaluation_manager=None,
      evaluation_periodicity=_ROUNDS,
      **options,
    )
    asyncio.run(program)

  def model(self):
    """The state released at the end."""
    return self.models.values()[f'training_checkpoint_round_{_ROUNDS}']


@pytest.mark.parametrize('method', _METHODS)
def test_train_model_gives_the_state_of_a_plain_loop(method, tmp_path):
  """Started again after two rounds, it continues with the third."""
  _Program(tmp_path).train(_process(method), rounds=2)
  program = _Program(tmp_path)
  program.train(_process(method), _source(by_reference=True))
  linear_task.assert_equal(program.model(), _plain_states(method)[-1])


def test_it_gives_the_same_after_a_stop_in_any_round(tmp_path):
  process = _process('fedaboost')
  for after in (0, 1, 3):
    with pytest.raises(_Stop):
      _Program(tmp_path).train(process, _stopping_source(after))
  program = _Program(tmp_path)
  program.train(process)
  linear_task.assert_equal(program.model(), _plain_states('fedaboost')[-1])


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
  table = tff.program.CSVFileReleaseManager(tmp_path / 'train.csv')
  program = _Program(tmp_path)
  program.train(
    algorithms.with_train_metrics(process),
    train_metrics_manager=tff.program.GroupingReleaseManager([released, table]),
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
