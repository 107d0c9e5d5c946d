"""Writes a web page on one or more runs.

  python -m launchers.report runs/avg runs/boost

The arguments are run directories of `launchers.train`, finished or in progress.
The page says first who is served best and how the worst client fares, then has
fairness measures, learning curves, the scores of all clients, what the method
reports of them, and all settings. It is self-contained: no network, no script,
no other file.
"""

import pathlib

from absl import flags

from tff_fair.launchers import cli
from tff_fair.launchers import frame
from tff_fair.launchers.options import paths
from tff_fair.launchers.pages import report_page
from tff_fair.launchers.runs import run_files

_FILE = 'report.html'


def define_flags(flag_values: flags.FlagValues) -> None:
  """Defines the flags of this launcher.

  Args:
    flag_values: Where to define them.
  """
  paths.define(
    'output_file',
    None,
    f'The page to write; the default is {_FILE} in the first run directory.',
    flag_values=flag_values,
  )


def main(argv: list[str], flag_values: flags.FlagValues = flags.FLAGS) -> None:
  """Writes the report on the runs.

  Args:
    argv: What is left of the command line: the program's name, and the run
      directories.
    flag_values: The parsed flags of `define_flags`.
  """
  try:
    directories = [*map(paths.expand, argv[1:])]
  except ValueError as error:
    cli.fail(f'{error}.')
  if not directories:
    cli.fail('at least one run directory is required.')
  given = flag_values['output_file'].value
  path = pathlib.Path(given or pathlib.Path(directories[0]) / _FILE)
  with cli.one_sentence_errors(
    frame.FrameError, interrupted='interrupted; no report was written.'
  ):
    _write(path, frame.read_runs(directories))
  print(f'report: {path}')


def _write(path, runs) -> None:
  try:
    path.parent.mkdir(parents=True, exist_ok=True)
    _check_is_report(path)
    # A browser may load the page at any time.
    run_files.write_atomically(path, report_page.render(runs))
  except OSError as error:
    raise frame.FrameError(
      f'--output_file={path} must be a file that can be written, found:'
      f' {error.strerror}.'
    ) from error


def _check_is_report(path: pathlib.Path) -> None:
  """Raises an error unless `path` is free or a page of this launcher."""
  if not path.exists():
    return
  with open(path, errors='replace', newline='') as file:
    if file.read(len(report_page.MARK)) == report_page.MARK:
      return
  raise frame.FrameError(
    f'--output_file={path} must be new or a report, found another file.'
  )


if __name__ == '__main__':
  cli.run(main, define_flags)
