"""q-FedAvg."""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

METHOD = entry.Method(
  name='q_fed_avg',
  title='q-FedAvg',
  summary='clients with high losses count for more',
  rule='QFairFactory',
  compared_with=('CoRe-Fed',),
  flags=(
    flag_types.Real(
      'q',
      0.1,
      'Exponent of the losses: how much high losses count; at 0 this is FedAvg'
      ' with uniform weights.',
      symbol='q',
      minimum=0,
    ),
  ),
  groups=('fair',),
  tuned={'q': (0.1, 1.0, 5.0)},
)
