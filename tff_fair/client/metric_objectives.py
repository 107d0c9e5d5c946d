"""Objectives of metric learning: cross-entropy, and a loss of the embedding.

    loss = CE + weight * metric loss        (the CE may be left out)

Both are means over the minibatch. With `focal_gamma`, a focal loss replaces CE;
its metric is still called `cross_entropy`. With a weight of 0 all of these are
FedAvg's objective, so that the method is FedAvg bit for bit. In training mode,
the anchors pass through the model first, then the other examples of their
tuples, each role separately where the model has batch statistics.
"""

import functools
from typing import Any, Literal, NamedTuple

import tensorflow as tf

from tff_fair import checks
from tff_fair import losses
from tff_fair.client import objectives
from tff_fair.client import quadruplets

RESAMPLE = ('epoch', 'once')
"""Schedules of drawing quadruplets: in each epoch, or once a round."""


def quadruplet_objective(
  num_classes: int, *, margins: Any, squared: bool, **options: Any
) -> objectives.Objective:
  """FedQuad's objective: `losses.quadruplet_loss` of sampled quadruplets.

  Args:
    num_classes: Number of classes.
    margins: m1 and m2.
    squared: Whether distances are squared.
    **options: `weight`, beta; `use_ce`, whether cross-entropy is part of the
      loss; `resample`, 'epoch' or 'once' a round: how often quadruplets are
      drawn; and `focal_gamma`, as in `classification_objective`.

  Returns:
    An objective without context. Metrics: `accuracy`, `cross_entropy`,
    `quadruplet_loss`, and `v1_share` and `v2_share` of the anchors.

  Raises:
    TypeError: If `weight` is not a number.
    ValueError: If it is negative or `resample` unknown.
  """
  metric_loss = functools.partial(
    losses.quadruplet_loss, margins=margins, squared=squared
  )
  return _tuple_objective(
    'quadruplet_loss', metric_loss, 3, num_classes, **options
  )


def classic_quadruplet_objective(
  num_classes: int, *, margins: Any, **options: Any
) -> objectives.Objective:
  """QuadrupletFL's: `losses.classic_quadruplet_loss`; see there and above."""
  metric_loss = functools.partial(
    losses.classic_quadruplet_loss, margins=margins
  )
  return _tuple_objective(
    'quadruplet_loss', metric_loss, 3, num_classes, **options
  )


def triplet_objective(
  num_classes: int, *, margin: float, **options: Any
) -> objectives.Objective:
  """TripletFL's: `losses.triplet_loss` with the first negative; see above."""

  def metric_loss(*embeddings, mask_1, mask_2):
    del mask_2  # Of the second negative.
    return losses.triplet_loss(*embeddings, margin=margin, mask=mask_1)

  return _tuple_objective(
    'triplet_loss', metric_loss, 2, num_classes, **options
  )


def mined_triplet_objective(
  mining: Literal['semihard', 'hard'], *, margin: float, **options: Any
) -> objectives.Objective:
  """TripletFL's, with triplets that are mined within each minibatch.

  The loss is `triplet_semihard_loss` or `triplet_hard_loss` of TensorFlow
  Addons, with Euclidean distances:

  * 'semihard': the mean over all pairs (a, p) of one class of
    `[|a - p| - |a - n| + m]_+`, n the nearest example of another class that is
    farther from a than p, or, if there is none, the farthest one.
  * 'hard': the mean over all examples a of the same with the farthest p and the
    nearest n.

  Addons recommends L2-normalised embeddings. They are not normalised here, as
  in `triplet_objective`, so that the margin has the same meaning; let the model
  normalise them if they should be. A minibatch without two examples of one
  class and one of another has a metric loss of 0, where Addons' may be NaN.

  Args:
    mining: Which loss.
    margin: m.
    **options: `weight`, `use_ce` and `focal_gamma`, as above.

  Returns:
    An objective without context. Metrics: `accuracy`, `cross_entropy` and
    `triplet_loss`.

  Raises:
    TypeError: If an argument is not a number.
    ValueError: If one is out of range, or `mining` unknown.
  """
  checks.check_choice('mining', mining, ('semihard', 'hard'))
  checks.check_real('margin', margin, 0.0)

  def metric_loss(forward, batch, context):
    del context  # Unused.
    # Its import takes seconds, and warns that Addons is in maintenance only.
    from tensorflow_addons import losses as addons_losses

    addons_loss = {
      'semihard': addons_losses.triplet_semihard_loss,
      'hard': addons_losses.triplet_hard_loss,
    }[mining]
    labels, outputs = batch['y'], forward(batch['x'])
    metric = tf.cond(
      _has_triplet(labels),
      lambda: addons_loss(labels, outputs['embedding'], margin=margin),
      lambda: tf.constant(0.0),
    )
    return outputs, {'triplet_loss': metric}

  return _objective(metric_loss, ('triplet_loss',), **options)


def supervised_contrastive_objective(
  *, temperature: float, **options: Any
) -> objectives.Objective:
  """SupConFL's: `losses.supervised_contrastive_loss` of the minibatch.

  Args:
    temperature: Positive.
    **options: `weight`, `use_ce` and `focal_gamma`, as above.

  Returns:
    An objective without context. Metrics: `accuracy`, `cross_entropy` and
    `contrastive_loss`.

  Raises:
    TypeError: If an argument is not a number.
    ValueError: If one is out of range.
  """
  checks.check_positive('temperature', temperature)

  def metric_loss(forward, batch, context):
    del context  # Unused.
    outputs = forward(batch['x'])
    metric = losses.supervised_contrastive_loss(
      batch['y'], outputs['embedding'], temperature=temperature
    )
    return outputs, {'contrastive_loss': metric}

  return _objective(metric_loss, ('contrastive_loss',), **options)


def model_contrastive_objective(
  *, weight: float, temperature: float, focal_gamma: float = 0.0
) -> objectives.Objective:
  """MOON's: `losses.model_contrastive_loss` of each example.

  Args:
    weight: mu.
    temperature: Positive.
    focal_gamma: As in `classification_objective`.

  Returns:
    An objective whose context is `OrderedDict(received=float32[n, p],
    previous=float32[n, p], has_previous=bool)`, embeddings of all the client's
    examples. Metrics: `accuracy`, `cross_entropy` and `contrastive_loss`, which
    is 0 without a previous model.

  Raises:
    TypeError: If an argument is not a number.
    ValueError: If one is out of range.
  """
  checks.check_positive('temperature', temperature)

  def metric_loss(forward, batch, context):
    outputs = forward(batch['x'])
    each = losses.model_contrastive_loss(
      outputs['embedding'],
      tf.gather(context['received'], batch['index']),
      tf.gather(context['previous'], batch['index']),
      temperature=temperature,
    )
    has_previous = tf.cast(context['has_previous'], tf.float32)
    return outputs, {'contrastive_loss': has_previous * tf.reduce_mean(each)}

  return _objective(
    metric_loss,
    ('contrastive_loss',),
    weight=weight,
    use_ce=True,
    focal_gamma=focal_gamma,
  )


class _Drawn(NamedTuple):
  """The context of an epoch: all examples, and their quadruplets."""

  x: tf.Tensor
  quadruplets: quadruplets.Quadruplets


def _tuple_objective(
  name, loss, num_others, num_classes, *, resample, **options
) -> objectives.Objective:
  """An objective of an anchor and the first `num_others` of its quadruplet."""
  checks.check_choice('resample', resample, RESAMPLE)

  def prepare(context, examples, seed):
    del context  # There is none.
    labels = examples['y']
    return _Drawn(
      examples['x'], quadruplets.sample_quadruplets(labels, num_classes, seed)
    )

  def metric_loss(forward, batch, context):
    drawn = tf.nest.map_structure(
      lambda values: tf.gather(values, batch['index']), context.quadruplets
    )
    others = [tf.gather(context.x, index) for index in drawn[:num_others]]
    outputs = forward.each([batch['x'], *others])
    each = loss(
      *(output['embedding'] for output in outputs),
      mask_1=drawn.mask_1,
      mask_2=drawn.mask_2,
    )
    return outputs[0], {
      name: tf.reduce_mean(each),
      'v1_share': tf.reduce_mean(tf.cast(drawn.mask_1, tf.float32)),
      'v2_share': tf.reduce_mean(tf.cast(drawn.mask_2, tf.float32)),
    }

  return _objective(
    metric_loss,
    (name, 'v1_share', 'v2_share'),
    **options,
    prepare=prepare,
    prepare_each='epoch' if resample == 'epoch' else 'round',
  )


def _objective(
  metric_loss, names, *, weight, use_ce, focal_gamma=0.0, **schedule
) -> objectives.Objective:
  """The objective of a metric loss, the first of the metrics `names`."""
  checks.check_real('weight', weight, 0.0)
  if not weight:
    return objectives.classification_objective(focal_gamma)

  def compute(forward, batch, context):
    outputs, measured = metric_loss(forward, batch, context)
    cross_entropy, metrics = objectives.classification(
      batch['y'], outputs['logits'], focal_gamma
    )
    weighted = weight * measured[names[0]]
    metrics['cross_entropy'] = cross_entropy
    metrics.update(measured)
    return cross_entropy + weighted if use_ce else weighted, metrics

  return objectives.Objective(
    compute, ('accuracy', 'cross_entropy', *names), **schedule
  )


def _has_triplet(labels) -> tf.Tensor:
  """Returns whether two examples share a label that a third does not have."""
  number = tf.size(tf.unique(labels)[0])
  return (number > 1) & (number < tf.size(labels))
