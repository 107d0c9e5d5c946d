"""A small task that both the library and the references can run."""

import dataclasses
import re

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client

NUM_FEATURES, NUM_CLASSES = 4, 3
EMBEDDING_SIZE = 3
IMAGE_SHAPE = (2, 2, 1)
# Of the clients of `rounds`.
SIZES = (5, 9, 12, 7, 0, 6)
_BROKEN = 5
_COHORTS = ((0, 1, 2), (2, 4, 3, 5), (1, 3, 0))
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


def batch_norm_model_fn(build=None):
  """A model, or a linear classifier of zeros, behind batch normalisation."""
  x = tf.keras.Input([NUM_FEATURES])
  h = tf.keras.layers.BatchNormalization(momentum=0.5)(x)
  dense = tf.keras.layers.Dense(NUM_CLASSES, kernel_initializer='zeros')
  return tf.keras.Model(x, build()(h) if build else dense(h))


def embedding_model_fn(activation=None):
  """A dense encoder and a linear classifier with fixed initial weights."""
  rng = np.random.default_rng(3)

  def dense(rows, columns, activation=None):
    kernel = tf.constant_initializer(rng.normal(size=[rows, columns]))
    return tf.keras.layers.Dense(
      columns, activation=activation, kernel_initializer=kernel
    )

  x = tf.keras.Input([NUM_FEATURES])
  embedding = dense(NUM_FEATURES, EMBEDDING_SIZE, activation)(x)
  logits = dense(EMBEDDING_SIZE, NUM_CLASSES)(embedding)
  return tf.keras.Model(x, {'logits': logits, 'embedding': embedding})


def embedding_behind_batch_norm_model_fn(dropout_rate=0.0):
  """The same behind batch normalisation and dropout."""
  x = tf.keras.Input([NUM_FEATURES])
  h = tf.keras.layers.BatchNormalization(momentum=0.5)(x)
  h = tf.keras.layers.Dropout(dropout_rate)(h)
  return tf.keras.Model(x, embedding_model_fn()(h))


def image_model_fn(embedding=False):
  """The linear classifier of images; perhaps of the doubled pixels."""
  x = tf.keras.Input(IMAGE_SHAPE)
  h = tf.keras.layers.Flatten()(x)
  if not embedding:
    return tf.keras.Model(x, model_fn()(h))
  double = tf.keras.layers.Dense(
    NUM_FEATURES, kernel_initializer=tf.initializers.Identity(2.0)
  )
  h = double(h)
  return tf.keras.Model(x, {'logits': model_fn()(h), 'embedding': h})


def start(build=model_fn):
  """The initial weights of a model, float64[d]."""
  return vector(build().trainable_variables)


@dataclasses.dataclass
class Client:
  """A client's data: arrays float32[n, features] and int[n].

  `groups` are the groups of people of both parts, if a method needs them.
  """

  x: np.ndarray
  y: np.ndarray
  holdout_x: np.ndarray
  holdout_y: np.ndarray
  groups: tuple[np.ndarray, np.ndarray] | None = None


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
    clients.append(Client(x[:size], y[:size], x[size:], y[size:]))
  return clients


def labelled_client(labels, seed=0):
  """A client with these labels and unrelated inputs."""
  rng = np.random.default_rng(seed)
  x = rng.normal(size=[len(labels), NUM_FEATURES]).astype(np.float32)
  y = np.array(labels, np.int64)
  return Client(x, y, x[:0], y[:0])


def as_images(data):
  """A client whose inputs are images."""
  return dataclasses.replace(
    data,
    x=data.x.reshape(-1, *IMAGE_SHAPE),
    holdout_x=data.holdout_x.reshape(-1, *IMAGE_SHAPE),
  )


def of_two_groups(data):
  """A client with two classes, and two groups of people by the last feature.

  What is not finite is of group 0.
  """
  return dataclasses.replace(
    data,
    y=np.minimum(data.y, 1),
    holdout_y=np.minimum(data.holdout_y, 1),
    groups=tuple((x[:, -1] > 0).astype(int) for x in (data.x, data.holdout_x)),
  )


def binary_model_fn():
  """A linear classifier of two classes with fixed initial weights."""
  x = tf.keras.Input([NUM_FEATURES])
  kernel = np.linspace(-1, 1, NUM_FEATURES * 2).reshape(NUM_FEATURES, 2)
  dense = tf.keras.layers.Dense(
    2, kernel_initializer=tf.constant_initializer(kernel[::-1])
  )
  return tf.keras.Model(x, dense(x))


def rounds(cohorts=_COHORTS):
  """Rounds of six clients, dictionaries from ids to data.

  Client 4 has no data, and those of client 5 are not finite. Clients are
  absent, come late and come back.
  """
  clients = make_clients(SIZES)
  clients[_BROKEN].x[1, 2] = np.nan
  return [pick(clients, cohort) for cohort in cohorts]


def build_process(
  build, model_fn=model_fn, *, learning_rate=0.1, decay=1.0, **options
):
  """A process for full batches; `decay` is the learning rate's, by round."""

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
  parts = (data.x, data.y), (data.holdout_x, data.holdout_y)
  if data.groups is not None:
    parts = [(*p, group) for p, group in zip(parts, data.groups, strict=True)]
  return client.build_client_data(client_id, *parts, check_finite=False)


def pick(clients, ids):
  """Some of the clients, as a dictionary from ids to data."""
  return {i: clients[i] for i in ids}


def next_round(process, state, clients):
  """The output of a round. The order of the clients must not matter."""
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


def assert_close(found, expected, rtol=1e-5, atol=1e-6, message=''):
  """Two structures hold nearly the same."""
  for a, b in zip(
    tf.nest.flatten(found), tf.nest.flatten(expected), strict=True
  ):
    np.testing.assert_allclose(a, b, rtol, atol, err_msg=message)


def assert_equal(one, other):
  """Two structures are equal bit for bit."""
  tf.nest.map_structure(np.testing.assert_array_equal, one, other)


def assert_refused(build, *rows, **arguments):
  """`build` refuses each of some arguments: `name must ... what`.

  Rows are `(name, value, what)`, `what` a regular expression, or end with an
  error other than ValueError.
  """
  for name, value, what, *error in rows:
    with pytest.raises((error or [ValueError])[0]) as caught:
      build(**{**arguments, name: value})
      pytest.fail(f'{name}={value!r} was accepted.')
    message = str(caught.value)
    assert re.search(f'{name} must .*{what}', message), (name, value, message)


def usable(clients):
  """Those of a dictionary that have data, and finite ones, by id."""
  return {
    i: data
    for i, data in sorted(clients.items())
    if len(data.y) and np.isfinite(data.x).all()
  }


def assert_rounds(process, reference, rounds, loose=()):
  """A process gives what a reference says in every round; returns outputs.

  The reference is a generator function of the rounds without the clients that
  do not count. It yields dictionaries from what `_found` knows to values.
  `loose` are quotients of small differences: float32 has fewer digits of them.
  """
  state, outputs = process.initialize(), []
  expected = reference([usable(clients) for clients in rounds])
  for number, (clients, values) in enumerate(
    zip(rounds, expected, strict=True)
  ):
    outputs.append(next_round(process, state, clients))
    state = outputs[-1].state
    counts = outputs[-1].metrics['client_work']
    empty = sum(not len(data.y) for data in clients.values())
    assert counts['num_empty_clients'] == empty
    dropped = len(clients) - len(usable(clients))
    assert counts['num_rejected_clients'] == dropped - empty
    assert_found(
      process, outputs[-1], values, usable(clients), loose, str(number)
    )
  return outputs


def assert_found(process, output, values, clients, loose=(), message=''):
  """An output has the values of a dictionary, by paths as for `_found`."""
  for path, value in values.items():
    found = _found(process, output, path, clients)
    factor = 10 if path in loose else 1
    assert_close(
      *(found, np.asarray(value), factor * 1e-5, factor * 1e-6),
      f'{message}: {path}',
    )


def _found(process, output, path, clients):
  """Returns the value that a path names; see the cases."""
  state, metrics = output.state, output.metrics
  match path.split('/'):
    case ['weights']:
      return weights(process, state)
    case ['models']:
      return client_weights(process, state)
    case ['table', name]:
      rows = state.client_work['table'][name]
      return client_vectors(getattr(rows, 'trainable', rows))
    case ['server', name]:
      value = state.aggregator[name]
      return value if hasattr(value, 'shape') else client_vectors(value)
    case [part, 'clients', name]:
      # Without clients that do not count, by id.
      report = metrics[part]['clients']
      ids = list(report['client_id'])
      return report[name][[ids.index(i) for i in sorted(clients)]]
    case [part, 'all', name]:
      return metrics[part]['clients'][name]
    case [part, name]:
      return metrics[part][name]
  raise ValueError(path)
