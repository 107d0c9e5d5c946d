"""Predicts with the model that a run has left, without tff_fair.

  python examples/predict.py runs/mine inputs.npy
  python examples/predict.py runs/occupation people.csv

The inputs are an array `[n, ...]`; model.json in the run's directory has the
shape of one. Those of a run on a table are a table with the same columns of
features. Prints the name of the class of each.
"""

import json
import pathlib
import sys

import numpy as np
import pandas as pd
import tensorflow as tf


def predict(run: pathlib.Path, path: pathlib.Path) -> list[str]:
  """The most likely class of each input."""
  model = tf.keras.models.load_model(run / 'model.keras')
  description = json.loads((run / 'model.json').read_text())
  if 'features' in description:
    x = encode(pd.read_csv(path), description['features'])
  else:
    x = np.load(path)
  scores = model.predict(x, verbose=0)
  if 'threshold' in description:  # The only score is that of class 1 of two.
    found = (scores[:, 0] > description['threshold']).astype(int)
  else:
    found = scores.argmax(axis=1)
  return [description['classes'][i] for i in found]


def encode(table: pd.DataFrame, features: list[dict]) -> np.ndarray:
  """The inputs for the rows of a table; a missing number is the mean."""
  known = pd.DataFrame(features).set_index('name')
  # Booleans beside missing values.
  flags = known.index.intersection(table.select_dtypes(object).columns)
  table = table.astype(dict.fromkeys(flags, float))
  x = pd.get_dummies(table, prefix_sep='=', dummy_na=True, dtype=float)
  x = x.join(table.isna().astype(float).add_suffix('=missing'))
  x = x.reindex(columns=known.index, fill_value=0) - known['mean']
  # A constant has the deviation 0, and is the input 0.
  x /= known['deviation'].replace(0, np.inf)
  return x.fillna(0).to_numpy(np.float32)


if __name__ == '__main__':
  for name in predict(*map(pathlib.Path, sys.argv[1:])):
    print(name)
