"""FeDABoost's experiments."""

import dataclasses
from typing import Any

from tff_fair.launchers.options.presets import preset


def _without_boosting(base: preset.Preset) -> preset.Preset:
  """The paper's ablation: only the aggregation."""
  own = {'fedaboost': {'boosting': False}}
  # Without the flags that have no effect without boosting.
  return dataclasses.replace(
    base,
    source=f'{base.source}, ablation without boosting',
    methods={**base.methods, **own},
  )


_MNIST = preset.Preset(
  source='FeDABoost, experiment 1',
  shared={
    'algorithm': 'fedaboost',
    'task': 'mnist',
    'num_clients': 264,
    'partition': 'dirichlet',
    'dirichlet_alpha': 0.2,
    'client_fraction': 0.3,
    'client_optimizer': 'sgd',
    'client_learning_rate': 1e-3,
    'client_weight_decay': 1e-3,
    'local_epochs': 5,
    'batch_size': 32,
    'rounds': 260,
  },
  methods={
    'fedaboost': {'boost_rate': 0.01, 'error_threshold': 0.3},
    # Ours: the experiment has no Ditto.
    'ditto': {
      'proximal_weight': 0.1,
      'personal_optimizer': 'sgd',
      'personal_learning_rate': 1e-3,
      'personal_weight_decay': 1e-3,
    },
  },
)


def _femnist(name: str, **of_fedaboost: Any) -> preset.Preset:
  """Experiment 2; FeDABoost-2 alone has another optimiser."""
  return preset.Preset(
    source=f'FeDABoost, experiment 2, {name}',
    shared={
      'algorithm': 'fedaboost',
      'task': 'femnist',
      'client_fraction': 0.2,
      'client_optimizer': 'sgd',
      'client_learning_rate': 1e-3,
      'client_weight_decay': 5e-4,
      'local_epochs': 5,
      'batch_size': 64,
      'rounds': 210,
    },
    methods={
      'fedaboost': {
        'boost_rate': 0.01,
        'error_threshold': 0.5,
        **of_fedaboost,
      },
      'ditto': {
        'proximal_weight': 0.1,
        'personal_optimizer': 'adam',
        'personal_learning_rate': 1e-3,
        'personal_weight_decay': 5e-4,
      },
    },
  )


def _cifar(fraction: float, rounds: int) -> preset.Preset:
  return preset.Preset(
    source='FeDABoost, experiment 3 (table 1)',
    shared={
      'algorithm': 'fedaboost',
      'task': 'cifar10',
      'num_clients': 196,
      'partition': 'dirichlet',
      'dirichlet_alpha': 0.4,
      'client_fraction': fraction,
      'client_optimizer': 'sgd',
      'client_learning_rate': 1e-2,
      'local_epochs': 10,
      'batch_size': 32,
      'rounds': rounds,
    },
    methods={
      'fedaboost': {'boost_rate': 0.002, 'error_threshold': 0.4},
      # The text says Adam, the caption of table 1 SGD at this rate.
      'ditto': {
        'proximal_weight': 0.1,
        'personal_optimizer': 'sgd',
        'personal_learning_rate': 1e-3,
      },
    },
  )


_DIGITS = preset.Preset(
  source='a small task for a first look, not from a paper',
  shared={
    'algorithm': 'fedaboost',
    'task': 'digits',
    'num_clients': 20,
    'partition': 'dirichlet',
    'dirichlet_alpha': 0.5,
    'client_fraction': 0.5,
    'client_optimizer': 'sgd',
    'client_learning_rate': 0.05,
    'local_epochs': 5,
    'batch_size': 16,
    'rounds': 30,
  },
  methods={
    'fedaboost': {'boost_rate': 0.01, 'error_threshold': 0.3},
    'ditto': {
      'proximal_weight': 0.1,
      'personal_optimizer': 'sgd',
      'personal_learning_rate': 0.05,
    },
  },
)

PRESETS = {
  'fedaboost_digits': _DIGITS,
  'fedaboost_digits_without_boosting': _without_boosting(_DIGITS),
  'fedaboost_mnist': _MNIST,
  'fedaboost_mnist_without_boosting': _without_boosting(_MNIST),
  'fedaboost_femnist_1': _femnist('FeDABoost-1'),
  'fedaboost_femnist_2': _femnist(
    'FeDABoost-2',
    client_optimizer='adamw',
    client_learning_rate=2e-4,
    client_weight_decay=1e-6,
  ),
  'fedaboost_cifar_20': _cifar(0.2, 70),
  'fedaboost_cifar_40': _cifar(0.4, 45),
  'fedaboost_cifar_60': _cifar(0.6, 30),
}
