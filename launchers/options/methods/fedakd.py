"""FedAKD."""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

_ONE_MODEL = ({'variant': 'single_dist'},)
# Each phase is one step on all examples.
_SINGLE_STEP = {'granularity': 'single_step'}

METHOD = entry.Method(
  name='fedakd',
  title='FedAKD',
  summary='each client keeps its own model; it and the global model teach each'
  ' other by distillation in two phases, and only examples that the client'
  ' classifies correctly teach the global model',
  flags=(
    flag_types.Real(
      'down_weight',
      1.0,
      "Factor on the distillation from the global into the client's model.",
      symbol='α',
      minimum=0,
      unless=_ONE_MODEL,
    ),
    flag_types.Real(
      'up_weight',
      1.0,
      "Factor on the distillation from the client's into the global model.",
      symbol='β',
      minimum=0,
    ),
    flag_types.Real(
      'distillation_temperature',
      1.0,
      'Temperature of the softmax in the distillation loss.',
      symbol='T',
      above=0,
      unless=({'down_weight': 0.0, 'up_weight': 0.0},),
    ),
    flag_types.Choice(
      'variant',
      'full',
      'The whole method (full), or one of the ablation (all_data, single_dist,'
      ' correct_agg).',
      choices=('full', 'all_data', 'single_dist', 'correct_agg'),
    ),
    flag_types.Choice(
      'order',
      'down_up',
      'Which model is taught first in a round: as in Algorithm 1 (down_up), or'
      ' as in the public code (up_down).',
      choices=('down_up', 'up_down'),
    ),
    flag_types.Choice(
      'granularity',
      'epochs',
      'A phase is the local epochs, or one step on all examples (single_step).',
      choices=('epochs', 'single_step'),
    ),
    flag_types.Choice(
      'evaluate',
      'local',
      'A client is scored by its own model (local) or by the global one.',
      choices=('local', 'global'),
      unless=_ONE_MODEL,
    ),
  ),
  ignores={'local_epochs': _SINGLE_STEP, 'batch_size': _SINGLE_STEP},
  groups=('fair', 'personal'),
  tuned={'down_weight': (1.0, 0.3, 0.1), 'up_weight': (1.0, 0.3)},
)
