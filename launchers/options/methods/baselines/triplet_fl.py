"""TripletFL."""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

_NO_METRIC_LOSS = ({'metric_weight': 0.0},)

METHOD = entry.Method(
  name='triplet_fl',
  title='TripletFL',
  summary='triplet loss',
  compared_with=('FedQuad',),
  flags=(
    flag_types.Real(
      'metric_weight',
      0.5,
      'Factor on the metric loss; at 0 this is FedAvg bit for bit.',
      minimum=0,
    ),
    flag_types.Real(
      'margin',
      1.0,
      'How much farther away than the positive a negative must be.',
      symbol='m',
      minimum=0,
      unless=_NO_METRIC_LOSS,
    ),
    flag_types.Switch(
      'use_ce',
      True,
      'Cross-entropy is part of the loss; without it the nearest class centroid'
      ' classifies.',
    ),
    flag_types.Choice(
      'mining',
      'sampled',
      'Triplets are sampled as in FedQuad (sampled), or mined in each minibatch'
      ' by the losses of TensorFlow Addons (semihard, hard).',
      choices=('sampled', 'semihard', 'hard'),
      unless=_NO_METRIC_LOSS,
    ),
    flag_types.Choice(
      'resample',
      'epoch',
      'Triplets are sampled for each epoch, or once a round.',
      choices=('epoch', 'once'),
      unless=({'mining': 'semihard'}, {'mining': 'hard'}, *_NO_METRIC_LOSS),
    ),
  ),
  defaults={'local_epochs': 5, 'batch_size': 128},
  tuned={'metric_weight': (0.5, 0.1, 0.9), 'margin': (1.0, 0.5)},
)
