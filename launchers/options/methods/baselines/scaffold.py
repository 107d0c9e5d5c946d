"""SCAFFOLD."""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

METHOD = entry.Method(
  name='scaffold',
  title='SCAFFOLD',
  summary='control variates correct the drift of clients',
  compared_with=('FedAKD',),
  flags=(
    flag_types.Real(
      'server_learning_rate',
      1.0,
      'Factor on the mean update.',
      symbol='η_g',
      above=0,
    ),
    flag_types.Choice(
      'variant',
      'original',
      "As in its own paper (original), or as in FedAKD's script (fedakd):"
      ' weighted means, and K_i = 1 in step 2.',
      choices=('original', 'fedakd'),
    ),
  ),
  # The server's step has the learning rate above.
  ignores={**entry.NO_ROBUST_RULE, 'server_optimizer': {}},
  tuned={'server_learning_rate': (1.0, 0.5)},
)
