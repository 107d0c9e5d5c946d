"""The published tables as data: which runs a table needs, and which numbers.

A run is a command of `launchers.train`: a preset and flags. A table is a grid
of runs, a cell (a setting) by a method, and of every run it takes some metrics
of `launchers.table_metrics`. To add a table is to add an entry here, and its
numbers to `published.csv`.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any

from launchers import distances


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cell:
  """A setting in which all methods of a table run.

  Attributes:
    preset: Its preset.
    data: The task whose data the paper used, with or without a preset for it.
  """

  preset: str
  data: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reference:
  """A run with which those of a table are compared.

  Attributes:
    preset: Its preset; None for the cell's.
    flags: Its flags; None for those of the method that is compared.
  """

  preset: str | None = None
  flags: Mapping[str, Any] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Table:
  """A published table, or what takes the place of a figure.

  Attributes:
    title: What it is, and of which paper.
    cells: Name -> setting.
    methods: Name -> the flags of a run, over those of the cell's preset.
    metrics: Names in `table_metrics.METRICS`.
    references: Name -> a run that a metric or a picture compares with.
    figures: Name in `table_plots.FIGURES` -> the methods that are drawn.
    percent: Whether the paper prints shares, such as accuracies, in per cent.
    seeds: Number of seeds that the paper averages over; None if it says
      nothing of them.
  """

  title: str
  cells: Mapping[str, Cell]
  methods: Mapping[str, Mapping[str, Any]]
  metrics: tuple[str, ...]
  references: Mapping[str, Reference] = dataclasses.field(default_factory=dict)
  figures: Mapping[str, tuple[str, ...]] = dataclasses.field(
    default_factory=dict
  )
  percent: bool
  seeds: int | None = None


def _cffl(upload_rate: float, **flags: Any) -> dict[str, Any]:
  return {'algorithm': 'cffl', 'upload_rate': upload_rate, **flags}


def _dssgd(upload_rate: float) -> dict[str, Any]:
  return {'algorithm': 'dssgd', 'upload_rate': upload_rate}


_FED_AVG = {'algorithm': 'round_robin_fed_avg'}
_STANDALONE = {'algorithm': 'standalone'}
_ALONE = {'standalone': Reference(flags=_STANDALONE)}
_PARTICIPANTS = (5, 10, 20)

_CFFL_SIZES = {
  f'{data}_p{number}': Cell(preset=f'cffl_{data}_size_p{number}', data=data)
  for data in ('mnist', 'adult')
  for number in _PARTICIPANTS
}
_CFFL_CLASSES = {
  f'mnist_class_p{number}': Cell(
    preset=f'cffl_mnist_class_p{number}', data='mnist'
  )
  for number in _PARTICIPANTS
}

_CFFL_FAIRNESS = Table(
  title='CFFL, table 1: collaborative fairness',
  cells=_CFFL_SIZES,
  methods={
    'fedavg': _FED_AVG,
    'dssgd_u0.1': _dssgd(0.1),
    'dssgd_u1': _dssgd(1.0),
    'cffl_pretrain_u0.1': _cffl(0.1, pretrain=True),
    'cffl_pretrain_u1': _cffl(1.0, pretrain=True),
    'cffl_u0.1': _cffl(0.1),
    'cffl_u1': _cffl(1.0),
  },
  metrics=('cf',),
  references=_ALONE,
  figures={
    'client_accuracy': ('cffl_u0.1', 'cffl_u1'),
    'scatter': ('fedavg', 'dssgd_u0.1', 'dssgd_u1', 'cffl_u0.1', 'cffl_u1'),
  },
  percent=True,
)

_CFFL_ACCURACY = Table(
  title='CFFL, table 2: maximum accuracy of the participants',
  cells=_CFFL_SIZES,
  methods={
    'dssgd_u0.1': _dssgd(0.1),
    'fedavg': _FED_AVG,
    'standalone': _STANDALONE,
    'cffl_u0.1': _cffl(0.1),
    'cffl_pretrain_u0.1': _cffl(0.1, pretrain=True),
  },
  metrics=('client_accuracy_max', 'above_standalone'),
  references=_ALONE,
  figures={
    'client_accuracy': ('cffl_u0.1',),
    'scatter': ('dssgd_u0.1', 'fedavg', 'cffl_u0.1', 'cffl_pretrain_u0.1'),
  },
  percent=True,
)

_CFFL_CLASS_IMBALANCE = Table(
  title='CFFL, imbalanced classes: the paper has figures only',
  cells=_CFFL_CLASSES,
  methods={
    'standalone': _STANDALONE,
    'cffl_u0.1': _cffl(0.1),
    'cffl_u1': _cffl(1.0),
  },
  metrics=('cf', 'client_accuracy_max', 'above_standalone'),
  references=_ALONE,
  figures={
    'client_accuracy': ('cffl_u0.1', 'cffl_u1'),
    'scatter': ('cffl_u0.1', 'cffl_u1'),
  },
  percent=True,
)

_CFFL_FREE_RIDER = Table(
  title='CFFL, a free rider: the paper has words only',
  cells={'mnist_p5': Cell(preset='cffl_freerider', data='mnist')},
  methods={'cffl_u1': _cffl(1.0)},
  metrics=(
    'isolation_round',
    'client_accuracy_mean',
    'client_accuracy_mean_without',
    'client_accuracy_mean_change',
    'free_rider_accuracy',
  ),
  references={'without': Reference(preset='cffl_mnist_size_p5')},
  figures={'reputation': ('cffl_u1',)},
  percent=True,
)

_COREFED_METRICS = (
  'client_accuracy_mean',
  'client_accuracy_variance',
  *distances.COLUMNS,
)
_COREFED_METHODS = {
  'corefed': {'algorithm': 'corefed'},
  'ditto': {'algorithm': 'ditto'},
  'q_fedavg': {'algorithm': 'q_fed_avg'},
  'fedmgda_plus': {'algorithm': 'fed_mgda'},
  'fedmdfg': {'algorithm': 'fed_mdfg'},
  'fedrdn': {'algorithm': 'fed_rdn'},
  'fedavg': {'algorithm': 'fedavg'},  # The paper has no row of it.
}
_COREFED_FMNIST = Cell(preset='corefed_fmnist', data='fmnist')

_COREFED_COMPARISON = Table(
  title='CoRe-Fed, table 1: accuracy and fairness',
  cells={
    'fmnist': _COREFED_FMNIST,
    'cifar10': Cell(preset='corefed_cifar', data='cifar10'),
  },
  methods=_COREFED_METHODS,
  metrics=_COREFED_METRICS,
  figures={'distances': tuple(_COREFED_METHODS)},
  percent=False,
  seeds=3,
)

# The data are not named in the paper.
_COREFED_TRADE_OFF = Table(
  title='CoRe-Fed, table 3: contribution against alignment',
  cells={
    'tradeoff_a': Cell(preset='corefed_tradeoff_a', data='fmnist'),
    # The setting of table 1, with which it shares its runs.
    'tradeoff_b': _COREFED_FMNIST,
  },
  methods={'corefed': {'algorithm': 'corefed'}},
  metrics=_COREFED_METRICS,
  percent=False,
  seeds=3,
)

# The data are not named in the paper here, either.
_COREFED_ABLATION = Table(
  title='CoRe-Fed, ablation: the paper has a figure only',
  cells={'fmnist': _COREFED_FMNIST},
  methods={
    'corefed': {'algorithm': 'corefed', 'alignment': 'client'},
    'cofed': {'algorithm': 'corefed', 'variant': 'cofed'},
    'refed': {
      'algorithm': 'corefed',
      'variant': 'refed',
      'alignment': 'client',
    },
  },
  metrics=_COREFED_METRICS,
  figures={'distances': ('corefed', 'cofed', 'refed')},
  percent=False,
  seeds=3,
)

# Data -> those that can take their place: images of the same size and number.
STAND_INS = {'fmnist': 'mnist'}

TABLES: dict[str, Table] = {
  'cffl_table1': _CFFL_FAIRNESS,
  'cffl_table2': _CFFL_ACCURACY,
  'cffl_classes': _CFFL_CLASS_IMBALANCE,
  'cffl_freerider': _CFFL_FREE_RIDER,
  'corefed_table1': _COREFED_COMPARISON,
  'corefed_table3': _COREFED_TRADE_OFF,
  'corefed_ablation': _COREFED_ABLATION,
}
