"""Writes a web page on one or more runs.

  python -m launchers.report runs/avg runs/boost

The arguments are run directories of `launchers.train`, finished or in progress.
The page says first who is served best and how the worst client fares, then has
fairness measures, learning curves, the scores of all clients, what the method
reports of them, and all settings. It is self-contained: no network, no script,
no other file.
"""

from collections.abc import Sequence
import pathlib

from absl import flags

from tff_fair.launchers import cli
from tff_fair.launchers.pages import page_parts
from tff_fair.launchers.pages import report_answer
from tff_fair.launchers.pages import report_client_figures
from tff_fair.launchers.pages import report_differences
from tff_fair.launchers.pages import report_figures
from tff_fair.launchers.pages import report_keys
from tff_fair.launchers.pages import report_runs
from tff_fair.launchers.pages import report_tables
from tff_fair.launchers.runs import run_files

_FILE = 'report.html'
_TEMPLATE = 'report_template.html'
# The start of a page, checked so that no other file is overwritten.
_MARK = '<!doctype html>\n<!-- Written by launchers.report. -->\n'


def define_flags(flag_values: flags.FlagValues) -> None:
  """Defines the flags of this launcher.

  Args:
    flag_values: Where to define them.
  """
  flags.DEFINE_string(
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
  directories = argv[1:]
  if not directories:
    cli.fail('at least one run directory is required.')
  given = flag_values['output_file'].value
  path = pathlib.Path(given or pathlib.Path(directories[0]) / _FILE)
  with cli.one_sentence_errors(
    report_runs.ReportError, interrupted='interrupted; no report was written.'
  ):
    _write(path, report_runs.read_runs(directories))
  print(f'report: {path}')


def render(runs: Sequence[report_runs.Run]) -> str:
  """Renders the page, the same for the same arguments.

  Args:
    runs: The result of `report_runs.read_runs`, at least one.

  Returns:
    The text of an HTML file.
  """
  comparison = report_differences.compare(runs)
  return page_parts.render(
    _TEMPLATE,
    _MARK,
    runs=runs,
    comparison=comparison,
    sentences=report_answer.sentences(runs, comparison),
    legends=report_keys,
    figures=report_figures,
    client_figures=report_client_figures,
    tables=report_tables,
    server_tests=any(run.settings.get('split') == 'server' for run in runs),
  )


def _write(path, runs) -> None:
  try:
    path.parent.mkdir(parents=True, exist_ok=True)
    _check_is_report(path)
    # A browser may load the page at any time.
    run_files.write_atomically(path, render(runs))
  except OSError as error:
    raise report_runs.ReportError(
      f'--output_file={path} must be a file that can be written, found:'
      f' {error.strerror}.'
    ) from error


def _check_is_report(path: pathlib.Path) -> None:
  """Raises an error unless `path` is free or a page of this launcher."""
  if not path.exists():
    return
  with open(path, errors='replace', newline='') as file:
    if file.read(len(_MARK)) == _MARK:
      return
  raise report_runs.ReportError(
    f'--output_file={path} must be new or a report, found another file.'
  )


if __name__ == '__main__':
  cli.run(main, define_flags)
