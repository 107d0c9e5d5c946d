"""Trains one method on one task.

  python -m launchers.train --preset=fedaboost_digits

A preset fills all flags; flags given beside it override it. Run again with the
same flags, a run goes on after its last checkpoint and ends with the same
numbers as one that was never stopped. README.md describes the files it writes.
"""

import os
import pathlib
import signal
import sys

from absl import app
from absl import flags

from launchers import methods
from launchers import presets
from launchers import settings as settings_lib
import tasks

# Runtimes are listed here, too, so that --help need not import TensorFlow.
RUNTIMES = ('device', 'native')

FLAG_NAMES: list[str] = []


def _define(kind, name, default, help_text, **bounds):
  """Defines a flag of the given kind and remembers its name."""
  FLAG_NAMES.append(name)
  return getattr(flags, f'DEFINE_{kind}')(name, default, help_text, **bounds)


def _define_enum(name, default, values, help_text):
  FLAG_NAMES.append(name)
  return flags.DEFINE_enum(name, default, values, help_text)


# What to run.
_PRESET = _define_enum(
  'preset',
  None,
  sorted(presets.PRESETS),
  "A paper's experiment: fills every flag that is not given beside it.",
)
_define_enum(
  'algorithm', 'fedaboost', list(methods.METHOD_FLAGS), 'The method.'
)
_define_enum('task', 'digits', list(tasks.TASK_NAMES), 'The data and model.')
_define('integer', 'rounds', 20, 'Rounds of training.', lower_bound=1)
_define(
  'string',
  'output_dir',
  None,
  'Where the results go; the default is runs/PRESET/ALGORITHM.',
)
_define_enum(
  'runtime',
  'device',
  list(RUNTIMES),
  "device: this process, on its CPU or a GPU; native: TFF's own C++ worker.",
)
_define(
  'string',
  'device',
  'auto',
  'Runtime device: auto (the first GPU if there is one), cpu, or gpu:N.',
)
_define(
  'integer',
  'client_threads',
  None,
  'Runtime device: clients that train at once, the same numbers for any; the'
  ' default is one for each CPU core.',
  lower_bound=1,
)
_define(
  'integer', 'eval_every', 1, 'Rounds between evaluations.', lower_bound=1
)
_define(
  'integer',
  'checkpoint_every',
  10,
  'Rounds between checkpoints; the last round always has one.',
  lower_bound=1,
)
_define(
  'integer',
  'checkpoints_to_keep',
  3,
  'Number of latest checkpoints to keep.',
  lower_bound=1,
)
_define(
  'multi_string',
  'compare_with',
  [],
  'Output directory of another run, drawn beside this one; may be repeated.',
)

# Data.
_define(
  'string',
  'data_dir',
  None,
  "Folder with the data set's files; the default is the environment variable"
  ' TFF_FAIR_DATA_DIR, then the usual cache, then a download.',
)
_define(
  'integer',
  'num_clients',
  None,
  "Number of clients; the default is the task's.",
  lower_bound=1,
)
_define_enum(
  'partition',
  None,
  list(tasks.PARTITION_NAMES),
  "How examples are dealt to clients; the default is the task's.",
)
_define(
  'float',
  'dirichlet_alpha',
  None,
  'Concentration of the Dirichlet partition, positive: small is uneven; the'
  " default is the task's.",
)
_define(
  'float',
  'test_fraction',
  0.2,
  "Share of a client's examples that only evaluation sees.",
  lower_bound=0,
  upper_bound=1,
)
_define(
  'float',
  'holdout_fraction',
  0.1,
  "Share of the rest that is the client's validation part; at 0, methods that"
  ' need one take the training part.',
  lower_bound=0,
  upper_bound=1,
)

# Clients.
_define(
  'float',
  'client_fraction',
  1.0,
  'Share of the clients that take part in a round, above 0 and at most 1.',
)
_define('integer', 'local_epochs', 1, 'Epochs of a client.', lower_bound=1)
_define('integer', 'batch_size', 32, 'Examples a minibatch.', lower_bound=1)
_define_enum(
  'client_optimizer',
  'sgd',
  ['sgd', 'adam', 'adamw'],
  'Optimiser of clients, fresh each round; adamw decays decoupled.',
)
_define(
  'float',
  'client_learning_rate',
  0.01,
  'Learning rate of clients.',
  lower_bound=0,
)
_define(
  'float',
  'client_weight_decay',
  0.0,
  'Weight decay of clients.',
  lower_bound=0,
)
_define(
  'float',
  'learning_rate_decay',
  1.0,
  'Factor on every learning rate of clients, each round.',
  lower_bound=0,
)

# Seeds.
for _name, _help in (
  ('model_seed', 'Of the first weights.'),
  ('client_seed', 'Of the choice of clients, their permutations and dropout.'),
  ('data_seed', 'Of the partition.'),
):
  # The largest seed that NumPy's global generator takes.
  _define('integer', _name, 0, _help, lower_bound=0, upper_bound=2**32 - 1)

# FedAvg and Ditto.
_define('boolean', 'uniform', False, 'fedavg, ditto: all clients weigh alike.')

# Ditto.
_define(
  'float',
  'proximal_weight',
  0.1,
  'ditto: lambda, the pull of a personal model towards the global one.',
  lower_bound=0,
)
_define_enum(
  'personal_optimizer',
  'sgd',
  ['sgd', 'adam', 'adamw'],
  'ditto: optimiser of personal models.',
)
_define(
  'float',
  'personal_learning_rate',
  0.01,
  'ditto: learning rate of personal models.',
  lower_bound=0,
)
_define(
  'float',
  'personal_weight_decay',
  0.0,
  'ditto: weight decay of personal models.',
  lower_bound=0,
)

# FeDABoost.
_define(
  'boolean',
  'boosting',
  True,
  "fedaboost: adapt the focal loss; off is the paper's ablation.",
)
_define(
  'float',
  'boost_rate',
  0.01,
  'fedaboost: eta, the rate of the boost weights.',
  lower_bound=0,
)
_define(
  'float',
  'error_threshold',
  0.3,
  'fedaboost: clients with a larger error are boosted.',
  lower_bound=0,
  upper_bound=1,
)
_define(
  'float',
  'error_clip',
  1e-6,
  'fedaboost: errors are kept this far from 0 and 1.',
)
_define(
  'float',
  'initial_gamma',
  0.0,
  'fedaboost: first focusing parameter of every client.',
  lower_bound=0,
)
_define(
  'float',
  'max_gamma',
  5.0,
  'fedaboost: largest focusing parameter.',
  lower_bound=0,
)
_define('float', 'focal_weight', 1.0, 'fedaboost: factor on the focal loss.')
_define_enum(
  'class_count',
  'local',
  ['local', 'global'],
  "fedaboost: classes that alpha counts, the client's or the task's.",
)
_define_enum(
  'single_class',
  'exclude',
  ['exclude', 'floor2'],
  'fedaboost: a client of one class is left out, or counts as two classes.',
)
_define_enum(
  'fallback',
  'keep',
  ['keep', 'fedavg'],
  'fedaboost: the model, if no alpha is positive.',
)
_define(
  'integer',
  'weight_sign',
  -1,
  'fedaboost: sign in equation 8; 1 is the form of SAMME.',
)
_define_enum(
  'weight_init',
  'm0',
  ['m0', 'k'],
  'fedaboost: first weights, one by the cohort size or by the clients.',
)
_define_enum(
  'gamma_mode',
  'gated',
  ['gated', 'always'],
  'fedaboost: gamma grows above the error threshold only, or always.',
)

flags.register_validator(
  'client_fraction',
  lambda value: 0 < value <= 1,
  '--client_fraction must be above 0 and at most 1.',
)
flags.register_validator(
  'weight_sign',
  lambda value: value in (-1, 1),
  '--weight_sign must be -1 or 1.',
)


def main(argv: list[str]) -> None:
  """Runs the training that the flags describe."""
  if len(argv) > 1:
    sys.exit(f'Error: every argument must be a flag, found {argv[1]!r}.')
  try:
    settings = settings_lib.resolve(flags.FLAGS, FLAG_NAMES)
    output_dir = _output_dir(settings)
    text = settings_lib.to_text(settings, _PRESET.value)
    settings_lib.check_same_run(output_dir, text)
    settings_lib.check_finished(settings['compare_with'])
    settings_lib.make_writable(output_dir)
  except settings_lib.SettingsError as error:
    sys.exit(f'Error: {error}')
  # TensorFlow takes seconds to import: flags were checked before. Level 3
  # silences what it says of CUDA on machines without a GPU.
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  from launchers import training

  # A run that is told to end, saves its state, as after Ctrl-C.
  signal.signal(signal.SIGTERM, signal.default_int_handler)
  mistakes = (
    training.RunError,
    tasks.DataNotFoundError,
    tasks.DataDamagedError,
  )
  try:
    training.train(settings, output_dir, text)
  except mistakes as error:
    sys.exit(f'Error: {error}')


def _output_dir(settings) -> pathlib.Path:
  if settings['output_dir']:
    return pathlib.Path(settings['output_dir'])
  name = _PRESET.value or settings['task']
  return pathlib.Path('runs') / name / settings['algorithm']


if __name__ == '__main__':
  # Not `app.run`: TensorFlow, if imported after that, asks for its devices in
  # the middle of the import, and Keras then takes symbolic tensors for eager.
  app.define_help_flags()
  main(app.parse_flags_with_usage(sys.argv))
