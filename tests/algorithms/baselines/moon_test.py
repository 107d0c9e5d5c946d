import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import fedquad_reference
from tests.algorithms import linear_task
from tff_fair import algorithms

_LABELS = (
  [0, 1, 2, 1, 0, 2, 2, 0, 1, 0, 2, 1],
  [0, 0, 2, 0, 1, 2, 2],
  [1, 1, 1],
  [],
)
_DEFAULTS = {'learning_rate': 0.05, 'local_epochs': 3}


def _clients(ids, broken=()):
  clients = {i: linear_task.labelled_client(_LABELS[i], seed=i) for i in ids}
  for i in broken:
    clients[i].x[1, 2] = np.nan
  return clients


def _build(model_fn=linear_task.embedding_model_fn, **options):
  options = {**_DEFAULTS, **options}
  return algorithms.build_moon(
    model_fn,
    **{
      'num_clients': len(_LABELS),
      'client_optimizer': linear_task.sgd(options.pop('learning_rate')),
      'batch_size': 50,
      **options,
    },
  )


_process = functools.cache(_build)


def _reference(**options):
  return fedquad_reference.Federation(
    linear_task.embedding_model_fn().get_weights(),
    'moon',
    **{**_DEFAULTS, 'weight': 5.0, **options},
  )


def _table(state):
  return state.client_work['table']


@pytest.mark.usefixtures('default_runtime')
class TestRoundsAgainstNumpy:
  def test_changing_cohorts(self):
    reference = _reference()
    rounds = [
      _clients([0, 1]),
      # Somebody new, somebody who returns, and two who do not count.
      _clients([3, 0, 2, 1], broken=[2]),
      _clients([2, 1]),
      _clients([2, 0]),
    ]
    outputs = linear_task.assert_rounds(_process(), reference, rounds)
    contrastive, rejected = [
      [output.metrics['client_work'][name] for output in outputs]
      for name in ('contrastive_loss', 'num_rejected_clients')
    ]
    assert contrastive[0] == 0 and min(contrastive[1:]) > 0.01
    assert rejected == [0, 1, 0, 0]
    table = _table(outputs[-1].state)
    np.testing.assert_array_equal(table['has_previous'], [1, 1, 1, 0])
    for i, weights in reference.previous.items():
      for rows, expected in zip(
        table['previous'].trainable, weights, strict=True
      ):
        np.testing.assert_allclose(rows[i], expected, rtol=1e-5, atol=1e-6)

  def test_an_option(self):
    options = {'temperature': 0.1, 'local_epochs': 2}
    linear_task.assert_rounds(
      _build(contrastive_weight=1.5, **options),
      _reference(weight=1.5, **options),
      [_clients([0, 1])] * 2,
    )

  def test_who_is_always_new_trains_as_in_federated_averaging(self):
    rounds = [_clients([0]), _clients([1]), _clients([2])]
    linear_task.assert_rounds(_process(), _reference(weight=0.0), rounds)


@pytest.mark.usefixtures('default_runtime')
class TestTable:
  def _row(self, state, i):
    table = _table(state)
    previous = table['previous']
    weights = [*previous.trainable, *previous.non_trainable]
    return [w[i] for w in weights], table['has_previous'][i]

  def test_rows_of_absent_empty_and_rejected_clients_stay(self):
    process = _process()
    states = [process.initialize()]
    for clients in (_clients([0, 2]), _clients([0, 1, 2, 3], broken=[0])):
      data = [linear_task.client_data(i, c) for i, c in clients.items()]
      states.append(process.next(states[-1], data).state)
    for number, stay, change in ((1, (1, 3), (0, 2)), (2, (0, 3), (1, 2))):
      before, after = states[number - 1], states[number]
      for i in stay:
        linear_task.assert_equal(self._row(before, i), self._row(after, i))
      for i in change:
        kernels = [self._row(state, i)[0][0] for state in (before, after)]
        assert np.abs(np.subtract(*kernels)).max() > 1e-3

  def test_a_row_is_the_clients_own_model_whoever_else_takes_part(self):
    process, clients = _process(), _clients([0, 1, 2])
    together = linear_task.run(process, clients, [[0, 1, 2]]).state
    alone = linear_task.run(process, clients, [[1]]).state
    linear_task.assert_equal(self._row(together, 1), self._row(alone, 1))
    # Alone, the client's model is the global one.
    for row, weights in zip(
      _table(alone)['previous'].trainable,
      process.get_model_weights(alone).trainable,
      strict=True,
    ):
      np.testing.assert_allclose(row[1], weights, rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures('default_runtime')
def test_both_fixed_models_have_their_own_moving_statistics():
  """Of batch normalisation; the weights stay, so that nothing else differs."""
  process = _build(
    linear_task.embedding_behind_batch_norm_model_fn,
    learning_rate=0.0,
    local_epochs=1,
  )
  clients = _clients([0, 1])
  output = linear_task.run(process, clients, [[0, 1]] * 2)
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
  np.testing.assert_allclose(
    output.metrics['client_work']['contrastive_loss'],
    np.average(losses, weights=[12, 7]),
    rtol=1e-5,
  )
  # Half of the way from the received mean to the batch's.
  means, _ = _table(output.state)['previous'].non_trainable
  np.testing.assert_allclose(
    means[1], (received[0] + clients[1].x.mean(axis=0)) / 2, rtol=1e-5
  )


@pytest.mark.usefixtures('default_runtime')
def test_worked_example():
  """Cosines of 1 with the received model's embedding, of .6 with its own."""
  process = _build(client_learning_rate_fn=lambda _: 0.0)
  client = linear_task.labelled_client([0])
  client.x[:] = [[1, 0, 0, 0]]
  state, found = process.initialize(), []
  for direction in ([0.6, 0.8, 0], [1, 0, 0]):
    weights = tf.nest.map_structure(np.copy, process.get_model_weights(state))
    weights.trainable[0][0] = direction
    state = process.set_model_weights(state, weights)
    output = process.next(state, [linear_task.client_data(0, client)])
    state = output.state
    found.append(output.metrics['client_work'])
  assert found[0]['contrastive_loss'] == 0
  # ln(1 + exp((.6 - 1) / .5))
  assert found[1]['contrastive_loss'] == pytest.approx(0.371101, abs=1e-6)
  assert found[1]['loss'] - found[1]['cross_entropy'] == pytest.approx(
    5 * 0.371101, abs=1e-5
  )


@pytest.mark.usefixtures('default_runtime')
def test_weight_0_is_fed_avg_bit_for_bit():
  linear_task.assert_is_fed_avg(
    algorithms.build_moon, 'sgd', contrastive_weight=0
  )


@pytest.mark.parametrize(
  ('options', 'error', 'message'),
  [
    ({'temperature': 0}, ValueError, 'temperature must be positive, found 0'),
    ({'temperature': np.nan}, ValueError, 'temperature must be .*found nan'),
    (
      {'contrastive_weight': -1},
      ValueError,
      'contrastive_weight must be at least 0.* found -1',
    ),
    (
      {'contrastive_weight': np.nan},
      ValueError,
      'contrastive_weight must be .*found nan',
    ),
    (
      {'contrastive_weight': 'high'},
      TypeError,
      "contrastive_weight must be a real .*found 'high'",
    ),
  ],
  ids=str,
)
def test_bad_arguments(options, error, message):
  with pytest.raises(error, match=message):
    _build(**options)


def test_a_model_without_embedding_is_refused():
  with pytest.raises(
    ValueError, match="model_fn must .*'embedding'.*build_moon.* found"
  ):
    _build(linear_task.model_fn)
