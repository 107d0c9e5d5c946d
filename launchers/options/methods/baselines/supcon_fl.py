"""SupConFL."""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

METHOD = entry.Method(
  name='supcon_fl',
  title='SupConFL',
  summary='supervised contrastive loss',
  compared_with=('FedQuad',),
  flags=(
    flag_types.Real(
      'metric_weight',
      0.5,
      'Factor on the metric loss; at 0 this is FedAvg bit for bit.',
      minimum=0,
    ),
    flag_types.Real(
      'temperature',
      0.07,
      'Temperature of the contrastive loss.',
      symbol='T',
      above=0,
      unless=({'metric_weight': 0.0},),
    ),
    flag_types.Switch(
      'use_ce',
      True,
      'Cross-entropy is part of the loss; without it the nearest class centroid'
      ' classifies.',
    ),
  ),
  defaults={'local_epochs': 5, 'batch_size': 128},
  tuned={'metric_weight': (0.5, 0.1, 0.9), 'temperature': (0.07, 0.2)},
)
