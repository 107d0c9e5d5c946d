"""Standalone."""

from launchers.options.methods import entry

METHOD = entry.Method(
  name='standalone',
  title='Standalone',
  summary='every client trains alone',
  rule='none',
  compared_with=('CFFL', 'FedAKD'),
  # A round does not lead from one global model to the next.
  ignores={'distances': {}},
)
