"""Runs in processes of their own, killed in the middle."""

import re
import signal

import numpy as np
import pytest

from tests.launchers import digits_run

pytestmark = pytest.mark.full

_ROUNDS = 40


def _arguments(output_dir):
  return [
    '--preset=fedaboost_digits',
    f'--rounds={_ROUNDS}',
    '--eval_every=2',
    f'--output_dir={output_dir}',
  ]


@pytest.fixture(scope='module', name='whole')
def _whole(tmp_path_factory):
  """An uninterrupted run, in this process."""
  path = tmp_path_factory.mktemp('whole')
  digits_run.main_with(*_arguments(path))
  return path


@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_run_resumes_to_the_same_result(number, whole, tmp_path):
  killed = tmp_path / 'killed'
  metrics = killed / 'metrics.csv'
  text = digits_run.interrupt(
    'launchers.train', _arguments(killed), tmp_path, metrics, 15, number
  )
  rows = metrics.read_text().count('\n') - 1
  assert 13 < rows < _ROUNDS  # In the middle.
  if number != signal.SIGKILL:
    assert re.search(
      r'Error: stopped after round \d+ of 40; run the same command again', text
    )
    assert 'Traceback' not in text
    # Saved at once, not only at a multiple of ten.
    saved = {path.name for path in (killed / 'checkpoints').iterdir()}
    assert saved & {f'round_{rows - n}.safetensors' for n in (0, 1)}
  assert 'resuming after round' in digits_run.main_with(*_arguments(killed))
  assert digits_run.tables(killed) == digits_run.tables(whole)
  assert digits_run.models(killed) == digits_run.models(whole)
  expected = digits_run.variables(whole, _ROUNDS)
  for name, value in digits_run.variables(killed, _ROUNDS).items():
    np.testing.assert_array_equal(value, expected[name])
