"""CoRe-Fed against the paper's formulas.

Mukhtiar, Mahmood and Sheng, "CoRe-Fed: Bridging Collaborative and
Representation Fairness via Federated Embedding Distillation" (AAAI 2026,
https://arxiv.org/abs/2602.00647). A client's memory is an entry of a
dictionary, and the rounds are a list of sets: no ring buffer.
"""

import collections
import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import aggregators
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

# The last client never takes part.
_SIZES = (5, 9, 12, 7, 4, 8, 6)
_DEFAULTS = {'learning_rate': 0.5, 'decay': 0.5}
# Alignment by the clients takes a constant learning rate.
_ALIGNED = {'alignment': 'client', 'decay': 1.0}
_NETWORK = reference.Network((4, 3, 3), tf.nn.relu)
_model_fn = functools.partial(linear_task.embedding_model_fn, 'relu')


@dataclasses.dataclass
class _Options:
  """The builder's options of the same names; `decay` is by round."""

  learning_rate: float = 0.5
  decay: float = 0.5
  local_epochs: int = 1
  variant: str = 'corefed'
  alignment: str = 'server'
  gradient_reuse: bool = True
  global_embedding: str = 'mean'
  embedding_of: str = 'local'
  include_positive: bool = False
  fairness_exponent: float = 0.5
  sharpness: float = 2.0
  distillation_rate: float = 0.5
  temperature: float = 0.07
  contrastive_weight: float = 0.1
  distillation_weight: float = 0.1

  def __post_init__(self):
    if self.variant == 'cofed':  # No distillation.
      self.distillation_rate = 0.0


def _contrastive_loss(z, z_g, others, options):
  """Equation 6: small close to `z_g` and far from the others.

  An empty denominator makes it 0.
  """
  if not len(others):
    return 0.0
  terms = [z_g, *others] if options.include_positive else others
  logits = [reference.cosine(z, t) / options.temperature for t in terms]
  close = reference.cosine(z, z_g) / options.temperature
  return tf.reduce_logsumexp(logits) - close


def _refined(z, z_g, beta):
  """`r`: the embedding, moved towards its alignment vector."""
  return z + beta * (reference.cosine(z, z_g) * z_g - z)


class _Server:
  """The server's memory and its rule; `updates`, ... are by client id."""

  def __init__(self, weights, options):
    self.weights = np.asarray(weights, np.float64)
    self.updates, self.embeddings, self.last_round = {}, {}, {}
    self.cohorts = []
    self.global_embedding = None
    self._options = options

  def next(self, uploads, learning_rate=1.0, sizes=None):
    """One round with `(w_i, z_i)` by id; `sizes` are the weights of ReFed.

    Returns measurements, vectors by client of the active set; None if that is
    empty.
    """
    fresh = sorted(
      i for i in uploads if np.isfinite(np.concatenate(uploads[i])).all()
    )
    self.cohorts.append(set(fresh))
    if not fresh:
      return None
    for i in fresh:
      model, self.embeddings[i] = uploads[i]
      self.updates[i] = (self.weights - model) / learning_rate
      self.last_round[i] = len(self.cohorts)
    z = [self.embeddings[i] for i in fresh]
    self.global_embedding = np.mean(z, axis=0)
    if self._options.global_embedding == 'first':
      self.global_embedding = z[0]  # `fresh` is sorted.
    tau, active = self._active()
    frequency = np.array([self._frequency(i, tau) for i in active])
    alignment = np.array([self._alignment(i) for i in active])
    weight = self._shares(frequency, alignment)
    if sizes is not None:
      active, weight = fresh, np.array([sizes[i] for i in fresh], float)
    weight = weight / weight.sum()
    for i, share in zip(active, weight, strict=True):
      self.weights = self.weights - learning_rate * share * self.updates[i]
    losses = [
      _contrastive_loss(
        z[i], self.global_embedding, z[:i] + z[i + 1 :], self._options
      )
      for i in range(len(z))
    ]
    return dict(
      window=tau,
      contrastive_loss=np.mean(losses),
      num_stale=len(active) - len(fresh),
      client_id=active,
      frequency=frequency,
      alignment=alignment,
      weight=weight,
      stale=[i not in fresh for i in active],
    )

  def _active(self):
    """`tau` and `A_t`."""
    present = self.cohorts[-1]
    tau = max(1, len(set.union(*self.cohorts)) // len(present))
    if not self._options.gradient_reuse:
      return tau, sorted(present)
    now = len(self.cohorts)
    return tau, sorted(
      i for i, last in self.last_round.items() if now - last <= tau
    )

  def _frequency(self, i, tau):
    """`f_i`: rounds of the window with the client, at least one, over tau."""
    count = sum(i in cohort for cohort in self.cohorts[-tau:])
    return max(1, count) / tau

  def _alignment(self, i):
    """`rho_i`."""
    r = _refined(
      self.embeddings[i], self.global_embedding, self._options.distillation_rate
    )
    return float(reference.cosine(r, self.global_embedding))

  def _shares(self, frequency, alignment):
    """`u_i`."""
    trust = 1 / (1 + np.exp(-self._options.sharpness * alignment))
    return frequency**-self._options.fairness_exponent * trust


def _clients():
  return dict(enumerate(linear_task.make_clients(_SIZES)))


def _some(*cohorts):
  return [linear_task.pick(_clients(), ids) for ids in cohorts]


def _broken(*ids):
  """Clients whose data are not finite."""
  clients = linear_task.pick(_clients(), ids)
  for data in clients.values():
    data.x[:] = np.nan
  return clients


def _trace():
  """Clients leave, stay in use, fall out of use, return and are rejected."""
  first, second, third, last = _some([0, 1, 2], [3], [0, 3], [2, 5])
  # Client 1 counts as absent in the third round.
  return [first, second, {**third, **_broken(1, 4)}, _broken(2, 4), last]


def _build(**options):
  return linear_task.build_process(
    algorithms.build_corefed,
    _model_fn,
    num_clients=len(_SIZES),
    **{**_DEFAULTS, **options},
  )


def _embedding(w, x):
  """The mean direction of the embeddings; a zero vector still counts."""
  phi, _ = _NETWORK.outputs(w, x)
  lengths = tf.maximum(tf.norm(phi, axis=1, keepdims=True), 1e-12)
  return tf.reduce_mean(tf.math.divide_no_nan(phi, lengths), axis=0)


def _local_loss(v, data, received, options):
  """The cross-entropy and, with what a client received, its alignment."""
  loss = _NETWORK.loss(v, data)
  if received is None:
    return loss
  z, (z_g, others) = _embedding(v, data.x), received
  target = _refined(z, z_g, options.distillation_rate)
  contrast = _contrastive_loss(z, z_g, others, options)
  loss += options.contrastive_weight * contrast
  distance = tf.reduce_sum((z - tf.stop_gradient(target)) ** 2)
  return loss + options.distillation_weight * distance


def _corefed(rounds, **options):
  """The aggregator's state is the server's memory, with 0 elsewhere."""
  options = _Options(**options)
  server = _Server(linear_task.start(_model_fn), options)
  n = len(_SIZES)
  updates, embeddings, seen = np.zeros([n, 27]), np.zeros([n, 3]), np.zeros(n)
  for number, clients in enumerate(rounds):
    rate, w = options.learning_rate * options.decay**number, server.weights
    uploads, sizes = {}, None
    for i, data in clients.items():
      received = None
      if options.alignment != 'server' and server.global_embedding is not None:
        others = [z for j, z in server.embeddings.items() if j != i]
        received = server.global_embedding, others
      loss = functools.partial(
        _local_loss, data=data, received=received, options=options
      )
      model, _, _ = reference.descend(loss, w, rate, options.local_epochs)
      of = model if options.embedding_of == 'local' else w
      uploads[i] = model, _embedding(of, data.x).numpy()
      # Stored as sent.
      updates[i], embeddings[i], seen[i] = w - model, uploads[i][1], number + 1
    if options.variant == 'refed':
      sizes = {i: len(data.y) for i, data in clients.items()}
    report = server.next(uploads, rate, sizes)
    values = {'weights': server.weights}
    if not sizes:
      report = report or {'num_stale': 0, 'client_id': []}
      values |= {
        'server/round': number + 1,
        'server/updates': updates,
        'server/embeddings': embeddings,
        'server/last_round': seen,
        **{
          f'aggregator/{"all/" * (np.ndim(value) > 0)}{name}': value
          for name, value in report.items()
        },
      }
    yield values


def _run(rounds, **options):
  """Compares with the reference in every round; returns the outputs."""
  return linear_task.assert_rounds(
    _build(**options),
    functools.partial(_corefed, **options),
    rounds,
    loose=['aggregator/contrastive_loss', 'server/embeddings'],
  )


@pytest.mark.parametrize(
  'options',
  [
    {},
    {
      'fairness_exponent': 2.0,
      'sharpness': 0.5,
      'distillation_rate': 0.25,
      'temperature': 0.5,
      'include_positive': True,
      'local_epochs': 2,
      'decay': 1.0,
    },
    pytest.param({'variant': 'cofed'}, marks=pytest.mark.full),
    # As options can have it of the authors' code, which is more than this.
    pytest.param(
      {
        'gradient_reuse': False,
        'global_embedding': 'first',
        'embedding_of': 'global_batch',
      },
      marks=pytest.mark.full,
    ),
  ],
  ids=str,
)
def test_changing_cohorts(options):
  outputs = _run(_trace(), **options)
  # A round that nobody takes part in moves nothing.
  before, after = (o.state.global_model_weights for o in outputs[2:4])
  linear_task.assert_equal(before, after)


@pytest.mark.full
@pytest.mark.parametrize(
  'options',
  [
    {'variant': 'refed'},
    {
      'include_positive': True,
      'temperature': 0.5,
      'contrastive_weight': 0.7,
      'distillation_weight': 0.4,
      'local_epochs': 2,
    },
  ],
  ids=str,
)
def test_alignment_in_local_training(options):
  # In the third round one client is new, one returns, and two are absent.
  _run(_some([0, 1, 2], [0, 1], [2, 5]), **_ALIGNED, **options)


@pytest.mark.full
def test_an_embedding_of_one_batch_by_the_received_model():
  process = _build(embedding_of='global_batch', batch_size=4)
  (clients,) = _some([1, 2])
  output = linear_task.next_round(process, process.initialize(), clients)
  w = linear_task.start(_model_fn)
  for i, data in clients.items():
    found = output.state.aggregator['embeddings'][i]
    linear_task.assert_close(found, _embedding(w, data.x[:4]).numpy())


@pytest.mark.full
def test_reuse_in_20_random_rounds():
  """The rule alone, with clients of very different frequency."""
  number, rng = 8, np.random.default_rng(1)
  server = _Server(np.zeros(2), _Options())
  process = aggregators.GradientReuseFactory(
    number, learning_rate_fn=lambda n: 0.9 ** tf.cast(n, tf.float32)
  ).create(
    tff.TensorType(np.float32, [2]),
    tff.to_type(
      collections.OrderedDict(
        client_id=np.int32,
        accepted=np.float32,
        embedding=tff.TensorType(np.float32, [3]),
      )
    ),
  )
  state, w, num_stale = process.initialize(), np.zeros(2), 0
  for t in range(20):
    ids = np.flatnonzero(rng.random(number) < np.linspace(0.1, 0.6, number))
    updates = rng.normal(size=[len(ids), 2]).astype(np.float32)
    embeddings = rng.normal(size=[len(ids), 3]).astype(np.float32)
    output = process.next(
      state,
      list(updates),
      [
        collections.OrderedDict(
          client_id=np.int32(i), accepted=np.float32(1), embedding=z
        )
        for i, z in zip(ids, embeddings, strict=True)
      ],
    )
    uploads = {
      i: (server.weights - u, z)
      for i, u, z in zip(ids, updates, embeddings, strict=True)
    }
    expected = server.next(uploads, 0.9**t)
    state, w = output.state, w - output.result
    linear_task.assert_close(w, server.weights, rtol=1e-4, atol=1e-5)
    if expected is None:
      continue
    for name in ('client_id', 'frequency', 'weight', 'stale'):
      found = output.measurements['clients'][name]
      linear_task.assert_close(found, np.array(expected[name]), message=name)
    assert output.measurements['window'] == expected['window']
    num_stale += expected['num_stale']
  assert num_stale > 20


@pytest.mark.full
def test_divergence_trains_as_the_round_did():
  """The paper's two distances, of parameters and of features."""
  rounds = _some([0, 1, 2], [3], [2, 0])
  process = _build(**_ALIGNED)
  *_, before, last = linear_task.assert_rounds(
    process, functools.partial(_corefed, **_ALIGNED), rounds
  )
  # A client without data has no local model, and does not count.
  (idle,) = linear_task.make_clients((0,))
  data = [
    linear_task.client_data(i, client)
    for i, client in [*rounds[-1].items(), (1, idle)]
  ]
  found = process.divergence(before.state, last.state, data)
  # By the table of what the clients sent.
  updates = last.state.aggregator['updates']
  start, end = (linear_task.weights(process, o.state) for o in (before, last))
  pairs = {'parameters': [], 'embedding': []}
  for i, data in rounds[-1].items():
    models = start - updates[i], end
    pairs['parameters'].append(models)
    pairs['embedding'].append(
      [_NETWORK.outputs(w, data.x)[0].numpy().mean(axis=0) for w in models]
    )
  for space, vectors in pairs.items():
    angles = [np.arccos(reference.cosine(*pair)) for pair in vectors]
    lengths = [np.abs(u - v).sum() for u, v in vectors]
    for name, values in (('cosine', angles), ('manhattan', lengths)):
      np.testing.assert_allclose(
        found[f'{space}_d_{name}'], np.mean(values), rtol=1e-4
      )


def test_without_distillation_clients_align_nothing():
  linear_task.assert_refused(
    _build, ('alignment', 'client', "'server'.*cofed"), variant='cofed'
  )


def test_methods_that_need_an_embedding():
  for name in (
    *('corefed', 'fedquad', 'triplet_fl', 'quadruplet_fl', 'supcon_fl'),
    *('moon', 'fed_as', 'pfed_ck'),
  ):
    linear_task.assert_refused(
      functools.partial(
        getattr(algorithms, f'build_{name}'),
        num_clients=3,
        client_optimizer=linear_task.sgd(0.1),
      ),
      ('model_fn', linear_task.model_fn, "output 'embedding'.*found"),
    )
