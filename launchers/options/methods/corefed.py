"""CoRe-Fed."""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

_COFED = {'variant': 'cofed'}
_REFED = {'variant': 'refed'}
# Embeddings are aligned by the server's weights, which refed does not have.
_REFED_AT_SERVER = {'variant': 'refed', 'alignment': 'server'}
_NO_CLIENT_LOSS = (_COFED, {'alignment': 'server'})

METHOD = entry.Method(
  name='corefed',
  title='CoRe-Fed',
  summary='weights clients by how rarely they participated and by how well'
  " their mean embedding agrees with the others'; reuses the gradients of"
  ' recently absent clients',
  rule='GradientReuseFactory',
  flags=(
    flag_types.Choice(
      'variant',
      'corefed',
      'The whole method (corefed), or a half of it, from the ablation:'
      ' contribution-aware aggregation (cofed) or representation alignment'
      ' (refed).',
      choices=('corefed', 'cofed', 'refed'),
    ),
    flag_types.Choice(
      'alignment',
      'server',
      'Where embeddings act: in the aggregation weights (server), as printed,'
      " or also in the clients' loss (client).",
      choices=('server', 'client'),
      unless=(_COFED,),
    ),
    flag_types.Switch(
      'gradient_reuse',
      True,
      'Absent clients that participated recently count with their last'
      ' gradients, as in equation 12; not in equations 11 and 13.',
      unless=(_REFED,),
    ),
    flag_types.Choice(
      'global_embedding',
      'mean',
      "What a client's embedding is compared with: the mean of the round's"
      ' clients (mean), or the embedding of the client with the lowest id'
      ' (first); the public code takes the client that was drawn first.',
      symbol='z_g',
      choices=('mean', 'first'),
      unless=(_REFED_AT_SERVER,),
    ),
    flag_types.Choice(
      'embedding_of',
      'local',
      "A client's embedding: of all its examples by its trained model (local),"
      ' or of one minibatch, its first examples, by the received model'
      ' (global_batch), as in the public code, which does not scale features.',
      symbol='z_i',
      choices=('local', 'global_batch'),
      unless=(_REFED_AT_SERVER,),
    ),
    flag_types.Switch(
      'include_positive',
      False,
      'The positive pair is in the denominator of equation 6.',
      unless=(_REFED_AT_SERVER,),
    ),
    flag_types.Real(
      'fairness_exponent',
      0.5,
      'Exponent of the inverse frequency of participation; the larger, the more'
      ' rare participation counts.',
      symbol='γ',
      minimum=0,
      unless=(_REFED,),
    ),
    flag_types.Real(
      'sharpness',
      2.0,
      'Slope of the sigmoid of the alignment score; the larger, the more'
      ' agreement counts.',
      symbol='k',
      minimum=0,
      unless=(_REFED,),
    ),
    flag_types.Real(
      'distillation_rate',
      0.5,
      'How far an embedding is moved to its alignment vector.',
      symbol='β',
      minimum=0,
      maximum=1,
      unless=(_COFED, _REFED_AT_SERVER),
    ),
    flag_types.Real(
      'temperature',
      0.07,
      'Temperature of the contrastive loss.',
      symbol='τ',
      above=0,
      unless=(_REFED_AT_SERVER,),
    ),
    flag_types.Real(
      'contrastive_weight',
      0.1,
      "Factor on the contrastive loss in the clients' loss; the paper gives no"
      ' number.',
      minimum=0,
      unless=_NO_CLIENT_LOSS,
    ),
    flag_types.Real(
      'distillation_weight',
      0.1,
      "Factor on the distance to the refined embedding in the clients' loss;"
      ' the paper gives no number.',
      minimum=0,
      unless=_NO_CLIENT_LOSS,
    ),
  ),
  groups=('fair',),
  tuned={'fairness_exponent': (0.5, 0.0, 1.0), 'sharpness': (2.0, 5.0)},
)
