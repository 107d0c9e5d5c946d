"""Times rounds of our implementations next to others in the same process.

  python -m benchmarks.run --workloads=A,fedaboost --against=stock

The implementations of a workload take turns, one round each, so that other load
on the machine slows all of them alike. The workloads:

  A           FedAvg, a perceptron on 784 numbers, 10 clients
  B           FedAvg, a convolutional net on 32x32x3 images, 20 clients
  cross_device 500 of 3,000 clients of 20 examples a round: FedAvg, with clients
              at hand and made anew, FeDABoost and SCAFFOLD
  pfl_cifar10 FedAvg, as pfl-research's benchmark: 50 of 1,000 clients of 50
              images a round, a convolutional net with dropout
  blazefl     FedAvg, as BlazeFL's benchmark: 100 clients of 500 images, 5
              epochs, a small convolutional net
  table       only the client table: 100 rows of a million numbers, 20 clients
  fedaboost   FeDABoost and FedAvg, the model and the clients of A
  cffl        CFFL and FedAvg, the model of A, 20 clients, 6,000 to validate
  corefed_cnn CoRe-Fed and FedAvg, its CIFAR-10 model, 20 of 100 clients
  corefed_mlp the same, its perceptron
  fedquad     FedQuad, its baselines and FedAvg, its model, 4 clients
  fedakd      FedAKD and FedAvg, its CIFAR-10 model, 10 clients
  population  FeDABoost, 10 clients out of 10,000 and 10 out of 100
  tiny        FeDABoost, 15 parameters, 10 clients of 8 examples
  state       only a state: 100 MB to the clients, and their sum back
  data        only data: 94 MB of 10 clients, summed
  cffl_absent CFFL, 101,770 parameters, 10 of 100 participants are present
  start       workload A from the start of Python to the end of round 1

The implementations: `device`, `native` and `cluster` are ours on these
runtimes, the last with --num_workers workers on this machine; `stock` is TFF's
FedAvg on TFF's worker. They are compared on A, B, cross_device, pfl_cifar10,
blazefl, start, tiny and cffl_absent (these two without `stock`), and on table,
state and data, where `stock` and `native` are the same and called `stock`. The
other workloads compare methods on `device`. On TFF's worker a round of `table`
takes seconds and several GB, one of cross_device six seconds.

FedAvg of other simulators, each in an environment of its own, which `uv run`
installs: `fedjax` for cross_device and pfl_cifar10, `flower` for pfl_cifar10
and blazefl, `pfl` for pfl_cifar10.

  python -m benchmarks.run --workloads=A,B,tiny --against=cluster \
    --client_threads=2

compares two workers of one core each with `device` in two threads; what it
costs to distribute a round is the difference of the medians.

Prints a table and writes it to benchmark.csv, that of `start` to start.csv.
Files are replaced if they exist. Where a runtime counts them, `sent_mb` and
`received_mb` are the megabytes (10^6 bytes) that the driver sends to all
workers and receives from them in a round.
"""

import pathlib

from absl import flags

from benchmarks import own_process
from benchmarks import peer
from benchmarks import startup
from tff_fair import checks
from tff_fair.launchers import cli
from tff_fair.launchers.options import settings

# Functions of `benchmarks.workloads`, there in lower case; listed here since
# --help need not import TensorFlow.
WORKLOADS = (
  *('A', 'B', 'cross_device', 'pfl_cifar10', 'blazefl', 'table', 'fedaboost'),
  *('cffl', 'corefed_cnn', 'corefed_mlp', 'fedquad', 'fedakd', 'population'),
  *('tiny', 'state', 'data', 'cffl_absent'),
)
# Timed in separate processes, unlike the others.
_START = 'start'
_INTERRUPTED = 'interrupted before all workloads were timed.'
_OURS, _REFERENCES = 'device', ('stock', 'native', 'cluster')
# The first two rounds, which compile and warm up, are not counted.
_MIN_ROUNDS = 3


def define_flags(flag_values: flags.FlagValues) -> None:
  """Defines the flags: launchers have some of the same names."""
  defined = {'flag_values': flag_values}
  flags.DEFINE_list(
    'workloads',
    [*WORKLOADS, _START],
    'The workloads to time.',
    **defined,
  )
  flags.DEFINE_list(
    'against',
    ['stock'],
    f'Implementations to compare {_OURS} with, out of {", ".join(_REFERENCES)},'
    f' and of {", ".join(peer.NAMES)} for workloads that have them; the first'
    ' is the reference.',
    **defined,
  )
  flags.DEFINE_integer(
    'rounds',
    10,
    f'Rounds of each implementation, at least {_MIN_ROUNDS}; the first'
    f' {_MIN_ROUNDS - 1} are not counted.',
    **defined,
  )
  flags.DEFINE_integer(
    'client_threads',
    None,
    'Runtime device: number of clients that train at the same time; the default'
    ' is the number of CPU cores.',
    lower_bound=1,
    **defined,
  )
  flags.DEFINE_string(
    'device',
    'auto',
    'Runtime device: auto (the first GPU if there is one), cpu, or gpu:N.',
    **defined,
  )
  flags.DEFINE_integer(
    'num_workers',
    2,
    'Runtime cluster: number of workers, of one core each.',
    lower_bound=1,
    **defined,
  )
  flags.DEFINE_string(
    'output_dir', 'runs/benchmark', 'Where the results go.', **defined
  )


def main(argv: list[str], flag_values: flags.FlagValues = flags.FLAGS) -> None:
  """Times the workloads that the flags name."""
  cli.check_only_flags(argv)
  chosen = _names(flag_values, 'workloads', (*WORKLOADS, _START))
  # The reference comes first.
  implementations = [
    *_names(flag_values, 'against', (*_REFERENCES, *peer.NAMES)),
    _OURS,
  ]
  _check_peers(chosen, implementations)
  rounds = flag_values['rounds'].value
  if rounds < _MIN_ROUNDS:
    cli.fail(f'--rounds must be at least {_MIN_ROUNDS}, found {rounds}.')
  output_dir = pathlib.Path(flag_values['output_dir'].value)
  with cli.one_sentence_errors(settings.SettingsError):
    settings.make_writable(output_dir)
  options = {
    'device': {n: flag_values[n].value for n in ('device', 'client_threads')},
    'cluster': {
      'num_workers': flag_values['num_workers'].value,
      'cpus_per_worker': 1,
    },
  }
  cli.prepare_for_tensorflow()
  with cli.one_sentence_errors(
    own_process.ProgramError, interrupted=_INTERRUPTED
  ):
    if _START in chosen:
      # First: once TensorFlow runs here, other processes get no GPU memory.
      table = startup.time_starts(implementations, options)
      table.to_csv(output_dir / 'start.csv', index=False)
      print('Seconds from the start of Python, workload A:')
      print(f'{startup.to_text(table)}\n')
      chosen.remove(_START)
    if chosen:
      _time_workloads(chosen, implementations, options, rounds, output_dir)


def _names(flag_values, flag, known) -> list[str]:
  """The names in a flag without repetitions, all of them known."""
  names = list(dict.fromkeys(flag_values[flag].value))
  for name in names or ['']:
    if name not in known:
      cli.fail(checks.unknown_name(f'Each of --{flag}', name, known))
  return names


def _check_peers(workloads, implementations) -> None:
  for workload in workloads:
    known = (*_REFERENCES, *peer.OF_WORKLOADS.get(workload, ()))
    for name in set(implementations).intersection(peer.NAMES).difference(known):
      what = f'Each of --against for the workload {workload}'
      cli.fail(checks.unknown_name(what, name, known))


def _time_workloads(chosen, implementations, options, rounds, output_dir):
  from benchmarks import round_times
  from benchmarks import workloads
  from tff_fair import runtime

  with cli.one_sentence_errors(
    runtime.WorkerError, peer.PeerError, interrupted=_INTERRUPTED
  ):
    try:
      setup = workloads.build_setup(implementations, options)
    except ValueError as error:
      cli.fail(f'--{error}')
    except ImportError as error:  # The message says how to install Ray.
      cli.fail(error)
    times = {}
    for name in chosen:
      build = getattr(workloads, name.lower())
      times[name] = round_times.time_rounds(name, build(setup), rounds)
      # Now, not at the end: the next workload may take long.
      table = round_times.summarize(times)
      table.to_csv(output_dir / 'benchmark.csv', index=False)
  print(
    f'Seconds per round, rounds {_MIN_ROUNDS} to {rounds}; the ratio is the'
    ' median of the reference\ndivided by that of the implementation.'
  )
  print(round_times.to_text(table))
  for name in chosen:
    if name in workloads.NOTES:
      print(f'{name}: {workloads.NOTES[name]}.')


if __name__ == '__main__':
  cli.run(main, define_flags)
