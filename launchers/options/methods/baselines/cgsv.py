"""CGSV."""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

METHOD = entry.Method(
  name='cgsv',
  title='CGSV',
  summary='contribution is the cosine with the aggregate; the reward is that'
  ' share of its largest entries',
  rule='CosineShapleyFactory',
  compared_with=('FedAKD',),
  flags=(
    flag_types.Real(
      'update_length',
      0.5,
      'Length to which updates are scaled.',
      symbol='Γ',
      above=0,
      unless=({'variant': 'fedakd'},),
    ),
    flag_types.Real(
      'history_weight',
      0.95,
      'Share of the previous reputation in the new one.',
      symbol='α',
      minimum=0,
      maximum=1,
    ),
    flag_types.Real(
      'altruism',
      1.0,
      'The larger, the more of the aggregate every client gets.',
      symbol='b',
      above=0,
    ),
    flag_types.Choice(
      'variant',
      'original',
      "As in its own paper (original), or as in FedAKD's script (fedakd): one"
      " common model is trained, and rewards are added to the clients' copies.",
      choices=('original', 'fedakd'),
    ),
  ),
  ignores={
    **entry.NO_SERVER_STEP,
    **entry.NO_GLOBAL_MODEL,
    **entry.NO_ROBUST_RULE,
  },
  groups=('fair', 'personal'),
  tuned={'update_length': (0.5, 1.0, 2.0), 'altruism': (1.0, 2.0)},
)
