"""QuadrupletFL."""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

_NO_METRIC_LOSS = ({'metric_weight': 0.0},)

METHOD = entry.Method(
  name='quadruplet_fl',
  title='QuadrupletFL',
  summary='the original quadruplet loss',
  compared_with=('FedQuad',),
  flags=(
    flag_types.Real(
      'metric_weight',
      0.5,
      'Factor on the metric loss; at 0 this is FedAvg bit for bit.',
      minimum=0,
    ),
    flag_types.Real(
      'margin_1',
      1.0,
      'Margin of the first hinge.',
      symbol='m₁',
      argument='margins',
      minimum=0,
      unless=_NO_METRIC_LOSS,
    ),
    flag_types.Real(
      'margin_2',
      0.5,
      'Margin of the second hinge.',
      symbol='m₂',
      argument='margins',
      minimum=0,
      # Two classes leave no second negative.
      unless=({'task': 'adult'}, *_NO_METRIC_LOSS),
    ),
    flag_types.Switch(
      'use_ce',
      True,
      'Cross-entropy is part of the loss; without it the nearest class centroid'
      ' classifies.',
    ),
    flag_types.Choice(
      'resample',
      'epoch',
      'Quadruplets are drawn for each epoch, or once a round.',
      choices=('epoch', 'once'),
      unless=_NO_METRIC_LOSS,
    ),
  ),
  defaults={'local_epochs': 5, 'batch_size': 128},
  tuned={'metric_weight': (0.5, 0.1, 0.9), 'margin_1': (1.0, 0.5)},
)
