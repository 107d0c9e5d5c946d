"""The models that a run leaves, and what it says of them."""

import dataclasses
import json

from absl import flags
import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tff_fair import metrics
from tff_fair import models
from tff_fair import splits
from tff_fair import tasks
from tff_fair.launchers import predict
from tff_fair.launchers.runs import export

pytestmark = pytest.mark.full

_NOTHING = np.empty(0, np.int64)
_TASK = tasks.Task(
  name='tiny',
  num_classes=3,
  model_fn=linear_task.model_fn,
  data=tasks.Examples(np.zeros([2, 4], np.float32), np.zeros(2, np.int32)),
  splits=(splits.Split(_NOTHING, _NOTHING, _NOTHING),) * 2,
)


class _Process:
  """A process whose state is the weights of its model."""

  def __init__(self, model_fn):
    self.model = models.StatelessModel(model_fn)
    self.start = self.model.initial_weights
    self.trained = self.start._replace(
      trainable=[w + 1 for w in self.start.trainable]
    )

  def get_model_weights(self, state):
    return state

  def to_keras(self, state):
    return self.model.to_keras(state)


def test_the_description(tmp_path):
  process = _Process(linear_task.model_fn)
  task = dataclasses.replace(_TASK, class_names=('a', 'b "c"', 'é'))
  statistics = {
    'mean': np.float32([[0.5], [np.nan]]),
    'std': np.float32([[2], [np.nan]]),
  }
  said = export.write(
    process,
    process.trained,
    task,
    tmp_path,
    clients=True,
    statistics=statistics,
  )
  assert said == [f'exported: {tmp_path / "model.keras"}']
  assert json.loads((tmp_path / 'model.json').read_text()) == {
    'task': 'tiny',
    'input_shape': [None, 4],
    'output': 'logits',
    'classes': ['a', 'b "c"', 'é'],
    'inputs_of_clients': {'mean': [[0.5], [None]], 'std': [[2], [None]]},
  }


@pytest.mark.parametrize(
  ('activation', 'output', 'threshold'),
  [
    (None, 'logit of class 1', 0.0),
    ('sigmoid', 'probability of class 1', 0.5),
  ],
)
def test_a_single_output_says_where_class_1_begins(
  activation, output, threshold, tmp_path
):
  def model_fn():
    return tf.keras.Sequential(
      [tf.keras.Input([4]), tf.keras.layers.Dense(1, activation)]
    )

  process = _Process(model_fn)
  task = dataclasses.replace(_TASK, num_classes=2, class_names=('no', 'yes'))
  export.write(process, process.trained, task, tmp_path, clients=False)
  found = json.loads((tmp_path / 'model.json').read_text())
  assert (found['output'], found['threshold']) == (output, threshold)
  x = np.float32([[5, 5, 5, 5], [-5, -5, -5, -5]])
  np.save(tmp_path / 'x.npy', x * np.sign(process.trained.trainable[0].sum()))
  flag_values = flags.FlagValues()
  predict.define_flags(flag_values)
  arguments = ['predict', str(tmp_path), str(tmp_path / 'x.npy')]
  predict.main(flag_values(arguments), flag_values)
  written = (tmp_path / 'predictions.csv').read_text()
  assert written.split() == ['prediction', 'yes', 'no']


def test_an_untrained_global_model_is_left_out(tmp_path):
  process = _Process(linear_task.model_fn)
  said = export.write(process, process.start, _TASK, tmp_path, clients=False)
  assert said == ['The clients have trained alone: no global model.']
  assert not list(tmp_path.iterdir())


def test_the_nearest_centroid_is_a_layer(tmp_path):
  process = _Process(linear_task.embedding_model_fn)
  rng = np.random.default_rng(0)
  centroids = {
    'sums': rng.normal(size=[3, linear_task.EMBEDDING_SIZE]),
    'counts': np.array([2, 0, 1]),
  }
  export.write(
    process,
    process.trained,
    _TASK,
    tmp_path,
    clients=False,
    centroids=centroids,
  )
  x = rng.normal(size=[5, 4]).astype(np.float32)
  embedded = process.to_keras(process.trained)(x)['embedding']
  expected = metrics.nearest_centroid_logits(embedded, centroids)
  model = tf.keras.models.load_model(tmp_path / 'model.keras')
  np.testing.assert_allclose(model(x), expected, rtol=1e-4)


class _Same(tf.keras.layers.Layer):
  """Does not say how it is saved, nor can Keras."""

  def __init__(self, unused_object):
    super().__init__()

  def call(self, x):
    return tf.identity(x)


def test_a_model_that_keras_cannot_save_is_left_out(tmp_path):
  def model_fn():
    x = tf.keras.Input([4])
    return tf.keras.Model(x, linear_task.model_fn()(_Same(object())(x)))

  process = _Process(model_fn)
  with pytest.warns(UserWarning, match='model.keras is not written, .*_Same'):
    said = export.write(
      process, process.trained, _TASK, tmp_path, clients=False
    )
  assert not said and not list(tmp_path.iterdir())
