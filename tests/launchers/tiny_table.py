"""A table of runs of seconds on the embedded digits; runs it as a program."""

import contextlib
import io
import pathlib
import sys

from absl import flags

from tff_fair import runtime
from tff_fair.launchers import cli
from tff_fair.launchers import reproduce
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import published
from tff_fair.launchers.tables import table_runs

TABLE = definitions.Table(
  title='a table of the tests',
  cells={
    'digits': definitions.Cell(preset='cffl_digits', data='digits'),
    'stand_in': definitions.Cell(preset='cffl_digits', data='mnist'),
  },
  methods={
    'standalone': {'algorithm': 'standalone'},
    # All clients end up with one model: no CF coefficient.
    'fed_avg': {'algorithm': 'fed_avg'},
    'cffl': {'algorithm': 'cffl', 'upload_rate': 0.5},
  },
  metrics=('cf', 'client_accuracy_max'),
  references={
    'standalone': definitions.Reference(flags={'algorithm': 'standalone'})
  },
  figures={
    'client_accuracy': ('cffl',),
    'scatter': ('fed_avg', 'cffl'),
    'reputation': ('cffl',),
  },
  percent=True,
  seeds=2,
)

NUMBERS = {
  ('tiny', 'digits', 'cffl', 'cf'): published.Number(99.0, 0.5),
  ('tiny', 'digits', 'fed_avg', 'cf'): published.Number(3.0, float('nan')),
}


def planner(table=TABLE, **choices):
  """A planner of a table, by default of all its data and one seed."""
  defaults = {
    'num_seeds': 1,
    'rounds': None,
    'scale': 1.0,
    'dataset': None,
    'data_dir': None,
    'output_dir': pathlib.Path('out'),
  }
  return table_runs.Planner(table, **{**defaults, **choices})


def main(*arguments):
  """Runs the launcher with these arguments.

  Returns:
    What it printed.
  """
  flag_values = flags.FlagValues()
  reproduce.define_flags(flag_values)
  argv = cli.parse_flags(['reproduce', *map(str, arguments)], flag_values)
  printed = io.StringIO()
  try:
    with contextlib.redirect_stdout(printed):
      reproduce.main(argv, flag_values)
  finally:
    # A run sets its context; other tests expect the default.
    runtime.set_execution_context('device', device='cpu')
  return printed.getvalue()


if __name__ == '__main__':
  definitions.TABLES['tiny'] = TABLE
  main(*sys.argv[1:])
