"""FedDC."""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

METHOD = entry.Method(
  name='fed_dc',
  title='FedDC',
  summary='clients learn how far they drift, and correct for it',
  rule='MeanDriftFactory',
  compared_with=('FedAKD',),
  flags=(
    flag_types.Real(
      'drift_weight',
      1.0,
      'Factor on the quadratic term of the drift.',
      symbol='α',
      minimum=0,
    ),
    flag_types.Switch(
      'grad_correction',
      True,
      'The objective has the term of the mean gradient.',
      unless=({'variant': 'fedakd'},),
    ),
    flag_types.Choice(
      'variant',
      'original',
      "As in its own paper (original), or as in FedAKD's script (fedakd):"
      ' drifts of the present clients only, and no gradient term.',
      choices=('original', 'fedakd'),
    ),
  ),
  ignores=entry.NO_ROBUST_RULE,
  tuned={'drift_weight': (1.0, 0.1, 0.01)},
)
