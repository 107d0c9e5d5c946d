"""Two workers on this machine stand for workers on two others."""

import numpy as np
import portpicker
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.runtime import equivalence
from tests.runtime import equivalence_test
from tff_fair import runtime
from tff_fair import worker_process

pytestmark = pytest.mark.full

AT_CLIENTS = tff.FederatedType(np.float32, tff.CLIENTS)
AT_SERVER = tff.FederatedType(np.float32, tff.SERVER)


def _start():
  port = portpicker.pick_unused_port()
  return worker_process.WorkerProcess(port), f'localhost:{port}'


@pytest.fixture(scope='module')
def contexts():
  """The native runtime and two remote workers; ends all three."""
  workers, addresses = zip(*[_start(), _start()], strict=True)
  yield (
    runtime.create_execution_context('native'),
    runtime.create_execution_context('remote', workers=addresses),
  )
  for worker in workers:
    worker.stop()
  runtime.set_execution_context('device', device='cpu')  # Ends the native one.


@pytest.fixture
def two_workers(contexts):
  with tff.framework.get_context_stack().install(contexts[1]):
    yield


@tff.tensorflow.computation(np.float32, np.float32)
def multiply(a, b):
  return a * b


@tff.federated_computation(AT_SERVER, AT_CLIENTS)
def two_exchanges(factor, values):
  """Clients wait for a sum, and take part in another one."""
  total = tff.federated_sum(values)
  sent = tff.federated_broadcast(total)
  product = tff.federated_map(multiply, (values, sent))
  both = tff.federated_zip((tff.federated_sum(product), factor))
  return tff.federated_map(multiply, both), total


# SammeAlphaFactory's clients wait for a sum; CFFL's server gathers rows.
@pytest.mark.parametrize('name', ['fedaboost', 'cffl'])
def test_rounds_are_those_of_the_native_runtime(name, contexts):
  equivalence.assert_same_rounds(*equivalence_test.build(name), contexts)


@pytest.mark.usefixtures('two_workers')
def test_any_number_of_clients():
  for num_clients in (5, 2, 1, 0):
    values = np.arange(1.0, num_clients + 1, dtype=np.float32)
    total = values.sum()
    found = two_exchanges(2.0, list(values))
    assert found == (2 * total * total, total), num_clients


@pytest.mark.usefixtures('two_workers')
def test_sums_do_not_depend_on_which_worker_finishes_first():
  # In float32 these sums depend on the order: (a + b) + (c + d) it must be.
  values = [np.float32(v) for v in (1e8, 1.0, -1e8, 1.0)]
  expected = (values[0] + values[1]) + (values[2] + values[3])
  assert expected != sum(values)
  for _ in range(3):
    assert two_exchanges(1.0, values)[1] == expected


@pytest.mark.usefixtures('two_workers')
def test_computations_without_clients():
  assert multiply(3.0, 4.0) == 12
  initial = tff.federated_computation(
    lambda: tff.federated_value(2.0, tff.SERVER)
  )
  assert initial() == 2


@pytest.mark.usefixtures('two_workers')
def test_arguments_of_different_length_are_refused():
  add = tff.federated_computation(
    lambda a, b: (tff.federated_sum(a), tff.federated_sum(b)),
    [AT_CLIENTS, AT_CLIENTS],
  )
  with pytest.raises(ValueError, match=r'the same number of .* found \[1, 2\]'):
    add([1.0], [1.0, 2.0])


@pytest.mark.usefixtures('two_workers')
def test_results_at_clients_are_refused():
  keep = tff.federated_computation(lambda values: values, AT_CLIENTS)
  with pytest.raises(TypeError, match='must return values at the server'):
    keep([1.0])


@pytest.mark.usefixtures('two_workers')
def test_secure_sums_are_refused():
  add = tff.federated_computation(
    lambda values: tff.federated_secure_sum_bitwidth(values, 8),
    tff.FederatedType(np.int32, tff.CLIENTS),
  )
  with pytest.raises(NotImplementedError, match='federated_secure_sum'):
    add([1, 2])


@pytest.mark.usefixtures('two_workers')
def test_a_failed_computation_names_its_worker_in_one_line():
  @tff.tensorflow.computation(np.float32)
  def at_most_one(x):
    with tf.control_dependencies([tf.debugging.Assert(x <= 1, ['large', x])]):
      return tf.identity(x)

  add = tff.federated_computation(
    lambda values: tff.federated_sum(tff.federated_map(at_most_one, values)),
    AT_CLIENTS,
  )
  assert add([1.0, 1.0]) == 2
  with pytest.raises(RuntimeError, match=r'^The worker at .*large') as error:
    add([1.0, 2.0])
  assert '\n' not in str(error.value)


def test_a_worker_that_is_gone_is_named():
  workers, addresses = zip(*[_start(), _start()], strict=True)
  context = runtime.create_execution_context('remote', workers=addresses)
  with tff.framework.get_context_stack().install(context):
    assert two_exchanges(1.0, [1.0, 2.0]) == (9, 3)
    workers[1].stop()
    with pytest.raises(runtime.WorkerError, match=addresses[1]):
      two_exchanges(1.0, [1.0, 2.0])
  workers[0].stop()


def test_bad_addresses_are_refused():
  for addresses, message in (
    ([], r"'host:port', one or more, found \[\]"),
    ([''], r"'host:port', one or more, found \[''\]"),
    (['localhost'], 'found .*localhost'),
    (['localhost:x'], 'found .*localhost:x'),
    (['localhost:99999'], 'found .*localhost:99999'),
    (['a:1', 'a:1'], "must differ, found 'a:1' twice"),
  ):
    with pytest.raises(ValueError, match=message):
      runtime.create_execution_context('remote', workers=addresses)


def test_a_worker_that_does_not_answer_is_named(monkeypatch):
  from tff_fair.runtime import workers

  monkeypatch.setattr(workers, '_CONNECT_SECONDS', 0.2)
  address = f'localhost:{portpicker.pick_unused_port()}'
  with pytest.raises(runtime.WorkerError, match=f'{address} must answer'):
    runtime.create_execution_context('remote', workers=[address])
