import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms
from tff_fair import client

_CLIENTS = dict(enumerate(linear_task.make_clients([5, 9, 12])))
_RATE = 0.1


def _process(build=algorithms.build_fed_avg, attackers=None, **options):
  if attackers is not None:
    build = algorithms.with_attackers(build, attackers)
  return linear_task.build_process(
    build,
    **{
      'learning_rate': _RATE,
      'num_clients': len(_CLIENTS),
      'local_epochs': 2,
      **options,
    },
  )


def _attackers(kind, *ids, strength=None):
  return client.Attackers(client_ids=ids, kind=kind, strength=strength)


def _after_round(process):
  output = linear_task.next_round(process, process.initialize(), _CLIENTS)
  return linear_task.weights(process, output.state), output


def _trained(data):
  return reference.LINEAR.train(linear_task.start(), data, rate=_RATE, epochs=2)


@pytest.mark.parametrize(
  ('kind', 'strength', 'factor'),
  [('sign_flip', 2.0, -2.0), ('scaled_update', None, 10.0)],
)
def test_a_round_of_fed_avg_with_an_attacker(kind, strength, factor):
  process = _process(attackers=_attackers(kind, 1, strength=strength))
  found, output = _after_round(process)
  start = linear_task.start()
  changes = [_trained(data) - start for data in _CLIENTS.values()]
  changes[1] = factor * changes[1]
  expected = start + reference.mean(changes, [5, 9, 12])
  linear_task.assert_close(found, expected)
  assert list(linear_task.reports(output)['attacker']) == [0, 1, 0]
  assert f'1 by {kind}' in repr(process)


def test_flipped_labels_are_those_of_other_data():
  found, output = _after_round(
    _process(attackers=_attackers('label_flip', 0, 2))
  )
  clients = [
    data if i == 1 else dataclasses.replace(data, y=2 - data.y)
    for i, data in _CLIENTS.items()
  ]
  expected = reference.fed_avg(
    linear_task.start(), clients, rate=_RATE, epochs=2
  )
  linear_task.assert_close(found, expected)
  start = linear_task.start()
  losses = [
    np.mean(
      [
        reference.LINEAR.loss(start, data),
        reference.LINEAR.loss(
          reference.LINEAR.train(start, data, rate=_RATE, epochs=1), data
        ),
      ]
    )
    for data in clients
  ]
  found = linear_task.reports(output)['loss']
  linear_task.assert_close(found, np.array(losses))


def test_the_server_bounds_what_it_receives():
  attackers = _attackers('scaled_update', 1, strength=1e6)
  found, output = _after_round(
    _process(attackers=attackers, max_update_norm=1.0, uniform=True)
  )
  start = linear_task.start()
  changes = [_trained(data) - start for data in _CLIENTS.values()]
  changes[1] /= np.linalg.norm(changes[1])
  linear_task.assert_close(found, start + reference.mean(changes))
  assert output.metrics['client_work']['num_clipped_clients'] == 1


@pytest.mark.full
def test_a_client_without_data_attacks_nobody():
  process = _process(attackers=_attackers('gaussian_noise', 3), num_clients=4)
  empty = linear_task.labelled_client([])
  output = linear_task.next_round(
    process, process.initialize(), {**_CLIENTS, 3: empty}
  )
  plain, _ = _after_round(_process())
  linear_task.assert_close(linear_task.weights(process, output.state), plain)


def test_a_builder_is_as_before():
  builder = algorithms.with_attackers(
    algorithms.build_fed_avg, _attackers('sign_flip', 9)
  )
  with pytest.raises(ValueError, match='attacker must be in the range'):
    linear_task.build_process(builder, num_clients=3)
  # A failed build leaves no attackers for the next one.
  process = _process()
  assert 'attacker' not in repr(process)
  assert 'attacker' not in str(process.next.type_signature)


def test_refusals():
  for build, ids, options, message in (
    (
      algorithms.build_standalone,
      (0,),
      {},
      'attackers must be given with a method whose clients send an update,'
      ' found Standalone, whose clients send nothing.',
    ),
    (
      algorithms.build_fed_avg,
      (0,),
      {'num_clients': None},
      'num_clients must be given with attackers, which are found by their id,'
      ' found None.',
    ),
    (
      algorithms.build_fed_avg,
      (0, 1, 2),
      {},
      'attackers must leave one of the 3 clients honest, found all of them.',
    ),
    (
      lambda *_, **__: None,
      (0,),
      {},
      'attackers must be given with a builder whose client work is of'
      ' `SharedArguments`, found another one.',
    ),
  ):
    with pytest.raises(ValueError) as caught:
      _process(build, _attackers('sign_flip', *ids), **options)
    assert str(caught.value) == message
  with pytest.raises(TypeError, match='attackers must be a .*, found tuple'):
    algorithms.with_attackers(algorithms.build_fed_avg, (0,))


@pytest.mark.full
def test_scaffold_sends_its_own_control_variate():
  process = _process(
    algorithms.build_scaffold, _attackers('sign_flip', 1), batch_size=50
  )
  plain = _process(algorithms.build_scaffold, batch_size=50)
  rows = [
    linear_task.client_vectors(
      _after_round(p)[1].state.client_work['table']['control']
    )
    for p in (process, plain)
  ]
  linear_task.assert_equal(*map(tf.constant, rows))
