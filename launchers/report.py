"""Writes what there is to see of one or more runs into one web page.

  python -m launchers.report runs/avg runs/boost

The arguments are run directories of `launchers.train`, finished or still going.
The page holds how fair the runs are to their clients, curves, the scores of all
clients, what the method says of them, and all settings. It needs nothing else:
no network, no script, no other file.
"""

from collections.abc import Sequence
import pathlib
import sys

from absl import app
from absl import flags
import jinja2

from launchers.pages import report_figures
from launchers.pages import report_runs
from launchers.pages import report_tables

_FILE = 'report.html'
_TEMPLATE = 'report_template.html'
# What a page begins with, so that no other file is overwritten.
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
    sys.exit('Error: at least one run directory is required, found none.')
  given = flag_values['output_file'].value
  path = pathlib.Path(given or pathlib.Path(directories[0]) / _FILE)
  try:
    runs = report_runs.read_runs(directories)
    path.parent.mkdir(parents=True, exist_ok=True)
    _check_is_report(path)
    path.write_text(render(runs), newline='')
  except report_runs.ReportError as error:
    sys.exit(f'Error: {error}')
  except OSError as error:
    sys.exit(
      f'Error: --output_file={path} must be a file that can be written, found:'
      f' {error.strerror}.'
    )
  print(f'report: {path}')


def render(runs: Sequence[report_runs.Run]) -> str:
  """The page on some runs, the same for the same runs.

  Args:
    runs: What `report_runs.read_runs` returned, at least one.

  Returns:
    The text of an HTML file.
  """
  environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(pathlib.Path(__file__).parent / 'pages'),
    # Names and values come from files that anybody may have written.
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
  )
  template = environment.get_template(_TEMPLATE)
  body = template.render(
    runs=runs,
    figures=report_figures,
    tables=report_tables,
    data_differences=report_runs.data_differences(runs),
    server_tests=any(run.settings.get('split') == 'server' for run in runs),
  )
  return f'{_MARK}{body}\n'


def _check_is_report(path: pathlib.Path) -> None:
  """Raises unless `path` is free, or a page that this launcher has written."""
  if not path.exists():
    return
  with open(path, errors='replace', newline='') as file:
    if file.read(len(_MARK)) == _MARK:
      return
  raise report_runs.ReportError(
    f'--output_file={path} must be new or a report, found another file.'
  )


if __name__ == '__main__':
  define_flags(flags.FLAGS)
  app.define_help_flags()
  main(app.parse_flags_with_usage(sys.argv))
