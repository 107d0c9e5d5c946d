"""CFFL's experiments."""

import dataclasses
from typing import Any

from tff_fair.launchers.options.presets import preset

_SHARED = {
  'algorithm': 'cffl',
  'split': 'server',
  'partition': 'power_law',
  'client_optimizer': 'sgd',
  'learning_rate_decay': 0.977,
  'local_epochs': 2,
  'batch_size': 16,
  'rounds': 30,
}


def _cffl(
  task: str,
  num_clients: int,
  num_examples: int,
  learning_rate: float,
  scenario: str = 'size',
  **others: Any,
) -> preset.Preset:
  """A cell of CFFL's tables; upload rate and pretraining are its columns."""
  return preset.Preset(
    source=f'CFFL, section 4, {num_clients} participants',
    shared={
      **_SHARED,
      'task': task,
      'model': f'mlp_cffl_{task}',
      'num_clients': num_clients,
      'num_examples': num_examples,
      'client_learning_rate': learning_rate,
      **others,
    },
    methods={'cffl': {'scenario': scenario}},
  )


def _mnist_class(num_clients: int, num_examples: int) -> preset.Preset:
  return _cffl(
    'mnist',
    num_clients,
    num_examples,
    0.15,
    'class',
    partition='class',
    local_epochs=1,
    rounds=50,
  )


def _with_free_rider(base: preset.Preset) -> preset.Preset:
  own = {**base.methods['cffl'], 'free_riders': 1}
  return dataclasses.replace(
    base,
    source=f'{base.source}, and a free rider',
    methods={'cffl': own},
  )


_MNIST_P5 = _cffl('mnist', 5, 3000, 0.15)

_DIGITS = preset.Preset(
  source='a small task for a first look, not from a paper',
  shared={
    **_SHARED,
    'task': 'digits',
    'model': 'mlp_cffl_mnist',
    'num_clients': 5,
    'num_examples': 1000,
    'client_learning_rate': 0.15,
    'rounds': 20,
  },
  methods={'cffl': {'scenario': 'size'}},
)

PRESETS = {
  'cffl_digits': _DIGITS,
  'cffl_mnist_size_p5': _MNIST_P5,
  'cffl_mnist_size_p10': _cffl('mnist', 10, 6000, 0.25),
  'cffl_mnist_size_p20': _cffl('mnist', 20, 12000, 0.25),
  'cffl_mnist_class_p5': _mnist_class(5, 3000),
  'cffl_mnist_class_p10': _mnist_class(10, 6000),
  'cffl_mnist_class_p20': _mnist_class(20, 12000),
  'cffl_adult_size_p5': _cffl('adult', 5, 4000, 0.03),
  'cffl_adult_size_p10': _cffl('adult', 10, 8000, 0.03),
  'cffl_adult_size_p20': _cffl('adult', 20, 12000, 0.03),
  'cffl_freerider': _with_free_rider(_MNIST_P5),
}
