"""Runs the experiments of a published table, and compares the numbers.

  python -m launchers.reproduce --table=cffl_table1 --seeds=3

Every number is of runs of `launchers.train`; their commands are in table.csv
and table.md. The same command, after any interruption, skips finished runs and
resumes the interrupted one from its last checkpoint. Tables that share an
--output_dir share their runs.

With `--record=results` the numbers of all finished runs are also added to
`results/TABLE.csv`, from which docs/results.md and docs/claims.md are written:
those of earlier calls first, the others as soon as each run is finished. With
`--only_record` nothing is trained, with `--only_missing` what is recorded is
not trained again, whoever trained it.
"""

import pathlib

from absl import flags

from tff_fair import checks
from tff_fair.launchers import cli
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.results import recording
from tff_fair.launchers.results import records
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import published
from tff_fair.launchers.tables import table_metrics
from tff_fair.launchers.tables import table_runs
from tff_fair.launchers.tables import table_training


def define_flags(flag_values: flags.FlagValues) -> None:
  """Defines the flags of this launcher.

  Args:
    flag_values: Where to define them.
  """
  flags.DEFINE_enum(
    'table',
    None,
    list(definitions.TABLES),
    'The table.',
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
  flags.DEFINE_integer(
    'seeds',
    1,
    'Number of seeds: each run is repeated with all its seeds at 0, 1, ...',
    flag_values=flag_values,
  )
  flags.DEFINE_integer(
    'rounds',
    None,
    "Rounds of every run, for a quick look; the default is the paper's.",
    flag_values=flag_values,
  )
  flags.DEFINE_float(
    'scale',
    1.0,
    'Share of the data that every run uses, above 0 and at most 1, except test'
    ' files. For tables whose full size takes too long.',
    flag_values=flag_values,
  )
  flags.DEFINE_integer(
    'figure_round',
    None,
    'The round of the models whose embeddings are drawn; the default is the'
    ' last. Runs keep a checkpoint only every few rounds.',
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
  flags.DEFINE_string(
    'output_dir',
    None,
    'Where the results go; the default is runs/TABLE.',
    flag_values=flag_values,
  )
  flags.DEFINE_string(
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


def main(argv: list[str], flag_values: flags.FlagValues = flags.FLAGS) -> None:
  """Reproduces the table that the flags name.

  Args:
    argv: What is left of the command line: the program's name.
    flag_values: The parsed flags of `define_flags`.
  """
  cli.check_only_flags(argv)
  name, cells = _table_and_cells(flag_values)
  table = _restricted(flag_values, definitions.TABLES[name], cells)
  dataset = _stand_in(flag_values, name, cells)
  output_dir = pathlib.Path(flag_values['output_dir'].value or f'runs/{name}')
  with cli.one_sentence_errors(
    settings_lib.SettingsError, records.RecordsError
  ):
    settings_lib.check_data_dir(flag_values['data_dir'].value)
    planner = table_runs.Planner(
      table,
      num_seeds=_at_least_1(flag_values, 'seeds'),
      rounds=_at_least_1(flag_values, 'rounds'),
      scale=_scale(flag_values),
      dataset=dataset,
      data_dir=flag_values['data_dir'].value,
      output_dir=output_dir,
      figure_round=_at_least_1(flag_values, 'figure_round'),
    )
    rows = _rows(flag_values, name, planner, cells)
    if not rows:
      print('All numbers are recorded.')
      return
    runs = table_runs.distinct(rows)
    _check_figure_round(planner, cells, runs)
    left = [run for run in runs if not run.is_finished()]
    recorder = _recorder(flag_values, name, rows)
    if recorder:
      _say(recorder.record())
    if flag_values['only_record'].value:
      for run in left:
        print(f'not finished: {run.output_dir}')
      return
    settings_lib.make_writable(output_dir)
  numbers = published.read()
  cli.prepare_for_tensorflow()
  from tff_fair.launchers.runs import training

  with cli.one_sentence_errors(
    settings_lib.SettingsError, records.RecordsError, *training.USER_ERRORS
  ):
    training.set_runtime(runs[0].settings)
    table_training.check_data(left)
    done = []
    table_training.train(
      runs, left, lambda: recorder and done.append(recorder.record())
    )
    if done:
      _say(records.total(done))
    if flag_values['only_missing'].value:
      return
    _report(name, planner, rows, cells, numbers, output_dir)


def _table_and_cells(flag_values) -> tuple[str, list[str]]:
  """The name of the table, and the requested cells without repetitions."""
  name = flag_values['table'].value
  if name is None:
    known = ', '.join(definitions.TABLES)
    cli.fail(f'--table must be one of {known}, found none.')
  known = list(definitions.TABLES[name].cells)
  cells = list(dict.fromkeys(flag_values['cells'].value)) or known
  for cell in cells:
    if cell not in known:
      cli.fail(checks.unknown_name('Each of --cells', cell, known))
  return name, cells


def _restricted(flag_values, table, cells) -> definitions.Table:
  """The table with the requested methods."""
  methods = flag_values['methods'].value
  known = list(
    dict.fromkeys(m for cell in cells for m in table.methods_of(cell))
  )
  for method in methods:
    if method not in known:
      cli.fail(checks.unknown_name('Each of --methods', method, known))
  return table.restricted_to(methods or known)


def _rows(flag_values, name, planner, cells) -> list[table_runs.Row]:
  """The rows of the table, or what of them is not recorded."""
  rows = planner.rows(cells)
  if not flag_values['only_missing'].value:
    return rows
  folder = flag_values['record'].value
  if folder is None:
    cli.fail('--only_missing must be given with --record, found it alone.')
  scale = flag_values['scale'].value
  return recording.missing(pathlib.Path(folder), name, rows, scale)


def _check_figure_round(planner, cells, runs) -> None:
  """Checks, before hours of training, that the models to draw will exist."""
  wanted = planner.figure_round
  if wanted is None:
    return
  drawn = planner.table.figures.get('embeddings', ())
  methods = {m for cell in cells for m in planner.table.methods_of(cell)}
  if methods.isdisjoint(drawn):
    cli.fail(
      '--figure_round must be given with a table that draws embeddings,'
      f' found {wanted} with one that does not.'
    )
  for run in runs:
    kept = _checkpoints(run.settings)
    if wanted not in kept:
      cli.fail(
        '--figure_round must be a round whose checkpoint is kept'
        f' ({", ".join(map(str, kept))}), found {wanted}.'
      )


def _checkpoints(settings) -> list[int]:
  """The rounds of the checkpoints that a finished run has."""
  rounds, every = settings['rounds'], settings['checkpoint_every']
  written = {*range(every, rounds + 1, every), rounds}
  return sorted(written)[-settings['checkpoints_to_keep'] :]


def _recorder(flag_values, name, rows) -> recording.Recorder | None:
  """A recorder of the rows if `--record` is given, else None."""
  folder = flag_values['record'].value
  if folder is None:
    if flag_values['only_record'].value:
      cli.fail('--only_record must be given with --record, found it alone.')
    return None
  return recording.Recorder(
    pathlib.Path(folder), name, rows, flag_values['scale'].value
  )


def _say(done: records.Merged) -> None:
  """Prints what was recorded."""
  print(
    f'recorded: {done.added} numbers, {done.replaced} in place of transcribed'
    f' ones; {done.there} were there'
  )


def _stand_in(flag_values, name, cells) -> str | None:
  """The replacement data, if requested."""
  dataset = flag_values['dataset'].value
  data = [definitions.TABLES[name].cells[cell].data for cell in cells]
  if dataset and dataset not in map(definitions.STAND_INS.get, data):
    cli.fail(
      f'--dataset={dataset} must be given with cells whose data it can'
      f' replace, found only {", ".join(dict.fromkeys(data))}.'
    )
  return dataset


def _at_least_1(flag_values, flag) -> int | None:
  value = flag_values[flag].value
  if value is not None and value < 1:
    cli.fail(f'--{flag} must be at least 1, found {value}.')
  return value


def _scale(flag_values) -> float:
  value = flag_values['scale'].value
  if not 0 < value <= 1:
    cli.fail(f'--scale must be above 0 and at most 1, found {value}.')
  return value


def _report(name, planner, rows, cells, numbers, output_dir) -> None:
  """Writes the table and its plots, and prints the table."""
  from tff_fair.launchers.tables import table_plots
  from tff_fair.launchers.tables import table_report

  written = [
    table_report.build_row(
      name,
      row,
      _seed_values(row, definitions.TABLES[name].percent),
      paper=numbers.get(published.key(name, row.cell, row.method, row.metric)),
      paper_rounds=planner.paper_rounds(row.cell, row.method),
    )
    for row in rows
  ]
  print(table_report.write(output_dir, name, written))
  table_plots.write_figures(name, planner, cells, output_dir / 'plots')
  print(f'results: {output_dir}')


def _seed_values(row, percent) -> list[float]:
  """The value of a row for each seed, in the paper's unit."""
  metric = table_metrics.METRICS[row.metric]
  return [
    metric.in_unit(metric.compute(*(r.output_dir for r in compared)), percent)
    for compared in row.runs
  ]


if __name__ == '__main__':
  cli.run(main, define_flags)
