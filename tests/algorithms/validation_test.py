import numpy as np
import pytest

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import models
from tff_fair.algorithms import validation

_MODEL = models.StatelessModel(linear_task.model_fn)


def _examples(size, seed=0):
  (data,) = linear_task.make_clients((size,), holdout=0, seed=seed)
  return validation.check_validation(_MODEL, (data.x, data.y))


def _losses(x, y):
  """Of every example, for the initial weights."""
  logits = reference.LINEAR.logits(linear_task.start(), x)
  return reference.focal_losses(logits, y).numpy()


def test_arrays_are_returned_with_the_model_s_types():
  x, y = validation.check_validation(_MODEL, ([[1, 1, 1, 1]] * 2, [2, 0]))
  assert x.dtype == np.float32 and y.dtype == np.int32
  np.testing.assert_array_equal(x, np.ones((2, 4)))
  np.testing.assert_array_equal(y, [2, 0])


def test_accuracy_and_loss():
  # The last is more than goes through the model at once.
  for size in (1, 7, 2500):
    x, y = _examples(size)
    weights = _MODEL.initial_weights
    accuracy = validation.accuracy_fn(_MODEL, (x, y))(weights)
    right = reference.LINEAR.right(linear_task.start(), x, y)
    assert accuracy.dtype == np.float64
    assert accuracy == right.mean()
    loss = validation.loss_fn(_MODEL, (x, y))(weights)
    np.testing.assert_allclose(loss, _losses(x, y).mean(), rtol=1e-5)


def test_batch_losses():
  for size, cuts in ((3, []), (4, []), (9, [4, 8]), (8, [4])):
    x, y = _examples(size)
    compute = validation.batch_losses_fn(_MODEL, (x, y), 4)
    expected = [np.mean(part) for part in np.split(_losses(x, y), cuts)]
    found = compute(_MODEL.initial_weights)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def _pair(x=(5, 4), y=(0, 1, 2, 0, 1)):
  return np.zeros(x, np.float32), np.array(y)


def test_bad_validation_sets():
  for found, error, message in (
    (None, TypeError, 'be a pair of inputs and labels, found NoneType'),
    (_pair((0, 4), np.zeros(0, int)), ValueError, r'inputs of shape \[0, 4\]'),
    (_pair((5, 3)), ValueError, r'found inputs of shape \[5, 3\]'),
    (_pair((4, 4)), ValueError, r'found int64 labels of shape \[5\]'),
    (_pair(y=np.zeros(5)), ValueError, 'found float64 labels'),
    (_pair(y=(0, 1, 2, 3, 0)), ValueError, r'in 0\.\.2.* found labels 0 to 3'),
    (_pair(y=(0, 1, -1, 1, 0)), ValueError, 'found labels -1 to 1'),
    ((np.full((1, 4), np.nan), [0]), ValueError, 'all finite, found values'),
  ):
    with pytest.raises(error, match=f'validation must .*{message}'):
      validation.check_validation(_MODEL, found)
