"""A table of runs of seconds on the embedded digits; runs it as a program."""

import sys

from absl import flags

from launchers import published
from launchers import reproduce
from launchers import tables

TABLE = tables.Table(
  title='a table of the tests',
  cells={
    'digits': tables.Cell(preset='cffl_digits', data='digits'),
    'stand_in': tables.Cell(preset='cffl_digits', data='mnist'),
  },
  methods={
    'standalone': {'algorithm': 'standalone'},
    # All clients end up with one model: no CF coefficient.
    'fedavg': {'algorithm': 'fedavg'},
    'cffl': {'algorithm': 'cffl', 'upload_rate': 0.5},
  },
  metrics=('cf', 'client_accuracy_max'),
  references={
    'standalone': tables.Reference(flags={'algorithm': 'standalone'})
  },
  figures={
    'client_accuracy': ('cffl',),
    'scatter': ('fedavg', 'cffl'),
    'reputation': ('cffl',),
  },
  percent=True,
  seeds=2,
)

NUMBERS = {
  ('tiny', 'digits', 'cffl', 'cf'): published.Number(99.0, 0.5),
  ('tiny', 'digits', 'fedavg', 'cf'): published.Number(3.0, float('nan')),
}


def main(*arguments):
  """Runs the launcher, which knows this table, with these arguments."""
  flag_values = flags.FlagValues()
  reproduce.define_flags(flag_values)
  reproduce.main(flag_values(['reproduce', *arguments]), flag_values)


if __name__ == '__main__':
  tables.TABLES['tiny'] = TABLE
  main(*sys.argv[1:])
