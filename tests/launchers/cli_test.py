"""What all launchers share, and what a fresh Python sees of them."""

import os
import pathlib
import re
import signal
import subprocess
import sys

from absl import flags
import pytest

import tff_fair
from tff_fair.launchers import __main__ as launchers_main
from tff_fair.launchers import cli
from tff_fair.launchers.options import train_flags

_ROOT = pathlib.Path(__file__).parents[2]
# What is imported before flags are checked, or without any training.
_WITHOUT_TENSORFLOW = (
  'benchmarks.run',
  'tff_fair.launchers.claims',
  'tff_fair.launchers.compare',
  'tff_fair.launchers.predict',
  'tff_fair.launchers.report',
  'tff_fair.launchers.reproduce',
  'tff_fair.launchers.train',
  'tff_fair.launchers.write_docs',
  'tff_fair.launchers.options.builders',
  'tff_fair.launchers.pages.compare_page',
  'tff_fair.launchers.pages.report_page',
  'tff_fair.launchers.plots.all_plots',
  'tff_fair.launchers.plots.embedding_plots',
  'tff_fair.launchers.tables.table_plots',
  'tff_fair.launchers.tables.table_report',
)


def _python(*arguments):
  return subprocess.run(
    [sys.executable, *arguments],
    cwd=_ROOT,
    capture_output=True,
    text=True,
    timeout=120,
    check=False,
  )


def _message(action, *arguments, **keywords):
  with pytest.raises(SystemExit) as error:
    action(*arguments, **keywords)
  return error.value.code


def test_positional_arguments_are_refused():
  cli.check_only_flags(['train'])
  assert _message(cli.check_only_flags, ['train', 'x', 'y']) == (
    "Error: every argument must be a flag, found 'x'."
  )


def test_known_errors_and_ctrl_c_end_the_program_in_one_sentence():
  def fail_with(error, **options):
    with cli.one_sentence_errors(ValueError, OSError, **options):
      raise error

  assert _message(fail_with, OSError('no disk.')) == 'Error: no disk.'
  assert _message(fail_with, KeyboardInterrupt()) == (
    'Error: interrupted; run the same command again to resume.'
  )
  found = _message(fail_with, KeyboardInterrupt(), interrupted='gone.')
  assert found == 'Error: gone.'
  with pytest.raises(TypeError, match='a bug'):
    fail_with(TypeError('a bug'))
  with cli.one_sentence_errors(ValueError):
    pass


_OF_TENSORFLOW = {'TF_CPP_MIN_LOG_LEVEL': '3', 'TF_ENABLE_ONEDNN_OPTS': '1'}


def test_tensorflows_variables_are_kept_and_sigterm_becomes_ctrl_c(monkeypatch):
  for name in _OF_TENSORFLOW:
    monkeypatch.setenv(name, '0')
  numbers = (signal.SIGINT, signal.SIGTERM)
  before = [signal.getsignal(number) for number in numbers]
  try:
    cli.prepare_for_tensorflow()
    assert {os.environ[name] for name in _OF_TENSORFLOW} == {'0'}
    for name in _OF_TENSORFLOW:
      monkeypatch.delenv(name)
    cli.prepare_for_tensorflow()
    assert _OF_TENSORFLOW.items() <= os.environ.items()
    for number in numbers:
      with (
        pytest.raises(SystemExit, match='interrupted; nothing'),
        cli.one_sentence_errors(interrupted='interrupted; nothing.'),
      ):
        os.kill(os.getpid(), number)
    # As in a shell's background.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    cli.prepare_for_tensorflow()
    with cli.one_sentence_errors():
      os.kill(os.getpid(), signal.SIGINT)
  finally:
    for number, handler in zip(numbers, before, strict=True):
      signal.signal(number, handler)


_SIGNAL_AT_IMPORT = """
import os, sys

class Finder:
  def find_spec(self, name, *_):
    if name == os.environ['AT_IMPORT']:
      os.kill(os.getpid(), int(os.environ['SIGNAL']))

sys.meta_path.insert(0, Finder())
"""


@pytest.mark.full
def test_ctrl_c_while_importing_is_one_line(tmp_path):
  """Python reads sitecustomize.py first, which sends the signal."""
  rows = (
    ('launchers.train', 'tff_fair.launchers.options', signal.SIGINT),
    ('launchers.train', 'tensorflow', signal.SIGTERM),
    ('launchers.reproduce', 'tff_fair.launchers.results', signal.SIGINT),
    ('benchmarks.run', 'tensorflow', signal.SIGINT),
    ('launchers.report', 'pandas', signal.SIGINT),
  )
  flags = {
    'launchers.reproduce': ['--table=cffl_table1'],
    'benchmarks.run': ['--workloads=A'],
  }
  for program, module, number in rows:
    start = ['-m', program, *flags.get(program, [])]
    if program != 'launchers.report':
      start.append(f'--output_dir={tmp_path / program}')
    _check_interrupted(start, module, number, tmp_path)


def test_a_signal_after_the_end_has_no_effect():
  done = _python(
    '-c',
    'import atexit, os, sys; from tff_fair.launchers import cli\n'
    f'atexit.register(os.kill, os.getpid(), {int(signal.SIGINT)})\n'
    'cli.run(lambda argv: print("ended"), lambda flag_values: None)',
  )
  assert (done.returncode, done.stdout, done.stderr) == (0, 'ended\n', '')


def test_ctrl_c_in_a_destructor_is_not_lost():
  done = _python(
    '-c',
    'import os, signal, time; from tff_fair.launchers import cli\n'
    'class Dying:\n'
    '  def __del__(self): os.kill(os.getpid(), signal.SIGINT); time.sleep(9)\n'
    'def main(argv):\n'
    '  cli.prepare_for_tensorflow()\n'
    '  with cli.one_sentence_errors(): Dying(); time.sleep(9)\n'
    'cli.run(main, lambda flag_values: None)',
  )
  assert done.stderr == f'Error: {cli.RESUMABLE}\n'


def _check_interrupted(start, module, number, tmp_path):
  (tmp_path / 'sitecustomize.py').write_text(_SIGNAL_AT_IMPORT)
  done = subprocess.run(
    [sys.executable, *start],
    cwd=_ROOT,
    env=os.environ
    | {
      'AT_IMPORT': module,
      'SIGNAL': str(int(number)),
      'PYTHONPATH': f'{tmp_path}{os.pathsep}{_ROOT}',
    },
    capture_output=True,
    text=True,
    timeout=120,
    check=False,
  )
  found = (start, module, done.stderr)
  assert re.fullmatch(r'Error: interrupted.*\.\n', done.stderr), found
  assert done.returncode == 1, found


@pytest.mark.full
@pytest.mark.parametrize(
  'module', ['tff_fair.launchers.command_names', 'absl.flags']
)
def test_ctrl_c_while_the_command_starts_is_one_line(module, tmp_path):
  script = tmp_path / 'tff-fair'
  # What pip writes for the entry point.
  script.write_text('from tff_fair.launchers.__main__ import main\nmain()\n')
  _check_interrupted([script, 'train'], module, signal.SIGINT, tmp_path)


@pytest.mark.parametrize(
  ('start', 'command', 'further'),
  [
    (
      ['launchers.train'],
      'python -m launchers.train --preset=fedaboost_digits',
      '--help=METHOD',
    ),
    (
      ['tff_fair.launchers', 'compare'],
      'tff-fair compare --task=digits --methods=fair --rounds=60',
      '--help=data',
    ),
    pytest.param(
      ['launchers', 'reproduce'],
      'python -m launchers.reproduce --table=cffl_table1 --seeds=3',
      '--help=TABLE',
      marks=pytest.mark.full,
    ),
    pytest.param(
      ['launchers.report'],
      'python -m launchers.report runs/avg runs/boost',
      '--output_file',
      marks=pytest.mark.full,
    ),
  ],
)
def test_help_begins_with_how_it_was_started_and_leads_on(
  start, command, further
):
  shown = _python('-m', *start, '--help').stdout
  assert f'\n  {command}\n' in shown
  assert f'\n  {further}' in shown and '--helpfull' not in shown


def test_help_of_a_method_shows_its_flags_alone():
  shown = _python('-m', 'launchers.train', '--help=q_fed_avg').stdout
  assert shown.startswith('--algorithm=q_fed_avg: q-FedAvg, clients with high')
  assert '--q (q): Exponent' in shown and len(shown.splitlines()) < 5


def test_a_mistake_is_one_line_and_exit_code_1(tmp_path):
  start = ('tff_fair.launchers', 'train')
  done = _python('-m', *start, '--shift=nan', f'--output_dir={tmp_path}')
  assert done.returncode == 1
  assert done.stderr == 'Error: --shift must be finite, found nan.\n'


def _tff_fair(monkeypatch, *arguments):
  monkeypatch.setattr(sys, 'argv', ['tff-fair', *arguments])
  launchers_main.main()


def test_the_command_lists_the_launchers(monkeypatch, capsys):
  _tff_fair(monkeypatch, '--help')
  listed = capsys.readouterr().out
  for row in (
    'tff-fair train      Trains one method on one task.',
    'tff-fair reproduce  Runs the experiments',
    'tff-fair report     Writes a web page',
  ):
    assert f'\n  {row}' in listed
  _tff_fair(monkeypatch, '--version')
  assert capsys.readouterr().out == f'tff-fair {tff_fair.__version__}\n'


def test_no_command_or_an_unknown_one_gets_the_list(monkeypatch):
  for arguments, sentence in (
    ([], 'a command is required.'),
    (
      ['trian', '--rounds=1'],
      "the command must be one of those below, found 'trian'. Did you mean"
      ' train?',
    ),
  ):
    message = _message(_tff_fair, monkeypatch, *arguments)
    assert message.startswith(f'Error: {sentence}\n\nCommands')
    assert '\n  tff-fair train ' in message


def test_imports_leave_tensorflow_alone():
  script = (
    f'import importlib, sys\nfor name in {_WITHOUT_TENSORFLOW}:\n'
    '  importlib.import_module(name)\n'
    '  assert "tensorflow" not in sys.modules, name\n'
  )
  done = _python('-c', script)
  assert done.returncode == 0, done.stderr


def test_a_flag_of_a_plug_in_that_exists_is_one_sentence():
  done = _python(
    '-c',
    'from absl import flags\nfrom tff_fair.launchers import cli, train\n'
    'flags.DEFINE_integer("rounds", 1, "A plug-in\'s.")\n'
    'cli.run(train.main, train.train_flags.define_flags)\n',
  )
  assert re.fullmatch(
    'Error: a plug-in must not define a flag that .*rounds.*\n', done.stderr
  )


def test_mistakes_on_a_command_line_are_one_sentence():
  for argument, message in (
    ('--rounds=1e3', "flag --rounds=1e3: invalid literal .* base 10: '1e3'."),
    ('--rounds', 'Missing value for flag --rounds.'),
    ('--flagfile=/no', '.*flagfile: .* No such file or directory: ./no..'),
    (
      '--boosts=1',
      '--boosts is no flag of this program. Did you mean boosting?',
    ),
    (
      '--seed=1',
      '--seed is no flag of this program. Did you mean model_seed, client_seed'
      ' or data_seed?',
    ),
    ('--rounds=1\n2', 'flag --rounds=1 2: .*'),
    (
      '--algorithm=fedaboots',
      "--algorithm must be a known name, found 'fedaboots'. Did you mean"
      ' fedaboost?',
    ),
    (
      '--runtime=',
      "--runtime must be one of device, native, cluster, found ''.",
    ),
  ):
    flag_values = flags.FlagValues()
    train_flags.define_flags(flag_values)
    found = _message(cli.parse_flags, ['train', argument], flag_values)
    assert re.fullmatch('Error: ' + message.replace('?', r'\?'), found), found
