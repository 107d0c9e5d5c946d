"""FedMDFG."""

import math

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

METHOD = entry.Method(
  name='fed_mdfg',
  title='FedMDFG',
  summary='as FedMGDA+, with guidance towards equal losses and a line search at'
  ' the clients',
  rule='its own two exchanges a round',
  compared_with=('CoRe-Fed',),
  flags=(
    flag_types.Real(
      'angle',
      math.pi / 180,
      'Guidance is active where the angle between the losses and equal losses'
      ' exceeds this, in radians.',
      symbol='θ',
      minimum=0,
      maximum=math.pi / 2,
    ),
    flag_types.Integer(
      'line_search_scale',
      1,
      'The line search starts at 2^s times the learning rate.',
      symbol='s',
      minimum=0,
    ),
  ),
  # Clients send gradients of the received model and do not train.
  ignores={
    'local_epochs': {},
    'client_optimizer': {},
    'client_weight_decay': {},
    **entry.NO_SERVER_STEP,
    **entry.NO_ROBUST_RULE,
  },
  groups=('fair',),
  tuned={'angle': (math.pi / 180, math.pi / 18, math.pi / 4)},
)
