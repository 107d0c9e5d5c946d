"""Ditto."""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

METHOD = entry.Method(
  name='ditto',
  title='Ditto',
  summary='FedAvg, and a personal model for each client',
  compared_with=('FeDABoost', 'CoRe-Fed'),
  flags=(
    flag_types.Choice(
      'personal_optimizer',
      'sgd',
      'Optimiser of the personal models.',
      argument='personal_optimizer',
      choices=('sgd', 'adam', 'adamw'),
    ),
    flag_types.Real(
      'personal_learning_rate',
      0.01,
      'Learning rate of the personal models.',
      argument='personal_optimizer',
      minimum=0,
    ),
    flag_types.Real(
      'personal_weight_decay',
      0.0,
      'Weight decay of the personal models.',
      argument='personal_optimizer',
      minimum=0,
    ),
    flag_types.Real(
      'proximal_weight',
      0.1,
      'Pull of a personal model towards the global one; at 0 each is trained'
      ' alone.',
      symbol='λ',
      minimum=0,
    ),
    flag_types.Switch('uniform', False, 'All clients have the same weight.'),
  ),
  arguments=(
    entry.Argument(
      'personal_optimizer',
      "A TFF optimiser for the personal models; `None` is the clients'.",
    ),
    entry.Argument(
      'personal_learning_rate_fn',
      'As `client_learning_rate_fn`, for the personal models; also set by'
      ' `--learning_rate_decay`.',
    ),
  ),
  groups=('fair', 'personal'),
  tuned={
    'personal_learning_rate': (0.01, 0.05, 0.2),
    'proximal_weight': (0.1, 1.0),
  },
)
