"""The flags of `launchers.train`.

They are defined on demand, not on import: the launchers share names of flags,
and `launchers.reproduce` resolves many commands without touching its own.
"""

from collections.abc import Sequence
import math
from typing import Any, NamedTuple

from absl import flags

from launchers.options import methods
from launchers.options import presets
import tasks
from tasks import covariate_shift
from tasks import partitions

# Runtimes are listed here, too, so that --help need not import TensorFlow.
RUNTIMES = ('device', 'native', 'remote')

_OPTIMIZERS = ('sgd', 'adam', 'adamw')


class _Flag(NamedTuple):
  """The arguments of absl's `DEFINE_<kind>`."""

  kind: str
  name: str
  default: Any
  help: str
  bounds: dict[str, Any]


def _flag(kind, name, default, help_text, **bounds) -> _Flag:
  return _Flag(kind, name, default, help_text, bounds)


def _enum(name, default, values, help_text) -> _Flag:
  return _flag('enum', name, default, help_text, enum_values=list(values))


def _seed(name, help_text) -> _Flag:
  # The largest seed that NumPy's global generator takes.
  return _flag(
    'integer', name, 0, help_text, lower_bound=0, upper_bound=2**32 - 1
  )


_RUN = (
  _enum(
    'preset',
    None,
    sorted(presets.PRESETS),
    "A paper's experiment: fills every flag that is not given beside it.",
  ),
  _enum('algorithm', 'fedaboost', methods.METHOD_FLAGS, 'The method.'),
  _enum('task', 'digits', tasks.TASK_NAMES, 'The data.'),
  _enum(
    'model',
    None,
    tasks.MODEL_NAMES,
    "The clients' model; the default is the task's.",
  ),
  _flag('integer', 'rounds', 20, 'Rounds of training.', lower_bound=1),
  _flag(
    'string',
    'output_dir',
    None,
    'Where the results go; the default is runs/PRESET/ALGORITHM.',
  ),
  _enum(
    'runtime',
    'device',
    RUNTIMES,
    "device: this process, on its CPU or a GPU; native: TFF's own C++ worker;"
    ' remote: such workers on other machines.',
  ),
  _flag(
    'string',
    'workers',
    None,
    'Runtime remote: host:port,... of workers, started by launchers.worker.',
  ),
  _flag(
    'string',
    'device',
    'auto',
    'Runtime device: auto (the first GPU if there is one), cpu, or gpu:N.',
  ),
  _flag(
    'integer',
    'client_threads',
    None,
    'Runtime device: clients that train at once, the same numbers for any; the'
    ' default is one for each CPU core.',
    lower_bound=1,
  ),
  _flag(
    'integer', 'eval_every', 1, 'Rounds between evaluations.', lower_bound=1
  ),
  _flag(
    'boolean',
    'distances',
    False,
    "Evaluations measure D_cosine and D_manhattan of CoRe-Fed's table 1, for"
    " which that round's clients train once more.",
  ),
  _flag(
    'integer',
    'checkpoint_every',
    10,
    'Rounds between checkpoints; the last round always has one.',
    lower_bound=1,
  ),
  _flag(
    'integer',
    'checkpoints_to_keep',
    3,
    'Number of latest checkpoints to keep.',
    lower_bound=1,
  ),
  _flag(
    'multi_string',
    'compare_with',
    [],
    'Output directory of another run, drawn beside this one; may be repeated.',
  ),
)

_DATA = (
  _flag(
    'string',
    'data_dir',
    None,
    "Folder with the data set's files; the default is the environment variable"
    ' TFF_FAIR_DATA_DIR, then the usual cache, then a download.',
  ),
  _flag(
    'integer',
    'num_clients',
    None,
    "Number of clients; the default is the task's.",
    lower_bound=1,
  ),
  _enum(
    'partition',
    None,
    tasks.PARTITION_NAMES,
    "How examples are dealt to clients; the default is the task's.",
  ),
  _flag(
    'float',
    'dirichlet_alpha',
    None,
    'Concentration of the Dirichlet partition, positive: small is uneven; the'
    " default is the task's.",
  ),
  _enum(
    'dirichlet_remainder',
    None,
    partitions.REMAINDERS,
    'Dirichlet partition: what the rounding of shares leaves over is dealt, or'
    ' left out; the default is use.',
  ),
  _flag(
    'boolean',
    'balance_cap',
    False,
    'Dirichlet partition: a client that holds its equal share of all examples'
    ' gets none of the classes dealt after that.',
  ),
  _flag(
    'integer',
    'min_samples',
    2,
    'Dirichlet partition: least number of examples of a client.',
    lower_bound=0,
  ),
  _enum(
    'shift_sizes',
    None,
    covariate_shift.SIZES,
    "Covariate-shift partition: the clients' numbers of examples; the default"
    ' is equal.',
  ),
  _enum(
    'shift_method',
    None,
    covariate_shift.METHODS,
    "Covariate-shift partition: examples are drawn around each client's point,"
    ' or sorted by their first principal component; the default is importance.',
  ),
  _flag(
    'float',
    'shift',
    None,
    'Covariate-shift partition: squared Mahalanobis length of the shifts,'
    ' positive; the default is 5.',
    lower_bound=0,
  ),
  _flag(
    'integer',
    'pca_dim',
    None,
    'Covariate-shift partition: principal components that are shifted; the'
    ' default is 10.',
    lower_bound=1,
  ),
  _enum(
    'shift_weights',
    None,
    covariate_shift.WEIGHTS,
    'Covariate-shift partition: the weights of examples as printed, or those of'
    ' a shifted Gaussian; the default is density.',
  ),
  _flag(
    'float',
    'data_fraction',
    1.0,
    'Share of the data that is used, above 0 and at most 1; with --split=server'
    ' a test file is used whole all the same.',
  ),
  _flag(
    'integer',
    'num_examples',
    None,
    'Examples dealt to all clients together; the default is all there are, for'
    ' the covariate-shift partition half of them.',
    lower_bound=1,
  ),
  _enum(
    'split',
    'client',
    tasks.SPLIT_NAMES,
    'Where the test data are: client, each keeps its own part of the pooled'
    " files; server, it scores every client's model on the test file, and"
    ' holds validation data.',
  ),
  _flag(
    'float',
    'test_fraction',
    0.2,
    "Share of a client's examples that only evaluation sees; with"
    ' --split=server, of all examples of a data set without a test file.',
    lower_bound=0,
    upper_bound=1,
  ),
  _flag(
    'float',
    'holdout_fraction',
    0.1,
    "Share of the rest that is the client's validation part; at 0, methods that"
    ' need one take the training part.',
    lower_bound=0,
    upper_bound=1,
  ),
  _flag(
    'float',
    'validation_fraction',
    None,
    "Share of the training file that is the server's validation data; the"
    ' default is 0.1.',
    lower_bound=0,
    upper_bound=1,
  ),
  _flag(
    'float',
    'ehr_scale',
    None,
    'ehr: share of the published numbers of records that is generated where'
    ' there are no files, above 0; the default is 0.02.',
    lower_bound=0,
    upper_bound=1,
  ),
  _flag(
    'integer',
    'max_events',
    None,
    'ehr: number of latest events of a record that are kept; the default is'
    ' 128.',
    lower_bound=1,
  ),
)

_CLIENTS = (
  _flag(
    'float',
    'client_fraction',
    1.0,
    'Share of the clients that take part in a round, above 0 and at most 1.',
  ),
  _flag('integer', 'local_epochs', 1, 'Epochs of a client.', lower_bound=1),
  _flag('integer', 'batch_size', 32, 'Examples a minibatch.', lower_bound=1),
  _enum(
    'client_optimizer',
    'sgd',
    _OPTIMIZERS,
    'Optimiser of clients, fresh each round; adamw decays decoupled.',
  ),
  _flag(
    'float',
    'client_learning_rate',
    0.01,
    'Learning rate of clients.',
    lower_bound=0,
  ),
  _flag(
    'float',
    'client_weight_decay',
    0.0,
    'Weight decay of clients.',
    lower_bound=0,
  ),
  _flag(
    'float',
    'learning_rate_decay',
    1.0,
    'Factor on every learning rate of clients, each round.',
    lower_bound=0,
  ),
)

_SEEDS = (
  _seed('model_seed', 'Of the first weights.'),
  _seed(
    'client_seed', 'Of the choice of clients, their permutations and dropout.'
  ),
  _seed('data_seed', 'Of the partition.'),
)

_FED_AVG_AND_DITTO = (
  _flag(
    'boolean',
    'uniform',
    False,
    'fed_avg, fed_prox, ditto: all clients weigh alike.',
  ),
  _flag(
    'float',
    'proximal_weight',
    0.1,
    'ditto: lambda, the pull of a personal model towards the global one;'
    ' fed_prox: mu, that of a local model (there the default is 0.01).',
    lower_bound=0,
  ),
  _enum(
    'personal_optimizer',
    'sgd',
    _OPTIMIZERS,
    'ditto: optimiser of personal models.',
  ),
  _flag(
    'float',
    'personal_learning_rate',
    0.01,
    'ditto: learning rate of personal models.',
    lower_bound=0,
  ),
  _flag(
    'float',
    'personal_weight_decay',
    0.0,
    'ditto: weight decay of personal models.',
    lower_bound=0,
  ),
)

_FEDABOOST = (
  _flag(
    'boolean',
    'boosting',
    True,
    "fedaboost: adapt the focal loss; off is the paper's ablation.",
  ),
  _flag(
    'float',
    'boost_rate',
    0.01,
    'fedaboost: eta, the rate of the boost weights.',
    lower_bound=0,
  ),
  _flag(
    'float',
    'error_threshold',
    0.3,
    'fedaboost: clients with a larger error are boosted.',
    lower_bound=0,
    upper_bound=1,
  ),
  _flag(
    'float',
    'error_clip',
    1e-6,
    'fedaboost: errors are kept this far from 0 and 1.',
  ),
  _flag(
    'float',
    'initial_gamma',
    0.0,
    'fedaboost: first focusing parameter of every client.',
    lower_bound=0,
  ),
  _flag(
    'float',
    'max_gamma',
    5.0,
    'fedaboost: largest focusing parameter.',
    lower_bound=0,
  ),
  _flag('float', 'focal_weight', 1.0, 'fedaboost: factor on the focal loss.'),
  _enum(
    'class_count',
    'local',
    ('local', 'global'),
    "fedaboost: classes that alpha counts, the client's or the task's.",
  ),
  _enum(
    'single_class',
    'exclude',
    ('exclude', 'floor2'),
    'fedaboost: a client of one class is left out, or counts as two classes.',
  ),
  _enum(
    'fallback',
    'keep',
    ('keep', 'fed_avg'),
    'fedaboost: the model, if no alpha is positive.',
  ),
  _flag(
    'integer',
    'weight_sign',
    -1,
    'fedaboost: sign in equation 8; 1 is the form of SAMME.',
  ),
  _enum(
    'weight_init',
    'm0',
    ('m0', 'k'),
    'fedaboost: first weights, one by the cohort size or by the clients.',
  ),
  _enum(
    'gamma_mode',
    'gated',
    ('gated', 'always'),
    'fedaboost: gamma grows above the error threshold only, or always.',
  ),
)

_DSSGD_AND_CFFL = (
  _flag(
    'float',
    'upload_rate',
    1.0,
    'dssgd, cffl: theta_u, the share of its update that a client uploads,'
    ' above 0 and at most 1.',
  ),
  _flag(
    'float',
    'clip_value',
    0.01,
    'dssgd, cffl: bound of each number of an update; with --clip_mode=norm,'
    ' of its norm.',
    lower_bound=0,
  ),
)

_CFFL = (
  _enum(
    'scenario',
    'size',
    ('size', 'class'),
    'cffl: what a client contributes, its number of examples or of classes.',
  ),
  _flag(
    'boolean',
    'pretrain',
    False,
    'cffl: clients train alone before the first round.',
  ),
  _flag(
    'integer',
    'pretrain_epochs',
    5,
    'cffl: epochs of that training.',
    lower_bound=1,
  ),
  _flag(
    'float',
    'punishment_factor',
    5.0,
    'cffl: alpha in the reputation sinh(alpha * x).',
    lower_bound=0,
  ),
  _flag(
    'float',
    'history_weight',
    0.5,
    'cffl, cgsv, fed_ave: share of the last reputation in the new one (for cgsv'
    ' the default is 0.95, for fed_ave 0.9).',
    lower_bound=0,
    upper_bound=1,
  ),
  _enum(
    'clip_mode',
    'value',
    ('value', 'norm'),
    'cffl: what --clip_value bounds, each number or the norm of an update.',
  ),
  _flag(
    'float',
    'threshold_absolute',
    None,
    'cffl: clients of a lower reputation are isolated; the default is a third'
    ' (size) or a sixth (class) of the mean reputation.',
    lower_bound=0,
    upper_bound=1,
  ),
  _enum(
    'agg_norm',
    'paper',
    ('paper', 'sum', 'max'),
    'cffl: divisor of the aggregation weights; paper: the sum (size) or the'
    ' largest (class).',
  ),
  _enum(
    'own_share',
    'paper',
    ('paper', 'aggregation'),
    "cffl: share of a client's upload that is taken out of its allocation, as"
    ' printed or as aggregated.',
  ),
  _flag(
    'boolean',
    'normalize_before_mixing',
    False,
    'cffl: normalise the new reputations before the old ones are mixed in.',
  ),
  _enum(
    'isolation',
    'once',
    ('once', 'cascade'),
    'cffl: one pass of removal a round, or passes until nobody falls.',
  ),
  _enum(
    'after_isolation',
    'frozen',
    ('frozen', 'standalone'),
    'cffl: what an isolated client does, nothing or train alone.',
  ),
  _enum(
    'ties',
    'index',
    ('index', 'preclip', 'keep'),
    'cffl: among numbers of equal magnitude, the first are uploaded, or those'
    ' that were larger before clipping, or all.',
  ),
  _flag(
    'integer',
    'free_riders',
    0,
    'cffl: clients without data, beside the others, that upload noise.',
    lower_bound=0,
  ),
  _enum(
    'free_rider_kind',
    'uniform',
    ('uniform', 'gaussian', 'zero'),
    'cffl: the noise that they upload.',
  ),
)

_COREFED = (
  _enum(
    'variant',
    'corefed',
    (
      *('corefed', 'cofed', 'refed'),
      *('full', 'all_data', 'single_dist', 'correct_agg'),
      *('original', 'fedakd'),
    ),
    'corefed: the whole method, or of the ablation its contribution-aware'
    ' aggregation (cofed) or its representation alignment (refed) alone;'
    " fedakd: full, the default, or one of the ablation; its paper's"
    ' baselines: original, the default, or as the script of that paper.',
  ),
  _enum(
    'alignment',
    'server',
    ('server', 'client'),
    'corefed: where embeddings are aligned, in the scores at the server as'
    " printed, or also in the clients' loss.",
  ),
  _flag(
    'boolean',
    'gradient_reuse',
    True,
    'corefed: absent clients that took part lately count with their last'
    ' gradients.',
  ),
  _flag(
    'boolean',
    'include_positive',
    False,
    'corefed: the positive pair is also in the denominator of the contrastive'
    ' loss.',
  ),
  _flag(
    'float',
    'gamma',
    0.5,
    'corefed: exponent of the inverse participation frequency.',
    lower_bound=0,
  ),
  _flag(
    'float',
    'sharpness',
    2.0,
    'corefed: k, the slope of the sigmoid of the alignment score.',
    lower_bound=0,
  ),
  _flag(
    'float',
    'beta',
    0.5,
    'corefed: how far an embedding is moved to its alignment vector.',
    lower_bound=0,
    upper_bound=1,
  ),
  _flag(
    'float',
    'temperature',
    0.07,
    'corefed, supcon_fl, moon: of the contrastive loss, positive (for moon the'
    ' default is 0.5).',
    lower_bound=0,
  ),
  _flag(
    'float',
    'contrastive_weight',
    0.1,
    "corefed, moon: factor on the contrastive loss in the clients' loss (for"
    ' moon the default is 5).',
    lower_bound=0,
  ),
  _flag(
    'float',
    'distillation_weight',
    0.1,
    "corefed: factor on the distance to the refined embedding in the clients'"
    ' loss.',
    lower_bound=0,
  ),
)

_BASELINES_OF_COREFED = (
  _flag(
    'float',
    'q',
    0.1,
    'q_fed_avg: exponent of the losses; 0 weighs all clients alike.',
    lower_bound=0,
  ),
  _flag(
    'float',
    'deviation',
    1.0,
    "fed_mgda: epsilon, how far a client's weight may be from its share of the"
    ' examples.',
    lower_bound=0,
    upper_bound=1,
  ),
  _flag(
    'float',
    'angle',
    math.pi / 180,
    'fed_mdfg: theta (radians), the angle between the losses and equal ones'
    ' above which fairness is an objective.',
    lower_bound=0,
  ),
  _flag(
    'integer',
    'line_search_scale',
    1,
    'fed_mdfg: s, the line search starts at 2^s times the learning rate.',
    lower_bound=0,
  ),
)

_FEDQUAD_AND_ITS_BASELINES = (
  _flag(
    'float',
    'quadruplet_weight',
    0.5,
    'fedquad: beta, factor on the quadruplet loss.',
    lower_bound=0,
  ),
  _flag(
    'float',
    'metric_weight',
    0.5,
    'supcon_fl, triplet_fl, quadruplet_fl: factor on the metric loss.',
    lower_bound=0,
  ),
  _flag(
    'float',
    'margin',
    1.0,
    'triplet_fl: how much farther off than the positive a negative is to be.',
    lower_bound=0,
  ),
  _flag(
    'float',
    'margin_1',
    1.0,
    'fedquad, quadruplet_fl: margin of the first negative.',
    lower_bound=0,
  ),
  _flag(
    'float',
    'margin_2',
    0.5,
    'fedquad, quadruplet_fl: margin of the second negative.',
    lower_bound=0,
  ),
  _flag(
    'boolean',
    'squared',
    False,
    'fedquad: distances are squared, as in Algorithm 1.',
  ),
  _flag(
    'boolean',
    'use_ce',
    True,
    'fedquad, supcon_fl, triplet_fl, quadruplet_fl: cross-entropy is part of'
    " the clients' loss; without it the nearest class centroid classifies.",
  ),
  _enum(
    'resample',
    'epoch',
    ('epoch', 'once'),
    'fedquad, triplet_fl, quadruplet_fl: tuples are drawn for each epoch, or'
    ' once a round.',
  ),
)

_FEDAKD = (
  _flag(
    'float',
    'down_weight',
    1.0,
    'fedakd: alpha, factor on the distillation from the global into the'
    " client's model.",
    lower_bound=0,
  ),
  _flag(
    'float',
    'up_weight',
    1.0,
    "fedakd: beta, factor on the distillation from the client's into the global"
    ' model.',
    lower_bound=0,
  ),
  _flag(
    'float',
    'distillation_temperature',
    1.0,
    'fedakd, pfed_ck: of the softmax in the distillation loss, positive.',
    lower_bound=0,
  ),
  _enum(
    'order',
    'down_up',
    ('down_up', 'up_down'),
    'fedakd: which model is taught first in a round, as in the paper or as in'
    ' its public code.',
  ),
  _enum(
    'granularity',
    'epochs',
    ('epochs', 'single_step'),
    'fedakd: a phase is the local epochs, or one step on all examples.',
  ),
  _enum(
    'evaluate',
    'local',
    ('local', 'global'),
    'fedakd: the model by which a client is scored.',
  ),
  _flag(
    'float',
    'focal_gamma',
    0.0,
    'fedakd, its baselines, cffl, fed_avg, standalone: focusing parameter of'
    " the clients' loss; 0 is cross-entropy.",
    lower_bound=0,
  ),
)

_BASELINES_OF_FEDAKD = (
  _flag(
    'float',
    'server_learning_rate',
    1.0,
    'scaffold: eta_g, factor on the mean update.',
    lower_bound=0,
  ),
  _flag(
    'float',
    'update_length',
    0.5,
    'cgsv, fed_ave: Gamma, the length to which updates are scaled.',
    lower_bound=0,
  ),
  _flag(
    'float',
    'altruism',
    1.0,
    'cgsv, fed_ave: b; the larger, the more of the aggregate everybody gets.',
    lower_bound=0,
  ),
  _flag(
    'float',
    'upload_fraction',
    0.5,
    'fed_ave, as the script: share of an update that is sent, above 0.',
    lower_bound=0,
    upper_bound=1,
  ),
  _flag(
    'float',
    'download_base',
    0.3,
    'fed_ave, as the script: least share of the aggregate that a client gets.',
    lower_bound=0,
    upper_bound=1,
  ),
  _flag(
    'float',
    'contribution_sharpness',
    2.0,
    'fed_sac: beta; the larger, the smaller the submodels of those who'
    ' contribute less.',
    lower_bound=0,
  ),
  _flag(
    'integer',
    'importance_every',
    10,
    'fed_sac: rounds between two ratings of the neurons.',
    lower_bound=1,
  ),
  _flag(
    'integer',
    'mid_round',
    15,
    'fed_sac, as the script: the round, from 0, of submodels.',
    lower_bound=0,
  ),
  _flag(
    'float',
    'knowledge_weight',
    1.0,
    'pfed_ck: a, factor on the divergence of the two models.',
    lower_bound=0,
  ),
  _flag(
    'float',
    'feature_weight',
    1.0,
    'pfed_ck: b, factor on the squared difference of their embeddings.',
    lower_bound=0,
  ),
  _flag(
    'integer',
    'num_clusters',
    3,
    'pfed_ck: clusters of clients.',
    lower_bound=1,
  ),
  _flag(
    'float',
    'drift_weight',
    1.0,
    'fed_dc: alpha, factor on the quadratic term of the drift.',
    lower_bound=0,
  ),
  _flag(
    'boolean',
    'grad_correction',
    True,
    'fed_dc: the loss has the term of the mean gradient.',
  ),
  _flag(
    'float',
    'alignment_learning_rate',
    0.01,
    'fed_as: learning rate of the alignment, positive.',
    lower_bound=0,
  ),
  _flag(
    'integer',
    'alignment_batch_size',
    16,
    'fed_as: examples a minibatch of the alignment.',
    lower_bound=1,
  ),
  _flag(
    'float',
    'prune_fraction',
    0.1,
    'fed_mpr: rho, share of the weights that become 0, below 1.',
    lower_bound=0,
    upper_bound=1,
  ),
  _flag(
    'integer',
    'prune_stages',
    1,
    'fed_mpr: last epochs after which weights are pruned.',
    lower_bound=1,
  ),
)

_FLAGS = (
  *_RUN,
  *_DATA,
  *_CLIENTS,
  *_SEEDS,
  *_FED_AVG_AND_DITTO,
  *_FEDABOOST,
  *_DSSGD_AND_CFFL,
  *_CFFL,
  *_COREFED,
  *_BASELINES_OF_COREFED,
  *_FEDQUAD_AND_ITS_BASELINES,
  *_FEDAKD,
  *_BASELINES_OF_FEDAKD,
)

FLAG_NAMES = tuple(flag.name for flag in _FLAGS)
# Those that describe a task.
DATA_FLAG_NAMES = ('task', *(flag.name for flag in _DATA), 'data_seed')


def define_flags(
  flag_values: flags.FlagValues, names: Sequence[str] = FLAG_NAMES
) -> None:
  """Defines the flags of `launchers.train`, or some of them.

  Args:
    flag_values: Where to define them.
    names: The flags to define.
  """
  for flag in _FLAGS:
    if flag.name not in names:
      continue
    getattr(flags, f'DEFINE_{flag.kind}')(
      name=flag.name,
      default=flag.default,
      help=flag.help,
      flag_values=flag_values,
      **flag.bounds,
    )
  for name in {'client_fraction', 'upload_rate', 'data_fraction'} & {*names}:
    flags.register_validator(
      name,
      lambda value: 0 < value <= 1,
      f'--{name} must be above 0 and at most 1.',
      flag_values=flag_values,
    )
  if 'weight_sign' in names:
    flags.register_validator(
      'weight_sign',
      lambda value: value in (-1, 1),
      '--weight_sign must be -1 or 1.',
      flag_values=flag_values,
    )


def parse(arguments: list[str]) -> flags.FlagValues:
  """Parses a command's arguments, apart from this process's own flags.

  Args:
    arguments: The command line after `python -m launchers.train`.

  Returns:
    The parsed flags.

  Raises:
    flags.Error: If there is no such flag, or a value is out of range.
  """
  flag_values = flags.FlagValues()
  define_flags(flag_values)
  flag_values(['launchers.train', *arguments])
  return flag_values
