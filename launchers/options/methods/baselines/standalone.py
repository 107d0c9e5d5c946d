"""Standalone."""

from tff_fair.launchers.options.methods import entry

METHOD = entry.Method(
  name='standalone',
  title='Standalone',
  summary='every client trains alone',
  rule='none',
  compared_with=('CFFL', 'FedAKD'),
  # Nothing is sent.
  ignores={
    **entry.NO_SERVER_STEP,
    **entry.NO_GLOBAL_MODEL,
    **entry.NO_ROBUST_RULE,
    'max_update_norm': {},
  },
  groups=('personal',),
)
