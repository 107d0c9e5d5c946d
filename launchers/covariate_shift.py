"""Reports how far the inputs of a task's clients are from the inputs of all.

  python -m launchers.covariate_shift --task=mnist --num_clients=10 --shift=5

Builds the partition that the same flags of `launchers.train` describe, fits a
Gaussian to each client's principal components, and compares its divergence from
the Gaussian of all examples with the approximation of FedAKD's theorem 2.2.
Writes clients.csv (a row per client), report.md and kl.png.
"""

from collections.abc import Mapping
import pathlib
from typing import Any

from absl import flags

from tff_fair.launchers import cli
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import train_flags

_PCA_DIM = 10
# The records of the task 'ehr' have no principal components, and a leak leaves
# the partition as it is.
_DATA_FLAGS = (
  *(
    name
    for name in train_flags.DATA_FLAG_NAMES
    if name not in ('ehr_scale', 'max_events', 'test_leak')
  ),
  'plugins',
)
_ALWAYS_SHOWN = ('task', 'partition')
# Flag -> argument of `tasks.covariate_shift.client_weights`.
_WEIGHT_OPTIONS = {'shift': 'shift', 'shift_weights': 'weights'}


def define_flags(flag_values: flags.FlagValues) -> None:
  """Defines the flags of this launcher: the data flags of `launchers.train`.

  Args:
    flag_values: Where to define them.
  """
  train_flags.define_flags(flag_values, _DATA_FLAGS)
  flag_values.set_default('partition', 'covariate_shift')
  flag_values['partition'].help = 'How examples are dealt to clients.'
  flag_values['pca_dim'].help = (
    'Number of principal components, in the comparison and in the'
    f' covariate-shift partition; the default is {_PCA_DIM}.'
  )
  flags.DEFINE_string(
    'output_dir',
    None,
    'Where the results go; the default is runs/covariate_shift/TASK.',
    flag_values=flag_values,
  )


def main(argv: list[str], flag_values: flags.FlagValues = flags.FLAGS) -> None:
  """Writes the report on the partition that the flags describe.

  Args:
    argv: What is left of the command line: the program's name.
    flag_values: The parsed flags of `define_flags`.
  """
  cli.check_only_flags(argv)
  name = flag_values['task'].value
  if name == 'ehr':
    cli.fail('--task must have images or numbers as inputs, found ehr.')
  output_dir = pathlib.Path(
    flag_values['output_dir'].value or f'runs/covariate_shift/{name}'
  )
  pca_dim = flag_values['pca_dim'].value or _PCA_DIM
  arguments = _arguments(flag_values)
  with cli.one_sentence_errors(settings_lib.SettingsError):
    settings = settings_lib.resolve(
      train_flags.parse(arguments), train_flags.FLAG_NAMES
    )
    settings_lib.check_data_dir(settings['data_dir'])
    settings_lib.make_writable(output_dir)
  cli.prepare_for_tensorflow()
  from tff_fair.launchers.runs import training

  with cli.one_sentence_errors(
    *training.USER_ERRORS, interrupted='interrupted; no report was written.'
  ):
    # TFF's default context does not exit well if it is never used.
    training.set_runtime(settings)
    rows = _measure(training.build_task(settings), settings, pca_dim)
  _write(rows, arguments, pca_dim, output_dir)


def _arguments(flag_values: flags.FlagValues) -> list[str]:
  """The data flags as for `launchers.train`."""
  given = [
    name
    for name in _DATA_FLAGS
    if name in _ALWAYS_SHOWN or not flag_values[name].using_default_value
  ]
  if not _draws_by_weights(
    {n: flag_values[n].value for n in ('partition', 'shift_method')}
  ):
    given = [name for name in given if name != 'pca_dim']
  # A flag that is repeated comes in lines.
  return [
    line for name in given for line in flag_values[name].serialize().split('\n')
  ]


def _draws_by_weights(settings: Mapping[str, Any]) -> bool:
  return (
    settings['partition'] == 'covariate_shift'
    and settings['shift_method'] != 'pc1_sort'
  )


def _measure(task, settings, pca_dim) -> list[dict[str, Any]]:
  from tff_fair.launchers.runs import client_names
  from tff_fair.launchers.runs import flag_sentences
  from tff_fair.launchers.runs import training
  from tff_fair.tasks import shift_divergences

  options = {
    argument: settings[flag]
    for flag, argument in _WEIGHT_OPTIONS.items()
    if settings[flag] is not None
  }
  try:
    rows = shift_divergences.of_task(
      task,
      pca_dim=pca_dim,
      data_fraction=settings['data_fraction'],
      weighted=_draws_by_weights(settings),
      seed=settings['data_seed'],
      **options,
    )
  except ValueError as error:
    raise training.RunError(flag_sentences.of_task(str(error))) from error
  if not task.client_names:
    return rows
  return [
    {'client_id': row['client_id'], client_names.COLUMN: name, **row}
    for row, name in zip(rows, task.client_names, strict=True)
  ]


def _write(rows, arguments, pca_dim, output_dir) -> None:
  """Writes the files and prints the report."""
  import pandas as pd

  from tff_fair.launchers.pages import shift_report
  from tff_fair.launchers.plots import shift_plots
  from tff_fair.launchers.runs import run_files

  frame = pd.DataFrame(rows)
  text = shift_report.render(frame, arguments, pca_dim)
  run_files.write_atomically(
    output_dir / 'clients.csv', frame.to_csv(index=False)
  )
  run_files.write_atomically(output_dir / 'report.md', text)
  shift_plots.divergences(output_dir / 'clients.csv', output_dir / 'kl.png')
  print(text)
  print(f'results: {output_dir}')


if __name__ == '__main__':
  cli.run(main, define_flags, train_flags, with_plugins=True)
