"""Tests of the Keras losses, and of what all losses refuse."""

import functools
import json
import math

import numpy as np
import pytest
import tensorflow as tf

from tff_fair import losses

_MASKS = [[1, 1], [1, 0], [0, 0]]


def _random(*shape, dtype=np.float64):
  return np.random.default_rng(0).normal(size=shape).astype(dtype)


def _roles(fn, **options):
  """The pure loss of stacked roles, masked by the columns of `y_true`."""

  def pure(y_true, y_pred):
    masks = tf.unstack(tf.cast(y_true, tf.bool), axis=1)
    names = ['mask'] if len(masks) == 1 else ['mask_1', 'mask_2']
    masks = dict(zip(names, masks, strict=True))
    return fn(*tf.unstack(y_pred, axis=1), **masks, **options)

  return pure


_FOUR = {'margins': (4.0, 3.0)}
_CLASSES = [[0], [0], [1]]
# Keras losses with other than the default parameters, their pure functions of
# (y_true, y_pred), y_true, and the shape of y_pred.
_KERAS = {
  'focal': (
    losses.FocalLoss(2.0, focal_weight=0.5),
    lambda y, z: losses.focal_loss(y[:, 0], z, 2.0, focal_weight=0.5),
    _CLASSES,
    [3, 2],
  ),
  'distillation': (
    losses.DistillationLoss(2.0),
    lambda y, z: losses.distillation_loss(z, y, temperature=2.0),
    [[1.0, 0.0], [0.0, 2.0], [0.5, -1.0]],
    [3, 2],
  ),
  'triplet': (
    losses.TripletLoss(2.0),
    _roles(losses.triplet_loss, margin=2.0),
    [[1], [1], [0]],
    [3, 3, 2],
  ),
  'quadruplet': (
    losses.QuadrupletLoss(**_FOUR),
    _roles(losses.quadruplet_loss, **_FOUR),
    _MASKS,
    [3, 4, 2],
  ),
  'squared': (
    losses.QuadrupletLoss(**_FOUR, squared=True),
    _roles(losses.quadruplet_loss, **_FOUR, squared=True),
    _MASKS,
    [3, 4, 2],
  ),
  'classic': (
    losses.ClassicQuadrupletLoss(**_FOUR),
    _roles(losses.classic_quadruplet_loss, **_FOUR),
    _MASKS,
    [3, 4, 2],
  ),
  'contrastive': (
    losses.SupervisedContrastiveLoss(0.5),
    lambda y, z: losses.supervised_contrastive_loss(y, z, temperature=0.5),
    _CLASSES,
    [3, 2],
  ),
}


@pytest.mark.parametrize('name', list(_KERAS))
def test_are_the_means_of_the_pure_functions(name):
  loss, pure, y_true, shape = _KERAS[name]
  y_pred = _random(*shape, dtype=np.float32)
  y_true = tf.constant(y_true)
  each = pure(y_true, tf.constant(y_pred))
  assert np.any(each > 0)
  np.testing.assert_allclose(loss(y_true, y_pred), np.mean(each), rtol=1e-6)
  np.testing.assert_allclose(
    loss(y_true.numpy(), y_pred), np.mean(each), rtol=1e-6
  )
  # They are rebuilt from their config, as it is and from a file.
  config = loss.get_config()
  for stored in (config, json.loads(json.dumps(config))):
    rebuilt = type(loss).from_config(stored)
    assert rebuilt.get_config() == config
    assert rebuilt(y_true, y_pred) == loss(y_true, y_pred)
  named = type(loss)(reduction='none', name='mine')
  rebuilt = type(loss).from_config(named.get_config())
  assert (rebuilt.reduction, rebuilt.name) == ('none', 'mine')


def test_a_variable_gamma_is_read_at_each_call():
  gamma = tf.Variable(0.0)
  model = tf.keras.Sequential([tf.keras.layers.Dense(2, use_bias=False)])
  model.build([None, 2])
  model.set_weights([np.eye(2, dtype=np.float32)])
  model.compile(loss=losses.FocalLoss(gamma), jit_compile=False)
  x, y = np.array([[math.log(1 / 3), 0.0]], np.float32), np.array([0])
  assert model.evaluate(x, y, verbose=0) == pytest.approx(1.3862944)
  gamma.assign(2.0)
  assert model.evaluate(x, y, verbose=0) == pytest.approx(0.7797906)


def test_sample_weights_and_defaults():
  roles = tf.constant([[[1.0, 0], [1.0, 2.0], [2.0, 2.0], [0, 0]]] * 2)
  masks = [[1, 1], [1, 0]]
  loss = losses.QuadrupletLoss()
  # See `quadruplet_loss` by hand.
  np.testing.assert_allclose(
    loss(masks, roles), (2.263932 + 0.763932) / 2, rtol=1e-6
  )
  np.testing.assert_allclose(
    loss(masks, roles, [0.0, 1.0]), 0.763932 / 2, rtol=1e-6
  )
  assert loss.get_config()['margins'] == (1.0, 0.5)
  assert not loss.get_config()['squared']
  assert losses.ClassicQuadrupletLoss().get_config()['margins'] == (1.0, 0.5)
  assert losses.TripletLoss().margin == 1.0
  assert losses.SupervisedContrastiveLoss().temperature == 0.07
  assert losses.DistillationLoss().temperature == 1.0
  focal = losses.FocalLoss()
  assert (focal.gamma, focal.focal_weight) == (0.0, 1.0)


def test_shapes_that_are_refused():
  for loss, y_true, y_pred, name in (
    *(
      (loss, mask, shape, 'y_pred')
      for loss, mask, number in (
        (losses.TripletLoss(), [2], 3),
        (losses.QuadrupletLoss(), [2, 2], 4),
        (losses.ClassicQuadrupletLoss(), [2, 2], 4),
      )
      for shape in ([2, 5], [2, number - 1, 5], [2, 5, 5], [2, number, 5, 1])
    ),
    (losses.SupervisedContrastiveLoss(), [2], [2, 4, 5], 'y_pred'),
    (losses.TripletLoss(), [2, 2], [2, 3, 5], 'y_true'),
    (losses.QuadrupletLoss(), [2], [2, 4, 5], 'y_true'),
    (losses.QuadrupletLoss(), [2, 1], [2, 4, 5], 'y_true'),
    (losses.ClassicQuadrupletLoss(), [2, 3], [2, 4, 5], 'y_true'),
    (losses.SupervisedContrastiveLoss(), [3, 2], [3, 5], 'y_true'),
  ):
    message = f'^{name} of {type(loss).__name__} must have the shape .*, found'
    with pytest.raises(ValueError, match=message):
      loss(tf.ones(y_true, tf.int32), tf.ones(y_pred))


_Z = tf.ones([3, 2])
_QUADRUPLET = dict.fromkeys(
  ('anchor', 'positive', 'negative_1', 'negative_2'), _Z
)
# Losses of several tensors of one shape: their legal arguments.
_SAME_SHAPE = {
  losses.triplet_loss: dict.fromkeys(('anchor', 'positive', 'negative'), _Z),
  losses.quadruplet_loss: _QUADRUPLET,
  losses.classic_quadruplet_loss: _QUADRUPLET,
  losses.model_contrastive_loss: dict.fromkeys(
    ('embedding', 'received', 'previous'), _Z
  ),
  losses.distillation_loss: dict.fromkeys(
    ('student_logits', 'teacher_logits'), _Z
  ),
}


def test_tensors_are_not_broadcast_or_cast():
  for loss, legal in _SAME_SHAPE.items():
    assert loss(**legal).shape == [3]
    for bad in (
      np.ones([3, 1], np.float32),
      _Z[:1],
      np.ones([], np.float32),
      tf.ones([3, 2], tf.int32),
      tf.ones([3, 2], tf.float64),
    ):
      for name in legal:
        with pytest.raises(
          (TypeError, ValueError), match='must (be|have) .* found'
        ):
          loss(**{**legal, name: bad})
  for loss in (
    functools.partial(losses.focal_loss, gamma=1.0),
    losses.supervised_contrastive_loss,
  ):
    with pytest.raises(ValueError, match='labels must have an entry for each'):
      loss([0, 1], _Z)
