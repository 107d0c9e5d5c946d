"""DSSGD."""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

METHOD = entry.Method(
  name='dssgd',
  title='DSSGD',
  summary='in turn, only the largest values of an update',
  rule='LargestValuesFactory',
  compared_with=('CFFL',),
  flags=(
    flag_types.Real(
      'upload_rate',
      1.0,
      'Share of its update that a client uploads.',
      symbol='θᵤ',
      above=0,
      maximum=1,
    ),
    flag_types.Real(
      'clip_value',
      0.01,
      'Bound of each entry of an update; `None` does not clip.',
      above=0,
    ),
  ),
  ignores={
    **entry.NO_GLOBAL_MODEL,
    **entry.NO_ROBUST_RULE,
    'client_fraction': {},
  },
  takes_turns=True,
  groups=('personal',),
  tuned={'clip_value': (0.01, 0.1, 1.0), 'upload_rate': (1.0, 0.1)},
)
