"""The methods of the five papers."""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

_SINGLE_STEP = {'granularity': 'single_step'}
_NO_METRIC_LOSS = ({'quadruplet_weight': 0.0},)

METHODS = (
  entry.Method(
    name='cffl',
    title='CFFL',
    summary='the server rates each upload on its validation set, and gives'
    ' every participant as much of the aggregate as its reputation deserves',
    rule='ReputationMaskedFactory',
    flags=(
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
    ignores=entry.NO_GLOBAL_MODEL,
    groups=('fair', 'personal'),
    tuned={'clip_value': (0.01, 0.1, 1.0), 'upload_rate': (1.0, 0.1)},
  ),
  entry.Method(
    name='corefed',
    title='CoRe-Fed',
    summary='weights clients by how rarely they participated and by how well'
    " their mean embedding agrees with the others'; reuses the gradients of"
    ' recently absent clients',
    rule='GradientReuseFactory',
    groups=('fair',),
    tuned={'fairness_exponent': (0.5, 0.0, 1.0), 'sharpness': (2.0, 5.0)},
  ),
  entry.Method(
    name='fedaboost',
    title='FeDABoost',
    summary='weights client models by the AdaBoost coefficient of their error;'
    ' clients with a high error get a growing focal loss',
    rule='SammeAlphaFactory',
    groups=('fair',),
    tuned={'boost_rate': (0.01, 0.1, 1.0), 'error_threshold': (0.3, 0.1)},
  ),
  entry.Method(
    name='fedakd',
    title='FedAKD',
    summary='each client keeps its own model; it and the global model teach'
    ' each other by distillation in two phases, and only examples that the'
    ' client classifies correctly teach the global model',
    sends='',
    ignores={'local_epochs': _SINGLE_STEP, 'batch_size': _SINGLE_STEP},
    groups=('fair', 'personal'),
    tuned={'down_weight': (1.0, 0.3, 0.1), 'up_weight': (1.0, 0.3)},
  ),
  entry.Method(
    name='fedquad',
    title='FedQuad',
    summary='clients add a quadruplet loss of their embedding to cross-entropy:'
    ' compact classes, far apart from each other',
    sends='',
    flags=(
      flag_types.Real(
        'margin_1',
        1.0,
        'Margin of the first negative.',
        symbol='m₁',
        argument='margins',
        minimum=0,
        unless=_NO_METRIC_LOSS,
      ),
      flag_types.Real(
        'margin_2',
        0.5,
        'Margin of the second negative.',
        symbol='m₂',
        argument='margins',
        minimum=0,
        # Two classes leave no second negative.
        unless=({'task': 'adult'}, *_NO_METRIC_LOSS),
      ),
    ),
    groups=('fair',),
    tuned={'quadruplet_weight': (0.5, 0.1, 0.9), 'margin_1': (1.0, 0.5)},
  ),
)
