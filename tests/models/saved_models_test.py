"""The papers' models are saved by Keras, and loaded without this package."""

import functools
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from tff_fair import models

pytestmark = pytest.mark.full

_PROGRAM = """
import pathlib, sys
sys.modules['tff_fair'] = None  # Importing it is an error.
import numpy as np
import tensorflow as tf
for path in map(pathlib.Path, sys.argv[1:]):
  model = tf.keras.models.load_model(path)
  inputs = np.load(path.with_suffix('.inputs.npy'))
  np.save(path.with_suffix('.outputs.npy'), model(inputs).numpy())
"""


def _model_fns():
  """One of each kind; inputs are random, or records of one event."""
  names = ('mlp_fedaboost', 'cnn_cifar_gn', 'cnn_corefed', 'cnn_fedakd')
  found = {name: getattr(models, name) for name in names}
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
  expected = {}
  for name, model_fn in _model_fns().items():
    model = model_fn()
    model = tf.keras.Model(model.inputs, model.output['logits'])
    path = tmp_path / f'{name}.keras'
    model.save(path)
    rng = np.random.default_rng(0)
    inputs = rng.uniform(0.0, 1.0, [3, *model.input.shape[1:]])
    if name == 'gru_ehr':
      inputs = np.ceil(inputs)
    np.save(path.with_suffix('.inputs.npy'), inputs)
    expected[path] = model(inputs).numpy()
  subprocess.run(
    [sys.executable, '-c', _PROGRAM, *map(str, expected)],
    cwd=tmp_path,
    check=True,
    timeout=200,
  )
  for path, logits in expected.items():
    found = np.load(path.with_suffix('.outputs.npy'))
    np.testing.assert_allclose(found, logits, rtol=1e-5, err_msg=path.name)
