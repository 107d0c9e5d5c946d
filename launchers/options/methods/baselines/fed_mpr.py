"""FedMPR."""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

METHOD = entry.Method(
  name='fed_mpr',
  title='FedMPR',
  summary='clients prune their smallest weights',
  compared_with=('FedAKD',),
  flags=(
    flag_types.Real(
      'prune_fraction',
      0.1,
      'Share of the weights that become 0; at 0 this is FedAvg with uniform'
      ' weights.',
      symbol='ρ',
      minimum=0,
      maximum=1,
    ),
    flag_types.Integer(
      'prune_stages',
      1,
      'Number of last epochs after which weights are pruned.',
      minimum=1,
    ),
  ),
  tuned={'prune_fraction': (0.1, 0.3, 0.5)},
)
