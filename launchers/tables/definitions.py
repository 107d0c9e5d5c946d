"""The published tables as data: their runs and their metrics.

A run is a command of `launchers.train`: a preset and flags. A table is a grid
of runs, cells (settings) by methods, with some metrics of `table_metrics` for
each run. To add a table, add an entry here and its numbers to `published.csv`.
"""

import ast
from collections.abc import Collection, Mapping
import dataclasses
from typing import Any

from tff_fair.launchers.options import presets
from tff_fair.launchers.runs import distances


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cell:
  """A setting in which methods of a table run.

  Attributes:
    preset: Its preset.
    data: The task whose data the paper used, even if the preset has others.
    methods: The table's methods that run in it; None for all.
    flags: Flags that override the preset; those of a method override these.
    published_as: The cell whose published numbers those of this one are held
      against; None for its own.
    method_flags: Method -> flags of it in this cell, which override those of
      the table.
  """

  preset: str
  data: str
  methods: tuple[str, ...] | None = None
  flags: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  published_as: str | None = None
  method_flags: Mapping[str, Mapping[str, Any]] = dataclasses.field(
    default_factory=dict
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reference:
  """A run that runs of a table are compared with.

  Attributes:
    preset: Its preset; None for that of the cell.
    flags: Its flags; None for those of the compared method.
  """

  preset: str | None = None
  flags: Mapping[str, Any] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Table:
  """A published table, or numbers that a paper shows as a figure.

  Attributes:
    title: Its paper, number and content.
    cells: Name -> setting.
    methods: Name -> flags, which override the cell's preset.
    printed_as: Name -> the paper's name, for methods that it names differently.
    published_as: The table whose published numbers those of this one are held
      against; None for its own.
    metrics: Names in `table_metrics.METRICS`.
    references: Name -> a run that a metric or a plot compares with.
    figures: Name in `table_plots.FIGURES` -> the methods to draw.
    percent: Whether the paper prints shares, such as accuracies, in per cent.
    seeds: Number of seeds that the paper averages over; None if unknown.
  """

  title: str
  cells: Mapping[str, Cell]
  methods: Mapping[str, Mapping[str, Any]]
  printed_as: Mapping[str, str] = dataclasses.field(default_factory=dict)
  published_as: str | None = None
  metrics: tuple[str, ...]
  references: Mapping[str, Reference] = dataclasses.field(default_factory=dict)
  figures: Mapping[str, tuple[str, ...]] = dataclasses.field(
    default_factory=dict
  )
  percent: bool
  seeds: int | None = None

  def methods_of(self, cell: str) -> tuple[str, ...]:
    """The methods that run in a cell."""
    own = self.cells[cell].methods
    return tuple(self.methods) if own is None else own

  def flags_of(self, cell: str, method: str) -> dict[str, Any]:
    """The flags of a method in a cell, without those of the cell itself."""
    own = self.cells[cell].method_flags.get(method, {})
    return {**self.methods[method], **own}

  def restricted_to(self, methods: Collection[str]) -> 'Table':
    """The table with the runs and the plots of these methods only."""

    def wanted(names):
      return tuple(name for name in names if name in methods)

    return dataclasses.replace(
      self,
      cells={
        name: dataclasses.replace(cell, methods=wanted(self.methods_of(name)))
        for name, cell in self.cells.items()
      },
      figures={name: wanted(drawn) for name, drawn in self.figures.items()},
    )


def _names(text: str) -> tuple[str, ...]:
  return tuple(text.split())


def _methods(text: str) -> dict[str, dict[str, Any]]:
  """Parses methods: name -> flags.

  Args:
    text: A line for each: its name, its algorithm if that is another word, and
      other flags, as FLAG=VALUE.
  """
  methods = {}
  for line in text.strip().splitlines():
    name, *words = line.split()
    algorithm = words.pop(0) if words and '=' not in words[0] else name
    flags = dict(word.split('=') for word in words)
    values = {flag: _value(word) for flag, word in flags.items()}
    methods[name] = {'algorithm': algorithm, **values}
  return methods


def _value(word: str) -> Any:
  try:
    return ast.literal_eval(word)
  except (SyntaxError, ValueError):
    return word


def _without(suffix: str, names: str) -> dict[str, str]:
  """Names with a suffix -> the paper's names, which have none."""
  return {f'{name}{suffix}': name for name in names.split()}


def _algorithms(
  methods: Mapping[str, Mapping[str, Any]], names: Collection[str]
) -> dict[str, str]:
  """Names -> algorithms, as which the paper prints them."""
  return {n: methods[n]['algorithm'] for n in methods if n in names}


# CFFL. The paper gives its own learning rates only, which is what the baselines
# and the pretraining have here. Those of the authors' public code are columns
# of their own; its FedAvg on Adult has CFFL's rate.
_AUTHORS_RATES = {
  'mnist': {
    'standalone_authors_rate': 0.01,
    'fed_avg_authors_rate': 0.02,
    'dssgd_u0.1_authors_rate': 0.01,
    'dssgd_u1_authors_rate': 0.01,
  },
  'adult': {
    'standalone_authors_rate': 0.005,
    'dssgd_u0.1_authors_rate': 0.005,
    'dssgd_u1_authors_rate': 0.005,
  },
}
_PARTICIPANTS = (5, 10, 20)
_CFFL_SIZES = {
  f'{data}_p{number}': Cell(
    preset=f'cffl_{data}_size_p{number}',
    data=data,
    method_flags={
      method: {'client_learning_rate': rate} for method, rate in rates.items()
    },
  )
  for data, rates in _AUTHORS_RATES.items()
  for number in _PARTICIPANTS
}
_CFFL_METHODS = _methods("""
  standalone
  fed_avg                          round_robin_fed_avg
  dssgd_u0.1                       dssgd upload_rate=0.1
  dssgd_u1                         dssgd upload_rate=1.0
  cffl_pretrain_u0.1               cffl upload_rate=0.1 pretrain=True
  cffl_pretrain_u1                 cffl upload_rate=1.0 pretrain=True
  cffl_u0.1                        cffl upload_rate=0.1
  cffl_u1                          cffl upload_rate=1.0
  standalone_authors_rate          standalone
  fed_avg_authors_rate             round_robin_fed_avg
  dssgd_u0.1_authors_rate          dssgd upload_rate=0.1 clip_value=0.001
  dssgd_u1_authors_rate            dssgd upload_rate=1.0 clip_value=0.001
  cffl_pretrain_u0.1_authors_rate  cffl upload_rate=0.1 pretrain=True pretrain_learning_rate=0.005
  cffl_pretrain_u1_authors_rate    cffl upload_rate=1.0 pretrain=True pretrain_learning_rate=0.005
""")  # noqa: E501
_CFFL = {
  'references': {'standalone': Reference(flags={'algorithm': 'standalone'})},
  'percent': True,
}


def _cffl_methods(names: str) -> dict[str, dict[str, Any]]:
  return {name: _CFFL_METHODS[name] for name in names.split()}


# FeDABoost. `cohort_classes` has two options of an older state of the authors'
# public code; it is not that code. `sgd` is FeDABoost-1; on FEMNIST `fedaboost`
# is FeDABoost-2, by AdamW. Medians and variances are of the F1 over the labels
# that occur, as of scikit-learn, and over a client's own labels; the paper does
# not say which.
_FEDABOOST_METHODS = _methods("""
  fed_avg
  fed_avg_uniform             fed_avg uniform=True
  fedaboost
  fedaboost_without_boosting  fedaboost boosting=False
  fedaboost_cohort_classes    fedaboost class_count=cohort gamma_mode=constant
  ditto
""")
_FEDABOOST_SGD = _methods("""
  fedaboost_sgd  fedaboost client_optimizer=sgd client_learning_rate=1e-3 client_weight_decay=5e-4
""")  # noqa: E501
_FEDABOOST_MNIST = Cell(
  preset='fedaboost_mnist',
  data='mnist',
  methods=tuple(name for name in _FEDABOOST_METHODS if name != 'ditto'),
)
_FEDABOOST = {
  'printed_as': {'fedaboost_cohort_classes': 'fedaboost'},
  'metrics': _names(
    'global_f1 global_loss client_loss_mean global_f1_lead'
    ' rounds_ahead_of_fed_avg client_f1_median client_f1_own_labels_median'
    ' client_f1_variance client_f1_own_labels_variance'
  ),
  'references': {'fed_avg': Reference(flags={'algorithm': 'fed_avg'})},
  'percent': False,
}

# CoRe-Fed. FedAvg is neither in its table 1 nor in the figure of its ablation.
_COREFED_METHODS = _methods("""
  corefed
  ditto
  q_fed_avg
  fed_mgda
  fed_mdfg
  fed_rdn
  fed_avg
""")
# The other values of the paper's table 2, which does not say which of them are
# those of table 1; the presets have the first of each. Then what the paper does
# not have: `first_embedding` has what options can have of the authors' public
# code, and is not that code.
_COREFED_VARIANTS = _methods("""
  ditto_1                  ditto proximal_weight=1.0
  q_fed_avg_1              q_fed_avg q=1.0
  fed_mgda_1               fed_mgda deviation=1.0
  fed_mdfg_s3              fed_mdfg line_search_scale=3
  fed_mdfg_s1              fed_mdfg line_search_scale=1
  fed_avg_uniform          fed_avg uniform=True
  corefed_no_reuse         corefed gradient_reuse=False
  corefed_first_embedding  corefed gradient_reuse=False global_embedding=first embedding_of=global_batch fairness_exponent=0.0 distillation_rate=0.0
""")  # noqa: E501
_COREFED_FMNIST = Cell(preset='corefed_fmnist', data='fmnist')
_COREFED = {
  'metrics': (
    'client_accuracy_mean',
    'client_accuracy_variance',
    'parameters_d_cosine_degrees',
    *distances.COLUMNS,
  ),
  'percent': False,
  'seeds': 3,
}

# FedQuad. Two details that its paper leaves open, otherwise than by default.
# The partition is that of MOON's public code, whose paper it follows. The
# momentum is PyTorch's default.
_FEDQUAD_VARIANTS = {
  '': {},
  '_capped': {'balance_cap': True, 'min_samples': 10},
  '_momentum_09': {'model': 'cnn_fedquad_momentum_09'},
}
# The paper does not say whether its baselines also minimise cross-entropy; its
# numbers suggest that they do not. The tables have both versions.
_FEDQUAD_METHODS = _methods("""
  fed_avg
  fedquad
  moon
  supcon_fl
  triplet_fl
  quadruplet_fl
  supcon_fl_without_ce      supcon_fl use_ce=False
  triplet_fl_without_ce     triplet_fl use_ce=False
  quadruplet_fl_without_ce  quadruplet_fl use_ce=False
""")
_CENTRALISED_METHODS = _methods("""
  supervised  fed_avg
  supcon      supcon_fl use_ce=False
  triplet     triplet_fl use_ce=False
  quadruplet  quadruplet_fl use_ce=False
""")
_FEDQUAD = {'metrics': ('global_accuracy',), 'percent': True}
_FEDQUAD_COMPARISON = {
  **_FEDQUAD,
  'printed_as': _without('_without_ce', 'supcon_fl triplet_fl quadruplet_fl'),
  'figures': {'embeddings': ('fed_avg', 'fedquad')},
}


def _fedquad_comparison(number: int, data: str) -> Table:
  centralised = Cell(
    preset=f'fedquad_{data}_centralised',
    data=data,
    methods=tuple(_CENTRALISED_METHODS),
  )
  cells = _fedquad_cells(data, 'iid_c10 a03_c10 a05_c10')
  return Table(
    title=f'FedQuad, table {number}: accuracy with 10 clients',
    cells={**cells, f'{data}_centralised': centralised},
    methods={**_FEDQUAD_METHODS, **_CENTRALISED_METHODS},
    **_FEDQUAD_COMPARISON,
  )


def _fedquad_populations(number: int, data: str) -> Table:
  return Table(
    title=f'FedQuad, table {number}: accuracy with 10 and 200 clients',
    cells=_fedquad_cells(data, 'a05_c10 a05_c200'),
    methods=_FEDQUAD_METHODS,
    **_FEDQUAD_COMPARISON,
  )


def _fedquad_cells(data: str, settings: str) -> dict[str, Cell]:
  """The settings, and after them their variants."""
  return {
    f'{data}_{setting}{variant}': Cell(
      preset=f'fedquad_{data}_{setting}',
      data=data,
      methods=tuple(_FEDQUAD_METHODS),
      flags=flags,
    )
    for variant, flags in _FEDQUAD_VARIANTS.items()
    for setting in settings.split()
    # The cap is of Dirichlet's partition.
    if not (variant == '_capped' and setting.startswith('iid'))
  }


# FedAKD. CGSV, FedAVE and FedSAC have a variant that computes as the public
# scripts of FedAKD's authors do, and not as their own papers; the tables have
# both.
_FAIR_METHODS = _methods("""
  standalone
  fed_avg
  cffl
  cgsv
  fed_ave
  fed_sac
  fedakd
""")
_PERSONAL_METHODS = _methods("""
  pfed_ck
  fed_dc
  fed_as
  fed_mpr
""")
_SCRIPT_METHODS = _methods("""
  cgsv_script     cgsv variant=fedakd
  fed_ave_script  fed_ave variant=fedakd
  fed_sac_script  fed_sac variant=fedakd
""")
_FEDAKD_METHODS = {**_FAIR_METHODS, **_PERSONAL_METHODS, **_SCRIPT_METHODS}
_FEDAKD_PARTS = _methods("""
  fedakd
  fedakd_all_data     fedakd variant=all_data
  fedakd_single_dist  fedakd variant=single_dist
  fedakd_correct_agg  fedakd variant=correct_agg
""")
_EQUAL_TIME_FLAGS = presets.PRESETS['fedakd_ehr_equal_time'].methods
_EQUAL_TIME = {
  name: {
    **flags,
    'rounds': _EQUAL_TIME_FLAGS[flags['algorithm']]['rounds'],
  }
  for name, flags in _FEDAKD_METHODS.items()
  if name != 'standalone'
}
# How the authors' public scripts split, train and score, which differs between
# the methods; the paper's text has another protocol, that of table 1. A leak is
# there to tell what published numbers owe to it. The partition is that of table
# 1, not the scripts' (slices of half of the training file), and the scripts
# themselves have not been run. CGSV is scored by the clients' models, its
# rewards: a reward is the method's point.
_LAST_THREE = 'score_last=3 test_fraction=0.2 holdout_fraction=0.0'
_UNSEEN = f'{_LAST_THREE} rounds=20'
_TRAINED = f'{_LAST_THREE} rounds=30 test_leak=test_trains'
_PROTOCOLS = _methods(f"""
  standalone                     {_UNSEEN} client_optimizer=adam client_learning_rate=3e-4
  fed_avg                        {_UNSEEN}
  cgsv_own_protocol              cgsv variant=fedakd {_UNSEEN} test_leak=train_tests
  fedakd_own_protocol            fedakd order=up_down {_TRAINED} evaluate=global
  cgsv_fed_avg_protocol          cgsv variant=fedakd {_UNSEEN}
  fedakd_fed_avg_protocol        fedakd order=up_down {_UNSEEN} evaluate=global
  fedakd_local_fed_avg_protocol  fedakd order=up_down {_UNSEEN}
  fed_avg_fedakd_protocol        fed_avg {_TRAINED}
""")  # noqa: E501
_FEDAKD = {
  'references': _CFFL['references'],
  'percent': True,
  'seeds': 3,
}
_FEDAKD_METRICS = _names(
  'cf client_accuracy_max client_accuracy_mean below_standalone'
)
_FEDAKD_SCATTER = {'scatter': tuple(_FAIR_METHODS)[1:]}


def _fedakd_cells(preset: str, settings: str) -> dict[str, Cell]:
  return {
    f'{data}_{setting}': Cell(preset=f'{preset}_{name}_{setting}', data=data)
    for data, name in (('fmnist', 'fmnist'), ('cifar10', 'cifar'))
    for setting in settings.split()
  }


_SHIFTS = _fedakd_cells('fedakd', 'pow bcs ics2 ics5 ics10')


def _shared_draws(names: str) -> dict[str, Cell]:
  """Cells in which clients draw as Algorithm 2 prints it, from one pool."""
  return {
    f'{name}_shared': dataclasses.replace(
      _SHIFTS[name], flags={'shift_pool': 'shared'}, published_as=name
    )
    for name in names.split()
  }


def _records(
  title: str, cell: str, methods: Mapping[str, Mapping[str, Any]]
) -> Table:
  """A table on health records, which are not public."""
  return Table(
    title=f'FedAKD, table {title}, health records of 50 states',
    cells={cell: Cell(preset=f'fedakd_{cell}', data='ehr')},
    methods=methods,
    printed_as=_algorithms(methods, _SCRIPT_METHODS),
    metrics=_FEDAKD_METRICS,
    **_FEDAKD,
  )


STAND_INS = {'fmnist': 'mnist'}
"""Data -> replacement with the same size and number of images."""

TABLES: dict[str, Table] = {
  'fedaboost_text': Table(
    title=(
      'FeDABoost, experiments 1 and 2: the paper has words and figures only'
    ),
    cells={
      'mnist': _FEDABOOST_MNIST,
      # As in the authors' public preprocessing, a client has 64 examples or
      # more. Here the small clients get examples of the large ones; there they
      # are left out.
      'mnist_min64': dataclasses.replace(
        _FEDABOOST_MNIST, flags={'min_samples': 64, 'data_fraction': 0.6}
      ),
      'femnist_2': Cell(preset='fedaboost_femnist_2', data='femnist'),
    },
    methods={**_FEDABOOST_METHODS, **_FEDABOOST_SGD},
    **_FEDABOOST,
  ),
  'fedaboost_table1': Table(
    title='FeDABoost, table 1: CIFAR-10',
    cells={
      f'cifar_{share}': Cell(preset=f'fedaboost_cifar_{share}', data='cifar10')
      for share in (20, 40, 60)
    },
    methods=_FEDABOOST_METHODS,
    **_FEDABOOST,
  ),
  'cffl_table1': Table(
    title='CFFL, table 1: collaborative fairness',
    cells=_CFFL_SIZES,
    methods=_cffl_methods(
      'fed_avg dssgd_u0.1 dssgd_u1 cffl_pretrain_u0.1 cffl_pretrain_u1'
      ' cffl_u0.1 cffl_u1 fed_avg_authors_rate dssgd_u0.1_authors_rate'
      ' dssgd_u1_authors_rate cffl_pretrain_u0.1_authors_rate'
      ' cffl_pretrain_u1_authors_rate'
    ),
    printed_as=_without(
      '_authors_rate',
      'fed_avg dssgd_u0.1 dssgd_u1 cffl_pretrain_u0.1 cffl_pretrain_u1',
    ),
    metrics=('cf',),
    figures={
      'client_accuracy': _names(
        'cffl_pretrain_u0.1 cffl_pretrain_u1 cffl_u0.1 cffl_u1'
      ),
      'scatter': _names('fed_avg dssgd_u0.1 dssgd_u1 cffl_u0.1 cffl_u1'),
    },
    **_CFFL,
  ),
  'cffl_table2': Table(
    title='CFFL, table 2: maximum accuracy of the participants',
    cells=_CFFL_SIZES,
    # Figures 1 and 2 have theta_u 1, the paper's table has not.
    methods=_cffl_methods(
      'dssgd_u0.1 fed_avg standalone cffl_u0.1 cffl_pretrain_u0.1 cffl_u1'
      ' cffl_pretrain_u1 dssgd_u0.1_authors_rate fed_avg_authors_rate'
      ' standalone_authors_rate cffl_pretrain_u0.1_authors_rate'
    ),
    printed_as=_without(
      '_authors_rate', 'dssgd_u0.1 fed_avg cffl_pretrain_u0.1'
    ),
    # The paper's Standalone is the participant that is best in CFFL.
    metrics=_names(
      'client_accuracy_max standalone_accuracy_of_best above_standalone'
    ),
    figures={
      'client_accuracy': ('cffl_u0.1',),
      'scatter': _names('dssgd_u0.1 fed_avg cffl_u0.1 cffl_pretrain_u0.1'),
    },
    **_CFFL,
  ),
  'cffl_classes': Table(
    title='CFFL, imbalanced classes: the paper has figures only',
    cells={
      f'mnist_class_p{number}': Cell(
        preset=f'cffl_mnist_class_p{number}', data='mnist'
      )
      for number in _PARTICIPANTS
    },
    methods=_cffl_methods('standalone cffl_u0.1 cffl_u1'),
    metrics=_names('cf client_accuracy_max above_standalone'),
    figures=dict.fromkeys(
      ('client_accuracy', 'scatter'), ('cffl_u0.1', 'cffl_u1')
    ),
    **_CFFL,
  ),
  'cffl_freerider': Table(
    title='CFFL, a free rider: the paper has words only',
    cells={'mnist_p5': Cell(preset='cffl_freerider', data='mnist')},
    methods=_cffl_methods('cffl_u1'),
    metrics=_names(
      'isolation_round client_accuracy_mean client_accuracy_mean_without'
      ' client_accuracy_mean_change free_rider_accuracy'
    ),
    references={'without': Reference(preset='cffl_mnist_size_p5')},
    figures={'reputation': ('cffl_u1',)},
    percent=True,
  ),
  'corefed_table1': Table(
    title='CoRe-Fed, table 1: accuracy and fairness',
    cells={
      'fmnist': _COREFED_FMNIST,
      'cifar10': Cell(preset='corefed_cifar', data='cifar10'),
    },
    methods={**_COREFED_METHODS, **_COREFED_VARIANTS},
    printed_as=_algorithms(
      _COREFED_VARIANTS, {*_COREFED_VARIANTS} - {'fed_avg_uniform'}
    ),
    figures={'distances': tuple(_COREFED_METHODS)},
    **_COREFED,
  ),
  # The paper names neither the data nor the setting of the next two.
  'corefed_table3': Table(
    title='CoRe-Fed, table 3: contribution against alignment',
    cells={
      name: Cell(preset=f'corefed_{name}', data='fmnist')
      for name in ('tradeoff_a', 'tradeoff_b')
    },
    methods=_methods('corefed'),
    **_COREFED,
  ),
  'corefed_ablation': Table(
    title='CoRe-Fed, ablation: the paper has a figure only',
    cells={'fmnist': _COREFED_FMNIST},
    methods=_methods("""
      corefed  alignment=client
      cofed    corefed variant=cofed
      refed    corefed variant=refed alignment=client
      fed_avg
    """),
    figures={'distances': ('corefed', 'cofed', 'refed')},
    **_COREFED,
  ),
  'fedquad_table1': _fedquad_comparison(1, 'cifar10'),
  'fedquad_table2': _fedquad_populations(2, 'cifar10'),
  'fedquad_table3': _fedquad_comparison(3, 'cifar100'),
  'fedquad_table4': _fedquad_populations(4, 'cifar100'),
  'fedquad_table5': Table(
    title='FedQuad, table 5: weight and margins, 5 rounds, 10 clients, IID',
    cells={
      f'cifar10_{cell}': Cell(
        preset=f'fedquad_ablation_{preset}',
        data='cifar10',
        methods=_names(methods),
      )
      for cell, preset, methods in (
        ('beta0.5_m1.0_m1.0', 'b05_m1_m1', 'fedquad fedquad_without_ce'),
        ('beta0.5_m1.0_m0.5', 'b05_m1_m05', 'fedquad fedquad_without_ce'),
        ('beta1.0_m1.0_m0.5', 'b1_m1_m05', 'fedquad'),
        ('beta0.5_m2.0_m0.5', 'b05_m2_m05', 'fedquad_without_ce'),
        ('beta0.5_m5.0_m0.5', 'b05_m5_m05', 'fedquad_without_ce'),
      )
    },
    methods=_methods("""
      fedquad
      fedquad_without_ce  fedquad use_ce=False
    """),
    **_FEDQUAD,
  ),
  'fedakd_table1': Table(
    title='FedAKD, table 1: imbalanced covariate shift, local test data',
    cells={
      **_SHIFTS,
      **_shared_draws('fmnist_bcs fmnist_ics5 cifar10_bcs cifar10_ics5'),
    },
    methods=_FEDAKD_METHODS,
    printed_as=_algorithms(_FEDAKD_METHODS, _SCRIPT_METHODS),
    metrics=_FEDAKD_METRICS,
    figures=_FEDAKD_SCATTER,
    **_FEDAKD,
  ),
  'fedakd_protocols': Table(
    title=(
      "FedAKD, table 1 with splits, rounds and scores of the authors' scripts,"
      ' not their partition'
    ),
    cells={
      **{
        name: _SHIFTS[name]
        for name in _names('cifar10_pow cifar10_ics5 fmnist_pow fmnist_ics5')
      },
      **_shared_draws('cifar10_ics5 fmnist_ics5'),
    },
    methods=_PROTOCOLS,
    printed_as=_algorithms(
      _PROTOCOLS, {*_PROTOCOLS} - {'standalone', 'fed_avg'}
    ),
    published_as='fedakd_table1',
    metrics=_FEDAKD_METRICS[:3],
    **_FEDAKD
    | {'references': {'standalone': Reference(flags=_PROTOCOLS['standalone'])}},
  ),
  'fedakd_table2': _records('2: all methods', 'ehr', _FEDAKD_METHODS),
  'fedakd_table3': _records(
    '3: with equal time', 'ehr_equal_time', _EQUAL_TIME
  ),
  'fedakd_table4': _records('4: ablation', 'ehr', _FEDAKD_PARTS),
  'fedakd_table5': Table(
    title='FedAKD, table 5: one test set for all clients',
    cells=_fedakd_cells('fedakd_global', 'pow cla dir1 dir2 dir3'),
    methods={**_FAIR_METHODS, **_SCRIPT_METHODS},
    printed_as=_algorithms(_SCRIPT_METHODS, _SCRIPT_METHODS),
    metrics=_FEDAKD_METRICS[:2],
    figures=_FEDAKD_SCATTER,
    **_FEDAKD,
  ),
}
