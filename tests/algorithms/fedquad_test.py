import functools

import numpy as np
import pytest

from tests.algorithms import linear_task
from tests.algorithms import metric_task
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')


def _build(**options):
  """The builder, with the reference's names of options."""
  if 'weight' in options:
    options['quadruplet_weight'] = options.pop('weight')
  return metric_task.build_process(algorithms.build_fedquad, **options)


_process = functools.cache(_build)
_reference = functools.partial(metric_task.reference, 'fedquad')
_OPTIONS = [
  {},
  {'squared': True, 'margins': (0.5, 2.0), 'learning_rate': 0.01},
  {'use_ce': False, 'weight': 2.0},
]


@pytest.mark.parametrize('options', _OPTIONS, ids=str)
def test_rounds_of_given_quadruplets_against_numpy(options):
  with metric_task.next_quadruplets():
    process = _build(**options)
  rounds = [
    metric_task.clients('several', 'two', 'mixed'),
    metric_task.clients('broken', 'one', 'empty', 'mixed', 'alone'),
  ]
  outputs = linear_task.assert_rounds(process, _reference(**options), rounds)
  found = [output.metrics['client_work'] for output in outputs]
  # 12 + 5 + 6 of 24 anchors, the last without the one that is alone.
  assert found[0]['v1_share'] == pytest.approx(23 / 24)
  assert found[0]['v2_share'] == pytest.approx(18 / 24)
  assert found[1]['num_rejected_clients'] == 1
  assert found[1]['num_empty_clients'] == 1
  assert found[1]['num_examples'] == 13


@pytest.mark.full
def test_rounds_where_only_one_quadruplet_can_be_drawn_against_numpy():
  clients = metric_task.clients('forced_two', 'forced_three', 'one', 'alone')
  linear_task.assert_rounds(_process(), _reference(), [clients] * 2)
  # Where nothing can be drawn, it is FedAvg.
  clients = metric_task.clients('one', 'alone')
  linear_task.assert_rounds(_process(), _reference(weight=0.0), [clients] * 2)


@pytest.mark.full
def test_ids_do_not_change_the_training():
  clients = metric_task.clients('forced_two', 'forced_three', 'one')
  (with_ids,) = linear_task.assert_rounds(_process(), _reference(), [clients])
  without = _build(num_clients=None)
  data = [linear_task.client_data(0, c)['train'] for c in clients.values()]
  output = without.next(without.initialize(), data)
  linear_task.assert_close(
    without.get_model_weights(output.state).trainable,
    _process().get_model_weights(with_ids.state).trainable,
  )
  found = output.metrics['client_work']
  expected = with_ids.metrics['client_work']
  assert set(found) == set(expected) - {'clients'}
  for name in found:
    assert found[name] == pytest.approx(expected[name], rel=1e-5), name


@pytest.mark.full
@pytest.mark.parametrize('optimizer', ['sgd', 'adam'])
def test_weight_0_is_fed_avg_bit_for_bit(optimizer):
  linear_task.assert_is_fed_avg(
    algorithms.build_fedquad, optimizer, quadruplet_weight=0
  )


@pytest.mark.full
@pytest.mark.parametrize('optimizer', ['sgd', 'adam'])
def test_without_cross_entropy_the_classifier_is_not_trained(optimizer):
  metric_task.assert_trains_the_encoder_alone(
    algorithms.build_fedquad, optimizer
  )


@functools.cache
def _quadruplet_losses(**options):
  """Of the first two rounds of a model that does not change."""
  process = _build(learning_rate=0.0, batch_size=5, **options)
  data = linear_task.client_data(0, *metric_task.clients('several').values())
  state, found = process.initialize(), []
  for _ in range(2):
    output = process.next(state, [data])
    state = output.state
    found.append(output.metrics['client_work']['quadruplet_loss'])
  return found


@pytest.mark.full
def test_quadruplets_are_drawn_once_a_round_or_in_every_epoch():
  of_one_epoch = _quadruplet_losses(resample='once', local_epochs=1)
  of_three = _quadruplet_losses(resample='once')
  np.testing.assert_allclose(of_one_epoch, of_three, rtol=1e-5)
  assert abs(of_three[0] - of_three[1]) > 1e-3
  of_one_epoch = _quadruplet_losses(local_epochs=1)
  for others in (
    _quadruplet_losses(),
    _quadruplet_losses(local_epochs=1, seed=1),
  ):
    assert np.abs(np.subtract(of_one_epoch, others)).min() > 1e-3


@pytest.mark.full
def test_metrics_are_means_over_anchors_for_any_minibatches():
  with metric_task.next_quadruplets():
    process = _build(learning_rate=0.0, batch_size=5)
  rounds = [metric_task.clients('several', 'mixed')] * 2
  linear_task.assert_rounds(process, _reference(learning_rate=0.0), rounds)


def test_bad_arguments():
  linear_task.assert_refused(
    _build,
    ('margins', 1.0, 'two numbers, found 1.0'),
    ('margins', (1.0, 0.5, 0.2), 'two numbers, found .*0.2'),
    ('margins', (1, -0.5), 'found -0.5'),
    ('margins', (1.0, np.inf), 'found inf'),
    ('margins', 'no', "found 'n", TypeError),
    ('margins', ('1', 1), "found '1'", TypeError),
  )
  linear_task.assert_refused(
    _build,
    ('quadruplet_weight', 0, 'positive with use_ce=False.*found 0'),
    use_ce=False,
  )
  linear_task.assert_refused(
    _build,
    ('model_fn', linear_task.model_fn, "'embedding'.*build_fedquad.* found"),
  )
