"""Runs on data of one's own: from the file to the results of a run."""

import pathlib
import runpy

import numpy as np
import pandas as pd
import pytest

from tests.launchers import digits_run

pytestmark = pytest.mark.full

_ROWS = 120
_EXAMPLE = pathlib.Path(__file__).parents[2] / 'examples/predict.py'


@pytest.fixture(name='flags', scope='module')
def _flags(tmp_path_factory):
  rows = np.arange(_ROWS)
  path = tmp_path_factory.mktemp('data') / 'own.csv'
  pd.DataFrame(
    {
      'hospital': np.array(['Ulm', 'Bonn', 'Berlin'])[rows % 3],
      'age': 20 + (7 * rows) % 30,
      'outcome': np.where((7 * rows) % 30 > 15, 'ill', 'well'),
    }
  ).to_csv(path, index=False)
  return {
    'preset': None,
    'num_clients': None,
    'task': 'table',
    'data_file': path,
    'client_column': 'hospital',
    'label_column': 'outcome',
    'client_learning_rate': 0.1,
  }


def test_a_run_on_a_table_and_its_resumption(flags, tmp_path):
  printed = digits_run.main(tmp_path / 'run', **flags)
  assert 'fedaboost on own.csv: 3 clients, 2 rounds' in printed
  assert digits_run.read(tmp_path / 'run', 'clients.csv')['accuracy'].mean() > 0
  predict = runpy.run_path(str(_EXAMPLE))['predict']
  found = predict(tmp_path / 'run', flags['data_file'])
  assert len(found) == _ROWS and set(found) <= {'ill', 'well'}
  path = flags['data_file']
  path.write_text(path.read_text().replace('Bonn,', 'Jena,'))
  with pytest.raises(SystemExit, match='found that .* content of --data_file'):
    digits_run.main(tmp_path / 'run', **flags)


def test_arrays_with_a_server_and_a_free_rider(tmp_path):
  rows = np.arange(_ROWS)
  x = np.stack([rows % 2, rows % 5], axis=1).astype(np.float32)
  np.savez(tmp_path / 'own.npz', x=x, y=rows % 2, client=rows % 3)
  flags = {
    'preset': None,
    'num_clients': None,
    'task': 'arrays',
    'data_file': tmp_path / 'own.npz',
    'algorithm': 'cffl',
    'split': 'server',
    'free_riders': 1,
    'local_epochs': None,
  }
  assert 'cffl on own.npz: 4 clients' in digits_run.main(
    tmp_path / 'run', dry_run=True, **flags
  )
  digits_run.main(tmp_path / 'run', **flags)
  scores = digits_run.read(tmp_path / 'run', 'clients.csv')
  assert scores['num_train'].tolist()[-1] == 0
  assert scores['num_test'].tolist() == [24] * 4
