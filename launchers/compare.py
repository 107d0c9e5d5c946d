"""Compares the methods on one task, all on the same footing.

  python -m launchers.compare --task=digits --methods=fair --rounds=60

Every method gets the same data, rounds, trials and seeds. The trials choose a
learning rate and the method's one or two parameters by the accuracy on the
clients' holdout parts, never on test data. Writes compare.csv (a row a run),
compare.md and compare.html, which begin with the answer in words: the method
for the mean, for the worst clients and for collaborative fairness, and what
cannot be told apart. The same command, after any interruption, goes on.
"""

import dataclasses
import math
import os
import pathlib
import sys
from typing import Any

from absl import flags

import tff_fair
from tff_fair.launchers import cli
from tff_fair.launchers.comparison import budget as budget_lib
from tff_fair.launchers.comparison import plan
from tff_fair.launchers.comparison import pool as pool_lib
from tff_fair.launchers.comparison import progress as progress_lib
from tff_fair.launchers.comparison import records
from tff_fair.launchers.comparison import schedule as schedule_lib
from tff_fair.launchers.comparison import sizing
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import run_flags
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.runs import data_description
from tff_fair.launchers.runs import run_claim

# Flags of `launchers.train` that do not change a run's numbers.
_RUNTIME = (
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
_SHARED = (
  *(
    name
    for name in train_flags.DATA_FLAG_NAMES
    if name not in ('data_seed', 'test_leak')  # A leak is for control runs.
  ),
  'model',
  *(flag.name for flag in run_flags.CLIENTS),
  'eval_every',
  *_RUNTIME,
)
# Where Linux lists them. A process takes the memory of all that it sees.
_GPUS = pathlib.Path('/proc/driver/nvidia/gpus')


def define_flags(flag_values: flags.FlagValues) -> None:
  """Defines the flags of this launcher.

  Args:
    flag_values: Where to define them.
  """
  train_flags.define_flags(flag_values, _SHARED)
  flags.DEFINE_list(
    'methods',
    [plan.ALL],
    'The methods to compare: all, fair (made to be fair to clients), personal'
    ' (a model for each client), or names, with commas. FedAvg and Standalone'
    ' are always among them.',
    flag_values=flag_values,
  )
  flags.DEFINE_integer(
    'rounds',
    60,
    'Rounds of every run.',
    lower_bound=1,
    flag_values=flag_values,
  )
  flags.DEFINE_integer(
    'seeds',
    5,
    'Number of seeds: each method is trained with all its seeds at 0, 1, ...',
    lower_bound=1,
    flag_values=flag_values,
  )
  flags.DEFINE_integer(
    'tune',
    8,
    'Number of trials of each method, the same for all; 0 takes the values of'
    ' the flags, and 1 would choose nothing.',
    lower_bound=0,
    flag_values=flag_values,
  )
  flags.DEFINE_string(
    'budget',
    None,
    'Wall time, such as 2h or 90min, into which trials, seeds and rounds are'
    ' fitted; what is cut is said.',
    flag_values=flag_values,
  )
  flags.DEFINE_float(
    'target',
    None,
    'Mean client accuracy to reach: the page shows in how many rounds each'
    ' method reaches it. The default is'
    f" {records.TARGET_SHARE:.0%} of FedAvg's last one with the same seed.",
    lower_bound=0.0,
    upper_bound=1.0,
    flag_values=flag_values,
  )
  flags.DEFINE_integer(
    'parallel',
    None,
    'Number of runs at the same time; the default is one for each CPU core, or'
    ' one with GPUs or the runtime cluster.',
    lower_bound=1,
    flag_values=flag_values,
  )
  flags.DEFINE_string(
    'output_dir',
    None,
    'Where the results go; the default is runs/compare/TASK.',
    flag_values=flag_values,
  )


def main(argv: list[str], flag_values: flags.FlagValues = flags.FLAGS) -> None:
  """Compares the methods that the flags name.

  Args:
    argv: What is left of the command line: the program's name.
    flag_values: The parsed flags of `define_flags`.
  """
  cli.check_only_flags(argv)
  shared = {
    name: flag_values[name].value
    for name in _SHARED
    if name == 'task' or not flag_values[name].using_default_value
  }
  output_dir = pathlib.Path(
    flag_values['output_dir'].value or f'runs/compare/{shared["task"]}'
  )
  asked = budget_lib.Size(
    *(flag_values[name].value for name in budget_lib.Size._fields)
  )
  with cli.one_sentence_errors(
    settings_lib.SettingsError, budget_lib.BudgetError
  ):
    _check_tuning(asked, shared)
    _check_target(flag_values['target'].value)
    given = flag_values['budget'].value
    budget = None if given is None else budget_lib.parse(given)
    chosen = plan.choose_methods(flag_values['methods'].value)
    parallel = flag_values['parallel'].value or _usual_parallel(shared)
    planner = _planner(shared, asked, parallel, output_dir)
    known = budget and sizing.decided(planner, chosen, asked, budget)
    sized = _of_size(planner, known or asked)
    baseline = schedule_lib.Schedule(sized, chosen, [0]).first_runs[0]
    settings_lib.check_data_dir(baseline.settings['data_dir'])
    settings_lib.check_own_data(baseline.settings)
    with run_claim.claim(output_dir):
      _compare(
        planner, chosen, asked, budget, flag_values['target'].value, parallel
      )


def _compare(planner, chosen, asked, budget, target, parallel) -> None:
  """Trains all runs, and writes the results."""
  cli.prepare_for_tensorflow()  # For the workers, which inherit it.
  names = _plugin_names(planner.shared)
  with cli.one_sentence_errors(
    pool_lib.PoolError, budget_lib.BudgetError, settings_lib.SettingsError
  ):
    with pool_lib.Pool(parallel, names) as pool:
      pool.warm_up()
      used = asked
      if budget is not None:
        used = sizing.fit(pool, planner, chosen, asked, budget, parallel)
        planner = _of_size(planner, used)
      schedule = schedule_lib.Schedule(planner, chosen, range(used.seeds))
      data = pool.describe(schedule.baseline_runs)
      _check_holdout(planner, data)
      _say_what_runs(planner, chosen, used, asked, data, parallel)
      with progress_lib.Progress() as progress:
        schedule.train(pool, progress)
    frame = records.table(schedule.ended(), target)
    facts = _facts(planner, used, asked, data, target, schedule.excluded)
    _write(frame, facts, planner.output_dir)


def _check_tuning(asked, shared) -> None:
  """Refuses a learning rate that tuning would replace, and a single trial."""
  if asked.tune == 1:
    raise settings_lib.SettingsError(
      '--tune must be 0 or at least 2, found 1, which chooses nothing.'
    )
  if asked.tune and 'client_learning_rate' in shared:
    raise settings_lib.SettingsError(
      '--client_learning_rate must be given with --tune=0, found'
      f' --tune={asked.tune}, which tries learning rates of its own.'
    )


def _check_target(target) -> None:
  """Refuses what absl takes for a number within any limits."""
  if target is not None and math.isnan(target):
    raise settings_lib.SettingsError(
      '--target must be a number in the range [0.0, 1.0], found nan.'
    )


def _check_holdout(planner, data) -> None:
  """Refuses to choose between trials without what they are chosen by."""
  if planner.tune and not data['has_holdout']:
    server = planner.shared.get('split') == 'server'
    raise settings_lib.SettingsError(
      f'--{"validation" if server else "holdout"}_fraction must be above 0'
      f' with --tune={planner.tune}, which chooses by that part, found no such'
      ' examples.'
    )


def _usual_parallel(shared) -> int:
  """One run for each CPU core, or one that has all GPUs or all workers."""
  if shared.get('runtime', 'device') == 'cluster':
    return 1
  gpus = shared.get('device') != 'cpu' and _GPUS.is_dir()
  return 1 if gpus else os.cpu_count() or 1


def _planner(shared, asked, parallel, output_dir) -> plan.Planner:
  """Plans the runs; those at the same time share the cores."""
  if shared.get('runtime', 'device') == 'device':
    threads = max(1, (os.cpu_count() or 1) // parallel)
    shared = {'client_threads': threads, **shared}
  return plan.Planner(
    shared=shared, rounds=asked.rounds, tune=asked.tune, output_dir=output_dir
  )


def _of_size(planner, size) -> plan.Planner:
  return dataclasses.replace(planner, rounds=size.rounds, tune=size.tune)


def _plugin_names(shared) -> list[str]:
  texts = shared.get('plugins', [])
  return [name.strip() for text in texts for name in text.split(',') if name]


def _say_what_runs(planner, chosen, used, asked, data, parallel) -> None:
  runs = used.runs * len(chosen)
  print(
    f'{len(chosen)} methods on {_data_name(planner)}, clients:'
    f' {data["num_clients"]}, rounds: {used.rounds}, seeds: {used.seeds},'
    f' trials of each method: {used.tune or "none"}; {runs} runs, {parallel} at'
    ' a time.'
  )
  for note in (*data['notes'], *budget_lib.cuts(asked, used)):
    print(note)
  sys.stdout.flush()


def _facts(planner, used, asked, data, target, excluded) -> dict[str, Any]:
  """The content of compare.json: all facts that are not of a single run."""
  rule = (
    f'{100 * records.TARGET_SHARE:g} % of the last mean accuracy of'
    f' {methods.title(plan.BASELINE)} with the same seed'
    if target is None
    else f'a mean accuracy of {target:g}'
  )
  hidden = (*_RUNTIME, 'task', 'data_dir')
  options = {n: v for n, v in planner.shared.items() if n not in hidden}
  plugin_names = ','.join(_plugin_names(planner.shared))
  if plugin_names:
    options['plugins'] = plugin_names
  return {
    'version': tff_fair.__version__,
    'task': planner.shared['task'],
    'data': _data_name(planner),
    'num_clients': data['num_clients'],
    'cohort_size': data['cohort_size'],
    'client_names': data['client_names'],
    'test_examples': data['test_examples'],
    'rounds': used.rounds,
    'seeds': list(range(used.seeds)),
    'tune': used.tune,
    'baseline': plan.BASELINE,
    'target_rule': rule,
    'options': options,
    'notes': [*data['notes'], *budget_lib.cuts(asked, used)],
    'excluded': excluded,
  }


def _data_name(planner) -> str:
  return data_description.describe(planner.shared)


def _write(frame, facts, output_dir) -> None:
  """Writes the results and the pages about them, and prints the answer."""
  from tff_fair.launchers.pages import compare_page

  for sentence in compare_page.write(frame, facts, output_dir):
    print(sentence)
  print(f'results: {output_dir}')


if __name__ == '__main__':
  cli.run(main, define_flags, with_plugins=True)
