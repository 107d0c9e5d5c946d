"""FeDABoost."""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

_ONLY_BOOSTING = ({'boosting': False},)

METHOD = entry.Method(
  name='fedaboost',
  title='FeDABoost',
  summary='weights client models by the AdaBoost coefficient of their error;'
  ' clients with a high error get a growing focal loss',
  rule='SammeAlphaFactory',
  flags=(
    flag_types.Switch(
      'boosting',
      True,
      "Adapt the focal loss. Without it, the paper's ablation, there are no"
      ' boost weights and the loss is cross-entropy; the aggregation stays.',
    ),
    flag_types.Real(
      'boost_rate',
      0.01,
      'Rate of the boost weights; 0 leaves them unchanged.',
      symbol='η',
      minimum=0,
      unless=_ONLY_BOOSTING,
    ),
    flag_types.Real(
      'error_threshold',
      0.3,
      'Clients with a larger error are boosted; at 1 none is.',
      minimum=0,
      maximum=1,
      unless=_ONLY_BOOSTING,
    ),
    flag_types.Real(
      'error_clip',
      1e-6,
      'Errors are clipped to this distance from 0 and 1.',
      symbol='ε',
    ),
    flag_types.Real(
      'initial_gamma',
      0.0,
      'Initial focusing parameter of every client.',
      symbol='γ₀',
      minimum=0,
      unless=_ONLY_BOOSTING,
    ),
    flag_types.Real(
      'max_gamma',
      5.0,
      'Largest focusing parameter.',
      minimum=0,
      unless=_ONLY_BOOSTING,
    ),
    flag_types.Real(
      'focal_weight', 1.0, 'Factor on the focal loss.', symbol='β', above=0
    ),
    flag_types.Choice(
      'class_count',
      'local',
      "Number of classes in alpha: the client's distinct labels (local), the"
      " task's classes (global), or in their place the number of clients in the"
      ' round (cohort).',
      symbol='C',
      choices=('local', 'global', 'cohort'),
    ),
    flag_types.Choice(
      'single_class',
      'exclude',
      'A client with a single class is left out (exclude) or counts as having'
      ' two (floor2).',
      choices=('exclude', 'floor2'),
    ),
    flag_types.Choice(
      'fallback',
      'keep',
      'If no alpha is positive, the model stays (keep) or is the mean of all'
      ' (fed_avg).',
      choices=('keep', 'fed_avg'),
    ),
    flag_types.Integer(
      'weight_sign',
      -1,
      'Sign in equation 8; 1 is the form of SAMME.',
      choices=(-1, 1),
      unless=_ONLY_BOOSTING,
    ),
    flag_types.Choice(
      'weight_init',
      'm0',
      'Initial boost weight: 1 / size of the first cohort (m0) or'
      ' 1 / number of clients (k).',
      symbol='m₀',
      choices=('m0', 'k'),
      unless=_ONLY_BOOSTING,
    ),
    flag_types.Choice(
      'gamma_mode',
      'gated',
      'Gamma grows only above the error threshold (gated), or always, or it'
      ' stays as it is (constant).',
      choices=('gated', 'always', 'constant'),
      unless=_ONLY_BOOSTING,
    ),
  ),
  # It has a focal loss of its own.
  ignores={'focal_gamma': {}},
  groups=('fair',),
  tuned={'boost_rate': (0.01, 0.1, 1.0), 'error_threshold': (0.3, 0.1)},
)
