"""Loads models in a Python that has Keras but not this package."""

import subprocess
import sys

import numpy as np

_PROGRAM = """
import pathlib, sys
sys.modules['tff_fair'] = None  # Importing it is an error.
import numpy as np
import tensorflow as tf
for path in map(pathlib.Path, sys.argv[1:]):
  model = tf.keras.models.load_model(path)
  inputs = np.load(path.with_suffix('.inputs.npy'))
  np.save(path.with_suffix('.outputs.npy'), model(inputs, training=False).numpy())
"""


def predict(inputs):
  """The outputs of models, one after the other in one Python.

  Args:
    inputs: The inputs of the model in each file; arrays are written beside it.

  Returns:
    The outputs by file.
  """
  for path, x in inputs.items():
    np.save(path.with_suffix('.inputs.npy'), x)
  subprocess.run(
    [sys.executable, '-c', _PROGRAM, *map(str, inputs)],
    cwd=next(iter(inputs)).parent,
    check=True,
    timeout=200,
  )
  return {path: np.load(path.with_suffix('.outputs.npy')) for path in inputs}
