"""What the examples share: ten clients of digits, five methods, and flags."""

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
    'Clients that take part in a round.',
    lower_bound=1,
    upper_bound=NUM_CLIENTS,
    flag_values=flag_values,
  )
  flags.DEFINE_string(
    'output_dir',
    None,
    'Where the results go; the default is runs/EXAMPLE/METHOD.',
    flag_values=flag_values,
  )


def output_dir(example: str, flag_values: flags.FlagValues) -> pathlib.Path:
  """Where the results go.

  Args:
    example: Name of the example.
    flag_values: The parsed flags of `define_flags`.
  """
  chosen = flag_values['output_dir'].value
  if chosen:
    return pathlib.Path(chosen)
  return pathlib.Path('runs') / example / flag_values['method'].value


def build_process(method: str) -> tff.learning.templates.LearningProcess:
  """Builds a method for these clients.

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
  tf.keras.utils.set_random_seed(0)  # Of the first weights.
  return builders[method](
    _model_fn,
    num_clients=NUM_CLIENTS,
    client_optimizer=tff.learning.optimizers.build_sgdm(0.1, momentum=0.9),
    local_epochs=2,
    batch_size=_BATCH_SIZE,
  )


def build_evaluation() -> tff.learning.templates.LearningProcess:
  """Builds TFF's process that evaluates a global model at the clients."""
  input_spec = test_data(0).element_spec

  def model_fn():
    model = _model_fn()
    return tff.learning.models.from_keras_model(
      tf.keras.Model(model.input, model.output['logits']),
      loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      input_spec=input_spec,
      metrics=[tf.keras.metrics.SparseCategoricalAccuracy(name='accuracy')],
    )

  return tff.learning.algorithms.build_fed_eval(model_fn)


@functools.cache
def train_data(client_id: int) -> collections.OrderedDict:
  """What a client trains and validates on, in the form processes take."""
  train, holdout, _ = _parts(client_id)
  return client.build_client_data(client_id, train, holdout)


@functools.cache
def test_data(client_id: int) -> tf.data.Dataset:
  """What a client is evaluated on: one data set, in batches."""
  x, y = _parts(client_id)[2]
  return tf.data.Dataset.from_tensor_slices(
    collections.OrderedDict(x=x, y=y)
  ).batch(_BATCH_SIZE)


def _model_fn():
  return models.mlp_cffl_adult((8, 8, 1), 10)


@functools.cache
def _parts(client_id):
  """Training, holdout and test examples of a client; the last have most."""
  x, y = datasets.load_digits(return_X_y=True)
  x = (x / 16).reshape(-1, 8, 8, 1).astype(np.float32)
  sizes = np.arange(1, NUM_CLIENTS + 1)
  ends = len(y) * np.cumsum(sizes) // np.sum(sizes)
  order = np.random.default_rng(0).permutation(len(y))
  own = np.split(order, ends[:-1])[client_id]
  ends = [int(_TRAIN * len(own)), int((_TRAIN + _HOLDOUT) * len(own))]
  return [(x[part], y[part].astype(np.int32)) for part in np.split(own, ends)]


def _validation():
  """What CFFL's server validates on: the clients' holdout parts."""
  holdouts = [_parts(i)[1] for i in range(NUM_CLIENTS)]
  return tuple(np.concatenate(part) for part in zip(*holdouts, strict=True))
