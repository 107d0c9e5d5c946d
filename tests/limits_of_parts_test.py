"""Numbers just outside the limits of the parts of methods, each by its name."""

import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client
from tff_fair import losses
from tff_fair.client import local_training
from tff_fair.tensors import geometry

_NUMBERS = [np.nan, np.inf, '1', None, True]
_COUNT = [0, 1.5, *_NUMBERS]
_POSITIVE = [0, -1e-9, *_NUMBERS]
_NOT_NEGATIVE = [-1e-9, *_NUMBERS]
_MARGINS = [1.0, (1.0,), (1, 2, 3), (1, -1e-9), (np.nan, 1), ('1', 1)]
_Z = tf.ones([3, 2])
_SGD = tff.learning.optimizers.build_sgdm(0.1)
_PLAIN = client.classification_objective()
_partial = functools.partial
_DRAWN = {'use_ce': True, 'resample': 'epoch'}

# Argument, calls that lack only it, and illegal values.
_ROWS = [
  (
    'batch_size',
    [
      _partial(client.mean_loss, None, None, None),
      _partial(client.mean_gradient, None, None, None),
      _partial(client.batch_losses, None, None, None, number=2),
      _partial(client.fisher_trace, None, None, None),
      _partial(client.build_local_training, None, _PLAIN, _SGD, local_epochs=1),
    ],
    _COUNT,
  ),
  (
    'local_epochs',
    [_partial(client.build_local_training, None, _PLAIN, _SGD, batch_size=1)],
    _COUNT,
  ),
  (
    'temperature',
    [
      losses.DistillationLoss,
      losses.SupervisedContrastiveLoss,
      _partial(losses.distillation_loss, _Z, _Z),
      _partial(losses.contrastive_loss, _Z[0], _Z[0], _Z, [True] * 3),
      _partial(losses.model_contrastive_loss, _Z, _Z, _Z),
      _partial(losses.supervised_contrastive_loss, [0, 1, 0], _Z),
      _partial(client.distillation_objective, 1.0, focal_gamma=0.0),
      _partial(client.model_contrastive_objective, weight=1.0),
      _partial(
        client.supervised_contrastive_objective, weight=1.0, use_ce=True
      ),
    ],
    _POSITIVE,
  ),
  ('focal_weight', [losses.FocalLoss, client.focal_objective], _POSITIVE),
  ('bound', [_partial(client.FreeRiders, client_ids=(0,))], _POSITIVE),
  ('gamma', [losses.FocalLoss], [-1e-9, np.float32(-1), np.nan, np.inf]),
  ('focal_gamma', [client.classification_objective], _NOT_NEGATIVE),
  (
    'weight',
    [
      _partial(client.distillation_objective, temperature=1.0, focal_gamma=0.0),
      _partial(client.triplet_objective, 4, margin=1.0, **_DRAWN),
      _partial(
        client.quadruplet_objective, 4, margins=(1, 1), squared=True, **_DRAWN
      ),
      _partial(
        client.supervised_contrastive_objective, use_ce=True, temperature=1.0
      ),
      _partial(client.model_contrastive_objective, temperature=1.0),
    ],
    _NOT_NEGATIVE,
  ),
  (
    'proximal_weight',
    [_partial(client.proximal_objective, _PLAIN)],
    _NOT_NEGATIVE,
  ),
  (
    'loss_bound',
    [_partial(client.proportional_objective, _PLAIN, linear_width=1e-9)],
    _POSITIVE,
  ),
  (
    'linear_width',
    [_partial(client.proportional_objective, _PLAIN, loss_bound=2.0)],
    [2.1, *_POSITIVE],
  ),
  (
    'weight_decay',
    [_partial(client.with_weight_decay, _SGD)],
    _NOT_NEGATIVE,
  ),
  (
    'margin',
    [
      losses.TripletLoss,
      _partial(losses.triplet_loss, _Z, _Z, _Z),
      _partial(
        client.mined_triplet_objective, mining='hard', weight=1.0, use_ce=True
      ),
    ],
    _NOT_NEGATIVE,
  ),
  (
    'margins',
    [
      losses.QuadrupletLoss,
      losses.ClassicQuadrupletLoss,
      _partial(losses.quadruplet_loss, _Z, _Z, _Z, _Z),
      _partial(losses.classic_quadruplet_loss, _Z, _Z, _Z, _Z),
    ],
    _MARGINS,
  ),
  (
    'rate',
    [_partial(geometry.refined, [2.0, 0.0], [0.0, 3.0])],
    [-0.1, 1.1, *_NUMBERS],
  ),
  (
    'mining',
    [
      _partial(
        client.mined_triplet_objective, margin=1.0, weight=1.0, use_ce=True
      )
    ],
    ['easy'],
  ),
  (
    'resample',
    [
      _partial(client.triplet_objective, 4, margin=1.0, weight=1.0, use_ce=True)
    ],
    ['Epoch'],
  ),
  ('kind', [_partial(client.FreeRiders, client_ids=(0,))], ['lazy']),
  ('seed', [local_training.seed_words], [-1, 2**62, *_NUMBERS]),
]


@pytest.mark.parametrize('row', _ROWS, ids=lambda row: row[0])
def test_just_outside(row):
  name, calls, values = row
  for call in calls:
    for value in values:
      with pytest.raises(
        (TypeError, ValueError), match=f'^(The )?{name} .*must be .*found'
      ):
        call(**{name: value})


def test_just_inside():
  tiny = 2.0**-126
  assert client.with_weight_decay(_SGD, 0.0) is _SGD
  client.proximal_objective(_PLAIN, 0.0)
  client.distillation_objective(0.0, temperature=tiny, focal_gamma=0.0)
  client.triplet_objective(4, margin=0.0, weight=0.0, **_DRAWN)
  client.build_local_training(None, _PLAIN, _SGD, local_epochs=1, batch_size=1)
  client.FreeRiders(client_ids=(0,), bound=tiny)
  losses.FocalLoss(0.0, focal_weight=tiny)
  losses.QuadrupletLoss((0, 0))
  local_training.seed_words(2**62 - 1)


def test_ids_of_free_riders():
  for bad in (-1, 0.5, '0', None):
    with pytest.raises((TypeError, ValueError), match='id .*must be'):
      client.FreeRiders(client_ids=(bad,))
