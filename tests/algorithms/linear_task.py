"""A tiny task that the library and the NumPy reference both can run."""

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import numpy_reference
from tff_fair import client

NUM_FEATURES, NUM_CLASSES = 4, 3
sgd = tff.learning.optimizers.build_sgdm


def model_fn():
  """A linear classifier with fixed first weights."""
  x = tf.keras.Input([NUM_FEATURES])
  kernel = np.linspace(-1, 1, NUM_FEATURES * NUM_CLASSES).reshape(
    NUM_FEATURES, NUM_CLASSES
  )
  dense = tf.keras.layers.Dense(
    NUM_CLASSES, kernel_initializer=tf.constant_initializer(kernel)
  )
  return tf.keras.Model(x, dense(x))


def batch_norm_model_fn():
  """The same behind batch normalisation."""
  x = tf.keras.Input([NUM_FEATURES])
  h = tf.keras.layers.BatchNormalization(momentum=0.5)(x)
  dense = tf.keras.layers.Dense(NUM_CLASSES, kernel_initializer='zeros')
  return tf.keras.Model(x, dense(h))


def initial_model() -> numpy_reference.Linear:
  """`model_fn`'s first weights."""
  kernel, bias = model_fn().get_weights()
  return numpy_reference.Linear(kernel.astype(np.float64), bias)


def make_clients(sizes, *, holdout=10, seed=0):
  """Clients whose labels depend on x and on a noise that differs by client."""
  rng = np.random.default_rng(seed)
  truth = rng.normal(size=[NUM_FEATURES, NUM_CLASSES])
  clients = []
  for i, size in enumerate(sizes):
    n = size + holdout
    x = rng.normal(size=[n, NUM_FEATURES]).astype(np.float32)
    noise = rng.normal(size=[n, NUM_CLASSES])
    y = (x @ truth + i * noise).argmax(axis=1)
    clients.append(
      numpy_reference.Client(x[:size], y[:size], x[size:], y[size:])
    )
  return clients


def make_validation(models, right, *, wrong=0):
  """Examples of which `models[j]`, and no other, has just `right[j]` right.

  Further `wrong` examples are ones that nobody has right. No logits are nearly
  equal, so rounding can not matter.
  """
  rng = np.random.default_rng(0)
  x = rng.normal(size=[5000, NUM_FEATURES]).astype(np.float32)
  logits = np.stack([model.logits(x) for model in models])
  ordered = np.sort(logits, axis=2)
  clear = np.all(ordered[:, :, -1] - ordered[:, :, -2] > 1e-2, axis=0)
  predicted = logits.argmax(axis=2)
  # [classes, examples]: how many models vote for the class.
  votes = np.sum(predicted == np.arange(NUM_CLASSES)[:, None, None], axis=1)
  chosen = []
  for j, count in enumerate(right):
    alone = clear & (votes[predicted[j], np.arange(len(x))] == 1)
    chosen += [(i, predicted[j][i]) for i in np.flatnonzero(alone)[:count]]
  nobody = np.flatnonzero(clear & (votes.min(axis=0) == 0))[:wrong]
  chosen += [(i, votes[:, i].argmin()) for i in nobody]
  assert len(chosen) == sum(right) + wrong
  rows, y = np.transpose(chosen)
  return x[rows], y


def client_data(client_id, data):
  """A client's data in the structured form of the contract."""
  return client.build_client_data(
    client_id, (data.x, data.y), (data.holdout_x, data.holdout_y)
  )


def run(process, clients, cohorts):
  """Trains a round with each cohort, and returns what the last one gave."""
  state = process.initialize()
  for cohort in cohorts:
    data = [client_data(i, clients[i]) for i in cohort]
    output = process.next(state, data)
    state = output.state
  return output


def assert_model(weights, expected, rtol=1e-5):
  """The trainable weights are those of a reference model."""
  kernel, bias = weights.trainable
  np.testing.assert_allclose(kernel, expected.kernel, rtol=rtol, atol=1e-6)
  np.testing.assert_allclose(bias, expected.bias, rtol=rtol, atol=1e-6)
