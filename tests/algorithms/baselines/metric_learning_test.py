import collections
import functools

import numpy as np
import pytest

from tests.algorithms import fedquad_reference
from tests.algorithms import linear_task
from tests.algorithms import quadruplet_task
from tff_fair import algorithms

_BUILDERS = {
  'triplet_fl': algorithms.build_triplet_fl,
  'quadruplet_fl': algorithms.build_quadruplet_fl,
  'supcon_fl': algorithms.build_supcon_fl,
}
# Squared distances grow fast.
_LEARNING_RATE = {'triplet_fl': 0.05, 'quadruplet_fl': 0.005, 'supcon_fl': 0.1}
# Of several classes; with one example alone, and two, in their class; of two
# classes; of one; all alone in their class; none.
_LABELS = (
  [0, 1, 2, 1, 0, 2, 2, 0, 1, 0, 2, 1],
  [0, 0, 2, 0, 1, 2, 2],
  [0, 2, 2, 0, 0],
  [1, 1, 1],
  [2, 0, 1],
  [],
)


def _clients(ids, broken=()):
  clients = {i: linear_task.labelled_client(_LABELS[i], seed=i) for i in ids}
  for i in broken:
    clients[i].x[1, 2] = np.nan
  return clients


def _build(method, *, learning_rate=None, local_epochs=3, **options):
  return _BUILDERS[method](
    linear_task.embedding_model_fn,
    num_clients=len(_LABELS),
    client_optimizer=linear_task.sgd(learning_rate or _LEARNING_RATE[method]),
    local_epochs=local_epochs,
    batch_size=50,
    **options,
  )


_process = functools.cache(_build)


def _reference(method, **options):
  return fedquad_reference.Federation(
    linear_task.embedding_model_fn().get_weights(),
    method,
    learning_rate=_LEARNING_RATE[method],
    local_epochs=3,
    **options,
  )


@pytest.mark.usefixtures('default_runtime')
class TestRoundsAgainstNumpy:
  _ROUNDS = (
    _clients([0, 1, 2]),
    _clients([5, 0, 3, 1, 4], broken=[0]),
  )

  @pytest.mark.parametrize(
    ('method', 'options', 'same'),
    [
      ('triplet_fl', {}, {'margins': (1.0, 0.0)}),
      (
        'triplet_fl',
        {'metric_weight': 2.0, 'margin': 0.25, 'use_ce': False},
        {'weight': 2.0, 'margins': (0.25, 0.0), 'use_ce': False},
      ),
      ('quadruplet_fl', {}, {}),
      (
        'quadruplet_fl',
        {'metric_weight': 2.0, 'margins': (0.5, 3.0), 'use_ce': False},
        {'weight': 2.0, 'margins': (0.5, 3.0), 'use_ce': False},
      ),
    ],
  )
  def test_of_given_quadruplets(self, method, options, same):
    with quadruplet_task.next_quadruplets():
      process = _build(method, **options)
    _, output = linear_task.assert_rounds(
      process, _reference(method, **same), self._ROUNDS
    )
    found = output.metrics['client_work']
    assert found['num_rejected_clients'] == found['num_empty_clients'] == 1

  @pytest.mark.parametrize(
    ('options', 'same'),
    [
      ({}, {'temperature': 0.07}),
      (
        {'metric_weight': 2.0, 'temperature': 0.5, 'use_ce': False},
        {'weight': 2.0, 'temperature': 0.5, 'use_ce': False},
      ),
    ],
  )
  def test_of_supcon_fl(self, options, same):
    """Everything is in one minibatch, so nothing is random."""
    linear_task.assert_rounds(
      _process('supcon_fl', **options),
      _reference('supcon_fl', **same),
      self._ROUNDS,
    )

  @pytest.mark.parametrize('method', ['triplet_fl', 'quadruplet_fl'])
  def test_where_only_one_draw_is_possible(self, method):
    # Three anchors have a positive each, whose negatives all look alike.
    clients = {0: linear_task.labelled_client([2, 0, 2])}
    clients[1] = linear_task.labelled_client([1, 2, 1, 0], seed=1)
    clients[1].x[3] = clients[1].x[1]
    linear_task.assert_rounds(
      _build(method), _reference(method), [clients | _clients([3])] * 2
    )

  def test_without_positives_supcon_fl_is_federated_averaging(self):
    linear_task.assert_rounds(
      _process('supcon_fl'),
      _reference('supcon_fl', weight=0.0),
      [_clients([4])],
    )


@pytest.mark.usefixtures('default_runtime')
@pytest.mark.parametrize('method', _BUILDERS)
def test_weight_0_is_fed_avg_bit_for_bit(method):
  linear_task.assert_is_fed_avg(_BUILDERS[method], 'adam', metric_weight=0)


@pytest.mark.usefixtures('default_runtime')
@pytest.mark.parametrize(
  ('method', 'optimizer'),
  [('triplet_fl', 'adam'), ('quadruplet_fl', 'sgd'), ('supcon_fl', 'adam')],
)
def test_without_cross_entropy_the_classifier_stays_as_it_was(
  method, optimizer
):
  quadruplet_task.assert_trains_the_encoder_alone(_BUILDERS[method], optimizer)


_BAD_TUPLES = [
  ({'resample': 'never'}, ValueError, "resample must be one of.*found 'never'"),
]
_BAD = collections.OrderedDict(
  triplet_fl=[
    ({'margin': -1}, ValueError, 'margin must be at least 0.*found -1'),
    ({'margin': np.nan}, ValueError, 'margin must be .*found nan'),
    ({'margin': (1, 2)}, TypeError, r'margin must be .*found \(1, 2\)'),
    *_BAD_TUPLES,
  ],
  quadruplet_fl=[
    ({'margins': 2}, ValueError, 'margins must be two numbers, found 2'),
    ({'margins': [1.0]}, ValueError, r'margins must be two .*found \[1.0\]'),
    ({'margins': (1, -2)}, ValueError, 'margins must be .*found -2'),
    ({'margins': (1, np.nan)}, ValueError, 'margins must be .*found nan'),
    *_BAD_TUPLES,
  ],
  supcon_fl=[
    ({'temperature': 0}, ValueError, 'temperature must be positive, found 0'),
    ({'temperature': -1}, ValueError, 'temperature must be .*found -1'),
    ({'temperature': np.nan}, ValueError, 'temperature must be .*found nan'),
    ({'temperature': '1'}, TypeError, "temperature must be .*found '1'"),
  ],
)
_BAD_EVERYWHERE = [
  (
    {'metric_weight': -0.1},
    ValueError,
    'metric_weight must be at least 0.*found -0.1',
  ),
  ({'metric_weight': np.inf}, ValueError, 'metric_weight must be .*found inf'),
  (
    {'use_ce': False, 'metric_weight': 0},
    ValueError,
    'metric_weight must be positive with use_ce=False.*found 0',
  ),
  ({'use_ce': None}, ValueError, 'use_ce must be .*found None'),
]


@pytest.mark.parametrize(
  ('method', 'options', 'error', 'message'),
  [
    (method, *case)
    for method, cases in _BAD.items()
    for case in cases + _BAD_EVERYWHERE
  ],
)
def test_bad_arguments(method, options, error, message):
  with pytest.raises(error, match=message):
    _build(method, **options)


@pytest.mark.parametrize('method', _BUILDERS)
def test_a_model_without_embedding_is_refused(method):
  with pytest.raises(
    ValueError, match=f"model_fn must .*'embedding'.*build_{method}.* found"
  ):
    _BUILDERS[method](
      linear_task.model_fn, client_optimizer=linear_task.sgd(0.1)
    )
