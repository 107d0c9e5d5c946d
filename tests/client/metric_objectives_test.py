"""The objectives of metric learning, against a loop over the anchors."""

import collections

import hypothesis
from hypothesis import strategies as st
from hypothesis.extra import numpy as hypothesis_numpy
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests import properties
from tff_fair import client
from tff_fair import models
from tff_fair.client import quadruplets

_optimizers = tff.learning.optimizers
_NUM_CLASSES = 4
# None of them a default.
_BETA, _TEMPERATURE, _MARGINS = 0.7, 0.3, (1.3, 0.6)
# An example alone in its class, three classes, and one that is absent.
_LABELS = np.array([0, 1, 0, 3, 0, 1], np.int32)
_X = np.random.default_rng(3).normal(size=[6, 2]).astype(np.float32)
_METRIC = {
  'quadruplet': 'quadruplet_loss',
  'squared': 'quadruplet_loss',
  'classic': 'quadruplet_loss',
  'triplet': 'triplet_loss',
  'contrastive': 'contrastive_loss',
  'moon': 'contrastive_loss',
}
_TUPLES = ('quadruplet', 'squared', 'classic', 'triplet')


def _objective(name, *, weight=_BETA, resample='epoch', use_ce=True):
  drawn = {'weight': weight, 'use_ce': use_ce, 'resample': resample}
  if name in ('quadruplet', 'squared'):
    return client.quadruplet_objective(
      _NUM_CLASSES, margins=_MARGINS, squared=name == 'squared', **drawn
    )
  if name == 'classic':
    return client.classic_quadruplet_objective(
      _NUM_CLASSES, margins=_MARGINS, **drawn
    )
  if name == 'triplet':
    return client.triplet_objective(_NUM_CLASSES, margin=_MARGINS[0], **drawn)
  if name == 'contrastive':
    return client.supervised_contrastive_objective(
      weight=weight, temperature=_TEMPERATURE, use_ce=use_ce
    )
  return client.model_contrastive_objective(
    weight=weight, temperature=_TEMPERATURE
  )


class _Linear:
  """A linear encoder and classifier, in float32 or, for the loop, float64."""

  def __init__(self, dtype):
    kernels = np.float32([[1, 0.5, -0.3], [0.2, -1, 0.8]]), np.eye(3, 4) + 0.1
    self.kernels = [tf.constant(kernel, dtype) for kernel in kernels]

  def __call__(self, x):
    embedding = tf.cast(x, self.kernels[0].dtype) @ self.kernels[0]
    logits = embedding @ self.kernels[1]
    return collections.OrderedDict(logits=logits, embedding=embedding)

  def each(self, batches):
    return [self(x) for x in batches]


def _tuple_loss(name, z, i, drawn):
  """The loss of an anchor."""
  p, n1, n2, v1, v2 = (values[i] for values in drawn)

  def distance(a, b):
    square = tf.reduce_sum((z[a] - z[b]) ** 2)
    return square if name in ('squared', 'classic') else tf.sqrt(square)

  loss = tf.constant(0.0, tf.float64)
  if v1:
    loss += tf.nn.relu(distance(i, p) - distance(i, n1) + _MARGINS[0])
  if v2 and name != 'triplet':
    other = distance(n1 if name == 'classic' else i, n2)
    loss += tf.nn.relu(distance(i, p) - other + _MARGINS[1])
  return loss


def _similarity(u, v):
  return tf.reduce_sum(u * v) / (tf.norm(u) * tf.norm(v)) / _TEMPERATURE


def _contrastive_loss(z, labels, i, rows):
  """The loss of an example among those of its minibatch; None without one."""
  others = [a for a in rows if a != i]
  positives = [p for p in others if labels[p] == labels[i]]
  if not positives:
    return None
  total = tf.reduce_logsumexp([_similarity(z[i], z[a]) for a in others])
  return tf.add_n([total - _similarity(z[i], z[p]) for p in positives]) / len(
    positives
  )


def _by_a_loop(name, model, x, labels, rows, context, use_ce):
  """The metric loss and the loss of a minibatch, one example after another."""
  outputs = model(x)
  z = outputs['embedding']
  if name in _TUPLES:
    drawn = [values.numpy() for values in context.quadruplets]
    each = [_tuple_loss(name, z, i, drawn) for i in rows]
  elif name == 'contrastive':
    each = [_contrastive_loss(z, labels, i, rows) for i in rows]
    each = [loss for loss in each if loss is not None]
  else:
    received, previous = (
      tf.cast(context[key], tf.float64) for key in ('received', 'previous')
    )
    each = [
      tf.math.softplus(
        _similarity(z[i], previous[i]) - _similarity(z[i], received[i])
      )
      * float(context['has_previous'])
      for i in rows
    ]
  metric = tf.add_n(each) / len(each) if each else tf.constant(0.0, tf.float64)
  entropies = [
    tf.reduce_logsumexp(outputs['logits'][i]) - outputs['logits'][i][labels[i]]
    for i in rows
  ]
  entropy = tf.add_n(entropies) / len(rows)
  return metric, use_ce * entropy + _BETA * metric


def _moon_context(size, has_previous):
  rng = np.random.default_rng(size)
  received, previous = rng.normal(size=[2, size, 3]).astype(np.float32)
  return collections.OrderedDict(
    received=tf.constant(received),
    previous=tf.constant(previous),
    has_previous=tf.constant(has_previous),
  )


_settings = hypothesis.settings(properties.SETTINGS, max_examples=8)


@_settings
@hypothesis.given(
  labels=hypothesis_numpy.arrays(np.int32, 6, elements=st.integers(0, 3)),
  rows=st.lists(st.integers(0, 5), min_size=1, max_size=6, unique=True),
  seed=st.integers(0, 1000),
  flag=st.booleans(),
)
@hypothesis.example(_LABELS, [4, 0, 5, 2, 1, 3], 0, True)
@hypothesis.example(_LABELS, [4, 0, 5, 2], 1, False)
@pytest.mark.parametrize('name', list(_METRIC))
def test_loss_and_gradient_of_a_minibatch(name, labels, rows, seed, flag):
  x = np.random.default_rng(seed).normal(size=[6, 2]).astype(np.float32)
  use_ce = flag or name == 'moon'
  objective = _objective(name, use_ce=use_ce)
  examples = collections.OrderedDict(x=tf.constant(x), y=tf.constant(labels))
  context = _moon_context(6, flag) if name == 'moon' else ()
  if objective.prepare is not None:
    context = objective.prepare(context, examples, tf.constant([seed, 1]))
  batch = collections.OrderedDict(
    x=tf.constant(x[rows]), y=tf.constant(labels[rows]), index=tf.constant(rows)
  )
  model, slow = _Linear(tf.float32), _Linear(tf.float64)
  with tf.GradientTape(persistent=True) as tape:
    tape.watch([model.kernels, slow.kernels])
    loss, metrics = objective.compute(model, batch, context)
    metric, expected = _by_a_loop(
      name, slow, x, labels, rows, context, float(use_ce)
    )
  assert tuple(metrics) == objective.metric_names
  np.testing.assert_allclose(metrics[_METRIC[name]], metric, 1e-4, 1e-5)
  np.testing.assert_allclose(loss, expected, 1e-4, 1e-5)
  zeros = tf.UnconnectedGradients.ZERO
  for found, wanted in zip(
    tape.gradient(loss, model.kernels, unconnected_gradients=zeros),
    tape.gradient(expected, slow.kernels, unconnected_gradients=zeros),
    strict=True,
  ):
    np.testing.assert_allclose(found, wanted, 1e-3, 1e-4)
  if name in _TUPLES:
    for share, mask in zip(
      ('v1_share', 'v2_share'), context[1][3:], strict=True
    ):
      np.testing.assert_allclose(metrics[share], np.mean(mask.numpy()[rows]))


def _model_fn(*layers):
  x = tf.keras.Input([2])
  h = x
  for layer in layers:
    h = layer(h)
  embedding = tf.keras.layers.Dense(3, activation='tanh')(h)
  h = tf.keras.layers.Dropout(0.5)(embedding)
  logits = tf.keras.layers.Dense(_NUM_CLASSES)(h)
  return tf.keras.Model(
    x, collections.OrderedDict(logits=logits, embedding=embedding)
  )


def _train(objective, model_fn=_model_fn, labels=_LABELS, **options):
  """Two epochs of two steps; returns the result, the draws and their seeds."""
  tf.keras.utils.set_random_seed(0)
  model, draws = models.StatelessModel(model_fn), []
  options = {'local_epochs': 2, 'batch_size': 4, **options}
  train = client.build_local_training(
    model,
    objective,
    client.with_weight_decay(_optimizers.build_adam(0.1), 0.1),
    **options,
  )
  sample = quadruplets.sample_quadruplets

  def recording_sample(labels, num_classes, seed):
    drawn = sample(labels, num_classes, seed)
    draws.append((tuple(seed.numpy()), [values.numpy() for values in drawn]))
    return drawn

  examples = collections.OrderedDict(
    x=tf.constant(_X[: len(labels)]), y=tf.constant(labels)
  )
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(quadruplets, 'sample_quadruplets', recording_sample)
    # Not in a graph, so that what is drawn can be read.
    result = train(model.initial_weights, examples, tf.constant([4, 2]))
  return model.initial_weights.trainable, result, draws


def _same(weights, others):
  return [np.array_equal(*pair) for pair in zip(weights, others, strict=True)]


@pytest.mark.parametrize(('resample', 'number'), [('epoch', 2), ('once', 1)])
def test_quadruplets_are_drawn_anew_in_each_epoch_or_once(resample, number):
  _, _, draws = _train(_objective('triplet', resample=resample))
  assert len({seed for seed, _ in draws}) == len(draws) == number


@pytest.mark.parametrize('name', list(_METRIC))
def test_weight_0_is_the_plain_objective_bit_for_bit(name):
  objective = _objective(name, weight=0.0)
  assert objective.metric_names == ('accuracy',)
  # Any other pass through the model would draw another dropout mask.
  _, found, draws = _train(objective)
  _, plain, _ = _train(client.classification_objective())
  assert draws == [] and found.metrics == plain.metrics
  assert all(_same(found.weights.trainable, plain.weights.trainable))


@pytest.mark.parametrize('name', ['quadruplet', 'contrastive'])
def test_without_cross_entropy_the_classifier_stays_bit_for_bit(name):
  start, result, _ = _train(_objective(name, use_ce=False))
  assert _same(result.weights.trainable, start) == [False, False, True, True]
  # It is reported all the same.
  assert float(result.metrics['cross_entropy']) > 0.1


@pytest.mark.parametrize('name', _TUPLES)
def test_batch_norm_sees_each_role_by_itself_the_anchors_first(name):
  def model_fn():
    return _model_fn(tf.keras.layers.BatchNormalization(momentum=0.5))

  _, result, draws = _train(
    _objective(name), model_fn, local_epochs=1, batch_size=6
  )
  [(_, drawn)], mean = draws, np.zeros(2)
  # All examples are anchors, in some order.
  for role in [np.arange(6), *drawn[: 2 if name == 'triplet' else 3]]:
    mean = (mean + _X[role].mean(axis=0)) / 2
  np.testing.assert_allclose(
    result.weights.non_trainable[0], mean, rtol=1e-5, atol=1e-6
  )


def test_a_client_without_examples_stays_as_it_is():
  for resample in ('epoch', 'once'):
    objective = _objective('quadruplet', resample=resample)
    start, result, _ = _train(objective, labels=_LABELS[:0])
    assert all(_same(result.weights.trainable, start))
    assert all(float(value) == 0 for value in result.metrics.values())
