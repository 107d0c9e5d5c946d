"""Runs the experiments of a published table, and compares the numbers.

  python -m launchers.reproduce --table=cffl_table1 --seeds=3

Every number is of runs of `launchers.train`; their commands are in table.csv.
Several are trained at the same time (`--parallel`). The same command, after any
interruption, skips finished runs and resumes the interrupted ones from their
last checkpoints. Tables that share an --output_dir share their runs: those with
equal settings are trained once.

With `--record=results` the numbers of all finished runs are also added to
`results/TABLE.csv`, from which docs/results.md and docs/claims.md are written:
those of earlier calls first, the others as soon as each run is finished.
"""

import pathlib

from absl import flags

from tff_fair.launchers import cli
from tff_fair.launchers import frame
from tff_fair.launchers.execution import options
from tff_fair.launchers.execution import pool as pool_lib
from tff_fair.launchers.execution import train_all
from tff_fair.launchers.options import help_screen
from tff_fair.launchers.options import help_text
from tff_fair.launchers.options import paths
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.results import recording
from tff_fair.launchers.results import records
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import table_metrics
from tff_fair.launchers.tables import table_runs

# Not on the first screen of `--help`.
_RECORDING = ('record', 'only_record', 'only_missing')


def define_flags(flag_values: flags.FlagValues) -> None:
  """Defines the flags of this launcher.

  Args:
    flag_values: Where to define them.
  """
  flags.DEFINE_enum(
    'table',
    None,
    list(definitions.TABLES),
    'The table, one of those that --help=tables lists.',
    flag_values=flag_values,
  )
  flags.DEFINE_list(
    'cells',
    [],
    'The cells of the table to reproduce; the default is all.',
    flag_values=flag_values,
  )
  flags.DEFINE_list(
    'methods',
    [],
    'The methods of the table to reproduce; the default is all.',
    flag_values=flag_values,
  )
  options.define_flags(flag_values, seeds=1, output_dir='runs/TABLE')
  flags.DEFINE_integer(
    'rounds',
    None,
    "Rounds of every run, for a quick look; the default is the paper's.",
    lower_bound=1,
    flag_values=flag_values,
  )
  flags.DEFINE_float(
    'scale',
    1.0,
    'Share of the data that every run uses, above 0 and at most 1, except test'
    ' files. For tables whose full size takes too long.',
    flag_values=flag_values,
  )
  flags.DEFINE_float(
    'scale_clients',
    1.0,
    'Share of the clients that every run has, above 0 and at most 1, each with'
    ' as many examples as in full. For tables of a hundred clients or more.',
    flag_values=flag_values,
  )
  flags.DEFINE_enum(
    'dataset',
    None,
    sorted(set(definitions.STAND_INS.values())),
    'Data that replace data of the same shape, if those are missing: MNIST for'
    ' Fashion-MNIST.',
    flag_values=flag_values,
  )
  flags.DEFINE_string(
    'data_dir',
    None,
    'Folder with the data files, as for the training of one run.',
    flag_values=flag_values,
  )
  paths.define(
    'record',
    None,
    'Also add the numbers of every finished run to TABLE.csv in this folder.',
    flag_values=flag_values,
  )
  flags.DEFINE_boolean(
    'only_record',
    False,
    'Train nothing: record the runs that are finished, and name the others.',
    flag_values=flag_values,
  )
  flags.DEFINE_boolean(
    'only_missing',
    False,
    'Leave out the runs whose numbers are all recorded. No table is written,'
    ' since the output directory lacks their runs.',
    flag_values=flag_values,
  )


def describe_help() -> help_screen.Help:
  """Returns the text of `--help`: tables by paper, and the cells of each."""
  known = help_screen.own_flags(define_flags)
  tables = definitions.TABLES
  recording = {'Recording': [known[name] for name in _RECORDING]}
  return help_screen.Help(
    first=[flag for name, flag in known.items() if name not in _RECORDING],
    topics={
      'tables': help_screen.Topic(
        'The tables by paper',
        lambda: help_text.list_by_paper(
          {n: t.title for n, t in tables.items()}
        ),
      ),
      **help_screen.group_topics(recording),
    },
    entries=help_screen.Entries(
      'TABLE',
      'Its cells and methods, such as --help=cffl_table1',
      tables.keys(),
      _describe_table,
    ),
  )


def _describe_table(name: str) -> str:
  table = definitions.TABLES[name]
  cells = [f'{cell} ({c.preset})' for cell, c in table.cells.items()]
  texts = {
    'Cells, each with its preset': cells,
    'Methods': list(table.methods),
  }
  lines = help_screen.wrap(f'--table={name}: {table.title}.', 0)
  for title, names in texts.items():
    lines += help_screen.wrap(f'{title}: {", ".join(names)}.', 2)
  return '\n'.join(lines)


def main(argv: list[str], flag_values: flags.FlagValues = flags.FLAGS) -> None:
  """Reproduces the table that the flags name.

  Args:
    argv: What is left of the command line: the program's name.
    flag_values: The parsed flags of `define_flags`.
  """
  cli.check_only_flags(argv)
  chosen, name = flag_values, flag_values.table
  if name is None:
    known = ', '.join(definitions.TABLES)
    cli.fail(f'--table must be one of {known}, found none.')
  for flag in ('only_missing', 'only_record'):
    if chosen[flag].value and chosen.record is None:
      cli.fail(f'--{flag} must be given with --record, found it alone.')
  size = recording.Size(chosen.scale, chosen.scale_clients)
  for flag, share in zip(('scale', 'scale_clients'), size, strict=True):
    if not 0 < share <= 1:
      cli.fail(f'--{flag} must be above 0 and at most 1, found {share}.')
  results = None if chosen.record is None else pathlib.Path(chosen.record)
  output_dir = pathlib.Path(chosen.output_dir or f'runs/{name}')
  with cli.one_sentence_errors(
    settings_lib.SettingsError, records.RecordsError
  ):
    budget = options.budget(chosen)
    table, cells = table_runs.choose(
      name, chosen.cells, chosen.methods, chosen.dataset
    )
    settings_lib.check_data_dir(chosen.data_dir)
    planner = table_runs.Planner(
      table,
      num_seeds=chosen.seeds,
      rounds=chosen.rounds,
      scale=size.scale,
      scale_clients=size.clients,
      dataset=chosen.dataset,
      data_dir=chosen.data_dir,
      output_dir=output_dir,
    )
    rows = planner.rows(cells)
    if chosen.only_missing:
      rows = recording.missing(results, name, rows, size)
    if not rows:
      print('All numbers are recorded.')
      return
    runs = table_runs.distinct(rows)
    left = [run for run in runs if not run.is_finished()]
    recorder = None
    if results:
      recorder = recording.Recorder(results, name, rows, size)
      _say(recorder.record())
    if chosen.only_record:
      for run in left:
        print(f'not finished: {run.output_dir}')
      return
    settings_lib.make_writable(output_dir)
  cli.prepare_for_tensorflow()
  if left:
    parallel = chosen.parallel or options.usual_parallel(left[0].settings)
    _train(left, len(runs) - len(left), parallel, budget, recorder)
  if not chosen.only_missing:
    _report(name, planner, rows, cells, output_dir)


def _train(left, num_before, parallel, budget, recorder) -> None:
  """Trains the unfinished runs, and records each as soon as it is finished."""
  done = []
  with cli.one_sentence_errors(
    pool_lib.PoolError, settings_lib.SettingsError, records.RecordsError
  ):
    try:
      train_all.train_all(
        left,
        parallel,
        budget,
        check=table_runs.check_data,
        on_trained=lambda: recorder and done.append(recorder.record()),
        num_before=num_before,
      )
    finally:  # Also if a run has diverged.
      if done:
        _say(records.total(done))


def _say(done: records.Merged) -> None:
  """Prints what was recorded."""
  print(
    f'recorded: {done.added} numbers, {done.replaced} in place of transcribed'
    f' ones; {done.there} were there'
  )


def _report(name, planner, rows, cells, output_dir) -> None:
  """Writes the table and its plots, and prints the table."""
  from tff_fair.launchers.runs import training
  from tff_fair.launchers.tables import table_plots
  from tff_fair.launchers.tables import table_report

  with cli.one_sentence_errors(*training.USER_ERRORS, frame.FrameError):
    training.set_runtime(rows[0].runs[0][0].settings)  # For embeddings.
    built = {}
    for row in sorted(rows, key=lambda row: (row.cell, row.method)):
      metric = table_metrics.METRICS[row.metric]
      values = [
        metric.compute([r.output_dir for r in runs], planner.table.percent)
        for runs in row.runs
      ]
      built[row] = table_report.build_row(name, row, values)
    written = [built[row] for row in rows]
    print(table_report.write(output_dir, name, written))
    table_plots.write_figures(name, planner, cells, output_dir / 'plots')
    print(f'results: {output_dir}')


if __name__ == '__main__':
  cli.run(main, define_flags, describe_help)
