"""The local loop: one client's training as a pure function of tensors.

Every method trains its clients here and supplies only an objective (see
`objectives.py`). There are no variables and no op seeds: weights are arguments
and results, and every permutation and dropout mask is a function of the given
seed. So the loop can be compiled, vectorised over clients and run from several
threads.
"""

import collections
from collections.abc import Callable
import dataclasses
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair.client import objectives
from tff_fair.models import paired
from tff_fair.models import partial
from tff_fair.models import stateless

ModelWeights: TypeAlias = tff.learning.models.ModelWeights


class LocalResult(NamedTuple):
  """The result of a client's training.

  Attributes:
    weights: `ModelWeights` after the last step.
    metrics: OrderedDict of float32 scalars: `loss` and the metrics of the
      objective, each a mean over all examples of all epochs; with early
      stopping also `local_epochs`, as `num_epochs`.
    num_steps: int32, the number of minibatches.
    optimizer_state: State of the optimiser after the last step.
    num_epochs: int32, the number of epochs.
  """

  weights: ModelWeights
  metrics: collections.OrderedDict
  num_steps: tf.Tensor
  optimizer_state: Any
  num_epochs: tf.Tensor


@dataclasses.dataclass(frozen=True)
class EarlyStopping:
  """Ends a client's training when its loss hardly falls any more.

  Training ends after `patience` epochs in a row whose loss, the mean over the
  epoch's examples, is not lower than that of the epoch before by `threshold` or
  more. The first epoch counts as a fall, so at least `patience + 1` epochs are
  trained, and a patience of `local_epochs` or more never ends the training.

  Attributes:
    threshold: The least fall of the loss that counts, at least 0.
    patience: Number of epochs, at least 1.
  """

  threshold: float
  patience: int

  def __post_init__(self):
    checks.check_real('threshold', self.threshold, 0.0)
    checks.check_integer('patience', self.patience, 1)


def build_local_training(
  model: stateless.StatelessModel | paired.PairedModel | partial.PartialModel,
  objective: objectives.Objective,
  optimizer: tff.learning.optimizers.Optimizer,
  *,
  local_epochs: int,
  batch_size: int,
  drop_last: bool = False,
  early_stopping: EarlyStopping | None = None,
  reshuffle: bool = True,
) -> Callable[..., LocalResult]:
  """Builds the training of one client.

  Args:
    model: The client model.
    objective: What to minimise on each minibatch.
    optimizer: A TFF optimiser; its state is new at each call, unless given.
    local_epochs: Passes over the client's examples, at least 1.
    batch_size: Examples in a minibatch. A last, shorter minibatch is kept,
      except one of a single example if the model has batch normalisation and
      the client has other minibatches.
    drop_last: Leaves out the last minibatch of an epoch if it is shorter, and
      not the client's only one.
    early_stopping: May end the training before the last epoch; None trains all
      of them.
    reshuffle: Each epoch has a new permutation; otherwise minibatches are
      always the same, in the order of the examples.

  Returns:
    A function `(weights, examples, seed, context=(), learning_rate=None,
    optimizer_state=None, gradient_mask=None) -> LocalResult` for use in a
    graph. `weights` is `ModelWeights` of tensors, `examples` is
    `OrderedDict(x, y)` of all the client's data, `seed` is `int32[2]`,
    `context` is passed to the objective, `learning_rate` replaces the
    optimiser's, `optimizer_state` is the optimiser's initial state, and the
    gradients are multiplied by `gradient_mask`, tensors like the trainable
    weights. Weights on which the objective does not depend are unchanged.
    Without examples, all weights are unchanged and the metrics are 0.

  Raises:
    TypeError: If a number is not an integer.
    ValueError: If it is below 1.
  """
  checks.check_integer('local_epochs', local_epochs, 1)
  checks.check_integer('batch_size', batch_size, 1)

  def train(
    weights,
    examples,
    seed,
    context=(),
    learning_rate=None,
    optimizer_state=None,
    gradient_mask=None,
  ):
    num_examples = tf.size(examples['y'])
    shortest = 2 if model.has_batch_norm else 1
    num_batches = _num_batches(
      num_examples, batch_size, batch_size if drop_last else shortest
    )
    if objective.prepare_each == 'round':
      context = _prepare(objective, context, examples, seed)

    def step(index, order, epoch_seed, context, loop):
      rows = order[index * batch_size : (index + 1) * batch_size]
      batch = collections.OrderedDict(
        (name, tf.gather(value, rows)) for name, value in examples.items()
      )
      batch['index'] = rows
      step_seed = tf.random.experimental.stateless_fold_in(epoch_seed, index)
      return _step(
        model,
        objective,
        optimizer,
        batch,
        step_seed,
        context,
        gradient_mask,
        loop,
      )

    def epoch(number, loop):
      epoch_seed = tf.random.experimental.stateless_fold_in(seed, number)
      order = tf.range(num_examples)
      if reshuffle:
        order = _permutation(num_examples, epoch_seed)
      epoch_context = context
      if objective.prepare_each == 'epoch':
        epoch_context = _prepare(objective, context, examples, epoch_seed)
      _, loop = tf.while_loop(
        lambda index, _: index < num_batches,
        lambda index, loop: (
          index + 1,
          step(index, order, epoch_seed, epoch_context, loop),
        ),
        (0, loop),
      )
      return loop

    if optimizer_state is None:
      optimizer_state = initial_optimizer_state(optimizer, weights)
    loop = _start(objective, optimizer_state, weights)
    if learning_rate is not None:
      loop = _with_learning_rate(optimizer, loop, learning_rate)
    if local_epochs == 1:  # A loop would take longer than some small steps.
      num_epochs, loop = tf.constant(1), epoch(tf.constant(0), loop)
    else:
      num_epochs, loop, _ = tf.while_loop(
        lambda number, _, progress: (
          (number < local_epochs) & _goes_on(early_stopping, progress)
        ),
        lambda number, loop, progress: _with_progress(
          early_stopping, progress, number, loop, epoch(number, loop)
        ),
        (0, loop, _Progress(tf.constant(np.inf, tf.float32), tf.constant(0))),
      )
    metrics = collections.OrderedDict(
      (name, tf.math.divide_no_nan(total, loop.num_examples))
      for name, total in loop.totals.items()
    )
    if early_stopping is not None:
      metrics['local_epochs'] = tf.cast(num_epochs, tf.float32)
    return LocalResult(
      loop.weights,
      metrics,
      num_epochs * num_batches,
      loop.optimizer_state,
      num_epochs,
    )

  return train


def initial_optimizer_state(
  optimizer: tff.learning.optimizers.Optimizer, weights: ModelWeights
) -> Any:
  """The initial state of an optimiser.

  Args:
    optimizer: A TFF optimiser.
    weights: `ModelWeights` of tensors or arrays.

  Returns:
    A structure of tensors.
  """
  specs = tf.nest.map_structure(
    lambda w: tf.TensorSpec(w.shape, w.dtype), weights.trainable
  )
  return tf.nest.map_structure(
    tf.convert_to_tensor, optimizer.initialize(specs)
  )


def seed_words(seed: int) -> tf.Tensor:
  """A builder's seed, below 2^62, as `int32[2]`."""
  checks.check_integer('seed', seed, 0, 2**62 - 1)
  return tf.constant([seed & 0x7FFFFFFF, seed >> 31], tf.int32)


def client_seed(words: tf.Tensor, round_number: Any, key: Any) -> tf.Tensor:
  """The seed of a round, from 0, and a client: `int32[2]`, from all three."""
  fold_in = tf.random.experimental.stateless_fold_in
  return fold_in(fold_in(words, round_number), key)


class _Loop(NamedTuple):
  """The state of the loop: all tensors."""

  weights: ModelWeights
  optimizer_state: Any
  totals: collections.OrderedDict  # Loss and metrics summed over examples.
  num_examples: tf.Tensor  # float32, examples of all epochs so far.


class _Progress(NamedTuple):
  """The state of early stopping after the epochs so far."""

  loss: tf.Tensor  # Of the last epoch; infinite before the first.
  num_stalled: tf.Tensor  # Epochs in a row whose loss hardly fell.


class _Forward:
  """The model at one step: `forward(x)`, in training mode."""

  def __init__(self, model, weights, seed) -> None:
    self._model = model
    self._weights = weights
    self._seed = seed
    self._calls = 0

  @property
  def trainable(self):
    return self._weights.trainable

  @property
  def seed(self):
    """`int32[2]`, for random draws of the objective at this step."""
    # Forward passes fold in 0, 1, ...
    return tf.random.experimental.stateless_fold_in(self._seed, -1)

  @property
  def non_trainable(self):
    return self._weights.non_trainable

  def __call__(self, x):
    # A second pass in the same step gets another dropout mask.
    seed = tf.random.experimental.stateless_fold_in(self._seed, self._calls)
    self._calls += 1
    outputs, statistics = self._model(
      self._weights, x, training=True, seed=seed
    )
    self._weights = ModelWeights(self._weights.trainable, statistics)
    return outputs

  def each(self, batches):
    """The outputs of several batches of the same size, a list.

    With batch normalisation the batches pass one after the other, otherwise all
    at once.
    """
    if self._model.has_batch_norm:
      return [self(x) for x in batches]
    outputs = self(tf.concat(batches, axis=0))
    parts = [tf.split(value, len(batches)) for value in outputs.values()]
    return [
      collections.OrderedDict(zip(outputs, values, strict=True))
      for values in zip(*parts, strict=True)
    ]


def _prepare(objective, context, examples, seed):
  """The context that the objective prepares, with a separate seed."""
  if objective.prepare is None:
    return context
  # Epochs and minibatches fold in 0, 1, ...
  seed = tf.random.experimental.stateless_fold_in(seed, -1)
  return objective.prepare(context, examples, seed)


def _step(
  model, objective, optimizer, batch, seed, context, gradient_mask, loop
):
  """One minibatch."""
  forward = _Forward(model, loop.weights, seed)
  trainable = loop.weights.trainable
  with tf.GradientTape() as tape:
    tape.watch(trainable)
    loss, metrics = objective.compute(forward, batch, context)
  # None for weights that the objective does not train, which therefore do not
  # decay either. Gradients of embedding layers are indexed slices.
  gradients = [
    None if g is None else tf.convert_to_tensor(g)
    for g in tape.gradient(loss, trainable)
  ]
  if gradient_mask is not None:
    gradients = [
      None if g is None else g * m
      for g, m in zip(gradients, gradient_mask, strict=True)
    ]
  optimizer_state, trainable = optimizer.next(
    loop.optimizer_state, trainable, gradients
  )
  size = tf.cast(tf.size(batch['y']), tf.float32)
  values = collections.OrderedDict(loss=loss, **metrics)
  return _Loop(
    ModelWeights(trainable, forward.non_trainable),
    optimizer_state,
    collections.OrderedDict(
      (name, loop.totals[name] + size * value) for name, value in values.items()
    ),
    loop.num_examples + size,
  )


def _start(objective, optimizer_state, weights) -> _Loop:
  names = ('loss', *objective.metric_names)
  totals = collections.OrderedDict((name, tf.constant(0.0)) for name in names)
  weights = tf.nest.map_structure(tf.convert_to_tensor, weights)
  return _Loop(weights, optimizer_state, totals, tf.constant(0.0))


def _with_learning_rate(optimizer, loop, learning_rate) -> _Loop:
  """Sets `learning_rate` in the optimiser's state, keeping its dtype."""
  state = loop.optimizer_state
  hparams = optimizer.get_hparams(state)
  rate = tf.cast(learning_rate, hparams['learning_rate'].dtype)
  hparams = collections.OrderedDict(hparams, learning_rate=rate)
  return loop._replace(optimizer_state=optimizer.set_hparams(state, hparams))


def _goes_on(early_stopping, progress) -> Any:
  if early_stopping is None:
    return True
  return progress.num_stalled < early_stopping.patience


def _with_progress(early_stopping, progress, number, before, after):
  """The state of the loop over epochs after one more."""
  if early_stopping is not None:
    loss = tf.math.divide_no_nan(
      after.totals['loss'] - before.totals['loss'],
      after.num_examples - before.num_examples,
    )
    stalled = progress.loss - loss < early_stopping.threshold
    progress = _Progress(loss, tf.where(stalled, progress.num_stalled + 1, 0))
  return number + 1, after, progress


def _num_batches(num_examples, batch_size, shortest) -> tf.Tensor:
  """The number of minibatches; a rest below `shortest` is none."""
  whole, rest = num_examples // batch_size, num_examples % batch_size
  # Not `==`, which compares identities where TFF traces.
  only_one = (rest > 0) & tf.equal(whole, 0)
  keep_rest = (rest >= shortest) | only_one
  return whole + tf.cast(keep_rest, tf.int32)


def _permutation(size, seed) -> tf.Tensor:
  return tf.argsort(tf.random.stateless_uniform([size], seed), stable=True)
