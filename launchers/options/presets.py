"""The papers' experiments as flag values.

A preset holds the flags that every method of an experiment shares, and those
of single methods, which count only for the method that runs: so
`--preset=fedaboost_mnist --algorithm=fed_avg` is FedAvg in FeDABoost's setting.
"""

from collections.abc import Mapping
import dataclasses
import math
from typing import Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class Preset:
  """One experiment.

  Attributes:
    source: Where the values are from.
    shared: Flag values for every method, among them the default `algorithm`.
    methods: Method -> its own flag values, and its model or optimiser if that
      is another.
  """

  source: str
  shared: Mapping[str, Any]
  methods: Mapping[str, Mapping[str, Any]]

  def flag_values(self, algorithm: str | None) -> dict[str, Any]:
    """The values for `algorithm`, or for the preset's own method if None."""
    algorithm = algorithm or self.shared['algorithm']
    return {**self.shared, **self.methods.get(algorithm, {})}


def _without_boosting(preset: Preset) -> Preset:
  """The paper's ablation: the aggregation alone."""
  own = {'fedaboost': {'boosting': False}}
  # What only boosting reads would be refused as a flag without effect.
  return dataclasses.replace(
    preset,
    source=f'{preset.source}, ablation without boosting',
    methods={**preset.methods, **own},
  )


_MNIST = Preset(
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
    'ditto': {
      'proximal_weight': 0.1,
      'personal_optimizer': 'sgd',
      'personal_learning_rate': 1e-3,
      'personal_weight_decay': 1e-3,
    },
  },
)


def _femnist(optimizer: str, learning_rate: float, weight_decay: float):
  return Preset(
    source='FeDABoost, experiment 2',
    shared={
      'algorithm': 'fedaboost',
      'task': 'femnist',
      'client_fraction': 0.2,
      'client_optimizer': optimizer,
      'client_learning_rate': learning_rate,
      'client_weight_decay': weight_decay,
      'local_epochs': 5,
      'batch_size': 64,
      'rounds': 210,
    },
    methods={
      'fedaboost': {'boost_rate': 0.01, 'error_threshold': 0.5},
      'ditto': {
        'proximal_weight': 0.1,
        'personal_optimizer': 'adam',
        'personal_learning_rate': 1e-3,
        'personal_weight_decay': 5e-4,
      },
    },
  )


def _cifar(fraction: float, rounds: int) -> Preset:
  return Preset(
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


_DIGITS = Preset(
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

_CFFL_SHARED = {
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
) -> Preset:
  """A cell of CFFL's tables; upload rate and pretraining are its columns."""
  return Preset(
    source=f'CFFL, section 4, {num_clients} participants',
    shared={
      **_CFFL_SHARED,
      'task': task,
      'model': f'mlp_cffl_{task}',
      'num_clients': num_clients,
      'num_examples': num_examples,
      'client_learning_rate': learning_rate,
      **others,
    },
    methods={'cffl': {'scenario': scenario}},
  )


def _cffl_mnist_class(num_clients: int, num_examples: int) -> Preset:
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


def _with_free_rider(preset: Preset) -> Preset:
  own = {**preset.methods['cffl'], 'free_riders': 1}
  return dataclasses.replace(
    preset,
    source=f'{preset.source}, and a free rider',
    methods={'cffl': own},
  )


_CFFL_MNIST_P5 = _cffl('mnist', 5, 3000, 0.15)

_CFFL_DIGITS = Preset(
  source='a small task for a first look, not from a paper',
  shared={
    **_CFFL_SHARED,
    'task': 'digits',
    'model': 'mlp_cffl_mnist',
    'num_clients': 5,
    'num_examples': 1000,
    'client_learning_rate': 0.15,
    'rounds': 20,
  },
  methods={'cffl': {'scenario': 'size'}},
)

_COREFED_SHARED = {
  'algorithm': 'corefed',
  'partition': 'dirichlet',
  'dirichlet_alpha': 0.5,
  'balance_cap': True,
  'min_samples': 10,
  'holdout_fraction': 0.0,
  'client_optimizer': 'sgd',
  'client_learning_rate': 0.1,
  'learning_rate_decay': 0.999,
  'local_epochs': 1,
  'rounds': 1000,
  'eval_every': 10,
  'distances': True,
}
_COREFED_FMNIST = {
  'task': 'fmnist',
  'model': 'mlp_corefed',
  'num_clients': 100,
  'client_fraction': 0.2,
  'batch_size': 50,
  # As many test images as the data set's own test file has.
  'test_fraction': 1 / 7,
}
_COREFED_CIFAR = {
  **_COREFED_FMNIST,
  'task': 'cifar10',
  'model': 'cnn_corefed',
  'test_fraction': 1 / 6,
}
# Of the values that table 2 lists, the baselines take the first.
_COREFED_BASELINES = {
  'ditto': {
    'proximal_weight': 0.1,
    'personal_optimizer': 'sgd',
    'personal_learning_rate': 0.1,
  },
  'q_fed_avg': {'q': 0.1},
  'fed_mgda': {'deviation': 0.1},
  'fed_mdfg': {'angle': math.pi / 180, 'line_search_scale': 5},
}
_COREFED_OWN = {
  'gamma': 0.5,
  'sharpness': 2.0,
  'beta': 0.5,
  'temperature': 0.07,
}


def _corefed(source: str, shared: Mapping[str, Any], **own: Any) -> Preset:
  """A setting for CoRe-Fed with those flags, and for its baselines."""
  return Preset(
    source=source,
    shared={**_COREFED_SHARED, **shared},
    methods={**_COREFED_BASELINES, 'corefed': {**_COREFED_OWN, **own}},
  )


def _corefed_full(alpha: float) -> Preset:
  """Ten clients, all of them in every round."""
  return _corefed(
    'CoRe-Fed, full participation',
    {
      **_COREFED_FMNIST,
      'num_clients': 10,
      'client_fraction': 1.0,
      'batch_size': 200,
      'dirichlet_alpha': alpha,
    },
  )


def _corefed_ablation(variant: str, **own: Any) -> Preset:
  # With alignment at the server alone, refed would be FedAvg.
  return _corefed(
    f'CoRe-Fed, ablation: {variant}', _COREFED_FMNIST, variant=variant, **own
  )


def _with_plain_model(preset: Preset) -> Preset:
  """FedRDN's images reach the model normalised; once is enough."""
  own = {'fed_rdn': {'model': 'cnn_corefed_plain'}}
  return dataclasses.replace(preset, methods={**preset.methods, **own})


_COREFED_DIGITS = _corefed(
  'a small task for a first look, not from a paper',
  {
    'task': 'digits',
    'model': 'mlp_corefed',
    'num_clients': 20,
    'client_fraction': 0.25,
    'batch_size': 10,
    'rounds': 30,
    'eval_every': 1,
  },
)

_FEDQUAD_SHARED = {
  'algorithm': 'fedquad',
  'model': 'cnn_fedquad',
  'split': 'server',
  'validation_fraction': 0.0,
  'client_optimizer': 'adam',
  'client_learning_rate': 1e-3,
  'client_weight_decay': 1e-5,
  'local_epochs': 5,
  'batch_size': 128,
  'rounds': 20,
  'eval_every': 5,
  # All of them stay, for pictures of the embedding at any of these rounds.
  'checkpoint_every': 5,
  'checkpoints_to_keep': 4,
}
# Of MOON's paper; FedQuad's names none.
_MOON_WEIGHTS = {'cifar10': 5.0, 'cifar100': 1.0}


def _fedquad(
  source: str,
  shared: Mapping[str, Any],
  *,
  weight: float = 0.5,
  margins: tuple[float, float] = (1.0, 0.5),
) -> Preset:
  """A setting for FedQuad, and for its baselines."""
  own = {
    'quadruplet_weight': weight,
    'margin_1': margins[0],
    'margin_2': margins[1],
  }
  moon = {'contrastive_weight': _MOON_WEIGHTS.get(shared['task'], 5.0)}
  return Preset(
    source=source,
    shared={**_FEDQUAD_SHARED, **shared},
    methods={'fedquad': own, 'moon': moon},
  )


def _fedquad_presets(task: str, tables: str) -> dict[str, Preset]:
  """The settings of two tables, by the ends of their names."""
  dirichlet = {
    f'a{alpha:.1f}_c{number}'.replace('.', ''): {
      'num_clients': number,
      'partition': 'dirichlet',
      'dirichlet_alpha': alpha,
    }
    # No table has 50 clients.
    for alpha, number in ((0.3, 10), (0.5, 10), (0.5, 50), (0.5, 200))
  }
  settings = {
    'iid_c10': {'num_clients': 10, 'partition': 'equal'},
    'centralised': {'num_clients': 1, 'partition': 'equal'},
    **dirichlet,
  }
  return {
    f'fedquad_{task}_{name}': _fedquad(
      f'FedQuad, {tables}', {'task': task, **shared}
    )
    for name, shared in settings.items()
  }


def _fedquad_ablation(weight: float, *margins: float) -> Preset:
  shared = {
    'task': 'cifar10',
    'num_clients': 10,
    'partition': 'equal',
    'rounds': 5,
  }
  return _fedquad(
    'FedQuad, table 5', shared, weight=weight, margins=tuple(margins)
  )


_FEDQUAD_DIGITS = _fedquad(
  'a small task for a first look, not from a paper',
  {
    'task': 'digits',
    'num_clients': 10,
    'partition': 'dirichlet',
    'dirichlet_alpha': 0.3,
    'batch_size': 32,
    'rounds': 10,
    'eval_every': 1,
  },
)

_FEDAKD_SHARED = {
  'algorithm': 'fedakd',
  'model': 'cnn_fedakd',
  'num_clients': 10,
  'local_epochs': 1,
  'batch_size': 32,
  'rounds': 20,
  'eval_every': 5,
}
# 7 : 1 : 2, of which the second parts are what a server validates on.
_FEDAKD_SPLIT = {
  'split': 'client',
  'test_fraction': 0.2,
  'holdout_fraction': 0.125,
}
# The paper's table 6.
_FEDAKD_BASELINES = {
  'cffl': {
    'upload_rate': 0.5,
    'clip_mode': 'norm',
    'clip_value': 5.0,
    'threshold_absolute': 0.05,
    'punishment_factor': 1.0,
  },
  'cgsv': {'history_weight': 0.9, 'altruism': 1.0},
  'fed_ave': {
    'history_weight': 0.9,
    'altruism': 1.0,
    'upload_fraction': 0.5,
    'download_base': 0.3,
  },
  'fed_sac': {'contribution_sharpness': 2.0, 'mid_round': 15},
  # With Adam the original's correction of gradients has no meaning.
  'fed_dc': {'drift_weight': 1.0, 'variant': 'fedakd'},
  'fed_mpr': {'prune_fraction': 0.1, 'client_weight_decay': 1e-4},
  'fed_prox': {'proximal_weight': 0.01},
  'scaffold': {
    'client_optimizer': 'sgd',
    'client_learning_rate': 0.1,
    'server_learning_rate': 0.005,
  },
}
_FEDAKD_OWN = {
  'down_weight': 1.0,
  'up_weight': 1.0,
  'distillation_temperature': 1.0,
}
# CGSV's own paper has an update length for each of these.
_UPDATE_LENGTHS = {'cifar10': 0.15}
_FEDAKD_RATES = {'fmnist': 1e-3, 'cifar10': 5e-3}
_FEDAKD_TASKS = {'fmnist': 'fmnist', 'cifar': 'cifar10'}
_FEDAKD_PARTITIONS = {
  'pow': {'partition': 'zipf'},
  'bcs': {
    'partition': 'covariate_shift',
    'shift_sizes': 'equal',
    'shift': 5.0,
  },
  **{
    f'ics{shift}': {
      'partition': 'covariate_shift',
      'shift_sizes': 'zipf',
      'shift': float(shift),
    }
    for shift in (2, 5, 10)
  },
}
_FEDAKD_GLOBAL_PARTITIONS = {
  'pow': {'partition': 'zipf'},
  'cla': {'partition': 'class'},
  **{
    f'dir{alpha}': {
      'partition': 'dirichlet',
      'dirichlet_alpha': float(alpha),
      'dirichlet_remainder': 'drop',
    }
    for alpha in (1, 2, 3)
  },
}


def _fedakd(
  source: str,
  shared: Mapping[str, Any],
  methods: Mapping[str, Mapping[str, Any]] | None = None,
  **own: Any,
) -> Preset:
  """A setting for FedAKD, and for its baselines."""
  length = {'update_length': _UPDATE_LENGTHS.get(shared['task'], 0.5)}
  baselines = {
    **_FEDAKD_BASELINES,
    'cgsv': {**_FEDAKD_BASELINES['cgsv'], **length},
    'fed_ave': {**_FEDAKD_BASELINES['fed_ave'], **length},
  }
  return Preset(
    source=source,
    shared={**_FEDAKD_SHARED, **shared},
    methods={
      **baselines,
      **(methods or {}),
      'fedakd': {**_FEDAKD_OWN, **own},
    },
  )


def _fedakd_local(name: str, setting: str, **own: Any) -> Preset:
  """Every client is scored on its own test part; Adam, as the public code."""
  task = _FEDAKD_TASKS[name]
  rate = _FEDAKD_RATES[task]
  shared = {
    'task': task,
    'client_optimizer': 'adam',
    'client_learning_rate': rate,
    **_FEDAKD_SPLIT,
    **_FEDAKD_PARTITIONS[setting],
  }
  # Of the public code: ten times below the federated rate.
  alone = {'standalone': {'client_learning_rate': rate / 10}}
  return _fedakd('FedAKD, table 1', shared, alone, **own)


def _fedakd_global(name: str, setting: str) -> Preset:
  """All are scored on one test set; the rates imply SGD."""
  of_task = {
    'fmnist': {'batch_size': 32, 'client_learning_rate': 0.15},
    'cifar': {
      'model': 'cnn_fedakd_deep',
      'batch_size': 128,
      'client_learning_rate': 0.015,
    },
  }
  shared = {
    'task': _FEDAKD_TASKS[name],
    'client_optimizer': 'sgd',
    'split': 'server',
    'validation_fraction': 0.125,
    # Ten models on all test examples take as long as a round.
    'eval_every': 10,
    **of_task[name],
    **_FEDAKD_GLOBAL_PARTITIONS[setting],
  }
  return _fedakd('FedAKD, table 5', shared)


def _fedakd_ehr(source: str, rounds: int) -> Preset:
  """The states; the paper's rate, 1e-5, is for fifty times the records."""
  shared = {
    'task': 'ehr',
    'model': 'gru_ehr',
    'num_clients': None,
    'client_optimizer': 'adam',
    'client_learning_rate': 1e-3,
    'batch_size': 64,
    'rounds': rounds,
    'split': 'client',
    'test_fraction': 0.2,
    'holdout_fraction': 0.1,
    'focal_gamma': 2.0,
  }
  return _fedakd(source, shared)


_FEDAKD_VARIANTS = ('full', 'all_data', 'single_dist', 'correct_agg')
_FEDAKD_DIGITS = _fedakd(
  'a small task for a first look, not from a paper',
  {
    'task': 'digits',
    'client_optimizer': 'adam',
    'client_learning_rate': 1e-2,
    'rounds': 10,
    'eval_every': 1,
    **_FEDAKD_SPLIT,
    **_FEDAKD_PARTITIONS['ics5'],
  },
  {'standalone': {'client_learning_rate': 1e-3}},
)

PRESETS: dict[str, Preset] = {
  'fedaboost_digits': _DIGITS,
  'fedaboost_digits_without_boosting': _without_boosting(_DIGITS),
  'fedaboost_mnist': _MNIST,
  'fedaboost_mnist_without_boosting': _without_boosting(_MNIST),
  'fedaboost_femnist_1': _femnist('sgd', 1e-3, 5e-4),
  'fedaboost_femnist_2': _femnist('adamw', 2e-4, 1e-6),
  'fedaboost_cifar_20': _cifar(0.2, 70),
  'fedaboost_cifar_40': _cifar(0.4, 45),
  'fedaboost_cifar_60': _cifar(0.6, 30),
  'cffl_digits': _CFFL_DIGITS,
  'cffl_mnist_size_p5': _CFFL_MNIST_P5,
  'cffl_mnist_size_p10': _cffl('mnist', 10, 6000, 0.25),
  'cffl_mnist_size_p20': _cffl('mnist', 20, 12000, 0.25),
  'cffl_mnist_class_p5': _cffl_mnist_class(5, 3000),
  'cffl_mnist_class_p10': _cffl_mnist_class(10, 6000),
  'cffl_mnist_class_p20': _cffl_mnist_class(20, 12000),
  'cffl_adult_size_p5': _cffl('adult', 5, 4000, 0.03),
  'cffl_adult_size_p10': _cffl('adult', 10, 8000, 0.03),
  'cffl_adult_size_p20': _cffl('adult', 20, 12000, 0.03),
  'cffl_freerider': _with_free_rider(_CFFL_MNIST_P5),
  'corefed_digits': _COREFED_DIGITS,
  'corefed_fmnist': _corefed('CoRe-Fed, table 1', _COREFED_FMNIST),
  'corefed_cifar': _with_plain_model(
    _corefed('CoRe-Fed, table 1', _COREFED_CIFAR)
  ),
  'corefed_fmnist_full_01': _corefed_full(0.1),
  'corefed_fmnist_full_05': _corefed_full(0.5),
  'corefed_tradeoff_a': _corefed(
    'CoRe-Fed, table 3', _COREFED_FMNIST, gamma=2.0, sharpness=0.5
  ),
  'corefed_tradeoff_b': _corefed('CoRe-Fed, table 3', _COREFED_FMNIST),
  'corefed_ablation_corefed': _corefed_ablation('corefed', alignment='client'),
  'corefed_ablation_cofed': _corefed_ablation('cofed'),
  'corefed_ablation_refed': _corefed_ablation('refed', alignment='client'),
  'fedquad_digits': _FEDQUAD_DIGITS,
  **_fedquad_presets('cifar10', 'tables 1 and 2'),
  **_fedquad_presets('cifar100', 'tables 3 and 4'),
  'fedquad_ablation_b05_m1_m1': _fedquad_ablation(0.5, 1.0, 1.0),
  'fedquad_ablation_b05_m1_m05': _fedquad_ablation(0.5, 1.0, 0.5),
  'fedquad_ablation_b1_m1_m05': _fedquad_ablation(1.0, 1.0, 0.5),
  'fedquad_ablation_b05_m2_m05': _fedquad_ablation(0.5, 2.0, 0.5),
  'fedquad_ablation_b05_m5_m05': _fedquad_ablation(0.5, 5.0, 0.5),
  'fedakd_digits': _FEDAKD_DIGITS,
  **{
    f'fedakd_{name}_{setting}': _fedakd_local(name, setting)
    for name in _FEDAKD_TASKS
    for setting in _FEDAKD_PARTITIONS
  },
  **{
    f'fedakd_global_{name}_{setting}': _fedakd_global(name, setting)
    for name in _FEDAKD_TASKS
    for setting in _FEDAKD_GLOBAL_PARTITIONS
  },
  **{
    f'fedakd_ablation_{name}_{variant}': _fedakd_local(
      name, 'ics5', variant=variant
    )
    for name in _FEDAKD_TASKS
    for variant in _FEDAKD_VARIANTS
  },
  'fedakd_ehr': _fedakd_ehr('FedAKD, tables 2 and 4', 20),
  'fedakd_ehr_equal_time': _fedakd_ehr('FedAKD, table 3', 40),
}
