"""FedAvg, in turn."""

from tff_fair.launchers.options.methods import entry

METHOD = entry.Method(
  name='round_robin_fed_avg',
  title='FedAvg, in turn',
  summary='clients upload and download in turn',
  rule='tff.aggregators.SumFactory',
  compared_with=('CFFL',),
  arguments=(
    entry.Argument(
      'total_examples',
      'Number of training examples of all clients.',
      symbol='n',
    ),
  ),
  ignores={
    **entry.NO_GLOBAL_MODEL,
    **entry.NO_ROBUST_RULE,
    'client_fraction': {},
  },
  takes_turns=True,
  groups=('personal',),
)
