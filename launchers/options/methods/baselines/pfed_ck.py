"""pFedCK."""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

METHOD = entry.Method(
  name='pfed_ck',
  title='pFedCK',
  summary='a personal and a shared model teach each other; the shared models'
  ' are averaged within clusters',
  rule='ClusteredMeanFactory',
  compared_with=('FedAKD',),
  flags=(
    flag_types.Real(
      'knowledge_weight',
      1.0,
      'Factor on the divergence of the two models.',
      symbol='a',
      minimum=0,
    ),
    flag_types.Real(
      'feature_weight',
      1.0,
      'Factor on the squared difference of their embeddings.',
      symbol='b',
      minimum=0,
    ),
    flag_types.Real(
      'distillation_temperature',
      1.0,
      'Temperature of the softmax in the divergence.',
      symbol='T',
      above=0,
      unless=({'knowledge_weight': 0.0},),
    ),
    flag_types.Integer(
      'num_clusters', 3, 'Number of clusters of clients.', minimum=1
    ),
  ),
  ignores={
    **entry.NO_SERVER_STEP,
    **entry.NO_GLOBAL_MODEL,
    **entry.NO_ROBUST_RULE,
  },
  groups=('personal',),
  tuned={'knowledge_weight': (1.0, 0.3, 0.1), 'num_clusters': (3, 2)},
)
