"""Arrays of NumPy as inputs, labels and owners."""

import numpy as np
import pandas as pd

from tff_fair import checks
from tff_fair.own_data import encoded
from tff_fair.own_data import guesses
from tff_fair.own_data import names

# Inputs beyond it make the training of most models diverge.
_LARGE = 100.0


def encode(
  x: np.ndarray,
  y: np.ndarray,
  client: np.ndarray | None,
  *,
  client_name: str = 'client',
) -> encoded.Encoded:
  """Checks arrays with an entry for each example.

  Inputs stay as they are, but for bytes, which are pixels: they are divided by
  255, and images [n, height, width] become [n, height, width, 1]. Labels and
  clients may be whole numbers or texts; both are numbered in the order of their
  values. Messages call the clients `client_name`.
  """
  x, y = np.asarray(x), np.asarray(y)
  if x.dtype.kind not in 'biuf':
    raise ValueError(f'x must be an array of numbers, found {x.dtype}.')
  if x.ndim < 2 or not x.size:
    raise ValueError(
      'x must have an axis of examples and one or more of features, found the'
      f' shape {list(x.shape)}.'
    )
  if y.ndim == 2 and y.shape[1] == 1:  # As Keras's labels of CIFAR-10.
    y = y[:, 0]
  if y.ndim == 2 and len(y) == len(x):
    raise ValueError(
      'y must be a vector of classes, found an array of shape'
      f' {list(y.shape)}: y.argmax(axis=1) gives the classes of one-hot rows.'
    )
  for name, values in (('y', y), (client_name, client)):
    if values is not None and np.shape(values) != x.shape[:1]:
      raise ValueError(
        f'{name} must have an entry for each of the {len(x):,} examples of x,'
        f' found the shape {list(np.shape(values))}.'
      )
  inputs = checks.check_inputs('x', x)
  owners, client_names, notes = None, (), []
  if client is not None:
    owners, client_names = names.enumerate_clients(
      client_name, _column(client_name, client)
    )
    notes += names.near_duplicates(client_name, client_names)
  y, class_names = names.enumerate_classes('y', _column('y', y))
  notes += names.near_duplicates('y', class_names)
  notes += guesses.of_labels('y', class_names)
  divided_by = 1
  if x.dtype == np.uint8:
    divided_by = encoded.PIXEL_SCALE
    inputs = inputs / np.float32(divided_by)
    text = 'x holds bytes, which are divided by 255'
    if x.ndim == 3:
      inputs = inputs[..., np.newaxis]
      text += ', and its images get an axis of one channel'
    notes.append(f'{text}.')
  elif np.abs(x).max() > _LARGE:
    notes.append(
      f'x has values up to {np.abs(x).max():g} and is used as it is; a model'
      ' learns best from numbers of about -1 to 1.'
    )
  return encoded.Encoded(
    x=inputs,
    y=y,
    owners=owners,
    client_names=client_names,
    class_names=class_names,
    notes=tuple(notes),
    divided_by=divided_by,
  )


def _column(what: str, values: np.ndarray) -> pd.Series:
  column = pd.Series(np.asarray(values))
  missing = column.isna()
  if missing.any():
    raise ValueError(
      f'{what} must have no missing values, found {int(missing.sum()):,}, the'
      f' first in row {int(missing.idxmax()) + 1}.'
    )
  return column
