"""New examples as inputs of a model that a run has exported.

They are a table for a run on a table, a folder of images for one on a folder of
images, and an array of inputs for all runs but those on a table.
"""

import pathlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tff_fair.tasks import sources

if TYPE_CHECKING:
  import pandas as pd

_TABLES = ('.csv', '.csv.gz', '.parquet')
_ARRAYS = ('.npy', '.npz')
# Tasks whose arrays may be bytes.
_IMAGES = 'image_folder'
_BYTES = ('arrays', _IMAGES)
_FILE_COLUMN = 'file'


class ExamplesError(ValueError):
  """A model or new examples are not fit; the message is one sentence."""


class NewExamples(NamedTuple):
  """The inputs of a model, and the columns that the user sees of them.

  Attributes:
    x: float32 [n, ...], the inputs.
    table: The columns beside which predictions are written; empty for an array.
    notes: Sentences for the user.
  """

  x: np.ndarray
  table: 'pd.DataFrame'
  notes: list[str]


def read(
  path: pathlib.Path,
  description: dict[str, Any],
  ignored: list[str],
  prediction: str,
) -> NewExamples:
  """Reads a file, or a folder of images.

  Args:
    path: The file or the folder.
    description: What `model.json` says of the model.
    ignored: Columns of a table that the run did not know.
    prediction: The name of the column of the predictions.

  Raises:
    ValueError: If the examples are not fit; the message is one sentence.
  """
  if 'columns' in description:
    _check_ending(path, _TABLES)
    return _read_table(path, description, ignored, prediction)
  if ignored:
    raise ExamplesError(
      f'--ignore_columns must be given with a table only, found {ignored[0]!r}'
      ' with a run on no table.'
    )
  if description.get('task') == _IMAGES and path.is_dir():
    return _read_images(path, description, prediction)
  _check_ending(path, _ARRAYS)
  return _read_array(path, description)


def _check_ending(path, endings) -> None:
  if not path.name.lower().endswith(endings):
    raise ExamplesError(
      f'The file of new examples must end in {" or ".join(endings)} for this'
      f' run, found {str(path)!r}.'
    )
  sources.check_file(path, endings)


def _read_table(path, description, ignored, prediction) -> NewExamples:
  from tff_fair.own_data import encoded
  from tff_fair.own_data import new_rows
  from tff_fair.tasks import table_file

  table = table_file.read(path, as_texts=True)
  table.columns = table.columns.map(str)
  columns = [encoded.Column(**column) for column in description['columns']]
  features = [encoded.Feature(**feature) for feature in description['features']]
  _check_new(prediction, table.columns, path)
  new_rows.check_columns(
    list(table.columns),
    columns,
    ignored=ignored,
    argument='--ignore_columns',
    table=f"the file '{path.name}'",
  )
  x, notes = new_rows.encode(
    table_file.with_gaps(path, table), columns, features
  )
  return NewExamples(x, table, notes)


def _read_images(path, description, prediction) -> NewExamples:
  import pandas as pd

  from tff_fair.own_data import image_folder

  _check_new(prediction, [_FILE_COLUMN], path)
  names, images, notes = image_folder.read_new(
    path, tuple(description['input_shape'][1:])
  )
  x, more = _to_inputs(path, images, description)
  return NewExamples(x, pd.DataFrame({_FILE_COLUMN: names}), notes + more)


def _read_array(path, description) -> NewExamples:
  import pandas as pd

  from tff_fair.tasks import array_file

  x, notes = _to_inputs(path, array_file.read_inputs(path), description)
  return NewExamples(x, pd.DataFrame(index=range(len(x))), notes)


def _check_new(prediction, columns, path) -> None:
  if prediction in columns:
    raise ExamplesError(
      f'--prediction_column must be a new column, found {prediction!r} in'
      f' {path}.'
    )


def _to_inputs(path, x, description) -> tuple[np.ndarray, list[str]]:
  """The array, as the model takes it, and sentences."""
  shape = tuple(description['input_shape'][1:])
  if x.dtype.kind not in 'biuf':
    raise ExamplesError(f'{path} must hold numbers, found {x.dtype}.')
  if shape[-1:] == (1,) and x.shape[1:] == shape[:-1]:  # Without channels.
    x = x[..., np.newaxis]
  fits = x.ndim == len(shape) + 1 and all(
    wanted in (None, size)
    for wanted, size in zip(shape, x.shape[1:], strict=True)
  )
  if not fits or not len(x):
    raise ExamplesError(
      f'{path} must hold inputs of the shape {[None, *shape]}, found'
      f' {list(x.shape)}.'
    )
  divisor = description.get('divided_by', 1)
  is_bytes = x.dtype == np.uint8
  if is_bytes and divisor == 1 and description.get('task') not in _BYTES:
    raise ExamplesError(
      f'{path} must hold inputs scaled as the task'
      f' {description.get("task")!r} scales them, found bytes.'
    )
  notes = []
  if is_bytes and divisor != 1:
    notes.append(f'{path} holds bytes, which are divided by {divisor}.')
    x = x / np.float32(divisor)
  x = x.astype(np.float32)
  if not np.isfinite(x).all():
    first = [int(i) for i in np.argwhere(~np.isfinite(x))[0]]
    raise ExamplesError(
      f'{path} must hold finite inputs, found {x[tuple(first)]:g} at {first}.'
    )
  return x, notes
