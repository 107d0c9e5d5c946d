"""Predictions of new examples: what is written, said and refused."""

import json
import re

from absl import flags
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from tff_fair.launchers import predict

_HEAD = 'age,smoker,ward\n'


def _feature(name, mean=0.0, deviation=1.0):
  return {'name': name, 'mean': mean, 'deviation': deviation}


_TABLE = {
  'task': 'table',
  'input_shape': [None, 4],
  'classes': ['ill', 'well'],
  'features': [
    _feature('age', 40.0, 10.0),
    _feature('smoker'),
    _feature('ward=A'),
    _feature('ward=B'),
  ],
  'columns': [
    {'name': 'age', 'kind': 'number', 'width': 1},
    {'name': 'smoker', 'kind': 'flag', 'width': 1},
    {'name': 'ward', 'kind': 'category', 'width': 2},
    {'name': 'hospital', 'kind': 'unused', 'width': 0},
  ],
}


@pytest.fixture(name='run')
def _run(tmp_path):
  """Class 1, well, if age < 40; with smoker 2 and ward B 4 deviations less."""
  model = tf.keras.Sequential([tf.keras.Input([4]), tf.keras.layers.Dense(2)])
  kernel = np.zeros([4, 2], np.float32)
  kernel[:, 1] = [-1, 2, 0, -4]
  model.set_weights([kernel, np.zeros(2, np.float32)])
  model.save(tmp_path / 'model.keras')
  (tmp_path / 'model.json').write_text(json.dumps(_TABLE))
  return tmp_path


def _predict(run, path, **values):
  flag_values = flags.FlagValues()
  predict.define_flags(flag_values)
  given = [f'--{name}={value}' for name, value in values.items()]
  parsed = flag_values(['predict', str(run), str(path), *given])
  predict.main(parsed, flag_values)


def _file(run, text, name='new.csv'):
  (run / name).write_text(text)
  return run / name


def test_a_table_gets_a_column_and_what_is_unknown_is_said(run, capsys):
  path = _file(
    run,
    'ward,age,id,smoker,hospital\n'
    'A,39,007,False,Ulm\n'
    'A,41,1,0,Ulm\n'
    'A,41,2,true,Ulm\n'
    'B,20,3,True,?\n'
    'C,20,4,False,Ulm\n'
    ',?,5,True,Ulm\n',
  )
  _predict(run, path, ignore_columns='id')
  found = pd.read_csv(run / 'predictions.csv', dtype=str, keep_default_na=False)
  written = pd.read_csv(path, dtype=str, keep_default_na=False)
  pd.testing.assert_frame_equal(found.drop(columns='prediction'), written)
  predictions = ' '.join(found['prediction'])
  assert predictions == 'well ill well ill well well'
  said = capsys.readouterr().out
  assert "'ward' has 1 row of categories that the model was not" in said
  assert "none of the known ones: 'C'." in said
  assert "'ward' has 1 missing value, and had none" in said
  assert "'age' has 1 missing value, and had none" in said
  assert said.endswith('6 examples: 2 ill, 4 well\n')


@pytest.mark.parametrize(
  ('text', 'options', 'message'),
  [
    ('Age,smoker,ward\n1,True,A\n', {}, "none called 'age'. .* 'Age'"),
    ('age,ward\n1,A\n', {}, "none called 'smoker'.$"),
    (_HEAD[:-1] + ',x\n1,True,A,1\n', {}, "found 'x': --ignore_columns names"),
    (_HEAD + '1,True,A\n', {'ignore_columns': 'age'}, "features, found 'age'"),
    (_HEAD + '1,True,A\n', {'ignore_columns': 'y'}, "columns of .* found 'y'"),
    (_HEAD + 'old,True,A\n', {}, "'age' must hold finite .* 'old' in row 1"),
    (_HEAD + '1,True,A\ninf,True,A\n', {}, "first 'inf' in row 2"),
    (_HEAD + '1,2,A\n', {}, "'smoker' must hold True or False, .* '2'"),
    (_HEAD + '1,,A\n', {}, "'smoker' must have no missing .* found 1 of 1"),
    (_HEAD, {}, 'must have rows'),
    (_HEAD + '1,True,A\n', {'prediction_column': 'age'}, "found 'age' in"),
    (_HEAD + '1,True,A\n', {'output_file': 'old.csv'}, 'must be new'),
  ],
)
def test_mistakes_are_one_sentence(text, options, message, run):
  path = _file(run, text)
  if 'output_file' in options:
    options = {'output_file': _file(run, '', options['output_file'])}
  with pytest.raises(SystemExit) as error:
    _predict(run, path, **options)
  assert re.search(message, error.value.code), error.value.code
  assert not (run / 'predictions.csv').exists()


def test_arrays_are_scaled_as_those_of_the_training(run, capsys):
  description = {
    'task': 'arrays',
    'input_shape': [None, 2, 2, 1],
    'classes': [0, 1],
    'divided_by': 255,
  }
  (run / 'model.json').write_text(json.dumps(description))
  model = tf.keras.Sequential(
    [
      tf.keras.Input([2, 2, 1]),
      tf.keras.layers.Flatten(),
      tf.keras.layers.Dense(2),
    ]
  )
  # Class 1 if the first pixel is above one half.
  kernel = np.zeros([4, 2], np.float32)
  kernel[0, 1] = 1
  model.set_weights([kernel, np.float32([0, -0.5])])
  model.save(run / 'model.keras')
  x = np.zeros([2, 2, 2], np.uint8)
  x[:, 0, 0] = [120, 130]
  np.save(run / 'x.npy', x)
  np.savez(run / 'x.npz', x=(x / 255)[..., np.newaxis])
  for name in ('x.npy', 'x.npz'):
    _predict(run, run / name)
    assert (run / 'predictions.csv').read_text().split()[1:] == ['0', '1']
  assert capsys.readouterr().out.count('bytes, which are divided by 255') == 1
  np.save(run / 'x.npy', x[:, :1])
  np.savez(run / 'other.npz', y=x)
  for name, message in (
    ('x.npy', r'shape \[None, 2, 2, 1\], found \[2, 1, 2\]'),
    ('other.npz', 'found no x but y'),
    ('model.json', 'must end in .npy or .npz'),
  ):
    with pytest.raises(SystemExit, match=message):
      _predict(run, run / name)


def test_models_that_cannot_be_used_are_refused(run, tmp_path):
  path = _file(run, _HEAD + '1,True,A\n')
  for changed, message in (
    ({'columns': None}, 'an earlier version wrote it'),
    ({'inputs_of_clients': {}}, 'fed_rdn'),
    ({'classes': None}, 'as launchers.train writes it'),
  ):
    description = {**_TABLE, **changed}
    kept = {k: v for k, v in description.items() if v is not None}
    (run / 'model.json').write_text(json.dumps(kept))
    with pytest.raises(SystemExit, match=message):
      _predict(run, path)
  with pytest.raises(SystemExit, match='finished run with a global model'):
    _predict(tmp_path / 'nothing', path)
