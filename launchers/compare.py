"""Compares the methods on one task, all under the same conditions.

  python -m launchers.compare --task=digits --methods=fair --rounds=60

Every method gets the same data, rounds, trials and seeds. The trials choose a
learning rate and the method's one or two parameters by the accuracy on the
clients' holdout parts, with seeds of their own: never on test data, and never
with a seed that is scored. Writes compare.csv, with a row for each run, and
compare.html, which begins with the answer in words: the method for the mean,
for the worst clients and for collaborative fairness, and what cannot be told
apart. The same command, after any interruption, goes on, and adds methods if it
names more of them.
"""

import functools
import math
import pathlib
import sys
from typing import Any

from absl import flags

import tff_fair
from tff_fair.launchers import cli
from tff_fair.launchers import frame as frame_lib
from tff_fair.launchers.comparison import earlier as earlier_lib
from tff_fair.launchers.comparison import plan
from tff_fair.launchers.comparison import records
from tff_fair.launchers.comparison import schedule as schedule_lib
from tff_fair.launchers.execution import options
from tff_fair.launchers.execution import pool as pool_lib
from tff_fair.launchers.options import help_screen
from tff_fair.launchers.options import help_text
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.runs import data_description
from tff_fair.launchers.runs import run_files

# On the first screen of `--help`.
_FIRST = (
  'task',
  'data_file',
  'num_clients',
  'methods',
  'rounds',
  'tune',
  'seeds',
  'parallel',
  'budget',
  'output_dir',
)


def define_flags(flag_values: flags.FlagValues) -> None:
  """Defines the flags of this launcher."""
  train_flags.define_flags(flag_values, plan.SHARED_FLAGS)
  options.define_flags(flag_values, seeds=5, output_dir='runs/compare/TASK')
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
    'tune',
    8,
    'Number of trials of each method, the same for all: each has a quarter of'
    ' the rounds, and the best quarter of them (two at the least) is trained'
    ' in full with the seeds 100, 101 and 102, which choose one. 0 takes the'
    ' values of the flags, and 1 would choose nothing.',
    lower_bound=0,
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


def describe_help() -> help_screen.Help:
  """Returns the text of `--help`, with training's flags that methods share."""
  known = help_screen.own_flags(define_flags)
  shared = {name: train_flags.FLAGS[name] for name in plan.SHARED_FLAGS}
  groups = {'Comparison': [f for n, f in known.items() if n not in shared]}
  for title, group in train_flags.GROUPS.items():
    if taken := [flag for flag in group if flag.name in shared]:
      groups[title] = taken
  return help_screen.Help(
    first=[(known | shared)[name] for name in _FIRST],
    topics={
      'methods': help_screen.Topic(
        'The methods, a line each', help_text.list_methods
      ),
      **help_screen.group_topics(groups),
      'all': help_screen.Topic(
        'All flags', functools.partial(help_screen.describe_groups, groups)
      ),
    },
  )


def main(argv: list[str], flag_values: flags.FlagValues = flags.FLAGS) -> None:
  """Compares the methods that the flags name."""
  cli.check_only_flags(argv)
  shared = {
    name: flag_values[name].value
    for name in plan.SHARED_FLAGS
    if name == 'task' or not flag_values[name].using_default_value
  }
  planner = plan.Planner(
    shared=shared,
    rounds=flag_values['rounds'].value,
    tune=flag_values['tune'].value,
    output_dir=pathlib.Path(
      flag_values['output_dir'].value or f'runs/compare/{shared["task"]}'
    ),
  )
  with cli.one_sentence_errors(settings_lib.SettingsError):
    planner.check_tuning(flag_values['seeds'].value)
    budget = options.budget(flag_values)
    target = flag_values['target'].value
    if target is not None and math.isnan(target):  # absl takes it.
      raise settings_lib.SettingsError(
        '--target must be a number in the range [0.0, 1.0], found nan.'
      )
    schedule = schedule_lib.Schedule(
      planner,
      plan.choose_methods(flag_values['methods'].value),
      range(flag_values['seeds'].value),
    )
    baseline = schedule.baseline_runs[0]
    settings_lib.check_data_dir(baseline.settings['data_dir'])
    settings_lib.check_own_data(baseline.settings)
    parallel = flag_values['parallel'].value or options.usual_parallel(shared)
    with run_files.claim(planner.output_dir):
      _compare(planner, schedule, parallel, target, budget)


def _compare(planner, schedule, parallel, target, budget) -> None:
  """Trains all runs, and writes the results."""
  cli.prepare_for_tensorflow()  # For the workers, which inherit it.
  names = _plugin_names(planner.shared)
  with cli.one_sentence_errors(
    pool_lib.PoolError, settings_lib.SettingsError, frame_lib.FrameError
  ):
    with pool_lib.Pool(parallel, names, budget) as pool:
      pool.warm_up()
      data = pool.call(schedule_lib.describe, schedule.baseline_runs)
      _check_holdout(planner, data)
      facts = _facts(planner, schedule, data, target)
      earlier = earlier_lib.find(planner.output_dir, facts, schedule.methods)
      schedule.leave_out(earlier.methods, earlier.excluded)
      _say_what_runs(planner, schedule, data, parallel, earlier)
      schedule.train(pool)
    ended, left = schedule.ended(), schedule.left()
    if left:
      data['notes'].append(f'{options.not_started(budget, left)}.')
      if not ended:
        cli.fail(data['notes'][-1])
      print(data['notes'][-1])
    frame = records.table(ended, target, earlier.accuracies)
    frame = earlier.add_to(frame, schedule.methods)
    facts = _facts(planner, schedule, data, target)
    if left:
      methods_left = list(dict.fromkeys(left))
      facts['not_started'] = {'runs': len(left), 'methods': methods_left}
    # Takes a second to import.
    from tff_fair.launchers.pages import compare_page

    for sentence in compare_page.write(frame, facts, planner.output_dir):
      print(sentence)
    print(f'results: {planner.output_dir}')


def _check_holdout(planner, data) -> None:
  """Refuses to choose between trials without what they are chosen by."""
  if planner.tune and not data['has_holdout']:
    server = planner.shared.get('split') == 'server'
    raise settings_lib.SettingsError(
      f'--{"validation" if server else "holdout"}_fraction must be above 0'
      f' with --tune={planner.tune}, which chooses by that part, found no such'
      ' examples.'
    )


def _plugin_names(shared) -> list[str]:
  texts = shared.get('plugins', [])
  return [name.strip() for text in texts for name in text.split(',') if name]


def _say_what_runs(planner, schedule, data, parallel, earlier) -> None:
  seeds = len(schedule.seeds)
  trials = sum(count for count, _ in planner.protocol.sizes().values())
  trained = len(schedule.methods) - len(earlier.methods)
  runs = trained * (trials + seeds)
  print(
    f'{len(schedule.methods)} methods on'
    f' {data_description.describe(planner.shared)}, clients:'
    f' {data["num_clients"]}, rounds: {planner.rounds}, seeds: {seeds},'
    f' trials of each method: {planner.tune or "none"}; {runs} runs, {parallel}'
    ' at a time.'
  )
  if earlier.methods:
    names = ', '.join(map(methods.title, earlier.methods))
    print(f'From compare.csv, as there are no runs of them: {names}.')
  for note in data['notes']:
    print(note)
  sys.stdout.flush()


def _facts(planner, schedule, data, target) -> dict[str, Any]:
  """The content of compare.json: all facts that are not of a single run."""
  rule = (
    f'{100 * records.TARGET_SHARE:g} % of the last mean accuracy of'
    f' {methods.title(plan.BASELINE)} with the same seed'
    if target is None
    else f'a mean accuracy of {target:g}'
  )
  hidden = (*plan.RUNTIME_FLAGS, 'task', 'data_dir')
  chosen = {n: v for n, v in planner.shared.items() if n not in hidden}
  plugin_names = ','.join(_plugin_names(planner.shared))
  if plugin_names:
    chosen['plugins'] = plugin_names
  return {
    'version': tff_fair.__version__,
    'task': planner.shared['task'],
    'data': data_description.describe(planner.shared),
    'num_clients': data['num_clients'],
    'cohort_size': data['cohort_size'],
    'client_names': data['client_names'],
    'test_examples': data['test_examples'],
    'rounds': planner.rounds,
    'seeds': list(schedule.seeds),
    'tune': planner.tune,
    'tuning': planner.protocol.facts(data['cohort_size']),
    'baseline': plan.BASELINE,
    'target_rule': rule,
    'options': chosen,
    'notes': data['notes'],
    'positive_class': data['positive_class'],
    'excluded': schedule.excluded,
  }


if __name__ == '__main__':
  cli.run(main, define_flags, describe_help, with_plugins=True)
