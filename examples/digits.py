"""Shared by the examples: ten clients with digits, five methods, and flags."""

import collections
import functools
import pathlib

from absl import flags
import numpy as np
from sklearn import datasets
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import algorithms
from tff_fair import client
from tff_fair import models

NUM_CLIENTS = 10
NUM_CLASSES = 10
METHODS = ('fedaboost', 'cffl', 'corefed', 'fedquad', 'fedakd')

_BATCH_SIZE = 32
# Shares of a client's examples.
_TRAIN, _HOLDOUT = 0.7, 0.1


def define_flags(flag_values: flags.FlagValues) -> None:
  """Defines the flags of the examples.

  Args:
    flag_values: Where to define them.
  """
  flags.DEFINE_enum(
    'method', 'fedaboost', METHODS, 'The method.', flag_values=flag_values
  )
  flags.DEFINE_integer(
    'rounds', 6, 'Rounds.', lower_bound=1, flag_values=flag_values
  )
  flags.DEFINE_integer(
    'clients',
    5,
    'Clients per round.',
    lower_bound=1,
    upper_bound=NUM_CLIENTS,
    flag_values=flag_values,
  )
  flags.DEFINE_string(
    'output_dir',
    None,
    'Folder of the results; the default is runs/EXAMPLE/METHOD.',
    flag_values=flag_values,
  )


def output_dir(example: str, flag_values: flags.FlagValues) -> pathlib.Path:
  """The folder of the results.

  Args:
    example: Name of the example.
    flag_values: The parsed flags of `define_flags`.
  """
  chosen = flag_values['output_dir'].value
  if chosen:
    return pathlib.Path(chosen)
  return pathlib.Path('runs') / example / flag_values['method'].value


def build_process(method: str) -> tff.learning.templates.LearningProcess:
  """Builds a process of a method for these clients.

  Args:
    method: One of `METHODS`.
  """
  builders = {
    'fedaboost': algorithms.build_fedaboost,
    'cffl': functools.partial(algorithms.build_cffl, validation=_validation()),
    'corefed': algorithms.build_corefed,
    'fedquad': algorithms.build_fedquad,
    'fedakd': algorithms.build_fedakd,
  }
  tf.keras.utils.set_random_seed(0)  # Of the initial weights.
  return builders[method](
    _model_fn,
    num_clients=NUM_CLIENTS,
    client_optimizer=tff.learning.optimizers.build_sgdm(0.1, momentum=0.9),
    local_epochs=2,
    batch_size=_BATCH_SIZE,
  )


def build_evaluation() -> tff.learning.templates.LearningProcess:
  """Builds TFF's evaluation of a global model on the clients' test data.

  Returns:
    A process whose metrics include the accuracy and the macro-F1.
  """
  input_spec = test_data(0).element_spec

  def model_fn():
    model = _model_fn()
    return tff.learning.models.from_keras_model(
      tf.keras.Model(model.input, model.output['logits']),
      loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      input_spec=input_spec,
      metrics=[
        tf.keras.metrics.SparseCategoricalAccuracy(name='accuracy'),
        _macro_f1(),
      ],
    )

  return tff.learning.algorithms.build_fed_eval(model_fn)


@functools.cache
def train_data(client_id: int) -> collections.OrderedDict:
  """A client's training and holdout data, in the form that processes take."""
  train, holdout, _ = _parts(client_id)
  return client.build_client_data(client_id, train, holdout)


@functools.cache
def test_data(client_id: int) -> tf.data.Dataset:
  """A client's test data in batches."""
  x, y = _parts(client_id)[2]
  return tf.data.Dataset.from_tensor_slices(
    collections.OrderedDict(x=x, y=y)
  ).batch(_BATCH_SIZE)


def _model_fn():
  return models.mlp_cffl_adult((8, 8, 1), NUM_CLASSES)


def _macro_f1():
  """The macro-F1 of TensorFlow Addons, for labels that are class indices."""
  import tensorflow_addons as tfa  # Slow to import; only evaluations need it.

  class MacroF1(tfa.metrics.F1Score):
    # TFF inspects the arguments, which a decorator of the base class hides.
    def __init__(
      self,
      num_classes,
      average='macro',
      threshold=None,
      name='macro_f1',
      dtype=None,
    ):
      super().__init__(num_classes, average, threshold, name, dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
      labels = tf.one_hot(tf.reshape(y_true, [-1]), self.num_classes)
      return super().update_state(labels, y_pred, sample_weight)

  return MacroF1(NUM_CLASSES)


@functools.cache
def _parts(client_id):
  """Training, holdout and test examples of a client; later ones have more."""
  x, y = datasets.load_digits(return_X_y=True)
  x = (x / 16).reshape(-1, 8, 8, 1).astype(np.float32)
  sizes = np.arange(1, NUM_CLIENTS + 1)
  ends = len(y) * np.cumsum(sizes) // np.sum(sizes)
  order = np.random.default_rng(0).permutation(len(y))
  own = np.split(order, ends[:-1])[client_id]
  ends = [int(_TRAIN * len(own)), int((_TRAIN + _HOLDOUT) * len(own))]
  return [(x[part], y[part].astype(np.int32)) for part in np.split(own, ends)]


def _validation():
  """The validation data of CFFL's server: the clients' holdout parts."""
  holdouts = [_parts(i)[1] for i in range(NUM_CLIENTS)]
  return tuple(np.concatenate(part) for part in zip(*holdouts, strict=True))
