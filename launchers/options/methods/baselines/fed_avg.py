"""FedAvg."""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

METHOD = entry.Method(
  name='fed_avg',
  title='FedAvg',
  summary='mean by number of examples',
  compared_with=('all',),
  flags=(
    flag_types.Switch('uniform', False, 'All clients have the same weight.'),
  ),
)
