import functools

import numpy as np
import pytest

from tests.algorithms import fedquad_reference
from tests.algorithms import linear_task
from tests.algorithms import metric_task
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_build = functools.partial(metric_task.build_process, algorithms.build_moon)
_process = functools.cache(_build)
_ids = metric_task.IDS.get


def _reference(**options):
  return metric_task.reference('moon', **{'weight': 5.0, **options})


def _table(state):
  return state.client_work['table']


def _row(state, name):
  """A client's previous weights, and whether it has any."""
  table, i = _table(state), _ids(name)
  previous = table['previous']
  weights = [*previous.trainable, *previous.non_trainable]
  return [w[i] for w in weights], table['has_previous'][i]


def test_rounds_of_changing_cohorts_against_numpy():
  process, reference = _process(), _reference()
  rounds = [
    metric_task.clients('several', 'mixed'),
    # One client is new, one returns, and two do not count.
    metric_task.clients('empty', 'several', 'broken', 'mixed'),
    metric_task.clients('one', 'mixed'),
    metric_task.clients('one', 'several'),
  ]
  outputs = linear_task.assert_rounds(process, reference, rounds)
  contrastive, rejected = [
    [output.metrics['client_work'][name] for output in outputs]
    for name in ('contrastive_loss', 'num_rejected_clients')
  ]
  assert contrastive[0] == 0 and min(contrastive[1:]) > 0.01
  assert rejected == [0, 1, 0, 0]
  table = _table(outputs[-1].state)
  assert set(np.flatnonzero(table['has_previous'])) == set(reference.previous)
  assert len(reference.previous) == 3
  for i, weights in reference.previous.items():
    found = [rows[i] for rows in table['previous'].trainable]
    linear_task.assert_close(found, weights)
  # Rows of absent, empty and rejected clients do not change.
  states = [process.initialize(), *(output.state for output in outputs)]
  for number, names in ((1, ('one', 'empty')), (2, ('one', 'empty', 'broken'))):
    for name in names:
      linear_task.assert_equal(
        _row(states[number], name), _row(states[number - 1], name)
      )


@pytest.mark.full
def test_an_option_against_numpy():
  options = {'temperature': 0.1, 'local_epochs': 2}
  linear_task.assert_rounds(
    _build(contrastive_weight=1.5, **options),
    _reference(weight=1.5, **options),
    [metric_task.clients('several', 'mixed')] * 2,
  )


@pytest.mark.full
def test_both_fixed_models_have_their_own_moving_statistics():
  """Of batch normalisation; the weights do not change."""
  process = _build(
    linear_task.embedding_behind_batch_norm_model_fn,
    learning_rate=0.0,
    local_epochs=1,
  )
  clients = metric_task.clients('several', 'mixed')
  output = linear_task.run(process, clients, [clients] * 2)
  own = [
    np.array([c.x.mean(axis=0), 1 + c.x.var(axis=0)]) / 2
    for c in clients.values()
  ]
  received = np.average(own, axis=0, weights=[12, 7])
  losses = []
  for client, previous in zip(clients.values(), own, strict=True):
    batch = np.array([client.x.mean(axis=0), client.x.var(axis=0)])
    z = [
      fedquad_reference.embeddings(
        _reference().weights, (client.x - mean) / np.sqrt(variance + 1e-3)
      )
      for mean, variance in (batch, received, previous)
    ]
    losses.append(fedquad_reference.model_contrastive_loss(*z, 0.5)[0])
  found = output.metrics['client_work']['contrastive_loss']
  expected = np.average(losses, weights=[12, 7])
  np.testing.assert_allclose(found, expected, rtol=1e-5)
  # Half of the way from the received mean to the batch's.
  means, _ = _table(output.state)['previous'].non_trainable
  i = _ids('mixed')
  expected = (received[0] + clients[i].x.mean(axis=0)) / 2
  np.testing.assert_allclose(means[i], expected, rtol=1e-5)


@pytest.mark.full
def test_weight_0_is_fed_avg_bit_for_bit():
  linear_task.assert_is_fed_avg(
    algorithms.build_moon, 'sgd', contrastive_weight=0
  )


def test_bad_arguments():
  linear_task.assert_refused(
    _build,
    ('model_fn', linear_task.model_fn, "'embedding'.*build_moon.* found"),
  )
