"""Reports how far the inputs of a task's clients are from the inputs of all.

  python -m launchers.covariate_shift --task=mnist --num_clients=10 --shift=5

Builds the partition that the same flags of `launchers.train` describe, fits a
Gaussian to each client's principal components, and compares its divergence from
the Gaussian of all examples with the approximation of FedAKD's theorem 2.2.
Writes clients.csv (a row per client), report.md and kl.png.
"""

import pathlib

from absl import flags
import pandas as pd

from tff_fair.launchers import cli
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.runs import client_names
from tff_fair.launchers.runs import run_files
from tff_fair.launchers.show import markdown
from tff_fair.launchers.show import numbers

_PCA_DIM = 10
# The records of the task 'ehr' have no principal components, and a leak leaves
# the partition as it is.
_NO_FLAGS = ('ehr_scale', 'max_events', 'test_leak')
_DATA_FLAGS = (
  *(name for name in train_flags.DATA_FLAG_NAMES if name not in _NO_FLAGS),
  'plugins',
)
_ALWAYS_SHOWN = ('task', 'partition')
# Flag -> argument of `tasks.covariate_shift.client_weights`.
_WEIGHT_OPTIONS = {'shift': 'shift', 'shift_weights': 'weights'}
# Column of clients.csv -> title and format in the report.
_COLUMNS = {
  'client_id': ('client', '.0f'),
  'num_examples': ('examples', '.0f'),
  'num_distinct': ('distinct', '.0f'),
  'effective_sample_size': ('effective', '.0f'),
  'effective_share': ('share of all (%)', '.3g'),
  'kl': ('KL', '.3g'),
  'kl_expansion': ('approximation', '.3g'),
  'kl_paper': ('as printed', '.3g'),
  'control_kl': ('control KL', '.3g'),
  'control_expansion': ('its approximation', '.3g'),
}
# Column of clients.csv -> label and marker in the picture.
_SERIES = {
  'kl': ('exact', 'o'),
  'kl_expansion': ('approximation (theorem 2.2, with corrected terms)', 'x'),
  'control_kl': ('control: as many random examples of all', 's'),
}


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
  folder = flag_values['output_dir'].value or f'runs/covariate_shift/{name}'
  folder = pathlib.Path(folder)
  pca_dim = flag_values['pca_dim'].value or _PCA_DIM
  is_weighted = (
    flag_values['partition'].value == 'covariate_shift'
    and flag_values['shift_method'].value != 'pc1_sort'
  )
  arguments = _arguments(flag_values, is_weighted)
  with cli.one_sentence_errors(settings_lib.SettingsError):
    settings = settings_lib.resolve(
      train_flags.parse(arguments), train_flags.FLAG_NAMES
    )
    settings_lib.check_data_dir(settings['data_dir'])
    settings_lib.make_writable(folder)
  cli.prepare_for_tensorflow()
  from tff_fair.launchers.runs import training

  with cli.one_sentence_errors(
    *training.USER_ERRORS, interrupted='interrupted; no report was written.'
  ):
    # TFF's default context, if it is never used, prints an exception at exit.
    training.set_runtime(settings)
    frame = _measure(training, settings, pca_dim, is_weighted)
  text = _render(frame, arguments, pca_dim)
  run_files.write_atomically(folder / 'clients.csv', frame.to_csv(index=False))
  run_files.write_atomically(folder / 'report.md', text)
  _draw(frame, folder / 'kl.png')
  print(text)
  print(f'results: {folder}')


def _arguments(flag_values, is_weighted) -> list[str]:
  """The data flags as for `launchers.train`."""
  given = [
    name
    for name in _DATA_FLAGS
    if name in _ALWAYS_SHOWN or not flag_values[name].using_default_value
    if is_weighted or name != 'pca_dim'
  ]
  # A flag that is repeated comes in lines.
  return [
    line for name in given for line in flag_values[name].serialize().split('\n')
  ]


def _measure(training, settings, pca_dim, is_weighted) -> pd.DataFrame:
  """A row for each client, with its name if clients have names."""
  from tff_fair.launchers.runs import building
  from tff_fair.tasks import shift_divergences

  task = training.build_task(settings)
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
      weighted=is_weighted,
      seed=settings['data_seed'],
      **options,
    )
  except ValueError as error:
    raise training.RunError(building.with_flags(str(error))) from error
  frame = pd.DataFrame(rows)
  if task.client_names:
    frame.insert(1, client_names.COLUMN, task.client_names)
  return frame


def _render(frame, arguments, pca_dim) -> str:
  """The text of report.md."""
  shown = frame.assign(effective_share=100 * frame['effective_share'])
  rows = [
    [
      numbers.format_number(row[n], form, '-')
      for n, (_, form) in _COLUMNS.items()
    ]
    for row in shown.to_dict('records')
  ]
  for row, name in zip(rows, frame.get(client_names.COLUMN, ()), strict=False):
    row[0] = f'{row[0]} {markdown.escape(name)}'
  header = [title for title, _ in _COLUMNS.values()]
  approximation, printed, control = (
    f'{(frame[column] / frame["kl"]).median():.3g}'
    for column in ('kl_expansion', 'kl_paper', 'control_kl')
  )
  return f"""# Covariate shift of the clients

`{' '.join(arguments)}`

What to look for: the approximation of theorem 2.2 (with corrected terms)\
 follows the KL divergence of a client's examples from all examples, and\
 the control, as many random examples of all, lies far below both.

In nats, between Gaussians of the first {pca_dim} principal components.\
 Median over clients, as a multiple of the KL: approximation\
 {approximation}, as printed in the paper {printed}, control\
 {control}.

{markdown.table(header, rows, texts=0, is_tight=True)}
"""


def _draw(frame, path):
  """Draws what a logarithmic axis can show: values above 0."""
  from matplotlib import figure as mpl_figure
  from matplotlib import ticker

  from tff_fair.launchers.plots import method_styles
  from tff_fair.launchers.plots import plot_parts

  figure = mpl_figure.Figure(figsize=(8, 4.8), layout='constrained')
  axes = figure.subplots()
  colors = method_styles.COLORS
  for (column, (label, marker)), color in zip(
    _SERIES.items(), colors[:3], strict=True
  ):
    values = frame[column].where(frame[column] > 0)
    axes.plot(frame['client_id'], values, marker, color=color, label=label)
  axes.set(
    title="Divergence of the clients' inputs from those of all",
    xlabel='Client',
    ylabel='KL divergence (nats)',
    yscale='log',
  )
  axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
  plot_parts.tidy(axes)
  figure.legend(loc='outside lower center', frameon=False)
  plot_parts.save(figure, path)
  return figure


if __name__ == '__main__':
  cli.run(main, define_flags, train_flags, with_plugins=True)
