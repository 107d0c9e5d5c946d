"""From flags to the settings of a run: presets, checks, and the flags file.

Nothing here imports TensorFlow, so that mistakes show at once.
"""

from collections.abc import Collection, Mapping
import dataclasses
import pathlib
import tempfile
from typing import Any

from absl import flags

from tff_fair import checks
from tff_fair import files
from tff_fair import tasks
from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import presets
from tff_fair.launchers.options import private
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.options.methods import entry

FLAGS_FILE = 'flags.txt'

# Settings that do not change the numbers of a run: where its data, results,
# plug-ins and callbacks are, how many clients train at the same time, and in
# which processes.
_IRRELEVANT = (
  'output_dir',
  'data_dir',
  'compare_with',
  'export',
  'dry_run',
  'plugins',
  'callbacks',
  'client_threads',
  'num_workers',
  'cpus_per_worker',
  'cluster_address',
  'worker_timeout',
)
# Settings that only affect when a run stops. Changing them changes the number
# of rounds, not the rounds themselves.
OF_THE_END = ('stop_after', 'stop_metric')


class SettingsError(ValueError):
  """The flags do not describe a run; the message is one sentence."""


def resolve(
  flag_values: flags.FlagValues, names: Collection[str]
) -> dict[str, Any]:
  """The settings of a run; see `resolve_with_notes`."""
  return resolve_with_notes(flag_values, names)[0]


def resolve_with_notes(
  flag_values: flags.FlagValues, names: Collection[str]
) -> tuple[dict[str, Any], list[str]]:
  """The settings of a run: single flags over the preset over the defaults.

  Args:
    flag_values: Parsed flags.
    names: The flags of `launchers.train`.

  Returns:
    Flag name -> value, without `preset` and without flags that only other
    methods read; and a sentence for each value of the preset without effect,
    and for each flag that has another one's value.

  Raises:
    SettingsError: If a flag was given that would have no effect, if a value is
      outside the flag's limits, or if the method requires another value.
  """
  given = {
    n: flag_values[n].value
    for n in names
    if not flag_values[n].using_default_value
  }
  preset = {}
  if 'preset' in given:
    found = presets.PRESETS[given.pop('preset')]
    values = found.flag_values(given.get('algorithm'))
    preset = {n: v for n, v in values.items() if n not in given}
  chosen = {**preset, **given}
  algorithm = chosen.get('algorithm', train_flags.FLAGS['algorithm'].default)
  method = methods.METHODS[algorithm]
  known = train_flags.of_method(method)
  for name in sorted(set(given) - set(known)):
    raise SettingsError(
      f'--{name} must not be given with --algorithm={algorithm}, which ignores'
      ' it.'
    )
  for name, value in sorted(given.items()):
    _check_value(known[name], value, method)
  defaults = {n: flag.default for n, flag in known.items() if n != 'preset'}
  settings = {**defaults, **{n: v for n, v in chosen.items() if n in known}}
  ineffective = _ineffective(settings)
  for name, others in ineffective.items():
    if name in given:
      message = (
        f'--{name} must not be given with {_as_flags(others)}, which leaves it'
        ' without effect.'
      )
      hint = _tasks_with(name) if 'task' in others else ''
      raise SettingsError(message + hint)
    settings[name] = defaults[name]  # Not the preset's.
  _check_together(settings, method)
  followers = {n: f.follows for n, f in known.items() if f.follows}
  notes = []
  for name, leader in followers.items():
    if settings[name] is None:
      settings[name] = settings[leader]
      notes.append(f'--{name} is {settings[leader]}, as --{leader}.')
  notes += [
    f"The preset's --{name}={value} has no effect with"
    f' {_as_flags(ineffective.get(name, {"algorithm": algorithm}))}.'
    for name, value in preset.items()
    if settings.get(name) != value
  ]
  return settings, notes


def to_text(settings: Mapping[str, Any], preset: str | None) -> str:
  """The settings in the format of `--flagfile`."""
  lines = [f'# Preset: {preset or "none"}.']
  names = set(settings) - set(_ineffective(settings))
  for name in sorted(names):
    value = settings[name]
    if isinstance(value, list):
      lines.extend(f'--{name}={item}' for item in value)
    elif value is not None:
      lines.append(f'--{name}={value}')
  return '\n'.join(lines) + '\n'


def parse_text(text: str) -> dict[str, str]:
  """Flag name -> value, from the text of a flags file."""
  lines = [line for line in text.splitlines() if line.startswith('--')]
  return dict(line[2:].partition('=')[::2] for line in lines)


def relevant(text: str) -> dict[str, str]:
  """The settings in a flags file that the numbers of rounds depend on."""
  settings = parse_text(text)
  others = (*_IRRELEVANT, *OF_THE_END)
  return {n: v for n, v in settings.items() if n not in others}


def check_same_run(output_dir: pathlib.Path, text: str) -> bool:
  """Returns whether `output_dir` already holds the run of a flags file.

  Not if it holds none, or one of the same rounds that may end after another.

  Raises:
    SettingsError: If it holds a run with other settings, or cannot be read.
  """
  path = output_dir / FLAGS_FILE
  try:
    if not path.exists():
      return False
    files.check_regular(path)  # A pipe would be waited for.
    text_there = path.read_text()
  except (OSError, ValueError) as error:
    raise SettingsError(
      f'--output_dir={output_dir} must be a new directory or hold a run, found'
      f' that its {FLAGS_FILE} cannot be read: {_reason(error)}.'
    ) from error
  # As the user writes them.
  there, here = (
    {f'--{name}': value for name, value in relevant(flags_text).items()}
    for flags_text in (text_there, text)
  )
  found = checks.differences(there, here)
  if found:
    raise SettingsError(
      f'--output_dir={output_dir} must be a new directory or hold a run with'
      f' the same flags, found that {found}.'
    )
  ends = (parse_text(flags_text) for flags_text in (text_there, text))
  there, here = ([end.get(name) for name in OF_THE_END] for end in ends)
  return there == here


def check_data_dir(directory: str | None) -> None:
  """Checks that the data folder exists, before the cache and the net are tried.

  Raises:
    SettingsError: If it is given and there is no such folder.
  """
  try:
    tasks.check_data_dir(directory)
  except tasks.DataNotFoundError as error:
    reason = str(error).rpartition(', found')[2].lstrip(':').strip()
    raise SettingsError(
      f'--data_dir={directory} must be a folder that can be read, found:'
      f' {reason}'
    ) from error


def task_options(settings: Mapping[str, Any]) -> dict[str, Any]:
  """The arguments of `tasks.build_task` after the name."""
  names = {field.name for field in dataclasses.fields(tasks.TaskOptions)}
  found = {name: value for name, value in settings.items() if name in names}
  return {**found, 'seed': settings['data_seed']}


def check_own_data(settings: Mapping[str, Any]) -> None:
  """Checks the user's own data file and columns, which takes no TensorFlow.

  Raises:
    SettingsError: If the file or the flags about it are wrong.
  """
  if settings['data_file'] is None and settings['sensitive_columns'] is None:
    return
  try:
    tasks.check_task(settings['task'], **task_options(settings))
  except (ValueError, tasks.DataNotFoundError) as error:
    raise SettingsError(str(error)) from error


def make_writable(output_dir: pathlib.Path, flag: str = 'output_dir') -> None:
  """Creates the directory of a flag if it is missing, and tries to write to it.

  Raises:
    SettingsError: If it cannot be written.
  """
  try:
    output_dir.mkdir(parents=True, exist_ok=True)
    # A name of its own: several launchers may try the same directory at once.
    tempfile.TemporaryFile(dir=output_dir).close()
  except OSError as error:
    raise SettingsError(
      f'--{flag}={output_dir} must be a directory that can be written,'
      f' found: {error.strerror}.'
    ) from error


def _check_value(flag: flag_types.Flag, value: Any, method: entry.Method):
  limits = flag.violated(value)
  if not limits:
    return
  text = ''.join(value) if isinstance(value, str | list) else ''
  if any('\ud800' <= character <= '\udfff' for character in text):
    raise SettingsError(
      f'--{flag.name} must be text in the encoding of this terminal, found'
      ' bytes that it does not have: LC_ALL=C.UTF-8 before the command allows'
      ' them.'
    )
  if isinstance(flag, flag_types.Choice):  # absl allows all methods' choices.
    limits += f' with --algorithm={method.name}'
  raise SettingsError(f'--{flag.name} must be {limits}, found {value!r}.')


def _ineffective(settings: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
  """The flags without effect, and the values of others that cause this."""
  method = methods.METHODS[settings['algorithm']]
  options = tasks.unused_options(settings['task'], settings)
  found = {name: others for name, others in options.items() if name in settings}
  for flag in train_flags.of_method(method).values():
    for others in flag.unless:
      if _agree(settings, others):
        found[flag.name] = others
  for name, others in method.ignores.items():
    if _agree(settings, others):
      found[name] = others or {'algorithm': method.name}
  return found


def _check_together(settings, method: entry.Method) -> None:
  """Refuses flags that are legal alone and do not fit together."""
  required = tasks.get_data_set(settings['task']).required
  lacking = [name for name in required if settings.get(name) is None]
  if lacking:
    raise SettingsError(
      f'--task={settings["task"]} must be given with'
      f' {" and ".join(f"--{name}" for name in required)}, found no'
      f' --{lacking[0]}.'
    )
  if not _agree(settings, method.required):
    found = {name: settings[name] for name in method.required}
    raise SettingsError(
      f'--algorithm={method.name} must be given with'
      f' {_as_flags(method.required)}, found {_as_flags(found)}.'
    )
  if method.needs_groups and settings['sensitive_columns'] is None:
    raise SettingsError(
      f'--algorithm={method.name} must be given with --sensitive_columns, which'
      ' names the two groups of people that it weighs clients by, found no'
      ' --sensitive_columns.'
    )
  refusal = private.refusal(settings, method)
  if refusal:
    raise SettingsError(refusal)
  metric = settings['stop_metric']
  for flag, needs in (
    ('stop_metric', metric in train_flags.HOLDOUT_METRICS),
    ('export', settings['export'] == 'best'),
  ):
    if needs and not settings['score_holdout']:
      raise SettingsError(
        f'--{flag}={settings[flag]} must be given with --score_holdout, found'
        ' no --score_holdout.'
      )
  if method.rule == 'none' and metric in train_flags.GLOBAL_METRICS:
    raise SettingsError(
      f'--stop_metric must be of the clients with --algorithm={method.name},'
      f' which trains no global model, found {metric!r}.'
    )
  if (
    settings['unseen_fraction']
    and settings['score_unseen']
    and not method.has_global_model
  ):
    raise SettingsError(
      '--unseen_fraction must be given with --noscore_unseen where a method has'
      ' no global model for clients that took no part in the training, found'
      f' --algorithm={method.name}.'
    )
  number, rounds = settings['score_last'], settings['rounds']
  if number is not None and number > rounds:
    raise SettingsError(
      f'--score_last must be at most --rounds={rounds}, found {number}.'
    )
  if number is not None and settings['stop_after'] is not None:
    # A run that stops early does not know which rounds are its last ones.
    raise SettingsError(
      '--score_last must be given without --stop_after, which may end a run'
      f' before those rounds, found --stop_after={settings["stop_after"]}.'
    )


def _tasks_with(option) -> str:
  """A sentence with the few tasks that have an option; empty if none has."""
  names = [
    n for n in tasks.TASK_NAMES if option in tasks.get_data_set(n).options
  ]
  flag_texts = [f'--task={name}' for name in names]
  return f' It is for {" and ".join(flag_texts)}.' if 0 < len(names) < 4 else ''


def _agree(settings, values) -> bool:
  return all(settings.get(name) == value for name, value in values.items())


def _as_flags(values: Mapping[str, Any]) -> str:
  return ' '.join(f'--{name}={value}' for name, value in values.items())


def _reason(error: Exception) -> str:
  return getattr(error, 'strerror', None) or str(error)
