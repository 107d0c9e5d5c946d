"""FedProx."""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

METHOD = entry.Method(
  name='fed_prox',
  title='FedProx',
  summary='clients stay near the received model',
  compared_with=('FedAKD',),
  flags=(
    flag_types.Real(
      'proximal_weight',
      0.01,
      'Pull of a local model towards the received one; at 0 this is FedAvg bit'
      ' for bit.',
      symbol='μ',
      minimum=0,
    ),
    flag_types.Switch('uniform', False, 'All clients have the same weight.'),
  ),
  tuned={'proximal_weight': (0.01, 0.1, 1.0)},
)
