"""The platform's Ditto against rounds by hand."""

import functools

import pytest

from tests.algorithms import linear_task
from tests.algorithms import reference
from tests.launchers.scripts import minibatches
from tff_fair import algorithms
from tff_fair.launchers.scripts import ditto_7b6e0b7f

pytestmark = [pytest.mark.full, pytest.mark.usefixtures('default_runtime')]

_CLIENTS, _EPOCHS, _BATCH = len(linear_task.SIZES), 2, 4


def _build(**options):
  return linear_task.build_process(
    ditto_7b6e0b7f.build_ditto,
    **{'num_clients': _CLIENTS, 'batch_size': _BATCH, **options},
  )


def _script(rounds, rate, decay, pull):
  w = linear_task.start()
  for number, clients in enumerate(rounds):
    eta, trained = rate * decay**number, []
    for data in clients.values():
      v = w
      for batch in _EPOCHS * minibatches.fixed(data, _BATCH):
        g = minibatches.gradient(reference.LINEAR, v, batch)
        v = v - eta * g
        v = v - eta * (g + pull * (v - w))
      trained.append(v)
    for v in trained:
      w = w + (v - w) / _CLIENTS
    yield {'weights': w, 'aggregator/num_aggregated': len(trained)}


def test_rounds_by_hand():
  linear_task.assert_rounds(
    _build(
      learning_rate=0.5, decay=0.5, proximal_weight=0.7, local_epochs=_EPOCHS
    ),
    functools.partial(_script, rate=0.5, decay=0.5, pull=0.7),
    linear_task.rounds(),
  )


def test_alone_and_without_pull_it_is_fed_avg_at_twice_the_rate():
  clients = linear_task.make_clients([9])
  script = _build(num_clients=1, proximal_weight=0.0, reshuffle=True)
  fed_avg = linear_task.build_process(
    algorithms.build_fed_avg,
    learning_rate=0.2,
    num_clients=1,
    batch_size=_BATCH,
  )
  outputs = [linear_task.run(p, clients, 2 * [[0]]) for p in (script, fed_avg)]
  found, expected = (
    linear_task.weights(p, output.state)
    for p, output in zip((script, fed_avg), outputs, strict=True)
  )
  linear_task.assert_close(found, expected)


def test_the_loss_is_the_cross_entropy():
  clients = linear_task.make_clients([4])
  process = _build(num_clients=1, proximal_weight=5.0)
  output = linear_task.run(process, clients, [[0]])
  expected = reference.LINEAR.loss(linear_task.start(), clients[0])
  linear_task.assert_close(output.metrics['client_work']['loss'], expected)


def test_it_needs_plain_sgd():
  linear_task.assert_refused(
    _build,
    ('client_optimizer', linear_task.sgd(0.1, 0.9), 'plain SGD'),
  )
