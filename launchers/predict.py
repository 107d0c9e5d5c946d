"""Predicts the classes of new examples with the model of a run.

  python -m launchers.predict runs/mine people.csv

The first argument is the directory of a finished run of `launchers.train`, the
second one a file of new examples. For a run on a table that is a table, csv or
parquet, with the same columns of features; it may have the columns of clients
and labels, which are not read. For other runs it is an array [n, ...] of inputs
as the model takes them, in a .npy file or as x in an .npz file. The file of the
predictions is the table with a further column, or this column alone.
"""

import json
import pathlib
from typing import TYPE_CHECKING, Any

from absl import flags

from tff_fair import files
from tff_fair.launchers import cli

if TYPE_CHECKING:
  import numpy as np
  import pandas as pd

_FILE = 'predictions.csv'
_TABLES = ('.csv', '.csv.gz', '.parquet')
_ARRAYS = ('.npy', '.npz')
# Tasks whose arrays may be bytes.
_BYTES = ('arrays', 'image_folder')


class PredictError(ValueError):
  """A model or new examples are not fit; the message is one sentence."""


def define_flags(flag_values: flags.FlagValues) -> None:
  """Defines the flags of this launcher.

  Args:
    flag_values: Where to define them.
  """
  flags.DEFINE_string(
    'output_file',
    None,
    f'The new csv file to write; the default is {_FILE} in the directory of the'
    ' run, which replaces an earlier one.',
    flag_values=flag_values,
  )
  flags.DEFINE_string(
    'prediction_column',
    'prediction',
    'The name of the column of the predictions.',
    flag_values=flag_values,
  )
  flags.DEFINE_list(
    'ignore_columns',
    [],
    'Columns of the table that the run did not know, separated by commas. Any'
    ' other unknown column is refused, as a feature may be misspelled.',
    flag_values=flag_values,
  )


def main(argv: list[str], flag_values: flags.FlagValues = flags.FLAGS) -> None:
  """Writes the predictions, and prints what the user should know of them.

  Args:
    argv: What is left of the command line: the program's name, the directory
      of the run, and the file of the examples.
    flag_values: The parsed flags of `define_flags`.
  """
  if len(argv) != 3:
    cli.fail(
      'the directory of a run and a file of new examples are required, found'
      f' {len(argv) - 1} arguments.'
    )
  run, path = map(pathlib.Path, argv[1:])
  given = flag_values['output_file'].value
  output = pathlib.Path(given or run / _FILE)
  with cli.one_sentence_errors(
    ValueError, FileNotFoundError, interrupted='interrupted; nothing written.'
  ):
    if given and output.exists():
      raise PredictError(
        f'--output_file={given} must be new, found an existing file.'
      )
    description = _describe(run)
    x, table, notes = _read(
      path,
      description,
      flag_values['ignore_columns'].value,
      flag_values['prediction_column'].value,
    )
    for note in notes:
      print(note)
    found = _classify(run / 'model.keras', description, x)
    _write(output, table, flag_values['prediction_column'].value, found)
  counts = ', '.join(
    f'{found.count(name):,} {name}' for name in description['classes']
  )
  print(f'predictions: {output}, {len(found):,} examples: {counts}')


def _describe(run: pathlib.Path) -> dict[str, Any]:
  """What model.json says of the model."""
  path = run / 'model.json'
  if not path.is_file() or not (run / 'model.keras').is_file():
    raise PredictError(
      f'{run} must be the directory of a finished run with a global model,'
      ' found no model.keras and model.json in it.'
    )
  other = f'{path} must be as launchers.train writes it, found another content.'
  with files.reading(path, lambda _: PredictError(other)):
    description = json.loads(path.read_text())
    classes = description['classes'] = [*map(str, description['classes'])]
  if len(classes) < 2 or 'input_shape' not in description:
    raise PredictError(f'{path} must name classes and inputs, found others.')
  if 'inputs_of_clients' in description:
    raise PredictError(
      'The run must have a model that takes the same inputs from all clients,'
      ' found one (--algorithm=fed_rdn) whose inputs each client normalises by'
      ' a mean and deviation of its own, which model.json has.'
    )
  if 'features' in description and 'columns' not in description:
    raise PredictError(
      f'{path} must say the columns of the table, found none: an earlier'
      ' version wrote it, so train again.'
    )
  return description


def _read(
  path: pathlib.Path,
  description: dict[str, Any],
  ignored: list[str],
  prediction: str,
) -> 'tuple[np.ndarray, pd.DataFrame | None, list[str]]':
  """The inputs of the model, the table as it is, and sentences."""
  from tff_fair.tasks import sources

  if 'columns' not in description:
    if ignored:
      raise PredictError(
        '--ignore_columns must be given with a table only, found'
        f' {ignored[0]!r} with a run on no table.'
      )
    _check_ending(path, _ARRAYS)
    sources.check_file(path, _ARRAYS)
    x, notes = _read_array(path, description)
    return x, None, notes
  _check_ending(path, _TABLES)
  sources.check_file(path, _TABLES)
  return _read_table(path, description, ignored, prediction)


def _check_ending(path: pathlib.Path, endings: tuple[str, ...]) -> None:
  if not path.name.lower().endswith(endings):
    raise PredictError(
      f'The file of new examples must end in {" or ".join(endings)} for this'
      f' run, found {str(path)!r}.'
    )


def _read_table(path, description, ignored, prediction):
  import pandas as pd

  from tff_fair.own_data import encoded
  from tff_fair.own_data import new_rows
  from tff_fair.tasks import table_file

  table = table_file.read(path, as_texts=True)
  table.columns = table.columns.map(str)
  columns = [encoded.Column(**column) for column in description['columns']]
  features = [encoded.Feature(**feature) for feature in description['features']]
  if prediction in table:
    raise PredictError(
      f'--prediction_column must be a new column, found {prediction!r} in'
      f' {path}.'
    )
  new_rows.check_columns(
    list(table.columns),
    columns,
    ignored=ignored,
    argument='--ignore_columns',
    table=f"the file '{path.name}'",
  )
  x, notes = new_rows.encode(table, columns, features)
  if path.suffix.lower() != '.parquet':  # With `?` and the like as they are.
    table = pd.read_csv(
      path, dtype=str, keep_default_na=False, skipinitialspace=True
    )
  return x, table, notes


def _read_array(path, description):
  """The array, as the model takes it, and sentences."""
  import numpy as np

  from tff_fair.tasks import array_file

  x = array_file.read_inputs(path)
  shape = tuple(description['input_shape'][1:])
  if x.dtype.kind not in 'biuf':
    raise PredictError(f'{path} must hold numbers, found {x.dtype}.')
  if shape[-1:] == (1,) and x.shape[1:] == shape[:-1]:  # Without channels.
    x = x[..., np.newaxis]
  fits = x.ndim == len(shape) + 1 and all(
    wanted in (None, size)
    for wanted, size in zip(shape, x.shape[1:], strict=True)
  )
  if not fits or not len(x):
    raise PredictError(
      f'{path} must hold inputs of the shape {[None, *shape]}, found'
      f' {list(x.shape)}.'
    )
  divisor = description.get('divided_by', 1)
  is_bytes = x.dtype == np.uint8
  if is_bytes and divisor == 1 and description.get('task') not in _BYTES:
    raise PredictError(
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
    raise PredictError(
      f'{path} must hold finite inputs, found {x[tuple(first)]:g} at {first}.'
    )
  return x, notes


def _classify(
  path: pathlib.Path, description: dict[str, Any], x: 'np.ndarray'
) -> list[str]:
  """The most likely class of each input."""
  cli.prepare_for_tensorflow()
  import numpy as np
  import tensorflow as tf

  try:
    model = tf.keras.models.load_model(path)
  except (OSError, TypeError, ValueError) as error:
    reason = ' '.join(str(error).split())[:300]
    raise PredictError(
      f'{path} must be a model that Keras can load, found: {reason}'
    ) from None
  scores = model.predict(x, verbose=0)
  if np.isnan(scores).any():
    row = int(np.argmax(np.isnan(scores).any(axis=1)))
    raise PredictError(
      f'The model must give numbers, found NaN for example {row + 1}.'
    )
  if 'threshold' in description:  # The only score is that of class 1 of two.
    found = (scores[:, 0] > description['threshold']).astype(int)
  else:
    found = scores.argmax(axis=1)
  return [description['classes'][i] for i in found]


def _write(
  path: pathlib.Path,
  table: 'pd.DataFrame | None',
  column: str,
  predictions: list[str],
) -> None:
  import pandas as pd

  from tff_fair.launchers.runs import run_files

  if table is None:
    table = pd.DataFrame(index=range(len(predictions)))
  try:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = table.assign(**{column: predictions}).to_csv(index=False)
    run_files.write_atomically(path, text)
  except OSError as error:
    raise PredictError(
      f'--output_file={path} must be a file that can be written, found:'
      f' {error.strerror}.'
    ) from error


if __name__ == '__main__':
  cli.run(main, define_flags)
