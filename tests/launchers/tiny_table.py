"""A table of runs of seconds on the embedded digits; runs it as a program."""

import sys

from absl import flags

from launchers import reproduce
from launchers.tables import definitions
from launchers.tables import published

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


def main(*arguments):
  """Runs the launcher, which knows this table, with these arguments."""
  flag_values = flags.FlagValues()
  reproduce.define_flags(flag_values)
  reproduce.main(flag_values(['reproduce', *arguments]), flag_values)


if __name__ == '__main__':
  definitions.TABLES['tiny'] = TABLE
  main(*sys.argv[1:])
