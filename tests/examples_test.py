import asyncio
import importlib
import pathlib
import sys

from absl import flags
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import metrics
from tff_fair import runtime
from tff_fair.launchers.results import again_table
from tff_fair.launchers.results import records

pytestmark = pytest.mark.full

_FOLDER = pathlib.Path(__file__).parents[1] / 'examples'


@pytest.fixture(name='run')
def _run(monkeypatch, tmp_path):
  """Runs an example, and returns the folder of its results."""
  monkeypatch.syspath_prepend(_FOLDER)
  # `asyncio.run`, in any other test, leaves no event loop.
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
  path = run('run_training_process', '--method=fedaboost', '--rounds=2')
  rows = pd.read_csv(path / 'metrics.csv', index_col='key')
  assert rows.index.to_list() == [0, 1, 2]
  output = capsys.readouterr().out
  for name in ('accuracy', 'macro_f1'):
    values = rows[f'evaluation/{name}'].to_list()
    assert values[2] > values[0]
    assert f'{name} {values[2]:.3f}' in output


def test_train_model_resumes_when_it_is_started_again(run):
  path = run('train_model', '--method=fedaboost', '--rounds=2')
  rows = pd.read_csv(path / 'train.csv', index_col='key')
  assert sorted(rows.index) == [1, 2]
  assert set(rows['model_metrics/num_clients']) == {2}
  run('train_model', '--method=fedaboost', '--rounds=3')
  rows = pd.read_csv(path / 'evaluation.csv', index_col='key')
  assert sorted(rows.index) == [2, 3]
  assert rows['model_metrics/macro_f1'].between(0, 1).all()


@pytest.mark.usefixtures('default_runtime')
def test_evaluation_reports_macro_f1(monkeypatch):
  """Of the clients' pooled data, as `tff_fair.metrics.macro_f1`."""
  monkeypatch.syspath_prepend(_FOLDER)
  digits = importlib.import_module('digits')
  tf.keras.utils.set_random_seed(3)
  model = digits.models.mlp_cffl_adult((8, 8, 1), digits.NUM_CLASSES)
  data = [digits.test_data(i) for i in range(digits.NUM_CLIENTS)]
  confusion = np.zeros([digits.NUM_CLASSES] * 2, int)
  for batch in (batch for client in data for batch in client):
    predicted = model(batch['x'])['logits'].numpy().argmax(axis=1)
    np.add.at(confusion, (batch['y'], predicted), 1)
  evaluation = digits.build_evaluation()
  weights = tff.learning.models.ModelWeights.from_model(model)
  state = evaluation.set_model_weights(evaluation.initialize(), weights)
  found = evaluation.next(state, data).metrics['client_work']
  found = found['eval']['current_round_metrics']
  expected = metrics.macro_f1(confusion)
  assert 0 < expected < 1
  assert found['macro_f1'] == pytest.approx(expected, rel=1e-5)
  accuracy = np.trace(confusion) / np.sum(confusion)
  assert found['accuracy'] == pytest.approx(accuracy, rel=1e-5)


def test_two_recorded_runs_of_each_paper_are_drawn(monkeypatch):
  monkeypatch.syspath_prepend(_FOLDER)
  recorded = records.read(_FOLDER.parent / 'results')
  train_again = importlib.import_module('train_again')
  drawn = train_again.draw(recorded)
  assert set(drawn['source']) == {records.RUN}
  runs = drawn.drop_duplicates([*again_table.RUN])
  papers = runs['table'].str.partition('_')[0]
  assert set(papers.value_counts()) == {2}
  known = {'fedakd', 'fedquad'}
  others = train_again.draw(recorded, known)['table'].str.partition('_')[0]
  assert set(others) == set(papers) - known
  # All numbers of a run, and those alone.
  for run, numbers in drawn.groupby([*again_table.RUN]):
    rows = recorded.set_index([*again_table.RUN]).sort_index().loc[[run]]
    assert sorted(numbers['metric']) == sorted(rows['metric'])
