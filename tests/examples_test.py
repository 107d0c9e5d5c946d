import asyncio
import importlib
import pathlib
import sys

from absl import flags
import pandas as pd
import pytest

from tff_fair import runtime

_FOLDER = pathlib.Path(__file__).parents[1] / 'examples'


@pytest.fixture(name='run')
def _run(monkeypatch, tmp_path):
  """Runs an example, and returns the folder of its results."""
  monkeypatch.syspath_prepend(_FOLDER)
  # `asyncio.run`, of whichever test, leaves none.
  asyncio.set_event_loop(asyncio.new_event_loop())

  def run(name, *arguments):
    example = importlib.import_module(name)
    flag_values = flags.FlagValues()
    sys.modules['digits'].define_flags(flag_values)
    arguments = [name, f'--output_dir={tmp_path}', '--clients=2', *arguments]
    example.main(flag_values(arguments), flag_values)
    return tmp_path

  yield run
  runtime.set_execution_context('device', device='cpu')


def test_run_training_process(run, capsys):
  path = run('run_training_process', '--method=fedquad', '--rounds=2')
  rows = pd.read_csv(path / 'metrics.csv', index_col='key')
  assert rows.index.to_list() == [0, 1, 2]
  accuracy = rows['evaluation/accuracy'].to_list()
  assert accuracy[2] > accuracy[0]
  assert f'accuracy {accuracy[2]:.3f}' in capsys.readouterr().out


def test_train_model_goes_on_when_it_is_started_again(run):
  path = run('train_model', '--method=fedaboost', '--rounds=2')
  rows = pd.read_csv(path / 'train.csv', index_col='key')
  assert sorted(rows.index) == [1, 2]
  assert set(rows['model_metrics/num_clients']) == {2}
  run('train_model', '--method=fedaboost', '--rounds=3')
  rows = pd.read_csv(path / 'evaluation.csv', index_col='key')
  assert sorted(rows.index) == [2, 3]
