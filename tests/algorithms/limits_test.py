"""Limiting cases: what a method is if its own part has no effect.

With minibatches, dropout, batch normalisation, focal loss, and momentum or Adam
with weight decay.
"""

import functools

import numpy as np
import pytest
import tensorflow_federated as tff

from tests.algorithms import contract
from tests.algorithms import linear_task
from tff_fair import algorithms
from tff_fair import client

pytestmark = [pytest.mark.full, pytest.mark.usefixtures('default_runtime')]

_adam = tff.learning.optimizers.build_adam
_OPTIMIZERS = {
  'plain': linear_task.sgd(0.1),
  'momentum': client.with_weight_decay(
    linear_task.sgd(0.05, momentum=0.9), 0.1
  ),
  'adam': client.with_weight_decay(_adam(0.01), 0.1),
}


@functools.cache
def _rounds(name, optimizer, **options):
  """Global weights, the clients' metrics and their table of two rounds."""
  clients = linear_task.make_clients((5, 9, 12))
  if name == 'fed_sac':  # It needs a hidden layer.
    options.update(
      validation=contract.VALIDATION, contributions=[0.3] * len(clients)
    )
  process = getattr(algorithms, f'build_{name}')(
    functools.partial(linear_task.embedding_behind_batch_norm_model_fn, 0.5),
    num_clients=len(clients),
    client_optimizer=_OPTIMIZERS[optimizer],
    local_epochs=2,
    batch_size=4,
    seed=3,
    focal_gamma=0.5,
    **options,
  )
  state, found = process.initialize(), []
  for cohort in ([0, 1, 2], [2, 0]):
    data = [linear_task.client_data(i, clients[i]) for i in cohort]
    output = process.next(state, data)
    state = output.state
    metrics, table = output.metrics['client_work'], state.client_work['table']
    found.append((process.get_model_weights(state), metrics, table))
  return found


_UNIFORM = {'uniform': True}
# Method, its optimiser, options of it and of FedAvg, and whether metrics are
# the same, too. The methods of metric learning share FedQuad's way.
_SAME = (
  ('fed_prox', 'adam', {'proximal_weight': 0}, {}, True),
  ('fedquad', 'momentum', {'quadruplet_weight': 0}, {}, True),
  ('moon', 'momentum', {'contrastive_weight': 0}, {}, True),
  ('fed_mpr', 'adam', {'prune_fraction': 0}, _UNIFORM, True),
  ('term', 'adam', {'tilt': 0}, {}, False),
  ('gifair_fl', 'momentum', {'spread_share': 0}, {}, False),
  ('ditto', 'momentum', {}, {}, False),
  ('fed_rep', 'adam', {'num_head_layers': 0}, {}, True),
  ('fedakd', 'momentum', {'variant': 'all_data', 'up_weight': 0}, {}, False),
  ('corefed', 'adam', {'variant': 'refed', 'alignment': 'server'}, {}, True),
)


@pytest.mark.parametrize(
  ('name', 'optimizer', 'options', 'of_fed_avg', 'metrics'), _SAME
)
def test_is_fed_avg_bit_for_bit(name, optimizer, options, of_fed_avg, metrics):
  for one, other in zip(
    _rounds(name, optimizer, **options),
    _rounds('fed_avg', optimizer, **of_fed_avg),
    strict=True,
  ):
    linear_task.assert_equal(one[: 1 + metrics], other[: 1 + metrics])


@pytest.mark.parametrize(
  ('name', 'options', 'of_fed_avg'),
  [
    ('q_fed_avg', {'q': 0}, _UNIFORM),
    ('afl', {'mixture_rate': 0}, _UNIFORM),
    ('fed_sac', {}, _UNIFORM),
    ('fed_fv', {'keep_share': 1, 'memory_rounds': 0}, _UNIFORM),
    # (1 / f)^0 sigma(0) is the same for all.
    (
      'corefed',
      {'fairness_exponent': 0, 'sharpness': 0, 'gradient_reuse': False},
      _UNIFORM,
    ),
    # In one cluster.
    (
      'pfed_ck',
      {'num_clusters': 1, 'knowledge_weight': 0, 'feature_weight': 0},
      {},
    ),
  ],
)
def test_trainable_weights_are_fed_avg_s(name, options, of_fed_avg):
  found, expected = (
    [weights.trainable for weights, *_ in rounds]
    for rounds in (
      _rounds(name, 'adam', **options),
      _rounds('fed_avg', 'adam', **of_fed_avg),
    )
  )
  linear_task.assert_close(found, expected)


def test_prop_fair_with_a_high_bound():
  """Gradients are those of FedAvg, divided by the bound."""
  bound = 1e6
  found, expected = (
    [(weights, metrics['accuracy']) for weights, metrics, _ in rounds]
    for rounds in (
      _rounds(
        'prop_fair',
        'plain',
        loss_bound=bound,
        client_learning_rate_fn=lambda number: 0.1 * bound,
      ),
      _rounds('fed_avg', 'plain'),
    )
  )
  linear_task.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_the_first_rounds_of_scaffold_and_fed_dc():
  """Without pull, FedDC's moves twice as far; batch statistics do not."""
  first = linear_task.start(linear_task.embedding_behind_batch_norm_model_fn)
  (scaffold, *metrics), (average, *expected), (fed_dc, *_) = (
    _rounds(name, 'plain', **options)[0][:2]
    for name, options in (
      ('scaffold', {}),
      ('fed_avg', _UNIFORM),
      ('fed_dc', {'drift_weight': 0}),
    )
  )
  linear_task.assert_close((scaffold, metrics), (average, expected))
  moved, usual = (
    linear_task.vector(w.trainable) - first for w in (fed_dc, average)
  )
  linear_task.assert_close(moved, 2 * usual, rtol=1e-4)
  linear_task.assert_close(fed_dc.non_trainable, average.non_trainable)


def test_statistics_of_fed_rep():
  """Those of the epochs of the body, on FedAvg's minibatches."""
  found, expected = (
    [weights.non_trainable for weights, *_ in _rounds(name, 'plain')]
    for name in ('fed_rep', 'fed_avg')
  )
  linear_task.assert_equal(found, expected)


def test_the_default_bound_changes_no_bit_of_an_honest_run():
  """SCAFFOLD also makes its control variates of the bounded model."""
  bounded, unbounded = (
    _rounds('scaffold', 'plain', **options)
    for options in ({}, {'max_update_norm': None})
  )
  # Weights, metrics (none is clipped) and the control variates.
  linear_task.assert_equal(bounded, unbounded)
  for _, metrics, table in bounded:
    assert metrics['num_clipped_clients'] == 0
    assert all(np.any(rows, axis=-1).any() for rows in table['control'])
