"""A small task that both the library and the NumPy references can run."""

import functools
import re

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import numpy_reference
from tff_fair import algorithms
from tff_fair import client

NUM_FEATURES, NUM_CLASSES = 4, 3
EMBEDDING_SIZE = 3
sgd = tff.learning.optimizers.build_sgdm


def model_fn():
  """A linear classifier with fixed initial weights."""
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
  """A linear encoder and a linear classifier with fixed initial weights."""
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
  """The initial weights of `model_fn`."""
  kernel, bias = model_fn().get_weights()
  return numpy_reference.Linear(kernel.astype(np.float64), bias)


def make_clients(sizes, *, holdout=10, seed=0):
  """Clients whose labels depend on x and on noise that grows with the id."""
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
  """A client with these labels and unrelated inputs."""
  rng = np.random.default_rng(seed)
  x = rng.normal(size=[len(labels), NUM_FEATURES]).astype(np.float32)
  y = np.array(labels, np.int64)
  return numpy_reference.Client(x, y, x[:0], y[:0])


def make_validation(models, right, *, wrong=0):
  """Examples that exactly one model classifies correctly.

  Args:
    models: References, `Linear`.
    right: For each model, how many examples only it classifies correctly.
    wrong: Number of further examples that every model gets wrong.

  Returns:
    Arrays (x, y). No two logits are nearly equal, so rounding does not matter.
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
  missed = np.flatnonzero(clear & (votes.min(axis=0) == 0))[:wrong]
  chosen += [(i, votes[:, i].argmin()) for i in missed]
  assert len(chosen) == sum(right) + wrong
  rows, y = np.transpose(chosen)
  return x[rows], y


def build_process(
  build, model_fn=model_fn, *, learning_rate=0.1, decay=1.0, **options
):
  """A process for full batches.

  Args:
    build: The method's builder.
    model_fn: The model.
    learning_rate: Of the clients' plain SGD.
    decay: Factor on the learning rate per round.
    **options: For the builder.
  """

  def learning_rate_fn(round_number):
    return learning_rate * decay ** tf.cast(round_number, tf.float32)

  if decay != 1:
    options['client_learning_rate_fn'] = learning_rate_fn
  return build(
    model_fn,
    **{'client_optimizer': sgd(learning_rate), 'batch_size': 50, **options},
  )


def client_data(client_id, data):
  """A client's data in the form that processes take."""
  return client.build_client_data(
    client_id,
    (data.x, data.y),
    (data.holdout_x, data.holdout_y),
    check_finite=False,
  )


def pick(clients, ids):
  """Some of the clients, as a dictionary from ids to data."""
  return {i: clients[i] for i in ids}


def next_round(process, state, clients):
  """Runs a round.

  Args:
    process: Of clients with ids.
    state: The state before.
    clients: A dictionary from ids to data. It is passed in reverse: the order
      of the clients must not matter.

  Returns:
    The output.
  """
  data = [client_data(i, clients[i]) for i in reversed(clients)]
  return process.next(state, data)


def run(process, clients, cohorts):
  """Trains a round with each cohort, and returns the last output."""
  state = process.initialize()
  for cohort in cohorts:
    data = [client_data(i, clients[i]) for i in cohort]
    output = process.next(state, data)
    state = output.state
  return output


def reports(output):
  """The clients' reports by name, ordered by client id."""
  found = output.metrics['client_work']['clients']
  order = np.argsort(found['client_id'])
  return {name: value[order] for name, value in found.items()}


def client_vectors(structure):
  """Tensors `[N, ...]`, such as a client table's, as float64[N, d]."""
  leaves = tf.nest.flatten(structure)
  rows = [np.reshape(leaf, [len(leaf), -1]) for leaf in leaves]
  return np.concatenate(rows, axis=1).astype(np.float64)


def vector(structure):
  """Tensors as one vector, float64[d]."""
  leaves = [np.asarray(leaf)[np.newaxis] for leaf in tf.nest.flatten(structure)]
  return client_vectors(leaves)[0]


def weights(process, state):
  """The trainable weights of the global model, float64[d]."""
  return vector(process.get_model_weights(state).trainable)


def client_weights(process, state):
  """The trainable weights of all clients' models, float64[N, d]."""
  return client_vectors(process.client_model_table(state).trainable)


def assert_close(found, expected, rtol=1e-5, atol=1e-6):
  """Two structures hold nearly the same."""
  for a, b in zip(
    tf.nest.flatten(found), tf.nest.flatten(expected), strict=True
  ):
    np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def assert_model(weights, expected, rtol=1e-5):
  """The trainable weights are those of a reference model."""
  assert_close(weights.trainable, [expected.kernel, expected.bias], rtol)


def assert_equal(one, other):
  """Two structures are equal bit for bit."""
  tf.nest.map_structure(np.testing.assert_array_equal, one, other)


def assert_refused(build, *rows, **arguments):
  """`build` refuses each of some arguments.

  Args:
    build: The function.
    *rows: Tuples `(name, value, what)` or `(name, value, what, error)`: the
      message says `name must ... what`, a regular expression. The default error
      is ValueError.
    **arguments: Passed each time, unless a row replaces them.
  """
  for name, value, what, *error in rows:
    try:
      build(**{**arguments, name: value})
    except (error or [ValueError])[0] as found:
      message = str(found)
    else:
      raise AssertionError(f'{name}={value!r} was accepted.')
    assert re.search(f'{name} must .*{what}', message), (name, value, message)


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
    outputs.append(next_round(process, state, clients))
    state = outputs[-1].state
    expected = reference.next(clients)
    found = outputs[-1].metrics['client_work']
    names = {n for n in found if n != 'clients' and not n.startswith('num_')}
    assert names == set(expected)
    assert_close(process.get_model_weights(state).trainable, reference.weights)
    for name, value in expected.items():
      assert found[name] == pytest.approx(value, rel=1e-5, abs=1e-6), name
  return outputs


def decaying_optimizer(name):
  """'sgd' with momentum, or 'adam', with coupled weight decay; 'plain' SGD."""
  if name == 'plain':
    return sgd(0.1)
  optimizers = {
    'sgd': sgd(0.05, momentum=0.9),
    'adam': tff.learning.optimizers.build_adam(0.01),
  }
  return client.with_weight_decay(optimizers[name], 0.1)


def assert_is_fed_avg(
  build, optimizer, *, uniform=False, only_weights=False, **options
):
  """Two rounds are equal to FedAvg's bit for bit, weights and metrics.

  With minibatches, dropout, batch normalisation, weight decay and focal loss.

  Args:
    build: The method's builder.
    optimizer: As for `decaying_optimizer`.
    uniform: As for `build_fed_avg`.
    only_weights: Whether to compare no metrics.
    **options: For the method's builder alone.
  """
  for one, other in zip(
    regularised_rounds(build, optimizer, **options),
    regularised_rounds(algorithms.build_fed_avg, optimizer, uniform=uniform),
    strict=True,
  ):
    assert_equal(one[: 2 - only_weights], other[: 2 - only_weights])


@functools.cache
def regularised_rounds(build, optimizer, **options):
  """Global weights, the clients' metrics and their table of two rounds.

  With minibatches, dropout, batch normalisation and focal loss.

  Args:
    build: The method's builder.
    optimizer: As for `decaying_optimizer`.
    **options: For the builder.
  """
  clients = make_clients((5, 9, 12))
  process = build(
    functools.partial(embedding_behind_batch_norm_model_fn, 0.5),
    num_clients=len(clients),
    client_optimizer=decaying_optimizer(optimizer),
    local_epochs=2,
    batch_size=4,
    seed=3,
    focal_gamma=0.5,
    **options,
  )
  state, found = process.initialize(), []
  for cohort in ([0, 1, 2], [2, 0]):
    output = process.next(state, [client_data(i, clients[i]) for i in cohort])
    state = output.state
    metrics = output.metrics['client_work']
    table = state.client_work['table']
    found.append((process.get_model_weights(state), metrics, table))
  return found
