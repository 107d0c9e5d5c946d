"""Finds how the runs of a report differ, and what that forbids.

Nothing here imports TensorFlow.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tff_fair import tasks
from tff_fair.launchers import frame
from tff_fair.launchers.options import attack
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.runs import client_names

# What each flag means for a comparison of the numbers of two runs.
#
# With other data, seeds, epochs or another model, the numbers do not tell the
# methods apart; the same holds for the rounds behind the numbers, the last ones
# that are averaged among them, for how many updates in a row a round is, and
# for the version of tff-fair.
_DATA = tuple(
  name
  for name in train_flags.DATA_FLAG_NAMES
  # A place; one of the seeds; a condition.
  if name not in ('data_dir', 'data_seed', 'drop_sensitive')
)
_SEEDS = tuple(flag.name for flag in train_flags.GROUPS['Seeds'])
_TRAINING = ('local_epochs', 'model', 'score_last')
# Other conditions of the training, which methods share: they may well be the
# best of each method, so a comparison across them is one, and says so.
_CONDITIONS = (
  *(
    flag.name
    for flag in (*train_flags.GROUPS['Clients'], *train_flags.GROUPS['Server'])
    if flag.name not in _TRAINING
  ),
  'drop_sensitive',
  'fine_tune_epochs',  # Of a score alone.
)
# The method and its own flags are the subject of a comparison, and all other
# flags, of the runtime and of what is written, do not change the numbers.

# Characters of a value, and differences that are listed.
_VALUE_WIDTH = 30
_MAX_LISTED = 5


class Difference(NamedTuple):
  """Something in which runs differ: its name, and its value in each run."""

  name: str
  values: tuple[str, ...]

  def __str__(self):
    return f'{self.name} ({", ".join(self.values)})'


class Comparison(NamedTuple):
  """How the numbers of some runs may be compared.

  Attributes:
    unlike: Differences across which no run is better than another one.
    conditions: Other differences in what methods share.
    repeats: Whether the runs differ in their seeds only.
    ranked: Whether the best run may be told.
  """

  unlike: list[Difference]
  conditions: list[Difference]
  repeats: bool
  ranked: bool

  @property
  def warnings(self) -> list[str]:
    """Says in sentences what a reader of the runs' numbers must know first."""
    found = []
    if self.repeats:
      found.append(
        f'These runs are repeats with other seeds: {_list(self.unlike)}. No'
        ' best value is marked.'
      )
    elif self.unlike:
      found.append(
        f'These runs differ in {_list(self.unlike)}: their numbers do not tell'
        ' which is better, and no best value is marked.'
      )
    if self.conditions:
      also = ' also' if self.unlike else ''
      found.append(f'The runs{also} differ in {_list(self.conditions)}.')
    return found


def compare(runs: Sequence[frame.Run]) -> Comparison:
  """Finds what differs between runs; nothing does in a single one."""
  data = _of_flags(runs, _DATA)
  if data and data[0].name == 'task':
    data = data[:1]  # The others follow from it.
  elif not data:
    data = _of_values('data', [run.data for run in runs])
  seeds = _of_flags(runs, _SEEDS)
  others = [
    *data,
    *_of_values(
      'rounds', [str(run.evaluated or run.last_round) for run in runs]
    ),
    *_of_flags(runs, _TRAINING),
    *_of_values('clients without a score', [_attackers(run) for run in runs]),
    *_of_values('updates in a row a round', [_depth(run) for run in runs]),
    *_of_values('version', [run.version for run in runs]),
  ]
  conditions = _of_flags(runs, _CONDITIONS)
  one_method = len({_method(run) for run in runs}) == 1
  repeats = bool(seeds) and not others and not conditions and one_method
  unlike = [*others, *seeds]
  finished = all(run.finished for run in runs)
  return Comparison(unlike, conditions, repeats, finished and not unlike)


def _of_flags(runs, names) -> list[Difference]:
  return [
    difference
    for name in names
    for difference in _of_values(name, [_value(run, name) for run in runs])
  ]


def _of_values(name, values) -> list[Difference]:
  """A difference, if known values differ."""
  if len(set(filter(None, values))) < 2:
    return []
  shown = [client_names.one_line(v, _VALUE_WIDTH) or '–' for v in values]
  return [Difference(name, tuple(shown))]


def _value(run, name) -> str:
  """A flag's value; empty if the run's method does not read it."""
  if name in run.settings:
    return run.settings[name]
  flag = train_flags.FLAGS.get(name)
  method = methods.METHODS.get(run.algorithm)
  is_ignored = method is not None and method.ignores.get(name) == {}
  if flag is None or flag.default is not None or is_ignored:
    return ''
  try:
    default = tasks.get_data_set(run.settings['task']).default(name)
  except ValueError:  # The task of a plug-in that is not loaded.
    default = None
  return 'default' if default is None else str(default)


def _attackers(run) -> str:
  """Returns the clients that do not count, as attackers; a seed draws them."""
  if not attack.is_attacked(run.settings):
    return 'none'
  return f'{float(run.settings["attack_fraction"]):.3g} attackers'


def _depth(run) -> str:
  """How many updates a round is, one after the other."""
  turns = methods.takes_turns(run.algorithm)
  return 'one a client' if turns else 'one'


def _method(run) -> tuple[tuple[str, str], ...]:
  """The method with its own flags."""
  own = run.settings.keys() - train_flags.FLAGS.keys()
  return tuple((n, run.settings[n]) for n in sorted({'algorithm', *own}))


def _list(differences) -> str:
  shown = [str(difference) for difference in differences[:_MAX_LISTED]]
  rest = len(differences) - len(shown)
  if rest:
    shown.append(f'{rest} more (see Settings)')
  return ', '.join(shown)
