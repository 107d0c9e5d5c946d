"""Runs on data of one's own: from the file to the results of a run."""

import json

from absl import flags as absl_flags
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from tests.launchers import digits_run
from tff_fair import tasks
from tff_fair.launchers import predict

pytestmark = pytest.mark.full

_ROWS = 120


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
  flag_values = absl_flags.FlagValues()
  predict.define_flags(flag_values)
  run, path = map(str, (tmp_path / 'run', flags['data_file']))
  predict.main(flag_values(['predict', run, path]), flag_values)
  found = digits_run.read(tmp_path / 'run', 'predictions.csv')
  built = tasks.build_task(
    'table',
    data_file=path,
    client_column='hospital',
    label_column='outcome',
  )
  model = tf.keras.models.load_model(tmp_path / 'run/model.keras')
  said = model.predict(built.data.x, verbose=0).argmax(axis=1)
  assert found.drop(columns='prediction').equals(pd.read_csv(path))
  assert found['prediction'].tolist() == np.take(['ill', 'well'], said).tolist()
  path = flags['data_file']
  path.write_text(path.read_text().replace('Bonn,', 'Jena,'))
  with pytest.raises(SystemExit, match='found that .* content of --data_file'):
    digits_run.main(tmp_path / 'run', **flags)


def test_groups_of_people(flags, tmp_path):
  rng = np.random.default_rng(0)
  rows = np.arange(4 * _ROWS)
  table = pd.DataFrame(
    {
      'hospital': np.array(['Ulm', 'Bonn'])[rows % 2],
      'age': 20 + (7 * rows) % 30,
      'sex': np.where(rng.random(len(rows)) < 0.5, 'f', 'm'),
      'outcome': np.where(rng.random(len(rows)) < 0.5, 'ill', 'well'),
    }
  )
  table.to_csv(tmp_path / 'own.csv', index=False)
  run = tmp_path / 'run'
  printed = digits_run.main(
    run,
    **{**flags, 'data_file': tmp_path / 'own.csv', 'algorithm': 'fed_avg'},
    local_epochs=None,
    sensitive_columns='sex',
    drop_sensitive=True,
    positive_label='ill',
  )
  assert "class 'ill' as the positive one." in printed
  assert 'accuracy of the worst group' in printed
  built = tasks.build_task(
    'table',
    data_file=str(tmp_path / 'own.csv'),
    client_column='hospital',
    label_column='outcome',
    sensitive_columns='sex',
    drop_sensitive=True,
    positive_label='ill',
  )
  model = tf.keras.models.load_model(run / 'model.keras')
  found = pd.read_csv(run / 'groups.csv', dtype={'client_id': str})
  tests = [split.test for split in built.splits]
  for who, positions in {'all': np.concatenate(tests), '0': tests[0]}.items():
    said = model.predict(built.data.x[positions], verbose=0).argmax(axis=1)
    truth = built.data.y[positions]
    for group in 'fm':
      is_own = (table['sex'] == group).to_numpy()[positions]
      is_row = (found['client_id'] == who) & (found['group'] == group)
      (row,) = found[is_row].to_dict('records')
      assert row['count'] == is_own.sum()
      assert row['accuracy'] == pytest.approx(np.mean((said == truth)[is_own]))
      # The class 0 is `ill`.
      assert row['selection_rate'] == pytest.approx(np.mean(said[is_own] == 0))
  final = json.loads((run / 'summary.json').read_text())['final']
  rates = found[found['client_id'] == 'all']['selection_rate']
  assert final['demographic_parity_difference'] == pytest.approx(
    rates.max() - rates.min()
  )
  with pytest.raises(SystemExit, match="^Error: .*found 'sex'"):
    digits_run.main(tmp_path / 'x', **flags, sensitive_columns='sex')
  assert not (tmp_path / 'x').exists()


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
