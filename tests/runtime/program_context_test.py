import asyncio
import collections
import threading

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import runtime

_AT_CLIENTS = tff.FederatedType(np.int32, tff.CLIENTS)
_NUMBERS = tff.SequenceType(np.int32)
_PAIRS = tff.FederatedType(
  collections.OrderedDict(a=_NUMBERS, b=_NUMBERS), tff.CLIENTS
)


@pytest.fixture(
  name='context',
  params=['device', pytest.param('native', marks=pytest.mark.full)],
)
def _context(request):
  context = runtime.create_federated_context(request.param)
  with tff.framework.get_context_stack().install(context):
    yield context


@tff.tensorflow.computation(np.int32)
def _double(x):
  return 2 * x


@tff.tensorflow.computation(_PAIRS.member)
def _product(pair):
  totals = [numbers.reduce(0, tf.add) for numbers in pair.values()]
  return totals[0] * totals[1]


@tff.federated_computation(tff.FederatedType(np.int32, tff.SERVER), _PAIRS)
def _products(start, pairs):
  total = tff.federated_sum(tff.federated_map(_product, pairs))
  return tff.federated_map(_double, start), total


@tff.federated_computation(_AT_CLIENTS)
def _double_at_clients(values):
  return tff.federated_map(_double, values)


def _clients(number):
  """`number` clients, the sum of whose products is 1 * 2 + 2 * 2 + ..."""
  return [
    collections.OrderedDict(a=[i], b=[1, 1]) for i in range(1, number + 1)
  ]


# TFF's program context takes the two parts of a client for two clients.
def test_clients_are_structures_in_any_number(context):
  assert isinstance(context, tff.program.FederatedContext)

  async def compute(number):
    start, _ = _products(3, _clients(number))
    # An argument is a reference or a value.
    return await tff.program.materialize_value(
      _products(start, _clients(number))
    )

  for number in (1, 2, 5):
    assert asyncio.run(compute(number)) == (12, number * (number + 1))
  # Without a running event loop, values instead of references.
  assert _products(3, _clients(2)) == (6, 6)


@pytest.fixture(name='device_context')
def _device_context():
  context = runtime.create_federated_context('device', device='cpu')
  with tff.framework.get_context_stack().install(context):
    yield context


@pytest.mark.usefixtures('device_context')
def test_the_event_loop_runs_during_a_computation():
  done = threading.Event()

  def wait():
    assert done.wait(timeout=30)
    return np.int32(7)

  @tff.tensorflow.computation
  def seven():
    return tf.ensure_shape(tf.numpy_function(wait, [], tf.int32), [])

  async def compute():
    result = seven()
    await asyncio.sleep(0)
    done.set()
    return await tff.program.materialize_value(result)

  assert asyncio.run(compute()) == 7


@pytest.mark.usefixtures('device_context')
def test_results_at_clients_are_refused_in_a_program():
  async def compute():
    return _double_at_clients([1, 2])

  with pytest.raises(ValueError, match=r'server-placed.*found \{int32\}@CLIEN'):
    asyncio.run(compute())


@pytest.mark.usefixtures('device_context')
def test_a_failed_computation_fails_where_it_is_awaited():
  @tff.tensorflow.computation(np.int32)
  def fail(x):
    with tf.control_dependencies([tf.debugging.Assert(x > 1, ['too small'])]):
      return tf.identity(x)

  async def compute():
    return await tff.program.materialize_value(fail(0))

  with pytest.raises(RuntimeError, match='too small'):
    asyncio.run(compute())
