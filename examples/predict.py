"""Predicts with the model that a run has left, without tff_fair.

  python examples/predict.py runs/mine inputs.npy

The inputs are an array `[n, ...]`; model.json in the run's directory has the
shape of one. Prints the name of the class of each.
"""

import json
import pathlib
import sys

import numpy as np
import tensorflow as tf


def predict(run: pathlib.Path, x: np.ndarray) -> list[str]:
  """The most likely class of each input."""
  model = tf.keras.models.load_model(run / 'model.keras')
  classes = json.loads((run / 'model.json').read_text())['classes']
  logits = model.predict(x, verbose=0)
  return [classes[i] for i in logits.argmax(axis=1)]


if __name__ == '__main__':
  for name in predict(pathlib.Path(sys.argv[1]), np.load(sys.argv[2])):
    print(name)
