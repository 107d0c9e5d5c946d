"""Predicts the classes of new examples with the model of a run.

  python -m launchers.predict runs/mine people.csv

The first argument is the directory of a finished run of `launchers.train`, the
second one the new examples. For a run on a table they are a table, csv or
parquet, with the same columns of features; it may have the columns of clients
and labels, which are not read. For a run on a folder of images they are the
images in a folder, at any depth. For it and all other runs they are an array
[n, ...] of inputs as the model takes them, in a .npy file or as x in an .npz
file. The file of the predictions is the table with a further column, the names
of the images beside this column, or this column alone.
"""

import json
import pathlib
from typing import TYPE_CHECKING, Any

from absl import flags

from tff_fair import checks
from tff_fair import files
from tff_fair.launchers import cli
from tff_fair.launchers import new_examples
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import paths
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.runs import client_names
from tff_fair.launchers.runs import run_files

if TYPE_CHECKING:
  import numpy as np
  import pandas as pd

_FILE = 'predictions.csv'


def define_flags(flag_values: flags.FlagValues) -> None:
  """Defines the flags of this launcher.

  Args:
    flag_values: Where to define them.
  """
  paths.define(
    'output_file',
    None,
    f'The new csv file to write; the default is {_FILE} in the directory of the'
    ' run, which replaces an earlier one.',
    flag_values=flag_values,
  )
  flags.DEFINE_string(
    'client',
    None,
    'The client whose own model predicts, by its name, or by its number where'
    ' clients have no names. The default is the global model.',
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
      raise new_examples.ExamplesError(
        f'--output_file={given} must be new, found an existing file.'
      )
    client = flag_values['client'].value
    model = run / 'model.keras' if client is None else _model_of(run, client)
    description = _describe(run, model)
    examples = new_examples.read(
      path,
      description,
      flag_values['ignore_columns'].value,
      flag_values['prediction_column'].value,
    )
    if client is None and _is_personal(run):
      print(
        'The global model predicts, though each client has its own model:'
        ' --client names one.'
      )
    for note in examples.notes:
      print(note)
    found = _classify(model, description, examples.x)
    column = flag_values['prediction_column'].value
    _write(output, examples.table, column, found)
  counts = ', '.join(
    f'{found.count(name):,} {name}' for name in description['classes']
  )
  print(f'predictions: {output}, {len(found):,} examples: {counts}')


def _model_of(run: pathlib.Path, client: str) -> pathlib.Path:
  """The file of a client's own model."""
  table = run_files.read_whole(run / 'clients.csv', ['client_id'])
  ids = table['client_id'].astype(int)
  names = [*map(str, table.get(client_names.COLUMN, ids))]
  if client not in names:
    near = checks.did_you_mean(client, names)
    raise new_examples.ExamplesError(
      f'--client must be a client of the run, found {client!r}.{near}'
    )
  path = run / f'models/client_{ids[names.index(client)]}.keras'
  if not path.is_file():
    raise new_examples.ExamplesError(
      f'--client must be given with a run whose clients have models, found no'
      f' {path}: the command of the training with --export=all writes it, if'
      ' the method gives each client its own.'
    )
  return path


def _is_personal(run: pathlib.Path) -> bool:
  """Whether the method of a run gives each client a model of its own."""
  path = run / settings_lib.FLAGS_FILE
  if not path.is_file():  # The model alone was copied.
    return False
  settings = settings_lib.parse_text(path.read_text())
  return methods.has_own_models(settings.get('algorithm'))


def _describe(run: pathlib.Path, model: pathlib.Path) -> dict[str, Any]:
  """Reads the description of the models from model.json."""
  path = run / 'model.json'
  lacking = [file.name for file in (model, path) if not file.is_file()]
  if lacking:
    raise new_examples.ExamplesError(
      f'{run} must be the directory of a finished run with a global model,'
      f' found no {" and ".join(lacking)} in it.'
    )
  other = f'{path} must be as launchers.train writes it, found another content.'
  with files.reading(path, lambda _: new_examples.ExamplesError(other)):
    description = json.loads(path.read_text())
    classes = description['classes'] = [*map(str, description['classes'])]
  if len(classes) < 2 or 'input_shape' not in description:
    raise new_examples.ExamplesError(
      f'{path} must name classes and inputs, found others.'
    )
  if 'inputs_of_clients' in description:
    raise new_examples.ExamplesError(
      'The run must have a model that takes the same inputs from all clients,'
      ' found one (--algorithm=fed_rdn) whose inputs each client normalises by'
      ' a mean and deviation of its own, which model.json has.'
    )
  if 'features' in description and 'columns' not in description:
    raise new_examples.ExamplesError(
      f'{path} must say the columns of the table, found none: an earlier'
      ' version wrote it, so train again.'
    )
  return description


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
    raise new_examples.ExamplesError(
      f'{path} must be a model that Keras can load, found: {reason}'
    ) from None
  scores = model.predict(x, verbose=0)
  if np.isnan(scores).any():
    row = int(np.argmax(np.isnan(scores).any(axis=1)))
    raise new_examples.ExamplesError(
      f'The model must give numbers, found NaN for example {row + 1}.'
    )
  if 'threshold' in description:  # The only score is that of class 1 of two.
    found = (scores[:, 0] > description['threshold']).astype(int)
  else:
    found = scores.argmax(axis=1)
  return [description['classes'][i] for i in found]


def _write(
  path: pathlib.Path,
  table: 'pd.DataFrame',
  column: str,
  predictions: list[str],
) -> None:
  try:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = table.assign(**{column: predictions}).to_csv(index=False)
    run_files.write_atomically(path, text)
  except OSError as error:
    raise new_examples.ExamplesError(
      f'--output_file={path} must be a file that can be written, found:'
      f' {error.strerror}.'
    ) from error


if __name__ == '__main__':
  cli.run(main, define_flags)
