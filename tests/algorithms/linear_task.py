"""A tiny task that the library and the NumPy reference both can run."""

import functools

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import numpy_reference
from tff_fair import algorithms
from tff_fair import client

NUM_FEATURES, NUM_CLASSES = 4, 3
EMBEDDING_SIZE = 3
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


def embedding_model_fn():
  """A linear encoder and a linear classifier, with fixed first weights."""
  rng = np.random.default_rng(3)

  def dense(rows, columns):
    kernel = tf.constant_initializer(rng.normal(size=[rows, columns]))
    return tf.keras.layers.Dense(columns, kernel_initializer=kernel)

  x = tf.keras.Input([NUM_FEATURES])
  embedding = dense(NUM_FEATURES, EMBEDDING_SIZE)(x)
  logits = dense(EMBEDDING_SIZE, NUM_CLASSES)(embedding)
  return tf.keras.Model(x, {'logits': logits, 'embedding': embedding})


def embedding_behind_batch_norm_model_fn(dropout_rate=0.0):
  """The same behind batch normalisation and dropout."""
  x = tf.keras.Input([NUM_FEATURES])
  h = tf.keras.layers.BatchNormalization(momentum=0.5)(x)
  h = tf.keras.layers.Dropout(dropout_rate)(h)
  return tf.keras.Model(x, embedding_model_fn()(h))


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


def labelled_client(labels, seed=0):
  """A client with these labels, which its inputs do not tell."""
  rng = np.random.default_rng(seed)
  x = rng.normal(size=[len(labels), NUM_FEATURES]).astype(np.float32)
  y = np.array(labels, np.int64)
  return numpy_reference.Client(x, y, x[:0], y[:0])


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


def assert_equal(one, other):
  """Two structures hold the same, bit for bit."""
  tf.nest.map_structure(np.testing.assert_array_equal, one, other)


def assert_rounds(process, reference, rounds):
  """A process and a reference give the same weights and metrics every round.

  Args:
    process: Of clients with ids.
    reference: Has `weights` and `next(clients)`, which returns all metrics.
    rounds: The clients of each round, dictionaries from ids to data.

  Returns:
    The outputs.
  """
  state, outputs = process.initialize(), []
  for clients in rounds:
    data = [client_data(i, c) for i, c in clients.items()]
    outputs.append(process.next(state, data))
    state = outputs[-1].state
    expected = reference.next(clients)
    for a, b in zip(
      process.get_model_weights(state).trainable,
      reference.weights,
      strict=True,
    ):
      np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    found = outputs[-1].metrics['client_work']
    names = {n for n in found if n != 'clients' and not n.startswith('num_')}
    assert names == set(expected)
    for name, value in expected.items():
      np.testing.assert_allclose(
        found[name], value, rtol=1e-5, atol=1e-6, err_msg=name
      )
  return outputs


def decaying_optimizer(name):
  """'sgd' with momentum, or 'adam', with coupled weight decay."""
  optimizers = {
    'sgd': sgd(0.05, momentum=0.9),
    'adam': tff.learning.optimizers.build_adam(0.01),
  }
  return client.with_weight_decay(optimizers[name], 0.1)


def assert_is_fed_avg(build, optimizer, **options):
  """Two rounds equal FedAvg's bit for bit, weights and metrics.

  Minibatches, dropout, batch normalisation and weight decay included.

  Args:
    build: The method's builder.
    optimizer: As for `decaying_optimizer`.
    **options: For the builder alone.
  """
  for one, other in zip(
    _regularised_rounds(build, optimizer, **options),
    _fed_avg_rounds(optimizer),
    strict=True,
  ):
    assert_equal(one, other)


@functools.cache
def _fed_avg_rounds(optimizer):
  return _regularised_rounds(algorithms.build_fed_avg, optimizer)


def _regularised_rounds(build, optimizer, **options):
  """Weights and the clients' metrics after each of two rounds."""
  clients = make_clients((5, 9, 12))
  process = build(
    functools.partial(embedding_behind_batch_norm_model_fn, 0.5),
    num_clients=len(clients),
    client_optimizer=decaying_optimizer(optimizer),
    local_epochs=2,
    batch_size=4,
    **options,
  )
  state, found = process.initialize(), []
  for cohort in ([0, 1, 2], [2, 0]):
    output = process.next(state, [client_data(i, clients[i]) for i in cohort])
    state = output.state
    metrics = output.metrics['client_work']
    found.append((process.get_model_weights(state), metrics))
  return found
