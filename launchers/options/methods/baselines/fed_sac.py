"""FedSAC."""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

METHOD = entry.Method(
  name='fed_sac',
  title='FedSAC',
  summary='clients that contribute less train a submodel of less important'
  ' neurons',
  rule='EntrywiseMeanFactory',
  compared_with=('FedAKD',),
  flags=(
    flag_types.Real(
      'contribution_sharpness',
      2.0,
      'The larger, the smaller the submodels of clients that contribute less.',
      symbol='β',
      minimum=0,
    ),
    flag_types.Integer(
      'importance_every',
      10,
      'Number of rounds between two ratings of the neurons.',
      minimum=1,
      unless=({'variant': 'fedakd'},),
    ),
    flag_types.Integer(
      'mid_round',
      15,
      'Variant fedakd: the round, counted from 0, of submodels.',
      minimum=0,
      unless=({'variant': 'original'},),
    ),
    flag_types.Choice(
      'variant',
      'original',
      "As in its own paper (original), or as in FedAKD's script (fedakd):"
      ' submodels in a single round.',
      choices=('original', 'fedakd'),
    ),
  ),
  arguments=(
    entry.Argument(
      'validation',
      "The server's validation set, `(x, y)`; its size is"
      ' `--validation_fraction` or, with `--split=client`,'
      ' `--holdout_fraction`.',
      symbol='V',
    ),
    entry.Argument(
      'contributions',
      'Accuracy of each client when it trains alone.',
      symbol='c',
    ),
  ),
  ignores={**entry.NO_GLOBAL_MODEL, **entry.NO_ROBUST_RULE},
  groups=('fair', 'personal'),
  tuned={'contribution_sharpness': (2.0, 0.5, 5.0)},
)
