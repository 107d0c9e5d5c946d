"""Plans the runs of a comparison: which methods, which trials, which flags.

Every method tries as many values of the same learning rates. Its own one or two
parameters, `Method.tuned`, vary at the same time: trial t takes the t-th point
of the Halton sequence, whose first coordinate is the place in the grid of
learning rates and whose others are places in the lists of the entry. So a
method with more parameters gets no more trials than FedAvg, which has none.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import pathlib
from typing import Any

import numpy as np

from tff_fair import checks
from tff_fair.launchers.comparison import tuning
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.options.methods import entry
from tff_fair.launchers.runs import planned_run

BASELINE = 'fed_avg'
ALONE = 'standalone'
ALL = 'all'
SHORT = '_short'
"""The end of the name of a short trial's directory."""
# Flags of `launchers.train` that do not change a run's numbers.
RUNTIME_FLAGS = (
  'runtime',
  'device',
  'client_threads',
  'num_workers',
  'cpus_per_worker',
  'gpus_per_worker',
  'cluster_address',
  'worker_timeout',
  'plugins',
)
# Flags of `launchers.train` that all methods share.
SHARED_FLAGS = (
  *(
    name
    for name in train_flags.DATA_FLAG_NAMES
    # A leak is for control runs; clients that are left out differ by the seed.
    if name not in ('data_seed', 'small_clients', 'test_leak')
  ),
  'model',
  *(flag.name for flag in train_flags.GROUPS['Clients']),
  'eval_every',
  'fine_tune_epochs',
  *RUNTIME_FLAGS,
)
# A curve of more points is not read better, and evaluation takes time.
_EVALUATIONS = 25
_CHECKPOINTS, _SHORTEST_CHECKPOINT = 10, 25


# Learning rates that are tried: the fewest, and the lowest and highest one of
# an optimiser.
_FEWEST_RATES = 8
_RATES = {'sgd': (0.01, 1.0)}
_ADAPTIVE_RATES = (1e-4, 1e-2)


def choose_methods(names: Sequence[str]) -> list[str]:
  """Returns the baseline, Standalone, and the methods that `--methods` names.

  Raises:
    SettingsError: If there is no such method or group.
  """
  chosen = {BASELINE, ALONE}
  known = [ALL, *entry.GROUPS, *methods.METHODS]
  for name in names or ['']:
    if name not in known:
      raise settings_lib.SettingsError(
        checks.unknown_name('Each of --methods', name, known)
      )
    chosen.update(
      m.name
      for m in methods.METHODS.values()
      if name in (m.name, *m.groups)
      or (name == ALL and m.name not in methods.SCRIPTS)
    )
  others = [name for name in methods.METHODS if name in chosen]
  return sorted(others, key=lambda name: name not in (BASELINE, ALONE))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Planner:
  """Plans the runs of the methods of a comparison.

  Attributes:
    shared: Flags of `launchers.train` that all methods share, as far as they
      know them, and their values.
    rounds: Rounds of each run.
    tune: Number of trials; 0 for none.
    output_dir: The folder that contains the directories of all runs.
  """

  shared: Mapping[str, Any]
  rounds: int
  tune: int
  output_dir: pathlib.Path

  @property
  def protocol(self) -> tuning.Protocol:
    """How the trials are chosen."""
    return tuning.Protocol(self.tune, self.rounds)

  def check_tuning(self, num_seeds: int) -> None:
    """Refuses a learning rate that tuning would replace, and a single trial.

    Args:
      num_seeds: The number of seeds of the scores, which must not be those that
        tuning has.

    Raises:
      SettingsError: If so.
    """
    if self.tune == 1:
      raise settings_lib.SettingsError(
        '--tune must be 0 or at least 2, found 1, which chooses nothing.'
      )
    if self.tune and num_seeds > tuning.SEEDS[0]:
      raise settings_lib.SettingsError(
        f'--seeds must be at most {tuning.SEEDS[0]} with --tune={self.tune},'
        f' which chooses by seeds from there, found {num_seeds}.'
      )
    if self.tune and 'client_learning_rate' in self.shared:
      raise settings_lib.SettingsError(
        '--client_learning_rate must be given with --tune=0, found'
        f' --tune={self.tune}, which tries learning rates of its own.'
      )

  def trials(self, method: str) -> list[dict[str, Any]]:
    """Returns the flags that each trial of a method sets, and their values."""
    optimizer = self._value('client_optimizer')
    return list_trials(methods.METHODS[method], optimizer, self.tune)

  def middle_rate(self) -> float:
    """Returns the middle, in ratio, of the learning rates of the trials."""
    rates = list_rates(self._value('client_optimizer'), self.tune)
    return float(np.sqrt(rates[0] * rates[-1]))

  def run(self, method: str, trial: int, seed: int) -> planned_run.PlannedRun:
    """Plans a run in full of one of a method's trials.

    Raises:
      SettingsError: If the method cannot have these flags.
    """
    return self.run_with(method, self.trials(method)[trial], seed)

  def run_with(
    self,
    method: str,
    tried: Mapping[str, Any],
    seed: int,
    is_short: bool = False,
  ) -> planned_run.PlannedRun:
    """Plans a run of a method with the flags of a trial.

    Args:
      method: The method.
      tried: Flags and their values.
      seed: The value of all seeds.
      is_short: Whether it has the rounds of a short trial.

    Raises:
      SettingsError: If the method cannot have these flags.
    """
    name = '-'.join(f'{flag}={value}' for flag, value in tried.items())
    folder = self.output_dir / 'runs' / method / (name or 'default')
    rounds = self.protocol.screening_rounds if is_short else self.rounds
    flags = {**self._flags(methods.METHODS[method], rounds), **tried}
    name = f'seed_{seed}{SHORT if is_short else ""}'
    return planned_run.plan(flags, seed, folder / name)

  def _flags(self, method: entry.Method, rounds: int) -> dict[str, Any]:
    """The flags of all runs of a method.

    A method's own defaults of shared flags, such as five epochs, would be other
    conditions than those of the others.
    """
    shared = {**{n: self._value(n) for n in method.defaults}, **self.shared}
    if shared.get('unseen_fraction') and not method.has_global_model:
      shared['score_unseen'] = False
    eval_every = max(1, rounds // _EVALUATIONS)
    return {
      'algorithm': method.name,
      **{n: v for n, v in shared.items() if method.ignores.get(n) != {}},
      'rounds': rounds,
      'eval_every': shared.get('eval_every', eval_every),
      'checkpoint_every': max(rounds // _CHECKPOINTS, _SHORTEST_CHECKPOINT),
      'checkpoints_to_keep': 1,
      'export': 'none',
    }

  def _value(self, flag) -> Any:
    return self.shared.get(flag, train_flags.FLAGS[flag].default)


def list_rates(optimizer: str, count: int) -> list[float]:
  """Returns the learning rates of `count` trials, the same for all methods.

  They are in equal ratios, ascending, with two digits: eight of them, or as
  many as there are trials, rounded up to a power of two.
  """
  size = _FEWEST_RATES
  while size < count:
    size *= 2
  grid = np.geomspace(*_RATES.get(optimizer, _ADAPTIVE_RATES), size)
  return [float(f'{rate:.2g}') for rate in grid]


def list_trials(
  method: entry.Method, optimizer: str, count: int
) -> list[dict[str, Any]]:
  """Returns the flags to set in each trial; in one without any, if 0."""
  if count == 0:
    return [{}]
  # Takes a second to import.
  from scipy.stats import qmc

  grid = {
    'client_learning_rate': list_rates(optimizer, count),
    **method.tuned,
  }
  points = qmc.Halton(len(grid), scramble=False).random(count)
  return [
    {
      name: values[int(place * len(values))]
      for (name, values), place in zip(grid.items(), point, strict=True)
    }
    for point in points
  ]
