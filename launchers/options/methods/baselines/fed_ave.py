"""FedAVE."""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

_ONLY_FEDAKD = ({'variant': 'original'},)

METHOD = entry.Method(
  name='fed_ave',
  title='FedAVE',
  summary='as CGSV, but by validation accuracy and by how typical the losses of'
  ' a client are',
  rule='ValidatedRewardFactory',
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
      0.9,
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
    flag_types.Real(
      'upload_fraction',
      0.5,
      'Variant fedakd: share of an update that is uploaded.',
      above=0,
      maximum=1,
      unless=_ONLY_FEDAKD,
    ),
    flag_types.Real(
      'download_base',
      0.3,
      'Variant fedakd: least share of the aggregate that a client gets.',
      minimum=0,
      maximum=1,
      unless=_ONLY_FEDAKD,
    ),
    flag_types.Choice(
      'variant',
      'original',
      "As in its own paper (original), or as in FedAKD's script (fedakd), as"
      ' for CGSV.',
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
  ),
  ignores={
    **entry.NO_SERVER_STEP,
    **entry.NO_GLOBAL_MODEL,
    **entry.NO_ROBUST_RULE,
  },
  groups=('fair', 'personal'),
  tuned={'update_length': (0.5, 1.0, 2.0), 'altruism': (1.0, 2.0)},
)
