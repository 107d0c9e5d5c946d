"""Trains one method on one task.

  python -m launchers.train --preset=fedaboost_digits

A preset fills all flags; flags on the command line override it. The same
command resumes a run from its last checkpoint, and the resumed run ends with
the same numbers as an uninterrupted one. docs/experiments.md describes the
files that a run writes. With `--dry_run` it trains nothing, and prints what
the run needs.
"""

import math
import pathlib
import sys

from absl import flags

from tff_fair.launchers import cli
from tff_fair.launchers.options import help_text
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.runs import callbacks
from tff_fair.launchers.runs import run_files
from tff_fair.launchers.runs import user_callbacks

# Shown while training: column of metrics.csv -> name and digits.
_HEADLINES = {
  'train_loss': ('loss', 3),
  'client_accuracy_mean': ('mean', 2),
  'client_accuracy_min': ('worst', 2),
}
_ACCURACY = 'accuracy of the clients'
# Shown after training, where it is measured: heading -> column of metrics.csv
# -> name.
_RESULTS = {
  _ACCURACY: {
    'client_accuracy_mean': 'mean',
    'client_accuracy_min': 'worst client',
    'client_accuracy_worst10': 'worst 10 %',
    'client_accuracy_max': 'max',
    'client_accuracy_jain': "Jain's index",
  },
  'F1 of the clients': {
    'client_f1_median': 'median',
    'client_f1_variance': 'variance',
  },
  'global model': {
    'global_accuracy': 'accuracy',
    'global_f1': 'F1',
  },
  'accuracy of the clients, fine-tuned': {
    'fine_tuned_accuracy_mean': 'mean',
    'fine_tuned_accuracy_min': 'worst client',
    'fine_tuned_accuracy_worst10': 'worst 10 %',
  },
  'accuracy of the global model on unseen clients': {
    'unseen_accuracy_mean': 'mean',
    'unseen_accuracy_min': 'worst client',
    'unseen_accuracy_worst10': 'worst 10 %',
  },
  'accuracy of unseen clients, fine-tuned': {
    'fine_tuned_unseen_accuracy_mean': 'mean',
    'fine_tuned_unseen_accuracy_min': 'worst client',
    'fine_tuned_unseen_accuracy_worst10': 'worst 10 %',
  },
  'groups of people': {
    'group_accuracy_min': 'accuracy of the worst group',
    'group_accuracy_difference': 'accuracy difference',
    'demographic_parity_difference': 'demographic parity difference',
    'demographic_parity_ratio': 'demographic parity ratio',
    'equalized_odds_difference': 'equalised odds difference',
  },
}


class _Console(callbacks.Callback):
  """Prints what a run is, how far it is, and its results."""

  def __init__(self):
    """Draws no progress bar yet."""
    self._progress = None
    self._headlines = {}  # Between evaluations, those of the last one.

  def on_start(self, run):
    """Prints what is trained, and shows a progress bar on a terminal."""
    import tqdm

    from tff_fair.launchers.runs import data_description

    rounds = run.settings['rounds']
    print(
      f'{run.settings["algorithm"]} on'
      f' {data_description.describe(run.settings)}: {run.num_clients} clients,'
      f' {rounds} rounds, all settings in'
      f' {run.directory.path / settings_lib.FLAGS_FILE}'
    )
    for note in run.notes:
      print(note)
    if run.start:
      print(f'resuming after round {run.start}')
    self._progress = tqdm.tqdm(
      desc='compiling the first round',
      initial=run.start,
      total=rounds,
      disable=None,
      unit='round',
    )

  def after_round(self, run, result):
    """Shows the round in the progress bar."""
    for column, (name, digits) in _HEADLINES.items():
      if column in result.row:
        self._headlines[name] = f'{result.row[column]:.{digits}f}'
    self._progress.set_description(refresh=False)
    self._progress.set_postfix(self._headlines, refresh=False)
    self._progress.update()

  def on_end(self, run, summary):
    """Prints the last evaluation, and what was dropped in all rounds."""
    from tff_fair.launchers.runs import evaluation
    from tff_fair.launchers.runs import round_metrics

    if self._progress is not None:
      self._progress.close()
    if summary is None:
      return
    if run.stop:
      print(run.stop.sentence(run.settings['rounds']))
    print(f'after {summary["rounds"]} rounds:')
    number = summary.get('score_last')
    averaged = f', mean of the last {number} rounds' if number else ''
    worst_client = evaluation.worst_client(
      run.scores, run.is_scored, run.task.client_names
    )
    for heading, columns in _RESULTS.items():
      if not summary['final'].keys() >= columns.keys():
        continue
      print(f'  {heading}{averaged if heading == _ACCURACY else ""}')
      width = max(12, *map(len, columns.values())) + 2
      for column, name in columns.items():
        value = summary['final'][column]
        text = 'not measured' if math.isnan(value) else f'{value:.4f}'
        if column == 'client_accuracy_min' and worst_client:
          text = worst_client
        print(f'    {name:{width}}{text}')
    if run.accounting is not None:
      print(
        f'  privacy: epsilon {summary["final"]["epsilon"]:.4g} at delta'
        f' {summary["final"]["delta"]:.2g}'
      )
    for name, count in summary['dropped'].items():
      if count:
        print(f'  {round_metrics.DROPPED[name]}: {count} in all rounds')
    print(f'results: {run.directory.path}')


class _Plots(callbacks.Callback):
  """Draws the pictures of a finished run."""

  def on_end(self, run, summary):
    """Draws them, unless the run has failed."""
    from tff_fair.launchers.plots import all_plots

    if summary is not None:
      for path in all_plots.write(
        run.directory.path, run.settings['compare_with']
      ):
        print(f'drawn: {path}')


def main(argv: list[str], flag_values: flags.FlagValues = flags.FLAGS) -> None:
  """Runs the training that the flags describe."""
  cli.check_only_flags(argv)
  preset = flag_values['preset'].value
  with cli.one_sentence_errors(settings_lib.SettingsError):
    settings, notes = settings_lib.resolve_with_notes(
      flag_values, train_flags.FLAG_NAMES
    )
    settings_lib.check_data_dir(settings['data_dir'])
    settings_lib.check_own_data(settings)
    if settings['compare_with']:
      from tff_fair.launchers import frame  # Takes a second to import.

      frame.check_finished(settings['compare_with'])
    if settings['dry_run']:
      _print_requirements(settings, notes)
      return
    own = user_callbacks.load(settings)
    output_dir = _output_dir(settings, preset)
    with run_files.claim(output_dir):
      text = settings_lib.to_text(settings, preset)
      settings_lib.check_same_run(output_dir, text)
      for note in notes:
        print(note)
      _train(settings, output_dir, text, own)


def _print_requirements(settings, notes) -> None:
  """Prints what a run needs, without training or writing anything."""
  cli.prepare_for_tensorflow()
  from tff_fair import runtime
  from tff_fair.launchers.runs import dry_run
  from tff_fair.launchers.runs import training

  # TFF's default context, if it is never used, prints an exception at exit.
  runtime.set_execution_context('native')
  with cli.one_sentence_errors(
    *training.USER_ERRORS, interrupted='interrupted.'
  ):
    print('\n'.join([*notes, dry_run.to_text(settings)]))


def _train(settings, output_dir, text, own) -> None:
  """Trains, and writes the results."""
  cli.prepare_for_tensorflow()
  from tff_fair.launchers.runs import export
  from tff_fair.launchers.runs import training

  with cli.one_sentence_errors(*training.USER_ERRORS):
    if sys.stderr.isatty():
      print('building the data and the model', file=sys.stderr)
    run = training.Run(
      settings,
      output_dir,
      text,
      callbacks=[_Console(), _Plots(), export.Export(), *own],
    )
    run.train()
    run.finish()


def _output_dir(settings, preset) -> pathlib.Path:
  if settings['output_dir']:
    return pathlib.Path(settings['output_dir'])
  name = preset or settings['task']
  return pathlib.Path('runs') / name / settings['algorithm']


if __name__ == '__main__':
  cli.run(
    main,
    train_flags.define_flags,
    help_text.describe_help,
    with_plugins=True,
  )
