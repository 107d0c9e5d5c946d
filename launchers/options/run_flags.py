"""The flags that all methods share: of the run, its data, clients and seeds."""

import dataclasses

from tff_fair import tasks
from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import presets
from tff_fair.launchers.options import stop_metrics
from tff_fair.launchers.options.methods import entry
from tff_fair.own_data import encoded
from tff_fair.tasks import covariate_shift
from tff_fair.tasks import partitions

# Runtimes are listed here, too, so that --help need not import TensorFlow.
RUNTIMES = ('device', 'native', 'cluster')

_WITHOUT_DEVICE = ({'runtime': 'native'}, {'runtime': 'cluster'})
_WITHOUT_CLUSTER = ({'runtime': 'device'}, {'runtime': 'native'})

_OPTIMIZERS = ('sgd', 'adam', 'adamw')
SERVER_OPTIMIZERS = ('sgd', 'adam', 'adagrad', 'yogi')

RUN = (
  flag_types.Choice(
    'preset',
    None,
    "An experiment of a paper. It sets all flags that are not given; a method's"
    ' own values are set for that method only.',
    choices=sorted(presets.PRESETS),
  ),
  flag_types.Choice(
    'algorithm', 'fedaboost', 'The method.', choices=methods.METHODS.keys()
  ),
  flag_types.Choice('task', 'digits', 'The data.', choices=tasks.TASK_NAMES),
  flag_types.Choice(
    'model',
    None,
    "The clients' model; the default is the task's.",
    choices=tasks.MODEL_NAMES,
  ),
  flag_types.Texts(
    'plugins',
    [],
    'Module that registers methods, data or models from outside this'
    ' repository, as an import statement names it; several with commas, or by'
    ' repetition. Installed packages that are plug-ins need no flag.',
  ),
  flag_types.Texts(
    'callbacks',
    [],
    'Class that is called when a run starts, after each round and at its end,'
    ' as an import statement names it; several with commas, or by repetition.',
  ),
  flag_types.Integer('rounds', 20, 'Number of training rounds.', minimum=1),
  flag_types.Text(
    'output_dir',
    None,
    'Directory of the results; the default is runs/PRESET/ALGORITHM.',
  ),
  flag_types.Choice(
    'runtime',
    'device',
    "device: this process, on its CPU or its GPUs; native: TFF's C++ worker;"
    ' cluster: worker processes of Ray, on this machine or on several.',
    choices=RUNTIMES,
  ),
  flag_types.Text(
    'device',
    'auto',
    'Devices of the runtime device: auto (the first GPU if there is one), cpu,'
    ' gpu:N, several as gpu:0,gpu:1, or all.',
    unless=_WITHOUT_DEVICE,
  ),
  flag_types.Integer(
    'client_threads',
    None,
    'Number of clients that the runtime device trains at the same time, which'
    ' does not change the results; the default is one for each CPU core.',
    minimum=1,
    unless=_WITHOUT_DEVICE,
  ),
  flag_types.Integer(
    'num_workers',
    2,
    'Number of workers of the runtime cluster, which does not change the'
    ' results.',
    minimum=1,
    unless=_WITHOUT_CLUSTER,
  ),
  flag_types.Integer(
    'cpus_per_worker',
    1,
    'CPU cores of each worker of the runtime cluster, and the number of clients'
    ' that it trains at the same time, which does not change the results.',
    minimum=1,
    unless=_WITHOUT_CLUSTER,
  ),
  flag_types.Integer(
    'gpus_per_worker',
    0,
    'GPUs of each worker of the runtime cluster.',
    minimum=0,
    unless=_WITHOUT_CLUSTER,
  ),
  flag_types.Text(
    'cluster_address',
    None,
    'Address of a running Ray that the runtime cluster joins, host:port, or'
    ' auto for one on this machine; by default it starts Ray here and ends it'
    ' with the run.',
    unless=_WITHOUT_CLUSTER,
  ),
  flag_types.Real(
    'worker_timeout',
    60.0,
    'Seconds after which a worker of the runtime cluster that does not answer'
    ' counts as lost.',
    above=0,
    maximum=1e6,
    unless=_WITHOUT_CLUSTER,
  ),
  flag_types.Integer(
    'eval_every', 1, 'Number of rounds between evaluations.', minimum=1
  ),
  flag_types.Integer(
    'score_last',
    None,
    "Number of last rounds over which a client's final accuracy is averaged, in"
    ' clients.csv and summary.json; these rounds are always evaluated. By'
    ' default it is the accuracy of the last round.',
    minimum=1,
  ),
  flag_types.Integer(
    'stop_after',
    None,
    'Number of evaluations in a row without a better --stop_metric after which'
    ' training ends; by default it goes on to the last round.',
    minimum=1,
  ),
  flag_types.Choice(
    'stop_metric',
    'client_accuracy_mean',
    'Column of metrics.csv that --stop_after looks at; of a loss or a variance'
    ' the lower value is better, of all others the higher one. All except'
    ' train_loss are measured on test data, so the scores of a run that they'
    ' stop are optimistic.',
    choices=stop_metrics.NAMES,
    unless=({'stop_after': None},),
  ),
  flag_types.Switch(
    'distances',
    False,
    'Evaluations measure D_cosine and D_manhattan of CoRe-Fed, table 1. For'
    " this the round's clients are trained once more.",
  ),
  flag_types.Integer(
    'checkpoint_every',
    10,
    'Number of rounds between checkpoints; the last round always has one.',
    minimum=1,
  ),
  flag_types.Integer(
    'checkpoints_to_keep',
    3,
    'Number of checkpoints to keep, the latest ones.',
    minimum=1,
  ),
  flag_types.Texts(
    'compare_with',
    [],
    'Output directory of another run, shown in the same plots; may be'
    ' repeated.',
  ),
  flag_types.Choice(
    'export',
    'global',
    'Keras models that a run writes at its end: the global model (model.keras);'
    ' all: also the model of each client that has its own (models/); none. The'
    ' same command writes them after a run, too, without training.',
    choices=('global', 'all', 'none'),
  ),
  flag_types.Switch(
    'dry_run',
    False,
    'Prints what the run needs, and trains and writes nothing: parameters, and'
    " bytes of the state, of a round's messages and of training.",
  ),
  flag_types.Real(
    'device_memory_gb',
    16.0,
    'Dry run: memory of a device in GB (10^9 bytes), for the number of clients'
    ' that can train on it at the same time.',
    above=0,
    unless=({'dry_run': False},),
  ),
)

DATA = (
  flag_types.Text(
    'data_dir',
    None,
    "Directory of the data set's files; the default is the environment variable"
    ' TFF_FAIR_DATA_DIR, then the usual cache, then a download.',
  ),
  flag_types.Text(
    'data_file',
    None,
    'Tasks table and arrays: your file, .csv or .parquet with a row for each'
    ' example, or .npz with the arrays x, y and client.',
  ),
  flag_types.Text(
    'client_column', None, 'Task table: the column that names the client.'
  ),
  flag_types.Text(
    'label_column', None, 'Task table: the column of the classes.'
  ),
  flag_types.Text(
    'feature_columns',
    None,
    'Task table: the columns of the features, separated by commas; the default'
    ' is all others.',
  ),
  flag_types.Choice(
    'missing_values',
    None,
    'Task table: rows with missing values end the program (refuse, the'
    ' default) or are left out (drop), or what is missing becomes a category,'
    ' or the mean and a feature, of its column (fill).',
    choices=encoded.MISSING_VALUES,
  ),
  flag_types.Integer(
    'num_clients',
    None,
    "Number of clients K, with the ids 0..K-1; the default is the task's.",
    symbol='K',
    argument='num_clients',
    minimum=1,
  ),
  flag_types.Choice(
    'partition',
    None,
    "How examples are divided among the clients; the default is the task's.",
    choices=tasks.PARTITION_NAMES,
  ),
  flag_types.Real(
    'dirichlet_alpha',
    None,
    'Partition dirichlet: concentration; the smaller, the more the clients'
    " differ. The default is the task's.",
    above=0,
  ),
  flag_types.Choice(
    'dirichlet_remainder',
    None,
    "Partition dirichlet: examples left over by rounding the clients' shares"
    ' are dealt (use) or left out (drop); the default is use.',
    choices=partitions.REMAINDERS,
  ),
  flag_types.Switch(
    'balance_cap',
    False,
    'Partition dirichlet: a client that has its equal share of all examples'
    ' gets none of the remaining classes.',
  ),
  flag_types.Integer(
    'min_samples',
    2,
    'Partition dirichlet: least number of examples of a client.',
    minimum=0,
  ),
  flag_types.Switch(
    'random_classes',
    False,
    'Partition class: the classes of a client are drawn at random; otherwise'
    ' they are the lowest ones.',
  ),
  flag_types.Choice(
    'shift_sizes',
    None,
    "Partition covariate_shift: the clients' numbers of examples; the default"
    ' is equal.',
    choices=covariate_shift.SIZES,
  ),
  flag_types.Choice(
    'shift_method',
    None,
    "Partition covariate_shift: examples are drawn around each client's point"
    ' (importance), or sorted by their first principal component (pc1_sort);'
    ' the default is importance.',
    choices=covariate_shift.METHODS,
  ),
  flag_types.Real(
    'shift',
    None,
    'Partition covariate_shift: squared Mahalanobis length of the shifts; the'
    ' default is 5.',
    above=0,
    maximum=covariate_shift.MAX_SHIFT,
  ),
  flag_types.Integer(
    'pca_dim',
    None,
    'Partition covariate_shift: number of principal components that are'
    ' shifted; the default is 10.',
    minimum=1,
  ),
  flag_types.Choice(
    'shift_weights',
    None,
    'Partition covariate_shift: weights of examples as printed in the paper'
    ' (density), or those of a shifted Gaussian (ratio); the default is'
    ' density.',
    choices=covariate_shift.WEIGHTS,
  ),
  flag_types.Choice(
    'shift_pool',
    'split',
    'Partition covariate_shift: no example that tests a client trains another'
    ' (split), or, as printed in the paper, all clients draw from one pool and'
    ' then split (shared).',
    choices=covariate_shift.POOLS,
  ),
  flag_types.Real(
    'data_fraction',
    1.0,
    'Share of the data that is used; with --split=server the test file is'
    ' always used whole.',
    above=0,
    maximum=1,
  ),
  flag_types.Integer(
    'num_examples',
    None,
    'Number of examples of all clients together; the default is all examples,'
    ' for the partition covariate_shift half of them.',
    minimum=1,
  ),
  flag_types.Choice(
    'split',
    'client',
    'Where the test data are. client: each client keeps a part of its own;'
    " server: the server scores every client's model on the test file, and"
    ' holds validation data.',
    choices=tasks.SPLIT_NAMES,
  ),
  flag_types.Real(
    'test_fraction',
    0.2,
    "Share of a client's examples that only evaluation uses; with"
    ' --split=server, share of all examples of a data set without a test'
    ' file.',
    minimum=0,
    maximum=1,
  ),
  flag_types.Real(
    'holdout_fraction',
    0.1,
    "Share of the rest that is the client's validation part; at 0, methods that"
    ' need one use the training part.',
    minimum=0,
    maximum=1,
  ),
  flag_types.Choice(
    'test_leak',
    None,
    'A leak, for control runs only: clients also train on their own test'
    ' examples (test_trains), or everything trains, and clients are tested on'
    ' the very examples that they train on (train_tests). The partition and the'
    ' test parts are those of a run without it. The default is no leak.',
    choices=tasks.TEST_LEAKS,
  ),
  flag_types.Real(
    'validation_fraction',
    None,
    "Share of the training file that is the server's validation data; the"
    ' default is 0.1.',
    minimum=0,
    maximum=1,
  ),
  flag_types.Real(
    'ehr_scale',
    None,
    'Task ehr without files: generated records as a share of the published'
    ' number; the default is 0.02.',
    above=0,
    maximum=1,
  ),
  flag_types.Integer(
    'max_events',
    None,
    'Task ehr: number of events of a record that are kept, the latest ones;'
    ' the default is 128.',
    minimum=1,
  ),
)

CLIENTS = (
  flag_types.Real(
    'client_fraction',
    1.0,
    'Share of the clients that take part in a round.',
    above=0,
    maximum=1,
  ),
  methods.SHARED['local_epochs'],
  methods.SHARED['batch_size'],
  flag_types.Choice(
    'client_optimizer',
    'sgd',
    "The clients' optimiser, reset at the start of every local training; adamw"
    ' is Adam with decoupled weight decay.',
    argument='client_optimizer',
    choices=_OPTIMIZERS,
  ),
  flag_types.Real(
    'client_learning_rate',
    0.01,
    "The clients' learning rate.",
    symbol='η',
    argument='client_optimizer',
    minimum=0,
  ),
  flag_types.Real(
    'client_weight_decay',
    0.0,
    "The clients' weight decay.",
    argument='client_optimizer',
    minimum=0,
  ),
  flag_types.Real(
    'learning_rate_decay',
    1.0,
    "Factor on all of the clients' learning rates after each round.",
    argument='client_learning_rate_fn',
    minimum=0,
  ),
  # No bound is 0 on the command line.
  dataclasses.replace(methods.SHARED['max_update_norm'], above=None, minimum=0),
  methods.SHARED['focal_gamma'],
)

SERVER = (
  flag_types.Choice(
    'server_optimizer',
    None,
    'Optimiser that applies the aggregated update to the global model; by'
    ' default the update is added as it is.',
    argument='server_optimizer',
    choices=SERVER_OPTIMIZERS,
  ),
  flag_types.Real(
    'server_learning_rate',
    1.0,
    'Learning rate of the server optimiser.',
    argument='server_optimizer',
    minimum=0,
    unless=({'server_optimizer': None},),
  ),
  methods.SHARED['robust'],
)

# The largest seed that NumPy's global generator takes.
_MAX_SEED = 2**32 - 1

SEEDS = (
  flag_types.Integer(
    'model_seed',
    0,
    'Seed of the initial weights of the model.',
    minimum=0,
    maximum=_MAX_SEED,
  ),
  flag_types.Integer(
    'client_seed',
    0,
    'Seed of the sampling of clients, their shuffles and dropout.',
    argument='seed',
    minimum=0,
    maximum=_MAX_SEED,
  ),
  flag_types.Integer(
    'data_seed', 0, 'Seed of the partition.', minimum=0, maximum=_MAX_SEED
  ),
)

# In the order in which `--help` shows them.
GROUPS = {
  'Run': RUN,
  'Data': DATA,
  'Clients': CLIENTS,
  'Server': SERVER,
  'Seeds': SEEDS,
}
FLAGS = {flag.name: flag for group in GROUPS.values() for flag in group}


def of_method(method: entry.Method) -> dict[str, flag_types.Flag]:
  """All flags that a method knows, its own and those that all share.

  Args:
    method: The method.

  Returns:
    Name -> flag, with the method's default.
  """
  shared = {
    name: dataclasses.replace(flag, default=method.defaults[name])
    if name in method.defaults
    else flag
    for name, flag in FLAGS.items()
  }
  return {**shared, **{flag.name: flag for flag in method.flags}}


def builder_arguments(method: entry.Method) -> list[str]:
  """The arguments with which the launchers call a method's builder.

  Args:
    method: The method.

  Returns:
    Names; none of an argument all of whose flags the method ignores.
  """
  own = {flag.name: flag.argument or flag.name for flag in method.flags}
  shared = {
    name: flag.argument
    for name, flag in FLAGS.items()
    if flag.argument and name not in own and method.ignores.get(name) != {}
  }
  arguments = (*shared.values(), *own.values(), *method.arguments)
  return list(dict.fromkeys(arguments))
