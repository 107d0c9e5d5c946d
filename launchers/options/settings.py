"""From flags to the settings of a run: presets, checks, and the flags file.

Nothing here imports TensorFlow, so that mistakes show at once.
"""

from collections.abc import Mapping, Sequence
import math
import pathlib
from typing import Any

from absl import flags

from launchers.options import methods
from launchers.options import presets

FLAGS_FILE = 'flags.txt'

# What does not change the numbers of a run: where its data and its results are,
# how many clients train at once, and where; but with another number of workers
# the last bits of sums are others.
_IRRELEVANT = (
  'output_dir',
  'data_dir',
  'compare_with',
  'client_threads',
  'workers',
)


class SettingsError(ValueError):
  """The flags do not describe a run; the message is one sentence."""


def resolve(
  run_flags: flags.FlagValues, names: Sequence[str]
) -> dict[str, Any]:
  """The settings of a run: single flags over the preset over the defaults.

  Args:
    run_flags: Parsed flags.
    names: The flags of `launchers.train`.

  Returns:
    Flag name -> value, without `preset`, and without what only other methods
    read.

  Raises:
    SettingsError: If a flag was given that would have no effect, or that is no
      finite number or no line of text, or if the method needs another value of
      a flag.
  """
  given = {
    n: run_flags[n].value for n in names if not run_flags[n].using_default_value
  }
  for name, value in given.items():
    _check_value(name, value)
  chosen = {n: v for n, v in given.items() if n != 'preset'}
  preset = presets.PRESETS.get(run_flags['preset'].value)
  if preset is not None:
    chosen = {**preset.flag_values(given.get('algorithm')), **chosen}
  defaults = _defaults(run_flags, names, chosen.get('algorithm'))
  values = {**defaults, **chosen}
  own = methods.METHOD_FLAGS[values['algorithm']]
  foreign = {n for f in methods.METHOD_FLAGS.values() for n in f} - set(own)
  for name in sorted(foreign & set(given)):
    raise SettingsError(
      f'--{name} must not be given with --algorithm={values["algorithm"]},'
      ' which ignores it.'
    )
  settings = {n: v for n, v in values.items() if n not in foreign}
  for name, others in _ineffective(settings).items():
    if name in given:
      raise SettingsError(
        f'--{name} must not be given with {_as_flags(others)}, which leaves it'
        ' without effect.'
      )
    settings[name] = defaults[name]  # Not the preset's.
  _check_required(settings)
  return settings


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
  """Flag name -> value, from what `to_text` gives.

  Args:
    text: The text of a flags file.
  """
  lines = [line for line in text.splitlines() if line.startswith('--')]
  return dict(line[2:].partition('=')[::2] for line in lines)


def check_same_run(output_dir: pathlib.Path, text: str) -> bool:
  """Whether `output_dir` already holds this run.

  Args:
    output_dir: The run's directory.
    text: What `to_text` gives for the settings.

  Returns:
    True if it holds this run, False if it holds none.

  Raises:
    SettingsError: If it holds a run with other settings, or cannot be read.
  """
  path = output_dir / FLAGS_FILE
  try:
    if not path.exists():
      return False
    there = parse_text(path.read_text())
  except (OSError, ValueError) as error:
    raise SettingsError(
      f'--output_dir={output_dir} must be a new directory or hold a run, found'
      f' that its {FLAGS_FILE} cannot be read: {_reason(error)}.'
    ) from error
  here = parse_text(text)
  differences = [
    f'--{n} is {there.get(n, "not set")} there and {here.get(n, "not set")}'
    ' here'
    for n in sorted({*there, *here} - set(_IRRELEVANT))
    if there.get(n) != here.get(n)
  ]
  if differences:
    raise SettingsError(
      f'--output_dir={output_dir} must be a new directory or hold a run with'
      f' the same flags, found that {"; ".join(differences)}.'
    )
  return True


def check_finished(directories: list[str]) -> None:
  """Checks the runs that this one is to be drawn beside.

  Args:
    directories: Values of `--compare_with`.

  Raises:
    SettingsError: If one of them is not the directory of a finished run.
  """
  for directory in directories:
    try:
      finished = (pathlib.Path(directory) / 'summary.json').is_file()
    except OSError:  # For example of a name that is too long.
      finished = False
    if not finished:
      raise SettingsError(
        f'--compare_with={directory} must be the directory of a finished run,'
        ' found no summary.json in it.'
      )


def make_writable(output_dir: pathlib.Path) -> None:
  """Makes the directory if it is missing, and tries to write to it.

  Args:
    output_dir: Value of `--output_dir`.

  Raises:
    SettingsError: If it cannot be written.
  """
  try:
    output_dir.mkdir(parents=True, exist_ok=True)
    (output_dir / '.probe').touch()
    (output_dir / '.probe').unlink()
  except OSError as error:
    raise SettingsError(
      f'--output_dir={output_dir} must be a directory that can be written,'
      f' found: {error.strerror}.'
    ) from error


def _check_value(name, value):
  """Whether it is a number, and can stand in a line of the flags file."""
  if isinstance(value, float) and not math.isfinite(value):
    raise SettingsError(f'--{name} must be finite, found {value}.')
  for text in value if isinstance(value, list) else [value]:
    if isinstance(text, str) and not _is_a_line(text):
      raise SettingsError(
        f'--{name} must be a line of text without blanks at its ends, found'
        f' {text!r}.'
      )


def _is_a_line(text: str) -> bool:
  return text.isprintable() and text == text.strip()


def _defaults(run_flags, names, algorithm: str | None) -> dict[str, Any]:
  """The flags' defaults, some of which depend on the method."""
  defaults = {n: run_flags[n].default for n in names if n != 'preset'}
  algorithm = algorithm or defaults['algorithm']
  return {**defaults, **methods.METHOD_DEFAULTS.get(algorithm, {})}


def _ineffective(settings: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
  """The flags that others leave without effect, and these with their values."""
  return {
    name: others
    for name, others in methods.INEFFECTIVE
    if name in settings and _agree(settings, others)
  }


def _check_required(settings):
  required = methods.REQUIRED.get(settings['algorithm'], {})
  if not _agree(settings, required):
    found = {name: settings[name] for name in required}
    raise SettingsError(
      f'--algorithm={settings["algorithm"]} must be given with'
      f' {_as_flags(required)}, found {_as_flags(found)}.'
    )


def _agree(settings, values) -> bool:
  return all(settings.get(name) == value for name, value in values.items())


def _as_flags(values: Mapping[str, Any]) -> str:
  return ' '.join(f'--{name}={value}' for name, value in values.items())


def _reason(error: Exception) -> str:
  return getattr(error, 'strerror', None) or str(error)
