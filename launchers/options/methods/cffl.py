"""CFFL."""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

METHOD = entry.Method(
  name='cffl',
  title='CFFL',
  summary='the server rates each upload on its validation set, and gives every'
  ' participant as much of the aggregate as its reputation deserves',
  rule='ReputationMaskedFactory',
  flags=(
    flag_types.Choice(
      'scenario',
      'size',
      'What a contribution is: the number of examples (size) or of classes'
      ' (class). Threshold and normalisation depend on it.',
      choices=('size', 'class'),
    ),
    flag_types.Real(
      'upload_rate',
      1.0,
      'Share of its update that a participant uploads; at 1 the server keeps a'
      ' shadow model of each participant.',
      symbol='θᵤ',
      above=0,
      maximum=1,
    ),
    flag_types.Switch(
      'pretrain', False, 'Participants train alone before their first round.'
    ),
    flag_types.Integer(
      'pretrain_epochs',
      5,
      'Number of epochs of that training.',
      minimum=1,
      unless=({'pretrain': False},),
    ),
    flag_types.Real(
      'pretrain_learning_rate',
      None,
      "Learning rate of that training; the default is the client optimiser's.",
      above=0,
      unless=({'pretrain': False},),
    ),
    flag_types.Real(
      'punishment_factor',
      5.0,
      'Factor in the reputation sinh(α x); the larger, the more reputations'
      ' differ.',
      symbol='α',
      above=0,
    ),
    flag_types.Real(
      'history_weight',
      0.5,
      'Share of the previous reputation in the new one.',
      minimum=0,
      maximum=1,
    ),
    flag_types.Real(
      'clip_value',
      0.01,
      'Bound of each entry of an update, or of its norm.',
      above=0,
    ),
    flag_types.Choice(
      'clip_mode',
      'value',
      'Entries are clipped (value), or the update is scaled (norm).',
      choices=('value', 'norm'),
    ),
    flag_types.Real(
      'threshold_absolute',
      None,
      'Participants with a lower reputation are isolated; the default is a'
      ' third (size) or a sixth (class) of the mean reputation.',
      minimum=0,
      maximum=1,
    ),
    flag_types.Choice(
      'agg_norm',
      'paper',
      'Divisor of the aggregation weights: their sum, the largest one (max), or'
      ' as printed (paper): the sum for size, the largest for class.',
      choices=('paper', 'sum', 'max'),
    ),
    flag_types.Choice(
      'own_share',
      'paper',
      "Share of a participant's upload that is subtracted from its allocation:"
      ' as printed (paper), or its share in the aggregate (aggregation).',
      choices=('paper', 'aggregation'),
    ),
    flag_types.Switch(
      'normalize_before_mixing',
      False,
      'New reputations are normalised before the old ones are mixed in.',
    ),
    flag_types.Choice(
      'isolation',
      'once',
      'Isolation is one pass a round (once), or is repeated until no further'
      ' participant falls below the threshold (cascade).',
      choices=('once', 'cascade'),
    ),
    flag_types.Choice(
      'after_isolation',
      'frozen',
      'An isolated participant does nothing (frozen) or trains alone'
      ' (standalone).',
      choices=('frozen', 'standalone'),
    ),
    flag_types.Choice(
      'ties',
      'index',
      'Among entries of equal magnitude, the first are uploaded (index), those'
      ' that were larger before clipping (preclip), or all (keep).',
      choices=('index', 'preclip', 'keep'),
    ),
    flag_types.Integer(
      'free_riders',
      0,
      'Number of additional participants without data, which upload noise.',
      argument='free_riders',
      minimum=0,
    ),
    flag_types.Choice(
      'free_rider_kind',
      'uniform',
      'Distribution of that noise.',
      argument='free_riders',
      choices=('uniform', 'gaussian', 'zero'),
      unless=({'free_riders': 0},),
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
      'amounts',
      "The participants' contributions as the server knows them; `None` counts"
      ' them.',
      symbol='a',
    ),
    entry.Argument(
      'free_riders', 'Participants that upload noise; needs `amounts`.'
    ),
  ),
  ignores={
    **entry.NO_SERVER_STEP,
    **entry.NO_GLOBAL_MODEL,
    **entry.NO_ROBUST_RULE,
  },
  groups=('fair', 'personal'),
  tuned={'clip_value': (0.01, 0.1, 1.0), 'upload_rate': (1.0, 0.1)},
)
