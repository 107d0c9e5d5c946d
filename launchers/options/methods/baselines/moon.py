"""MOON."""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

METHOD = entry.Method(
  name='moon',
  title='MOON',
  summary='embeddings near those of the received model, away from those of the'
  " client's last model",
  compared_with=('FedQuad',),
  flags=(
    flag_types.Real(
      'contrastive_weight',
      5.0,
      'Factor on the contrastive loss; at 0 this is FedAvg bit for bit.',
      symbol='μ',
      minimum=0,
    ),
    flag_types.Real(
      'temperature',
      0.5,
      'Temperature of the contrastive loss.',
      symbol='T',
      above=0,
      unless=({'contrastive_weight': 0.0},),
    ),
  ),
  defaults={'local_epochs': 5, 'batch_size': 128},
  tuned={'contrastive_weight': (5.0, 1.0, 0.1), 'temperature': (0.5, 0.1)},
)
