"""Methods that add a loss of the embedding to the cross-entropy.

The losses themselves are the library's, in float64: `tests/losses` has them by
hand. Clients are named by their labels: of several classes, two or one, all
alone in their class, some alone; without data, and with data not finite.
"""

import collections
import contextlib
import functools
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_task
from tests.algorithms import reference
from tff_fair import algorithms
from tff_fair import client
from tff_fair import losses
from tff_fair.client import quadruplets

pytestmark = pytest.mark.usefixtures('default_runtime')

_ENCODER = reference.ENCODER
_LABELS = {
  'several': [0, 1, 2, 1, 0, 2, 2, 0, 1, 0, 2, 1],
  'two': [0, 2, 2, 0, 0],
  'one': [1, 1, 1],
  'alone': [2, 0, 1],
  'mixed': [0, 0, 2, 0, 1, 2, 2],
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
    if name == 'broken':
      found[i].x[1, 2] = np.nan
  return found


# What a method adds to the cross-entropy, of embeddings or models.


def _quadruplets(y):
  """Positive and negatives of each anchor, and masks of both negatives.

  They are the next examples of a suitable class. Masked slots are 0.
  """
  rows = np.full([len(y), 3], -1, np.int32)
  for a in range(len(y)):
    after = [(a + k) % len(y) for k in range(1, len(y))]
    first = [j for j in after if y[j] != y[a]]
    second = [j for j in first if y[j] != y[first[0]]]
    same = [j for j in after if y[j] == y[a]]
    for slot, found in enumerate((same, first, second)):
      rows[a, slot] = found[0] if found else -1
  v1 = (rows[:, :2] >= 0).all(axis=1)
  v2 = v1 & (rows[:, 2] >= 0)
  return rows * np.column_stack([v1, v1, v2]), v1, v2


def _drawn(loss, z, y, **options):
  """A loss of quadruplets, or triplets, and the shares of anchors."""
  rows, v1, v2 = _quadruplets(y)
  roles = [z, *(tf.gather(z, column) for column in rows.T)]
  masks = {'mask_1': v1, 'mask_2': v2}
  if loss is losses.triplet_loss:
    roles, masks = roles[:3], {'mask': v1}
  each = loss(*roles, **masks, **options)
  return tf.reduce_mean(each), {'v1_share': v1.mean(), 'v2_share': v2.mean()}


_DRAWN = {
  'fedquad': (losses.quadruplet_loss, 'quadruplet_loss'),
  'triplet_fl': (losses.triplet_loss, 'triplet_loss'),
  'quadruplet_fl': (losses.classic_quadruplet_loss, 'quadruplet_loss'),
}
_WEIGHTS = {'fedquad': 'quadruplet_weight', 'moon': 'contrastive_weight'}


def _local_loss(v, name, data, received, previous, weight, use_ce, options):
  """The loss on all of a client's data, and the metrics."""
  z, logits = _ENCODER.outputs(v, data.x)
  entropy = tf.reduce_mean(reference.focal_losses(logits, data.y))
  added, more, loss_name = 0.0 * tf.reduce_sum(z), {}, 'contrastive_loss'
  if name in _DRAWN:
    loss_fn, loss_name = _DRAWN[name]
    added, more = _drawn(loss_fn, z, data.y, **options)
  elif name == 'supcon_fl':
    added = losses.supervised_contrastive_loss(data.y, z, **options)
  elif previous is not None:
    others = (_ENCODER.outputs(w, data.x)[0] for w in (received, previous))
    added = tf.reduce_mean(losses.model_contrastive_loss(z, *others, **options))
  return (entropy if use_ce else 0.0) + weight * added, {
    'accuracy': np.mean(logits.numpy().argmax(axis=1) == data.y),
    'cross_entropy': entropy,
    loss_name: added,
    **more,
  }


def _federation(rounds, name, rate, epochs, weight, use_ce=True, **options):
  w, previous = linear_task.start(linear_task.embedding_model_fn), {}
  for clients in rounds:
    found = []
    for i, data in clients.items():
      loss = functools.partial(
        _local_loss,
        name=name,
        data=data,
        received=w,
        previous=previous.get(i),
        weight=weight,
        use_ce=use_ce,
        options=options,
      )
      previous[i], _, metrics = reference.descend(loss, w, rate, epochs)
      found.append(metrics)
    sizes = [len(data.y) for data in clients.values()]
    w = reference.mean([previous[i] for i in clients], sizes)
    means = {
      f'client_work/{key}': np.average([m[key] for m in found], weights=sizes)
      for key in found[0]
    }
    yield {'weights': w, **means}


@contextlib.contextmanager
def _given_quadruplets():
  """Processes built in this context take the next examples as quadruplets.

  Nothing is drawn, as in the reference.
  """
  with mock.patch.object(
    quadruplets, 'sample_quadruplets', side_effect=_given
  ) as sample:
    yield
  sample.assert_called()


def _given(labels, num_classes, seed):
  del num_classes, seed  # Unused.
  rows, mask_1, mask_2 = tf.numpy_function(
    _quadruplets, [labels], [tf.int32, tf.bool, tf.bool]
  )
  positive, negative_1, negative_2 = tf.unstack(
    tf.ensure_shape(rows, [None, 3]), axis=1
  )
  return quadruplets.Quadruplets(
    positive=positive,
    negative_1=negative_1,
    negative_2=negative_2,
    mask_1=tf.ensure_shape(mask_1, [None]),
    mask_2=tf.ensure_shape(mask_2, [None]),
  )


def _build(name, weight=None, epochs=3, rate=0.05, **options):
  """A process for these clients, of full batches."""
  if weight is not None:
    options[_WEIGHTS.get(name, 'metric_weight')] = weight
  return linear_task.build_process(
    getattr(algorithms, f'build_{name}'),
    **{
      'model_fn': linear_task.embedding_model_fn,
      'learning_rate': rate,
      'num_clients': len(_LABELS),
      'local_epochs': epochs,
      **options,
    },
  )


def _assert_rounds(name, rounds, process, **options):
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


_OPTIONS = {
  'fedquad': {'squared': True, 'margins': (0.5, 2.0), 'rate': 0.01},
  'triplet_fl': {'margin': 0.25, 'use_ce': False},
  # Squared distances grow fast.
  'quadruplet_fl': {'margins': (0.5, 3.0), 'use_ce': False, 'rate': 0.005},
  'supcon_fl': {'temperature': 0.5, 'use_ce': False},
}


@pytest.mark.parametrize(
  'name',
  [
    pytest.param(name, marks=() if name == 'fedquad' else pytest.mark.full)
    for name in _OPTIONS
  ],
)
def test_two_rounds(name):
  options = {'weight': 2.0, 'epochs': 3, 'rate': 0.05, **_OPTIONS[name]}
  rounds = [
    _clients('several', 'two', 'mixed'),
    _clients('broken', 'one', 'empty', 'mixed', 'alone'),
  ]
  if name not in _DRAWN:
    _assert_rounds(name, rounds, _build(name, **options), **options)
    return
  with _given_quadruplets():
    process = _build(name, **options)
  outputs = _assert_rounds(name, rounds, process, **options)
  found = outputs[0].metrics['client_work']
  # 12 + 5 + 6 of 24 anchors, the last without the one that is alone.
  assert found['v1_share'] == pytest.approx(23 / 24)
  assert found['v2_share'] == pytest.approx(18 / 24)


@pytest.mark.parametrize(
  ('name', 'objective'),
  [
    ('fedquad', 'quadruplet_objective'),
    ('triplet_fl', 'triplet_objective'),
    ('quadruplet_fl', 'classic_quadruplet_objective'),
  ],
)
def test_the_objective_knows_when_to_draw(name, objective):
  with (
    mock.patch.object(client, objective, side_effect=NotImplementedError) as to,
    pytest.raises(NotImplementedError),
  ):
    _build(name, resample='once', focal_gamma=2.0)
  assert to.call_args.kwargs['resample'] == 'once'


@pytest.mark.full
def test_changing_cohorts_of_moon():
  """It compares with the client's last model, however old."""
  options = {'weight': 1.5, 'temperature': 0.1, 'epochs': 2, 'rate': 0.05}
  process = _build('moon', **options)
  rounds = [
    _clients('several', 'mixed'),
    # One client is new, one returns, and two do not count.
    _clients('empty', 'several', 'broken', 'mixed'),
    _clients('one', 'mixed'),
    _clients('one', 'several'),
  ]
  outputs = _assert_rounds('moon', rounds, process, **options)
  found = [o.metrics['client_work']['contrastive_loss'] for o in outputs]
  assert found[0] == 0 and min(found[1:]) > 0.01
  table = outputs[-1].state.client_work['table']
  known = {_IDS[name] for name in ('several', 'mixed', 'one')}
  assert set(np.flatnonzero(table['has_previous'])) == known


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
  w, each = linear_task.start(linear_task.embedding_model_fn), []
  for data, previous in zip(clients.values(), own, strict=True):
    batch = np.array([data.x.mean(axis=0), data.x.var(axis=0)])
    z = [
      _ENCODER.outputs(w, (data.x - mean) / np.sqrt(variance + 1e-3))[0]
      for mean, variance in (batch, received, previous)
    ]
    each.append(np.mean(losses.model_contrastive_loss(*z)))
  found = output.metrics['client_work']['contrastive_loss']
  assert found == pytest.approx(np.average(each, weights=[12, 7]), rel=1e-5)
  # Half of the way from the received mean to the batch's.
  means, _ = output.state.client_work['table']['previous'].non_trainable
  i = _IDS['mixed']
  expected = (received[0] + clients[i].x.mean(axis=0)) / 2
  np.testing.assert_allclose(means[i], expected, rtol=1e-5)


def test_one_of_both_losses_is_needed():
  for name in _OPTIONS:
    linear_task.assert_refused(
      functools.partial(_build, name, use_ce=False),
      (
        _WEIGHTS.get(name, 'metric_weight'),
        *(0, 'positive with use_ce=False.*found 0'),
      ),
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

  # The others have no triplet.
  for labels in ([0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 2]):
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
