"""Predictions of new examples: what is written, said and refused."""

import json
import re

from absl import flags
import numpy as np
import pandas as pd
from PIL import Image
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


def _threshold(run, shape, path='model.keras', pixel=0):
  """A model of class 1 if one number of the input is above one half."""
  model = tf.keras.Sequential(
    [
      tf.keras.Input(shape),
      tf.keras.layers.Flatten(),
      tf.keras.layers.Dense(2),
    ]
  )
  kernel = np.zeros([np.prod(shape), 2], np.float32)
  kernel[pixel, 1] = 1
  model.set_weights([kernel, np.float32([0, -0.5])])
  (run / path).parent.mkdir(exist_ok=True)
  model.save(run / path)


def test_arrays_are_scaled_as_those_of_the_training(run, capsys):
  description = {
    'task': 'arrays',
    'input_shape': [None, 2, 2, 1],
    'classes': [0, 1],
    'divided_by': 255,
  }
  (run / 'model.json').write_text(json.dumps(description))
  _threshold(run, [2, 2, 1])
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


def _images(run):
  """A run on grey images of 2 x 3, and a folder of new ones."""
  description = {
    'task': 'image_folder',
    'input_shape': [None, 2, 3, 1],
    'classes': ['dark', 'light'],
    'divided_by': 255,
  }
  (run / 'model.json').write_text(json.dumps(description))
  _threshold(run, [2, 3, 1])
  folder = run / 'new'
  (folder / 'deep').mkdir(parents=True)
  for name, grey, size in (
    ('a.png', 100, (2, 3)),
    ('deep/b.png', 200, (2, 3)),
    ('c.png', 200, (4, 6)),
  ):
    Image.fromarray(np.full(size, grey, np.uint8)).save(folder / name)
  red = np.zeros([2, 3, 3], np.uint8)
  red[..., 0] = 255  # Of which a grey one has 30 %.
  Image.fromarray(red).save(folder / 'd.png')
  (folder / '.DS_Store').write_text('hidden')
  return folder


def test_images_of_a_folder_have_a_row_each(run, capsys):
  folder = _images(run)
  _predict(run, folder)
  found = pd.read_csv(run / 'predictions.csv')
  assert dict(found.to_numpy()) == {
    'a.png': 'dark',
    'c.png': 'light',
    'd.png': 'dark',
    'deep/b.png': 'light',
  }
  said = capsys.readouterr().out
  assert '1 of 4 images have another size than 2 x 3 and are resized' in said
  assert '1 of 4 images have colours and are made grey' in said


def test_folders_that_are_no_images_are_refused(run):
  folder = _images(run)
  (run / 'empty').mkdir()
  (run / 'texts').mkdir()
  _file(run, 'text', 'texts/a.txt')
  for path, options, message in (
    (run / 'empty', {}, "'.*empty' must hold images, found none.$"),
    (run / 'texts', {}, "found 1 other files: 'a.txt'; "),
    (folder, {'prediction_column': 'file'}, "column, found 'file'"),
    (run / 'nowhere', {}, 'must end in .npy or .npz'),
  ):
    with pytest.raises(SystemExit, match=message):
      _predict(run, path, **options)
  description = json.loads((run / 'model.json').read_text())
  for changed, message in (
    ({'input_shape': [None, 18]}, 'must take images .* the shape .18.'),
    ({'task': 'arrays'}, 'must end in .npy or .npz'),
  ):
    text = json.dumps({**description, **changed})
    (run / 'model.json').write_text(text)
    with pytest.raises(SystemExit, match=message):
      _predict(run, folder)


def test_the_model_of_a_client_predicts_where_it_is_named(run, capsys):
  description = {'task': 'arrays', 'input_shape': [None, 2], 'classes': [0, 1]}
  (run / 'model.json').write_text(json.dumps(description))
  _threshold(run, [2])
  _file(run, 'client_id,client\n0,Ulm\n1,007\n', 'clients.csv')
  np.save(run / 'x.npy', np.float32([[1, 0], [0, 1]]))
  path = run / 'x.npy'

  def predictions(**values):
    _predict(run, path, **values)
    return (run / 'predictions.csv').read_text().split()[1:]

  _file(run, '--algorithm=fed_avg\n', 'flags.txt')
  assert predictions() == ['1', '0']
  assert 'global model' not in capsys.readouterr().out
  _file(run, '--algorithm=ditto\n', 'flags.txt')
  assert predictions() == ['1', '0']
  assert 'The global model predicts, though' in capsys.readouterr().out
  for client, message in (
    ('007', 'models/client_1.keras: the command of the training with --export'),
    ('7', "^Error: --client must be .*found '7'"),
  ):
    with pytest.raises(SystemExit, match=message):
      predictions(client=client)
  _threshold(run, [2], 'models/client_1.keras', pixel=1)
  assert predictions(client='007') == ['0', '1']
  assert 'global model' not in capsys.readouterr().out
  (run / 'model.keras').unlink()  # Clients that train alone have none.
  assert predictions(client='007') == ['0', '1']
  with pytest.raises(SystemExit, match='found no model.keras in it'):
    predictions()
  _file(run, 'client_id\n0\n1\n', 'clients.csv')
  assert predictions(client='1') == ['0', '1']


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
