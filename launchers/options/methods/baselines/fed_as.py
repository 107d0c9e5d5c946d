"""FedAS."""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

METHOD = entry.Method(
  name='fed_as',
  title='FedAS',
  summary='the shared feature extractor is aligned to each client before use',
  compared_with=('FedAKD',),
  flags=(
    flag_types.Real(
      'alignment_learning_rate',
      0.01,
      'Learning rate of the alignment.',
      above=0,
    ),
    flag_types.Integer(
      'alignment_batch_size',
      16,
      'Examples in a minibatch of the alignment.',
      minimum=1,
    ),
  ),
  groups=('personal',),
  tuned={'alignment_learning_rate': (0.01, 0.1, 0.001)},
)
