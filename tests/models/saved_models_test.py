"""The papers' models are saved by Keras, and loaded without this package."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests import plain_keras
from tff_fair import models

pytestmark = pytest.mark.full


def _model_fns():
  """All of them; inputs are random, or records of one event."""
  names = [n for n in models.__all__ if n.startswith(('cnn_', 'mlp_'))]
  found = {name: getattr(models, name) for name in names}
  found['mlp_cffl_adult'] = functools.partial(models.mlp_cffl_adult, (9,))
  found['gru_ehr'] = functools.partial(
    models.gru_ehr,
    (6, 4),
    vocabulary_size=9,
    num_sexes=2,
    num_postal_buckets=3,
    units=4,
  )
  return found


def test_predictions_are_the_same(tmp_path):
  inputs, expected = {}, {}
  for name, model_fn in _model_fns().items():
    model = model_fn()
    model = tf.keras.Model(model.inputs, model.output['logits'])
    path = tmp_path / f'{name}.keras'
    model.save(path)
    rng = np.random.default_rng(0)
    inputs[path] = rng.uniform(0.0, 1.0, [3, *model.input.shape[1:]])
    if name == 'gru_ehr':
      inputs[path] = np.ceil(inputs[path])
    expected[path] = model(inputs[path]).numpy()
  assert len(inputs) == 12
  for path, found in plain_keras.predict(inputs).items():
    np.testing.assert_allclose(found, expected[path], rtol=1e-5, err_msg=path)
