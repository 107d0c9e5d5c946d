"""FedAvg, in turn."""

from launchers.options.methods import entry

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
  # A round does not lead from one global model to the next.
  ignores={'client_fraction': {}, 'distances': {}},
  takes_turns=True,
)
