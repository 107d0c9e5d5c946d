"""FedQuad's experiments."""

from collections.abc import Mapping
from typing import Any

from tff_fair.launchers.options.presets import preset

_SHARED = {
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
  # Keeps all checkpoints, so that the embedding can be drawn at any of them.
  'checkpoint_every': 5,
  'checkpoints_to_keep': 4,
}
# From MOON's paper; FedQuad's gives none.
_MOON_WEIGHTS = {'cifar10': 5.0, 'cifar100': 1.0}


def _fedquad(
  source: str,
  shared: Mapping[str, Any],
  *,
  weight: float = 0.5,
  margins: tuple[float, float] = (1.0, 0.5),
) -> preset.Preset:
  """A setting for FedQuad, and for its baselines."""
  own = {
    'quadruplet_weight': weight,
    'margin_1': margins[0],
    'margin_2': margins[1],
  }
  moon = {'contrastive_weight': _MOON_WEIGHTS.get(shared['task'], 5.0)}
  return preset.Preset(
    source=source,
    shared={**_SHARED, **shared},
    methods={'fedquad': own, 'moon': moon},
  )


def _presets(task: str, tables: str) -> dict[str, preset.Preset]:
  """The settings of two tables."""
  dirichlet = {
    f'a{alpha:.1f}_c{number}'.replace('.', ''): {
      'num_clients': number,
      'partition': 'dirichlet',
      'dirichlet_alpha': alpha,
    }
    # No table has the setting with 50 clients.
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


def _ablation(weight: float, *margins: float) -> preset.Preset:
  shared = {
    'task': 'cifar10',
    'num_clients': 10,
    'partition': 'equal',
    'rounds': 5,
  }
  return _fedquad(
    'FedQuad, table 5', shared, weight=weight, margins=tuple(margins)
  )


_DIGITS = _fedquad(
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

PRESETS = {
  'fedquad_digits': _DIGITS,
  **_presets('cifar10', 'tables 1 and 2'),
  **_presets('cifar100', 'tables 3 and 4'),
  'fedquad_ablation_b05_m1_m1': _ablation(0.5, 1.0, 1.0),
  'fedquad_ablation_b05_m1_m05': _ablation(0.5, 1.0, 0.5),
  'fedquad_ablation_b1_m1_m05': _ablation(1.0, 1.0, 0.5),
  'fedquad_ablation_b05_m2_m05': _ablation(0.5, 2.0, 0.5),
  'fedquad_ablation_b05_m5_m05': _ablation(0.5, 5.0, 0.5),
}
