import functools

import pytest

from tests.algorithms import linear_task
from tests.algorithms import metric_task
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_BUILDERS = {
  'triplet_fl': algorithms.build_triplet_fl,
  'quadruplet_fl': algorithms.build_quadruplet_fl,
  'supcon_fl': algorithms.build_supcon_fl,
}
# Squared distances grow fast.
_LEARNING_RATE = {'triplet_fl': 0.05, 'quadruplet_fl': 0.005, 'supcon_fl': 0.1}
_ROUNDS = (
  metric_task.clients('several', 'mixed', 'two'),
  metric_task.clients('empty', 'broken', 'one', 'mixed', 'alone'),
)


def _build(method, **options):
  return metric_task.build_process(
    _BUILDERS[method], learning_rate=_LEARNING_RATE[method], **options
  )


_process = functools.cache(_build)


def _reference(method, **options):
  learning_rate = _LEARNING_RATE[method]
  return metric_task.reference(method, learning_rate=learning_rate, **options)


_TRIPLET_OPTIONS = {'metric_weight': 2.0, 'margin': 0.25, 'use_ce': False}
_OPTIONS = {'metric_weight': 2.0, 'margins': (0.5, 3.0), 'use_ce': False}


@pytest.mark.parametrize(
  ('method', 'options', 'same'),
  [
    ('triplet_fl', {}, {'margins': (1.0, 0.0)}),
    ('quadruplet_fl', {}, {}),
    pytest.param(
      'triplet_fl',
      _TRIPLET_OPTIONS,
      {'weight': 2.0, 'margins': (0.25, 0.0), 'use_ce': False},
      marks=pytest.mark.full,
    ),
    pytest.param(
      'quadruplet_fl',
      _OPTIONS,
      {'weight': 2.0, 'margins': (0.5, 3.0), 'use_ce': False},
      marks=pytest.mark.full,
    ),
  ],
)
def test_rounds_of_given_quadruplets_against_numpy(method, options, same):
  with metric_task.next_quadruplets():
    process = _build(method, **options)
  _, output = linear_task.assert_rounds(
    process, _reference(method, **same), _ROUNDS
  )
  found = output.metrics['client_work']
  assert found['num_rejected_clients'] == found['num_empty_clients'] == 1


def test_rounds_of_supcon_fl_against_numpy():
  """Everything is in one minibatch, so nothing is random."""
  process = _process('supcon_fl')
  reference = _reference('supcon_fl', temperature=0.07)
  linear_task.assert_rounds(process, reference, _ROUNDS)
  # Without positives it is FedAvg.
  reference = _reference('supcon_fl', weight=0.0)
  linear_task.assert_rounds(process, reference, [metric_task.clients('alone')])


@pytest.mark.full
def test_options_of_supcon_fl_against_numpy():
  options = {'temperature': 0.5, 'use_ce': False}
  linear_task.assert_rounds(
    _process('supcon_fl', metric_weight=2.0, **options),
    _reference('supcon_fl', weight=2.0, **options),
    _ROUNDS,
  )


@pytest.mark.full
@pytest.mark.parametrize('method', ['triplet_fl', 'quadruplet_fl'])
def test_rounds_where_only_one_draw_is_possible_against_numpy(method):
  clients = metric_task.clients('forced_two', 'forced_three', 'one')
  linear_task.assert_rounds(_build(method), _reference(method), [clients] * 2)


@pytest.mark.full
@pytest.mark.parametrize('method', _BUILDERS)
def test_weight_0_is_fed_avg_bit_for_bit(method):
  linear_task.assert_is_fed_avg(_BUILDERS[method], 'adam', metric_weight=0)


@pytest.mark.full
@pytest.mark.parametrize(
  ('method', 'optimizer'),
  [('triplet_fl', 'adam'), ('quadruplet_fl', 'sgd'), ('supcon_fl', 'adam')],
)
def test_without_cross_entropy_the_classifier_is_not_trained(method, optimizer):
  metric_task.assert_trains_the_encoder_alone(_BUILDERS[method], optimizer)


_BAD = {
  'triplet_fl': [],
  'quadruplet_fl': [
    ('margins', 2, 'two numbers, found 2'),
    ('margins', (1, -2), 'found -2'),
  ],
  'supcon_fl': [],
}


def test_bad_arguments():
  for method, rows in _BAD.items():
    linear_task.assert_refused(
      functools.partial(_build, method),
      *rows,
      (
        'model_fn',
        linear_task.model_fn,
        f"'embedding'.*build_{method}.* found",
      ),
    )
    linear_task.assert_refused(
      functools.partial(_build, method),
      ('metric_weight', 0, 'positive with use_ce=False.*found 0'),
      use_ce=False,
    )
