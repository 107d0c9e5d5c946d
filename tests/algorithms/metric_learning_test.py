"""Methods that add a loss to the cross-entropy: of the embedding, or a pull.

Clients are named by their labels: of several classes, two or one, all alone in
their class, some alone; of two classes and of three where only one quadruplet
can be drawn; without data, and with data that are not finite.
"""

import collections
import contextlib
import functools
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms
from tff_fair import client
from tff_fair.client import quadruplets

pytestmark = pytest.mark.usefixtures('default_runtime')

_TINY = 1e-12
_ENCODER = reference.ENCODER
_LABELS = {
  'several': [0, 1, 2, 1, 0, 2, 2, 0, 1, 0, 2, 1],
  'two': [0, 2, 2, 0, 0],
  'one': [1, 1, 1],
  'alone': [2, 0, 1],
  'mixed': [0, 0, 2, 0, 1, 2, 2],
  'forced_two': [2, 0, 2],
  'forced_three': [1, 2, 1, 0],
  'empty': [],
  'broken': [0, 0, 1, 2],
}
_IDS = {name: i for i, name in enumerate(_LABELS)}


def _clients(*names):
  """Some of the clients, as a dictionary from ids to data."""
  found = {}
  for name in names:
    i = _IDS[name]
    found[i] = linear_task.labelled_client(_LABELS[name], seed=i)
    if name == 'forced_three':
      # Both negatives of class 1 look alike: it does not matter which is n1.
      found[i].x[3] = found[i].x[1]
    if name == 'broken':
      found[i].x[1, 2] = np.nan
  return found


# What a method adds to the cross-entropy, of embeddings or models.


def _next_quadruplets(y):
  """Positive and negatives, the next of a suitable class; -1 without one."""
  rows = []
  for a in range(len(y)):
    after = [(a + k) % len(y) for k in range(1, len(y))]
    first = [j for j in after if y[j] != y[a]]
    rows.append(
      [
        found[0] if found else -1
        for found in (
          [j for j in after if y[j] == y[a]],
          first,
          [j for j in first if y[j] != y[first[0]]],
        )
      ]
    )
  return np.array(rows, np.int32).reshape(-1, 3)


def _distances(z, u, v, squared):
  squares = tf.reduce_sum((tf.gather(z, u) - tf.gather(z, v)) ** 2, axis=1)
  return squares if squared else tf.sqrt(tf.maximum(squares, _TINY))


def _hinges(z, y, margins, squared, far):
  """The mean of `[d(a, p) - d(far) + margin]_+`, and the shares of anchors.

  Args:
    z: Embeddings.
    y: Labels.
    margins: A number for each of `far`.
    squared: Whether the distances are.
    far: Two roles each, of a, p, n1 and n2, which are 0 to 3.
  """
  roles = np.column_stack([np.arange(len(y)), _next_quadruplets(y)])
  loss, shares = 0.0, []
  for last in (2, 3):
    roles = roles[(roles[:, 1 : last + 1] >= 0).all(axis=1)]
    shares.append(len(roles) / len(y))
    if last - 2 < len(far):
      (u, v), margin = far[last - 2], margins[last - 2]
      near = _distances(z, roles[:, 0], roles[:, 1], squared)
      away = _distances(z, roles[:, u], roles[:, v], squared)
      loss += tf.reduce_sum(tf.nn.relu(near - away + margin)) / len(y)
  return loss, {'v1_share': shares[0], 'v2_share': shares[1]}


def _fedquad(z, data, margins=(1.0, 0.5), squared=False, **_):
  return _hinges(z, data.y, margins, squared, [(0, 2), (0, 3)])


def _triplet(z, data, margin=1.0, **_):
  return _hinges(z, data.y, [margin], False, [(0, 2)])


def _quadruplet(z, data, margins=(1.0, 0.5), **_):
  return _hinges(z, data.y, margins, True, [(0, 2), (2, 3)])


def _supcon(z, data, temperature=0.07, **_):
  """The mean over anchors with a positive."""
  unit = z / tf.maximum(tf.norm(z, axis=1, keepdims=True), _TINY)
  same = (data.y[:, np.newaxis] == data.y) & ~np.eye(len(data.y), dtype=bool)
  if not same.any():
    return 0.0 * tf.reduce_sum(z), {}
  similarity = unit @ tf.transpose(unit) / temperature
  others = tf.linalg.set_diag(
    similarity, tf.fill([len(data.y)], tf.constant(-np.inf, tf.float64))
  )
  log_sum = tf.reduce_logsumexp(others, axis=1)
  to_same = [
    log_sum[i] - tf.reduce_mean(similarity[i][same[i]])
    for i in np.flatnonzero(same.any(axis=1))
  ]
  return tf.reduce_mean(to_same), {}


def _moon(z, data, received, previous, temperature=0.5, **_):
  if previous is None:
    return 0.0 * tf.reduce_sum(z), {}
  of_received, of_previous = (
    _ENCODER.outputs(w, data.x)[0] for w in (received, previous)
  )
  gaps = [
    (
      reference.cosine(z[i], of_previous[i])
      - reference.cosine(z[i], of_received[i])
    )
    / temperature
    for i in range(len(data.y))
  ]
  return tf.reduce_mean(tf.nn.softplus(gaps)), {}


_LOSSES = {
  'fedquad': (_fedquad, 'quadruplet_loss'),
  'triplet_fl': (_triplet, 'triplet_loss'),
  'quadruplet_fl': (_quadruplet, 'quadruplet_loss'),
  'supcon_fl': (_supcon, 'contrastive_loss'),
  'moon': (_moon, 'contrastive_loss'),
}
# Of a builder's weight: its name, and the reference's.
_WEIGHTS = {
  'fedquad': 'quadruplet_weight',
  'moon': 'contrastive_weight',
  'fed_prox': 'proximal_weight',
}
_DEFAULT_WEIGHTS = {'moon': 5.0, 'fed_prox': 0.01}


def _local_loss(v, name, data, received, previous, weight, use_ce, options):
  """The loss on all of a client's data, and the metrics."""
  z, logits = _ENCODER.outputs(v, data.x)
  entropy = tf.reduce_mean(reference.focal_losses(logits, data.y))
  metrics = {'accuracy': np.mean(logits.numpy().argmax(axis=1) == data.y)}
  if name == 'fed_prox':
    pull = weight / 2 * tf.reduce_sum((v - received) ** 2)
    return entropy + pull, metrics
  loss_fn, loss_name = _LOSSES[name]
  added, more = loss_fn(
    z, data, received=received, previous=previous, **options
  )
  metrics.update({'cross_entropy': entropy, loss_name: added, **more})
  return (entropy if use_ce else 0.0) + weight * added, metrics


def _federation(
  rounds, name, rate, epochs=3, weight=None, use_ce=True, **options
):
  w, previous = linear_task.start(linear_task.embedding_model_fn), {}
  if weight is None:
    weight = _DEFAULT_WEIGHTS.get(name, 0.5)
  for clients in rounds:
    models, found = [], []
    for i, data in clients.items():
      model, _, metrics = reference.descend(
        functools.partial(
          _local_loss,
          name=name,
          data=data,
          received=w,
          previous=previous.get(i),
          weight=weight,
          use_ce=use_ce,
          options=options,
        ),
        *(w, rate, epochs),
      )
      models.append(model)
      found.append(metrics)
      previous[i] = model
    sizes = [len(data.y) for data in clients.values()]
    w = reference.mean(models, sizes)
    means = {
      f'client_work/{key}': np.average([m[key] for m in found], weights=sizes)
      for key in found[0]
    }
    yield {'weights': w, **means}


@contextlib.contextmanager
def _given_quadruplets():
  """Processes built in this context take the next examples as quadruplets.

  Nothing is drawn, as in the reference. Masked slots refer to example 0.
  """
  with mock.patch.object(
    quadruplets, 'sample_quadruplets', side_effect=_given
  ) as sample:
    yield
  sample.assert_called()


def _given(labels, num_classes, seed):
  del num_classes, seed  # Unused.
  rows = tf.numpy_function(_next_quadruplets, [labels], tf.int32)
  rows = tf.ensure_shape(rows, [None, 3])
  mask_1 = tf.reduce_all(rows[:, :2] >= 0, axis=1)
  mask_2 = mask_1 & (rows[:, 2] >= 0)
  return quadruplets.Quadruplets(
    positive=tf.where(mask_1, rows[:, 0], 0),
    negative_1=tf.where(mask_1, rows[:, 1], 0),
    negative_2=tf.where(mask_2, rows[:, 2], 0),
    mask_1=mask_1,
    mask_2=mask_2,
  )


_DRAWN = ('fedquad', 'triplet_fl', 'quadruplet_fl')
# Squared distances grow fast.
_RATES = {'quadruplet_fl': 0.005, 'supcon_fl': 0.1, 'fed_prox': 0.1}


def _build(name, weight=None, epochs=3, rate=None, **options):
  """A process for these clients, of full batches."""
  if weight is not None:
    options[_WEIGHTS.get(name, 'metric_weight')] = weight
  return linear_task.build_process(
    getattr(algorithms, f'build_{name}'),
    **{
      'model_fn': linear_task.embedding_model_fn,
      'learning_rate': _RATES.get(name, 0.05) if rate is None else rate,
      'num_clients': len(_LABELS),
      'local_epochs': epochs,
      **options,
    },
  )


def _assert_rounds(name, rounds, process=None, **options):
  process = process or _build(name, **options)
  options = {'rate': _RATES.get(name, 0.05), **options}
  expected = functools.partial(_federation, name=name, **options)
  outputs = linear_task.assert_rounds(process, expected, rounds)
  found = {
    key
    for key in outputs[0].metrics['client_work']
    if key != 'clients' and not key.startswith('num_')
  }
  (values, *_) = expected([linear_task.usable(rounds[0])])
  assert found == {
    path.removeprefix('client_work/') for path in values if path != 'weights'
  }
  return outputs


_FULL = (
  ('fedquad', {'squared': True, 'margins': (0.5, 2.0), 'rate': 0.01}),
  ('fedquad', {'use_ce': False, 'weight': 2.0}),
  ('triplet_fl', {'weight': 2.0, 'margin': 0.25, 'use_ce': False}),
  ('quadruplet_fl', {'weight': 2.0, 'margins': (0.5, 3.0), 'use_ce': False}),
  ('supcon_fl', {'weight': 2.0, 'temperature': 0.5, 'use_ce': False}),
  ('fed_prox', {'weight': 2.0}),
)


@pytest.mark.parametrize(
  ('name', 'options'),
  [
    *((name, {}) for name in (*_DRAWN, 'supcon_fl', 'fed_prox')),
    *(pytest.param(*row, marks=pytest.mark.full) for row in _FULL),
  ],
)
def test_two_rounds(name, options):
  rounds = [
    _clients('several', 'two', 'mixed'),
    _clients('broken', 'one', 'empty', 'mixed', 'alone'),
  ]
  if name not in _DRAWN:
    _assert_rounds(name, rounds, **options)
    return
  with _given_quadruplets():
    process = _build(name, **options)
  outputs = _assert_rounds(name, rounds, process, **options)
  found = outputs[0].metrics['client_work']
  # 12 + 5 + 6 of 24 anchors, the last without the one that is alone.
  assert found['v1_share'] == pytest.approx(23 / 24)
  assert found['v2_share'] == pytest.approx(18 / 24)


@pytest.mark.parametrize(
  'options',
  [
    {},
    pytest.param(
      {'weight': 1.5, 'temperature': 0.1, 'epochs': 2}, marks=pytest.mark.full
    ),
  ],
  ids=str,
)
def test_changing_cohorts_of_moon(options):
  """It compares with the client's last model, however old."""
  process = _build('moon', **options)
  rounds = [
    _clients('several', 'mixed'),
    # One client is new, one returns, and two do not count.
    _clients('empty', 'several', 'broken', 'mixed'),
    _clients('one', 'mixed'),
    _clients('one', 'several'),
  ]
  outputs = _assert_rounds('moon', rounds, process, **options)
  losses = [o.metrics['client_work']['contrastive_loss'] for o in outputs]
  assert losses[0] == 0 and min(losses[1:]) > 0.01
  table = outputs[-1].state.client_work['table']
  known = {_IDS[name] for name in ('several', 'mixed', 'one')}
  assert set(np.flatnonzero(table['has_previous'])) == known


@pytest.mark.full
def test_where_only_one_quadruplet_can_be_drawn():
  process = _build('fedquad')
  clients = _clients('forced_two', 'forced_three', 'one', 'alone')
  _assert_rounds('fedquad', [clients] * 2, process)
  # Where nothing can be drawn, it is FedAvg.
  clients = _clients('one', 'alone')
  _assert_rounds('fedquad', [clients] * 2, process, weight=0.0)


@pytest.mark.full
@pytest.mark.parametrize('name', (*_DRAWN, 'supcon_fl'))
def test_without_cross_entropy_the_classifier_is_not_trained(name):
  """Nor does weight decay change it."""
  process = _build(
    name,
    epochs=2,
    batch_size=4,
    use_ce=False,
    client_optimizer=client.with_weight_decay(
      tff.learning.optimizers.build_adam(0.01), 0.1
    ),
  )
  first = linear_task.embedding_model_fn().get_weights()
  data = [linear_task.labelled_client([0, 1, 2, 1, 0, 2], i) for i in range(2)]
  state = linear_task.run(process, data, [[0, 1], [1]]).state
  kernel, _, *classifier = process.get_model_weights(state).trainable
  linear_task.assert_equal(classifier, first[2:])
  assert np.abs(kernel - first[0]).max() > 1e-3


@functools.cache
def _quadruplet_losses(**options):
  """Of the first two rounds of a model that does not change."""
  process = _build('fedquad', rate=0.0, batch_size=5, **options)
  outputs = linear_task.assert_rounds(
    process, lambda rounds: [{}] * 2, [_clients('several')] * 2
  )
  return [o.metrics['client_work']['quadruplet_loss'] for o in outputs]


@pytest.mark.full
def test_quadruplets_are_drawn_once_a_round_or_in_every_epoch():
  of_one_epoch = _quadruplet_losses(resample='once', epochs=1)
  of_three = _quadruplet_losses(resample='once')
  np.testing.assert_allclose(of_one_epoch, of_three, rtol=1e-5)
  assert abs(of_three[0] - of_three[1]) > 1e-3
  of_one_epoch = _quadruplet_losses(epochs=1)
  for others in (_quadruplet_losses(), _quadruplet_losses(epochs=1, seed=1)):
    assert np.abs(np.subtract(of_one_epoch, others)).min() > 1e-3


@pytest.mark.full
def test_metrics_are_means_over_anchors_for_any_minibatches():
  with _given_quadruplets():
    process = _build('fedquad', rate=0.0, batch_size=5)
  rounds = [_clients('several', 'mixed')] * 2
  _assert_rounds('fedquad', rounds, process, rate=0.0)


@pytest.mark.full
def test_the_fixed_models_of_moon_have_their_own_moving_statistics():
  """Of batch normalisation; the weights do not change."""
  process = _build(
    'moon',
    model_fn=linear_task.embedding_behind_batch_norm_model_fn,
    rate=0.0,
    epochs=1,
  )
  clients = _clients('several', 'mixed')
  output = linear_task.run(process, clients, [clients] * 2)
  own = [
    np.array([c.x.mean(axis=0), 1 + c.x.var(axis=0)]) / 2
    for c in clients.values()
  ]
  received = np.average(own, axis=0, weights=[12, 7])
  w, losses = linear_task.start(linear_task.embedding_model_fn), []
  for data, previous in zip(clients.values(), own, strict=True):
    batch = np.array([data.x.mean(axis=0), data.x.var(axis=0)])
    z = [
      _ENCODER.outputs(w, (data.x - mean) / np.sqrt(variance + 1e-3))[0]
      for mean, variance in (batch, received, previous)
    ]
    gaps = [
      2 * (reference.cosine(a, c) - reference.cosine(a, b))
      for a, b, c in zip(*z, strict=True)
    ]
    losses.append(np.mean(np.log1p(np.exp(gaps))))
  found = output.metrics['client_work']['contrastive_loss']
  expected = np.average(losses, weights=[12, 7])
  np.testing.assert_allclose(found, expected, rtol=1e-5)
  # Half of the way from the received mean to the batch's.
  means, _ = output.state.client_work['table']['previous'].non_trainable
  i = _IDS['mixed']
  expected = (received[0] + clients[i].x.mean(axis=0)) / 2
  np.testing.assert_allclose(means[i], expected, rtol=1e-5)


@pytest.mark.parametrize('name', (*_DRAWN, 'supcon_fl'))
def test_one_of_both_losses_is_needed(name):
  weight = _WEIGHTS.get(name, 'metric_weight')
  linear_task.assert_refused(
    functools.partial(_build, name, use_ce=False),
    (weight, 0, 'positive with use_ce=False.*found 0'),
  )


# Triplets that are mined within minibatches.

# On a line: a and b of class 0, c and d of class 1.
#   d(a, b) = 2, d(a, c) = 3, d(a, d) = 4, d(b, c) = 1, d(b, d) = 2, d(c, d) = 1
_EMBEDDINGS = np.array([[0.0, 0.0], [2.0, 0.0], [3.0, 0.0], [4.0, 0.0]])
_MINED = {
  # Of the pairs (a, b), (b, a), (c, d), (d, c); the nearest negative that is
  # farther than the positive is at 3, none (so the farthest, at 2), 3 and 2:
  # [2 - 3 + m]_+, [2 - 2 + m]_+, [1 - 3 + m]_+, [1 - 2 + m]_+ with m = 1.5.
  'semihard': (0.5 + 1.5 + 0 + 0.5) / 4,
  # The nearest negatives are at 3, 1, 1 and 2:
  # [2 - 3 + m]_+, [2 - 1 + m]_+, [1 - 1 + m]_+, [1 - 2 + m]_+.
  'hard': (0.5 + 2.5 + 1.5 + 0.5) / 4,
}


@pytest.mark.parametrize('mining', _MINED)
def test_mined_triplets_of_a_minibatch_by_hand(mining):
  objective = client.mined_triplet_objective(
    mining, weight=2.0, margin=1.5, use_ce=False
  )

  def forward(x):
    return collections.OrderedDict(logits=tf.zeros([len(x), 3]), embedding=x)

  # The last three have no triplet.
  for labels in ([0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 2], [0]):
    embeddings = tf.constant(_EMBEDDINGS[: len(labels)], tf.float32)
    batch = collections.OrderedDict(
      x=embeddings, y=tf.constant(labels), index=tf.range(len(labels))
    )
    with tf.GradientTape() as tape:
      tape.watch(embeddings)
      loss, metrics = objective.compute(forward, batch, ())
    assert tuple(metrics) == objective.metric_names
    np.testing.assert_allclose(loss, 2 * metrics['triplet_loss'])
    if labels == [0, 0, 1, 1]:
      expected = _MINED[mining]
      np.testing.assert_allclose(metrics['triplet_loss'], expected, rtol=1e-6)
    else:
      gradient = tape.gradient(loss, embeddings)
      assert loss == 0 and (gradient is None or not np.any(gradient)), labels


@pytest.mark.full
def test_two_rounds_of_mined_triplets():
  process = _build('triplet_fl', mining='semihard', epochs=1)
  clients = _clients('mixed', 'one')
  metrics = linear_task.run(process, clients, [clients] * 2).metrics
  metrics = metrics['client_work']
  assert metrics['num_rejected_clients'] == 0
  assert metrics['triplet_loss'] > 0
  assert 'v1_share' not in metrics
  assert np.all(np.isfinite(metrics['clients']['loss']))
