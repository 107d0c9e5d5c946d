"""Tests of the objectives of metric learning, step by step against NumPy.

The reference repeats a client's training with the quadruplets and the
minibatches that were drawn, and takes the gradient by central differences.
"""

import collections
import functools
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests import refusals
from tff_fair import client
from tff_fair import models
from tff_fair.client import quadruplets

_optimizers = tff.learning.optimizers
_NUM_CLASSES = 4
# None of them a default.
_RATE, _BETA, _TEMPERATURE = 0.2, 0.7, 0.3
_MARGINS = (1.3, 0.6)
# An example alone in its class, three classes, and one that is absent.
_LABELS = np.array([0, 1, 0, 3, 0, 1], np.int32)
_X = np.random.default_rng(3).normal(size=[6, 2]).astype(np.float32)


def _model_fn():
  """An encoder with tanh, so that its gradient depends on its input."""
  x = tf.keras.Input([2])

  def dense(units, seed, **options):
    start = tf.keras.initializers.RandomNormal(stddev=0.8, seed=seed)
    return tf.keras.layers.Dense(units, kernel_initializer=start, **options)

  embedding = dense(3, 0, activation='tanh')(x)
  logits = dense(_NUM_CLASSES, 1)(embedding)
  return tf.keras.Model(
    x, collections.OrderedDict(logits=logits, embedding=embedding)
  )


def _dropout_model_fn():
  x = tf.keras.Input([2])
  embedding = tf.keras.layers.Dense(8)(x)
  logits = tf.keras.layers.Dense(_NUM_CLASSES)(
    tf.keras.layers.Dropout(0.5)(embedding)
  )
  return tf.keras.Model(
    x, collections.OrderedDict(logits=logits, embedding=embedding)
  )


def _objective(name, *, weight=_BETA, resample='epoch', use_ce=True):
  options = {'weight': weight, 'use_ce': use_ce}
  drawn = {**options, 'resample': resample}
  temperature = {'temperature': _TEMPERATURE}
  if name == 'quadruplet':
    return client.quadruplet_objective(
      _NUM_CLASSES, margins=_MARGINS, squared=False, **drawn
    )
  if name == 'squared':
    return client.quadruplet_objective(
      _NUM_CLASSES, margins=_MARGINS, squared=True, **drawn
    )
  if name == 'classic':
    return client.classic_quadruplet_objective(
      _NUM_CLASSES, margins=_MARGINS, **drawn
    )
  if name == 'triplet':
    return client.triplet_objective(_NUM_CLASSES, margin=_MARGINS[0], **drawn)
  if name == 'contrastive':
    return client.supervised_contrastive_objective(**temperature, **options)
  return client.model_contrastive_objective(weight=weight, **temperature)


_TUPLES = ('quadruplet', 'squared', 'classic', 'triplet')
_METRIC = {
  'quadruplet': 'quadruplet_loss',
  'squared': 'quadruplet_loss',
  'classic': 'quadruplet_loss',
  'triplet': 'triplet_loss',
  'contrastive': 'contrastive_loss',
  'moon': 'contrastive_loss',
}


class _Run(NamedTuple):
  """A client's training, and what was drawn in it."""

  result: client.LocalResult
  batches: list[np.ndarray]  # The examples of each step.
  draws: list[client.Quadruplets]
  seeds: list[tuple[int, ...]]  # Of the draws.


def _train(
  objective,
  *,
  model_fn=_model_fn,
  labels=_LABELS,
  epochs=2,
  batch_size=4,
  optimizer=None,
  context=(),
) -> _Run:
  run = _Run(None, [], [], [])
  sample = quadruplets.sample_quadruplets

  def recording_sample(labels, num_classes, seed):
    drawn = sample(labels, num_classes, seed)
    run.draws.append(client.Quadruplets(*[v.numpy() for v in drawn]))
    run.seeds.append(tuple(np.asarray(seed)))
    return drawn

  def recording_compute(forward, batch, context):
    run.batches.append(batch['index'].numpy())
    return objective.compute(forward, batch, context)

  model = models.StatelessModel(model_fn)
  train = client.build_local_training(
    model,
    objective._replace(compute=recording_compute),
    optimizer or _optimizers.build_sgdm(_RATE),
    local_epochs=epochs,
    batch_size=batch_size,
  )
  examples = collections.OrderedDict(
    x=tf.constant(_X[: len(labels)]), y=tf.constant(labels, tf.int32)
  )
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(quadruplets, 'sample_quadruplets', recording_sample)
    # Not in a graph, so that what is drawn can be read.
    result = train(
      model.initial_weights, examples, tf.constant([4, 2]), context=context
    )
  return run._replace(result=result)


@functools.cache
def _initial(model_fn=_model_fn):
  return [
    w.astype(np.float64)
    for w in models.StatelessModel(model_fn).initial_weights.trainable
  ]


def _flat(weights) -> np.ndarray:
  return np.concatenate([np.ravel(w) for w in weights])


def _embed(weights, x):
  return np.tanh(x @ weights[0] + weights[1])


def _cross_entropy(weights, x, labels):
  logits = _embed(weights, x) @ weights[2] + weights[3]
  log_sums = np.log(np.exp(logits).sum(axis=1))
  return np.mean(log_sums - logits[np.arange(len(labels)), labels])


def _hinge(near, far, margin):
  return np.maximum(near - far + margin, 0)


def _tuple_loss(name, weights, rows, drawn):
  """The mean over the anchors of a minibatch."""
  z = _embed(weights, _X.astype(np.float64))
  a = z[rows]
  p, n1, n2 = (z[index[rows]] for index in drawn[:3])
  v1, v2 = (mask[rows] for mask in drawn[3:])

  def distance(u, v):
    length = np.linalg.norm(u - v, axis=1)
    return length**2 if name in ('squared', 'classic') else length

  each = v1 * _hinge(distance(a, p), distance(a, n1), _MARGINS[0])
  if name != 'triplet':
    other = n1 if name == 'classic' else a
    each = each + v2 * _hinge(distance(a, p), distance(other, n2), _MARGINS[1])
  return np.mean(each)


def _unit(z):
  return z / np.linalg.norm(z, axis=1, keepdims=True)


def _contrastive_loss(weights, rows):
  s = _unit(_embed(weights, _X[rows].astype(np.float64)))
  s = s @ s.T / _TEMPERATURE
  labels = _LABELS[rows]
  each = []
  for i in range(len(rows)):
    others = [a for a in range(len(rows)) if a != i]
    positives = [p for p in others if labels[p] == labels[i]]
    if positives:
      log_sum = np.log(np.exp(s[i, others]).sum())
      each.append(np.mean(log_sum - s[i, positives]))
  return np.mean(each) if each else 0.0


def _moon_loss(weights, rows, context):
  if not context['has_previous']:
    return 0.0
  z = _unit(_embed(weights, _X[rows].astype(np.float64)))
  received, previous = (
    np.sum(z * _unit(context[name][rows].astype(np.float64)), axis=1)
    for name in ('received', 'previous')
  )
  near = np.exp(received / _TEMPERATURE)
  return np.mean(-np.log(near / (near + np.exp(previous / _TEMPERATURE))))


def _gradient(fn, weights):
  """Central differences with respect to all weights."""
  gradient = [np.zeros_like(w) for w in weights]
  for w, slopes in zip(weights, gradient, strict=True):
    for index in np.ndindex(*w.shape):
      start = w[index]
      w[index] = start + 1e-6
      above = fn(weights)
      w[index] = start - 1e-6
      slopes[index] = (above - fn(weights)) / 2e-6
      w[index] = start
  return gradient


class _Expected(NamedTuple):
  """What the reference gives."""

  weights: list[np.ndarray]
  metrics: dict[str, Any]


def _expected(metric_loss, run, *, use_ce=True) -> _Expected:
  """Gradient descent on the minibatches of a run.

  Args:
    metric_loss: `(weights, step, rows) -> float`, the mean over the minibatch.
    run: A `_Run`.
    use_ce: Whether cross-entropy is part of the loss.

  Returns:
    `_Expected`; its metrics are means over the anchors.
  """
  weights = [w.copy() for w in _initial()]
  totals = collections.Counter()

  for step, rows in enumerate(run.batches):
    x, labels = _X[rows].astype(np.float64), _LABELS[rows]

    def metric(weights, step=step, rows=rows):
      return metric_loss(weights, step, rows)

    def entropy(weights, x=x, labels=labels):
      return _cross_entropy(weights, x, labels)

    def loss(weights, metric=metric, entropy=entropy):
      return use_ce * entropy(weights) + _BETA * metric(weights)

    for name, fn in [
      ('loss', loss),
      ('cross_entropy', entropy),
      ('metric', metric),
    ]:
      totals[name] += len(rows) * fn(weights)
    totals['anchors'] += len(rows)
    gradient = _gradient(loss, weights)
    weights = [w - _RATE * g for w, g in zip(weights, gradient, strict=True)]
  num_anchors = totals.pop('anchors')
  return _Expected(weights, {k: v / num_anchors for k, v in totals.items()})


def _assert_as_expected(name, run, expected):
  found = run.result.weights.trainable
  assert np.abs(_flat(found) - _flat(_initial())).max() > 0.01
  np.testing.assert_allclose(
    _flat(found), _flat(expected.weights), rtol=1e-5, atol=2e-6
  )
  metrics = run.result.metrics
  for key in ('loss', 'cross_entropy'):
    np.testing.assert_allclose(
      metrics[key], expected.metrics[key], rtol=1e-5, err_msg=key
    )
  np.testing.assert_allclose(
    metrics[_METRIC[name]], expected.metrics['metric'], rtol=1e-5
  )


@pytest.mark.parametrize(
  ('resample', 'use_ce'), [('epoch', True), ('once', False)]
)
@pytest.mark.parametrize('name', _TUPLES)
def test_steps_with_the_drawn_quadruplets(name, resample, use_ce):
  run = _train(_objective(name, resample=resample, use_ce=use_ce))
  assert [len(rows) for rows in run.batches] == [4, 2, 4, 2]  # Two epochs.
  assert len(run.draws) == (2 if resample == 'epoch' else 1)
  assert len(set(run.seeds)) == len(run.draws)

  def metric_loss(weights, step, rows):
    drawn = run.draws[step // 2 if resample == 'epoch' else 0]
    return _tuple_loss(name, weights, rows, drawn)

  expected = _expected(metric_loss, run, use_ce=use_ce)
  assert expected.metrics['metric'] > 0.1
  _assert_as_expected(name, run, expected)


@pytest.mark.parametrize('name', _TUPLES)
def test_shares_are_of_all_anchors_whatever_the_batches(name):
  for labels, v1_share, v2_share in (
    (_LABELS, 5 / 6, 5 / 6),
    ([0, 1, 1, 1, 1], 4 / 5, 0),
    ([2, 2, 2, 2, 2], 0, 0),
    ([0, 1, 2], 0, 0),
  ):
    _check_shares(name, labels, v1_share, v2_share)


def _check_shares(name, labels, v1_share, v2_share):
  result = _train(_objective(name), labels=labels).result
  metrics = {key: float(value) for key, value in result.metrics.items()}
  assert list(metrics) == [
    'loss',
    'accuracy',
    'cross_entropy',
    _METRIC[name],
    'v1_share',
    'v2_share',
  ]
  assert metrics['v1_share'] == pytest.approx(v1_share)
  assert metrics['v2_share'] == pytest.approx(v2_share)
  # Missing quadruplets have no loss.
  assert (metrics[_METRIC[name]] == 0) == (v1_share == 0)
  assert metrics['loss'] == pytest.approx(
    metrics['cross_entropy'] + _BETA * metrics[_METRIC[name]], rel=1e-5
  )


@pytest.mark.parametrize(
  ('batch_size', 'use_ce'), [(6, True), (4, False), (1, True)]
)
def test_steps_of_the_supervised_contrastive_loss(batch_size, use_ce):
  """Of each minibatch; one of a single example has none."""
  run = _train(_objective('contrastive', use_ce=use_ce), batch_size=batch_size)

  def metric_loss(weights, step, rows):
    del step  # Nothing is drawn.
    return _contrastive_loss(weights, rows)

  expected = _expected(metric_loss, run, use_ce=use_ce)
  assert run.draws == []
  if batch_size > 1:
    _assert_as_expected('contrastive', run, expected)
  else:
    assert float(run.result.metrics['contrastive_loss']) == 0
    np.testing.assert_allclose(
      _flat(run.result.weights.trainable), _flat(expected.weights), atol=2e-6
    )


def _moon_context(has_previous):
  rng = np.random.default_rng(1)
  received, previous = rng.normal(size=[2, 6, 3]).astype(np.float32)
  return collections.OrderedDict(
    received=tf.constant(received),
    previous=tf.constant(previous),
    has_previous=tf.constant(has_previous),
  )


def test_steps_of_the_model_contrastive_loss():
  context = _moon_context(True)
  run = _train(_objective('moon'), context=context)
  arrays = {name: value.numpy() for name, value in context.items()}

  def metric_loss(weights, step, rows):
    del step  # The context is the same in all.
    return _moon_loss(weights, rows, arrays)

  expected = _expected(metric_loss, run)
  assert expected.metrics['metric'] > 0.1
  _assert_as_expected('moon', run, expected)


def test_without_a_previous_model_nothing_is_contrasted():
  moon = _train(_objective('moon'), context=_moon_context(False)).result
  plain = _train(client.cross_entropy_objective()).result
  assert float(moon.metrics['contrastive_loss']) == 0
  assert moon.metrics['loss'] == plain.metrics['loss']
  np.testing.assert_array_equal(
    _flat(moon.weights.trainable), _flat(plain.weights.trainable)
  )


@pytest.mark.parametrize('name', list(_METRIC))
def test_weight_0_is_the_plain_objective_bit_for_bit(name):
  objective = _objective(name, weight=0.0)
  assert objective.metric_names == ('accuracy',)
  assert objective.prepare is None
  # Any other pass through the model would draw another dropout mask.
  options = {
    'model_fn': _dropout_model_fn,
    'optimizer': client.with_weight_decay(_optimizers.build_adam(0.1), 0.1),
  }
  tf.keras.utils.set_random_seed(0)
  found = _train(objective, **options)
  tf.keras.utils.set_random_seed(0)
  plain = _train(client.cross_entropy_objective(), **options)
  assert found.draws == []
  assert found.result.metrics == plain.result.metrics
  np.testing.assert_array_equal(
    _flat(found.result.weights.trainable),
    _flat(plain.result.weights.trainable),
  )


@pytest.mark.parametrize('name', ['quadruplet', 'contrastive'])
def test_without_cross_entropy_the_classifier_stays_bit_for_bit(name):
  optimizer = client.with_weight_decay(_optimizers.build_adam(0.1), 0.1)
  for use_ce in (True, False):
    result = _train(_objective(name, use_ce=use_ce), optimizer=optimizer).result
    stayed = [
      np.array_equal(found, start)
      for found, start in zip(result.weights.trainable, _initial(), strict=True)
    ]
    assert stayed == [False, False, not use_ce, not use_ce]
    # It is reported all the same.
    assert float(result.metrics['cross_entropy']) > 0.1


def _batch_norm_model_fn():
  """The batch norm comes first, so that its statistics are of the inputs."""
  x = tf.keras.Input([2])
  h = tf.keras.layers.BatchNormalization(momentum=0.5)(x)
  embedding = tf.keras.layers.Dense(3)(h)
  logits = tf.keras.layers.Dense(_NUM_CLASSES)(embedding)
  return tf.keras.Model(
    x, collections.OrderedDict(logits=logits, embedding=embedding)
  )


@pytest.mark.parametrize('name', _TUPLES)
def test_batch_norm_sees_each_role_by_itself_the_anchors_first(name):
  run = _train(
    _objective(name),
    model_fn=_batch_norm_model_fn,
    epochs=1,
    batch_size=6,
  )
  (rows,), (drawn,) = run.batches, run.draws
  roles = [rows] + [index[rows] for index in drawn[:3]]
  mean = np.zeros(2)
  for role in roles[: 3 if name == 'triplet' else 4]:
    mean = (mean + _X[role].mean(axis=0)) / 2
  np.testing.assert_allclose(
    run.result.weights.non_trainable[0], mean, rtol=1e-5, atol=1e-6
  )


def test_a_client_without_examples_stays_as_it_is():
  for resample in ('epoch', 'once'):
    objective = _objective('quadruplet', resample=resample)
    run = _train(objective, labels=_LABELS[:0])
    np.testing.assert_array_equal(
      _flat(run.result.weights.trainable), _flat(_initial())
    )
    assert all(float(value) == 0 for value in run.result.metrics.values())


def test_numbers_that_are_refused():
  for name in _METRIC:
    refusals.check(
      functools.partial(_objective, name),
      [
        ({'weight': bad}, (TypeError, ValueError), '^weight must be .* found')
        for bad in (-1.0, np.nan, np.inf, '1', None, True)
      ],
    )
  for objective in (
    client.supervised_contrastive_objective,
    client.model_contrastive_objective,
  ):
    options = {} if 'model' in objective.__name__ else {'use_ce': True}
    refusals.check(
      functools.partial(objective, weight=1.0, **options),
      [({'temperature': 0.0}, ValueError, '^temperature must be positive')],
    )
  refusals.check(
    functools.partial(_objective, 'triplet'),
    [({'resample': 'Epoch'}, ValueError, "one of 'epoch', 'once', found")],
  )
