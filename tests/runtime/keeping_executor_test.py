"""What the native runtime sends to its worker in the rounds of a process."""

import collections
import gc

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.runtime import keeping_executor

pytestmark = pytest.mark.full

_ROWS, _COLUMNS = 8, 10_000
_TABLE_BYTES = 4 * _ROWS * _COLUMNS
_STATE = collections.OrderedDict(
  round=np.int32, table=tff.TensorType(np.float32, [_ROWS, _COLUMNS])
)


@tff.tensorflow.computation
def _zeros():
  return collections.OrderedDict(round=0, table=tf.zeros([_ROWS, _COLUMNS]))


@tff.tensorflow.computation(_STATE, np.float32)
def _add(state, number):
  with tf.control_dependencies([tf.debugging.Assert(number < 99, ['large'])]):
    table = state['table'] + number
  return collections.OrderedDict(round=state['round'] + 1, table=table)


@tff.federated_computation
def _initialize():
  return tff.federated_eval(_zeros, tff.SERVER)


@tff.federated_computation(
  tff.FederatedType(_STATE, tff.SERVER),
  tff.FederatedType(np.float32, tff.CLIENTS),
)
def _next(state, numbers):
  total = tff.federated_sum(numbers)
  return tff.federated_map(_add, (state, total)), total


@pytest.fixture
def sent(monkeypatch):
  """The sizes of the values that are sent."""
  sizes = []
  stub = tff.framework.RemoteExecutorGrpcStub
  create_value = stub.create_value

  def record(self, request):
    if not request.value.HasField('computation'):
      sizes.append(request.ByteSize())
    return create_value(self, request)

  monkeypatch.setattr(stub, 'create_value', record)
  return sizes


def _tables_sent(sizes):
  """How many of the values contain a table; forgets them."""
  number = sum(size > _TABLE_BYTES for size in sizes)
  sizes.clear()
  return number


def test_a_state_is_sent_once(contexts, sent):
  _, native = contexts
  with tff.framework.get_context_stack().install(native):
    # The number of clients of the first execution is another one.
    state, _ = _next(_initialize(), [1.0, 2.0])
    assert _tables_sent(sent) == 1
    for _ in range(3):
      state, total = _next(state, [1.0, 2.0])
    assert (_tables_sent(sent), total) == (0, 3)
    first, _ = _next(state, [1.0, 1.0])
    second, _ = _next(state, [2.0, 2.0])
    assert _tables_sent(sent) == 0
    assert [first['table'][0, 0], second['table'][-1, -1]] == [14, 16]
    with pytest.raises(ValueError, match='WRITEABLE'):
      state['table'].flags.writeable = True


def test_what_differs_is_sent(contexts, sent):
  _, native = contexts
  with tff.framework.get_context_stack().install(native):
    state, _ = _next(_next(_initialize(), [1.0])[0], [1.0])
    sent.clear()
    other_round = collections.OrderedDict(state, round=np.int32(7))
    assert _next(other_round, [1.0])[0]['round'] == 8
    copied = collections.OrderedDict(state, table=state['table'].copy())
    copied['table'][0, 0] = 10
    assert _next(copied, [1.0])[0]['table'][0, 0] == 11
    assert _tables_sent(sent) == 2
    # In the worker, a value belongs to a number of clients.
    assert _next(state, [1.0, 1.0])[0]['table'][0, 0] == 4
    assert _tables_sent(sent) == 1
    # A failure deletes all values in the worker.
    with pytest.raises(RuntimeError, match='large'):
      _next(state, [100.0])
    sent.clear()
    assert _next(state, [1.0])[0]['table'][0, 0] == 3
    assert _tables_sent(sent) == 1


def test_values_are_kept_no_longer_than_needed(contexts, monkeypatch):
  _, native = contexts
  executors = []
  keep = keeping_executor.KeepingExecutor._keep

  def record(self, *args):
    executors.append(self)
    keep(self, *args)

  monkeypatch.setattr(keeping_executor.KeepingExecutor, '_keep', record)
  with tff.framework.get_context_stack().install(native):
    states = [_initialize()]
    for _ in range(4):
      states.append(_next(states[-1], [1.0, 2.0, 3.0])[0])
  kept = executors[-1]._kept
  assert len(kept) == keeping_executor._MAX_KEPT
  del states
  gc.collect()
  assert not kept
