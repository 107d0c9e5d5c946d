"""Flags drawn at random: a clear error or the right answer, never a traceback.

An error is one sentence: absl's of a value that it cannot parse, a
`SettingsError` before anything is built, then one of `training.USER_ERRORS`.
"""

import functools
import math
import pathlib
import tempfile
from unittest import mock

from absl import flags
import hypothesis
from hypothesis import strategies as st
import pytest

from tff_fair.launchers import cli
from tff_fair.launchers import reproduce
from tff_fair.launchers import train
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import presets
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.tables import definitions

pytestmark = pytest.mark.full

# The same draws each time.
_settings = functools.partial(
  hypothesis.settings,
  derandomize=True,
  database=None,
  deadline=None,
  suppress_health_check=list(hypothesis.HealthCheck),
)

_TEXTS = (
  *('', ' ', 'x', 'Straße', '名前', '\u0663', '½', '\udcff', 'a\nb', '--x=1'),
  *('#', 'a,b', '"', 'x' * 300, 'auto', 'cpu', 'gpu:99', 'None', 'True'),
)
_INTEGERS = (
  *('0', '1', '2', '3', '7', '1000', '-1', '-0', '+1', '1_000', '0x10'),
  *(str(2**31 - 1), str(2**31), str(2**32), str(2**63), str(10**30), '1.5'),
)
_FLOATS = (
  *('0', '1', '0.5', '0.1', '2', '100', '-1', '-0.0', '1e-6', '1e-300'),
  *('5e-324', '1e300', '1e400', '-1e400', 'nan', 'inf', '-inf', '0.999999999'),
)


def _definitions():
  flag_values = flags.FlagValues()
  train_flags.define_flags(flag_values)
  return {name: flag_values[name] for name in train_flags.FLAG_NAMES}


_DEFINED = _definitions()


def _values(flag):
  """Texts for a flag, most of which it can parse."""
  if isinstance(flag, flags.EnumFlag):
    return [*flag.parser.enum_values, '', 'X']
  return {
    'int': [*_INTEGERS, '', 'x', '\u0663'],
    'float': [*_FLOATS, '', 'x', '½'],
    'bool': ['true', 'false', '1', '', 'x'],
  }.get(flag.flag_type(), list(_TEXTS))


def _arguments(defined, names, max_size):
  """Some of the flags, each with a value."""
  argument = st.sampled_from(sorted(names)).flatmap(
    lambda name: st.sampled_from(_values(defined[name])).map(
      lambda value: f'--{name}={value}'
    )
  )
  return st.lists(argument, max_size=max_size)


_OF_ALL = {*train_flags.FLAGS} - {'algorithm', 'preset'}


@st.composite
def _commands(draw, of_all):
  """A method with some of its own flags and of those that all have."""
  method = draw(st.sampled_from(list(methods.METHODS.values())))
  names = {*of_all, *(flag.name for flag in method.flags)}
  return [
    f'--algorithm={method.name}',
    *draw(_arguments(_DEFINED, names, max_size=5)),
  ]


def _resolve(arguments):
  flag_values = train_flags.parse(arguments)
  return settings_lib.resolve(flag_values, train_flags.FLAG_NAMES)


def _resolve_or_skip(arguments):
  """The settings; an error has to be a sentence."""
  try:
    return _resolve(arguments)
  except (flags.Error, settings_lib.SettingsError) as error:
    _assert_is_a_sentence(error)
  hypothesis.reject()


def _assert_is_a_sentence(error):
  text = str(error)
  # absl quotes a line break that it was given.
  assert len(text.replace('a\nb', '').splitlines()) == 1, text
  assert 'File "' not in text


@_settings(max_examples=60)
@hypothesis.given(
  _commands(_OF_ALL), st.none() | st.sampled_from(sorted(presets.PRESETS))
)
def test_what_resolves_is_finite_and_the_same_when_written_down(
  arguments, preset
):
  if preset:
    arguments = [f'--preset={preset}', *arguments]
  found = _resolve_or_skip(arguments)
  for value in found.values():
    assert not isinstance(value, float) or math.isfinite(value)
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / settings_lib.FLAGS_FILE
    text = settings_lib.to_text(found, preset)
    path.write_text(text)
    assert settings_lib.check_same_run(path.parent, text)
    assert _resolve([f'--flagfile={path}']) == found


_DIGITS = ('--task=digits', '--rounds=1', '--device=cpu')
_OF_DATA = {*train_flags.DATA_FLAG_NAMES} - {'task'}


@_settings(max_examples=40)
@hypothesis.given(_commands(_OF_DATA))
def test_a_task_is_built_or_refused(arguments):
  from tff_fair.launchers.runs import training

  found = _resolve_or_skip([*arguments, *_DIGITS])
  try:
    task = training.build_task(found)
  except training.USER_ERRORS as error:
    _assert_is_a_sentence(error)
    return
  riders = found.get('free_riders', 0)
  unseen = task.unseen.num_clients if task.unseen else 0
  assert task.num_clients + unseen == (found['num_clients'] or 20) + riders


class _Resolved(Exception):
  """The flags of a launcher are good."""


def _launch(launcher, arguments, next_step):
  """Runs a launcher up to what it does with good flags."""
  flag_values = flags.FlagValues()
  launcher.define_flags(flag_values)
  with mock.patch(next_step, side_effect=_Resolved):
    try:
      launcher.main(
        cli.parse_flags(['launcher', *arguments], flag_values), flag_values
      )
    except SystemExit as error:
      assert error.code.startswith('Error: ')
      _assert_is_a_sentence(error.code)
    except _Resolved:
      return True
  return False


def _flags_of(launcher, unwanted=()):
  flag_values = flags.FlagValues()
  launcher.define_flags(flag_values)
  names = {*flag_values} - {'output_dir', *unwanted}
  return _arguments(flag_values, names, max_size=4)


@pytest.fixture(name='folder', scope='module')
def _folder(tmp_path_factory):
  return tmp_path_factory.mktemp('output')


@_settings(max_examples=25)
@hypothesis.given(
  # Each seed has runs of its own to plan.
  _flags_of(reproduce, unwanted=('table', 'seeds')),
  st.sampled_from(sorted(definitions.TABLES)),
  st.sampled_from(['-1', '0', '2', 'x']) | st.none(),
)
def test_reproduce_plans_or_refuses(folder, arguments, table, seeds):
  arguments = [*arguments, f'--table={table}', f'--output_dir={folder}']
  if seeds:
    arguments.append(f'--seeds={seeds}')
  _launch(reproduce, arguments, 'tff_fair.launchers.reproduce._train')


# What a search among thousands of commands has found.
class TestFound:
  def test_paths_that_are_too_long_are_refused(self, tmp_path):
    from tff_fair.launchers.runs import training

    for name in ('output_dir', 'compare_with'):
      flag_values = train_flags.parse(
        [f'--output_dir={tmp_path}', f'--{name}={tmp_path / ("x" * 300)}']
      )
      with pytest.raises(SystemExit, match=f'^Error: --{name}=.*x must be '):
        train.main(['train'], flag_values)
    found = _resolve(['--task=mnist', f'--data_dir={"x" * 300}'])
    with pytest.raises(
      training.USER_ERRORS, match='must be readable, found: F'
    ):
      training.build_task(found)

  def test_numbers_of_clients_that_no_memory_holds_are_refused(self):
    from tff_fair.launchers.runs import training

    for arguments in (
      ['--partition=class', f'--num_clients={2**40}'],
      ['--min_samples=0', f'--num_clients={2**40}'],
      ['--min_samples=0', f'--num_clients={10**30}'],
      ['--algorithm=cffl', f'--free_riders={2**40}'],
    ):
      with pytest.raises(training.RunError) as caught:
        training.build_task(_resolve(arguments))
      _assert_is_a_sentence(caught.value)
