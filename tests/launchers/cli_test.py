"""What all launchers share, and what a fresh Python sees of them."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

from launchers import cli

_ROOT = pathlib.Path(__file__).parents[2]
# What is imported before flags are checked, or without any training.
_WITHOUT_TENSORFLOW = (
  'launchers.benchmark',
  'launchers.covariate_shift',
  'launchers.report',
  'launchers.reproduce',
  'launchers.train',
  'launchers.worker',
  'launchers.pages.shift_report',
  'launchers.plots.all_plots',
  'launchers.plots.embedding_plots',
  'launchers.plots.shift_plots',
  'launchers.tables.table_plots',
  'launchers.tables.table_report',
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


def test_sigterm_is_ctrl_c_and_a_log_level_is_kept(monkeypatch):
  monkeypatch.setenv('TF_CPP_MIN_LOG_LEVEL', '0')
  before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
  try:
    cli.prepare_for_tensorflow()
    assert os.environ['TF_CPP_MIN_LOG_LEVEL'] == '0'
    monkeypatch.delenv('TF_CPP_MIN_LOG_LEVEL')
    cli.prepare_for_tensorflow()
    assert os.environ['TF_CPP_MIN_LOG_LEVEL'] == '3'
    with pytest.raises(KeyboardInterrupt):
      os.kill(os.getpid(), signal.SIGTERM)
  finally:
    signal.signal(signal.SIGTERM, before)


def test_help_shows_the_flags_of_other_modules():
  shown = _python('-m', 'launchers.train', '--help').stdout
  assert '--[no]boosting' in shown and '--boost_rate' in shown


def test_a_mistake_is_one_line_and_exit_code_1(tmp_path):
  done = _python(
    '-m', 'launchers.covariate_shift', '--shift=nan', f'--output_dir={tmp_path}'
  )
  assert done.returncode == 1
  assert done.stderr == 'Error: --shift must be finite, found nan.\n'


def test_imports_leave_tensorflow_alone():
  script = (
    f'import importlib, sys\nfor name in {_WITHOUT_TENSORFLOW}:\n'
    '  importlib.import_module(name)\n'
    '  assert "tensorflow" not in sys.modules, name\n'
    '  assert name != "launchers.benchmark" or "pandas" not in sys.modules\n'
  )
  done = _python('-c', script)
  assert done.returncode == 0, done.stderr
