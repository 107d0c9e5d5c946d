"""FedMGDA+."""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

METHOD = entry.Method(
  name='fed_mgda',
  title='FedMGDA+',
  summary='a common direction of descent for all clients',
  rule='MinNormFactory',
  compared_with=('CoRe-Fed',),
  flags=(
    flag_types.Real(
      'deviation',
      1.0,
      "How far a client's weight may be from its share of the examples; at 0"
      ' this is FedAvg of updates of length 1.',
      symbol='ε',
      minimum=0,
      maximum=1,
    ),
  ),
  ignores=entry.NO_ROBUST_RULE,
  groups=('fair',),
  tuned={'deviation': (1.0, 0.5, 0.1)},
)
