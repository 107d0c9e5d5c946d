"""Measures how long a round takes, ours beside others in the same process.

  python -m launchers.benchmark --works=A,fedaboost --against=stock

The contenders of a work take turns, a round each, so that whatever else the
machine does slows all of them. The works:

  A           FedAvg, a perceptron on 784 numbers, 10 clients
  B           FedAvg, a convolutional net on 32x32x3 images, 20 clients
  table       only the client table: 100 rows of a million numbers, 20 clients
  fedaboost   FeDABoost beside FedAvg, work A's model and clients
  cffl        CFFL beside FedAvg, work A's model, 20 clients, 6,000 to validate
  corefed_cnn CoRe-Fed beside FedAvg, its CIFAR-10 model, 20 of 100 clients
  corefed_mlp the same, its perceptron
  fedquad     FedQuad and its baselines beside FedAvg, its model, 4 clients
  fedakd      FedAKD beside FedAvg, its CIFAR-10 model, 10 clients
  quadruplets drawing them for 50,000 labels, beside an epoch of 1,024 images
  population  FeDABoost, 10 clients out of 10,000 beside 10 out of 100
  start       work A from the start of Python to the end of round 1

The contenders of A, B, table and start: `device`, `native` and `remote`, ours
on these runtimes, the last with two workers on this machine and not for start;
and `stock`, TFF's own FedAvg on TFF's worker. The work `table` takes some ten
seconds a round and several GB on that worker.

Prints a table, and writes it to benchmark.csv; that of `start`, to start.csv.
Both replace what an earlier run has written to the same directory.
"""

import os
import pathlib
import sys

from absl import app
from absl import flags

from launchers.options import settings

# Work -> the function of `launchers.timing.workloads`. It is given by name, so
# that --help need not import TensorFlow.
WORKS = {
  'A': 'fed_avg_mlp',
  'B': 'fed_avg_cnn',
  'table': 'client_table',
  'fedaboost': 'fedaboost',
  'cffl': 'cffl',
  'corefed_cnn': 'corefed_cnn',
  'corefed_mlp': 'corefed_mlp',
  'fedquad': 'fedquad',
  'fedakd': 'fedakd',
  'quadruplets': 'quadruplets',
  'population': 'population',
}
# Timed in processes of its own, so not one of the others.
_START = 'start'
_REMOTE = 'remote'
_OURS, _REFERENCES = 'device', ('stock', 'native', _REMOTE)
# The first two rounds, which compile and warm up, are not counted.
_LEAST_ROUNDS = 3


def define_flags(flag_values: flags.FlagValues) -> None:
  """Defines the flags of this launcher.

  Not on import: the launchers share names of flags, and a test may import all
  of them.

  Args:
    flag_values: Where to define them.
  """
  flags.DEFINE_list(
    'works',
    [*WORKS, _START],
    'What to time.',
    flag_values=flag_values,
  )
  flags.DEFINE_list(
    'against',
    ['stock'],
    f'Contenders beside {_OURS}, out of {", ".join(_REFERENCES)}; the first is'
    ' the reference.',
    flag_values=flag_values,
  )
  flags.DEFINE_integer(
    'rounds',
    10,
    f'Rounds of each contender, at least {_LEAST_ROUNDS}; the first'
    f' {_LEAST_ROUNDS - 1} are not counted.',
    flag_values=flag_values,
  )
  flags.DEFINE_integer(
    'client_threads',
    None,
    'Runtime device: clients that train at once; the default is one for each'
    ' CPU core.',
    lower_bound=1,
    flag_values=flag_values,
  )
  flags.DEFINE_string(
    'device',
    'auto',
    'Runtime device: auto (the first GPU if there is one), cpu, or gpu:N.',
    flag_values=flag_values,
  )
  flags.DEFINE_string(
    'output_dir',
    'runs/benchmark',
    'Where the results go.',
    flag_values=flag_values,
  )


def main(argv: list[str], flag_values: flags.FlagValues = flags.FLAGS) -> None:
  """Times the works that the flags name.

  Args:
    argv: What is left of the command line: the program's name.
    flag_values: The parsed flags of `define_flags`.
  """
  if len(argv) > 1:
    sys.exit(f'Error: every argument must be a flag, found {argv[1]!r}.')
  works = _names(flag_values, 'works', (*WORKS, _START))
  # The reference comes first.
  contenders = [*_names(flag_values, 'against', _REFERENCES), _OURS]
  if _START in works and _REMOTE in contenders:
    sys.exit(
      f'Error: --works={_START} must not be given with --against={_REMOTE},'
      ' whose workers run already.'
    )
  rounds = flag_values['rounds'].value
  if rounds < _LEAST_ROUNDS:
    sys.exit(
      f'Error: --rounds must be at least {_LEAST_ROUNDS}, found {rounds}.'
    )
  output_dir = pathlib.Path(flag_values['output_dir'].value)
  try:
    settings.make_writable(output_dir)
  except settings.SettingsError as error:
    sys.exit(f'Error: {error}')
  options = {
    name: flag_values[name].value for name in ('device', 'client_threads')
  }
  os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
  try:
    if _START in works:
      # First: TensorFlow, once it is used here, leaves others no GPU memory.
      _time_starts(contenders, options, output_dir)
      works.remove(_START)
    if works:
      _time_works(works, contenders, options, rounds, output_dir)
  except KeyboardInterrupt:
    sys.exit('Error: stopped before all works were timed.')


def _names(flag_values, flag, known) -> list[str]:
  """The names in a flag, each once, all of them known."""
  names = list(dict.fromkeys(flag_values[flag].value))
  for name in names or ['']:
    if name not in known:
      sys.exit(
        f'Error: --{flag} must be one or more of {", ".join(known)}, found'
        f' {name!r}.'
      )
  return names


def _time_starts(contenders, options, output_dir):
  from launchers.timing import startup

  try:
    table = startup.time_starts(contenders, options)
  except startup.StartError as error:
    sys.exit(f'Error: {error}')
  table.to_csv(output_dir / 'start.csv', index=False)
  print('Seconds from the start of Python, work A:')
  print(startup.to_text(table), end='\n\n')


def _time_works(works, contenders, options, rounds, output_dir):
  from launchers.timing import round_times
  from launchers.timing import workloads

  try:
    setup = workloads.build_setup(contenders, options)
  except ValueError as error:
    sys.exit(f'Error: --{error}')
  seconds = {}
  for work in works:
    build = getattr(workloads, WORKS[work])
    seconds[work] = round_times.time_rounds(work, build(setup), rounds)
    # Now, not at the end: the next work may take long.
    table = round_times.summarize(seconds)
    table.to_csv(output_dir / 'benchmark.csv', index=False)
  print(
    f'Seconds a round, rounds {_LEAST_ROUNDS} to {rounds}; the ratio: how many'
    ' times as fast as the\nreference, by the medians.'
  )
  print(round_times.to_text(table))
  for work in works:
    if work in workloads.NOTES:
      print(f'{work}: {workloads.NOTES[work]}.')


if __name__ == '__main__':
  # Not `app.run`, for the reason given in `launchers.train`.
  define_flags(flags.FLAGS)
  app.define_help_flags()
  main(app.parse_flags_with_usage(sys.argv))
