"""FedRDN."""

from tff_fair.launchers.options.methods import entry

METHOD = entry.Method(
  name='fed_rdn',
  title='FedRDN',
  summary='images normalised by the statistics of a randomly drawn client',
  compared_with=('CoRe-Fed',),
  arguments=(
    entry.Argument(
      'statistics', 'The result of `build_channel_statistics`.', symbol='μ, σ'
    ),
    entry.Argument('epsilon', 'Keeps the divisor away from 0.', provided=False),
  ),
  # Test data are normalised by the statistics of the client that has them.
  required={'split': 'client'},
)
