"""FedMDFG: a common direction of descent that also evens the clients' losses.

Pan, Wang, Li, Wang, Tang and Zhao, "FedMDFG: Federated Learning with
Multi-Gradient Descent and Fair Guidance" (AAAI 2023,
https://doi.org/10.1609/aaai.v37i8.26122). Clients do not train: they send the
gradient on all of their data, and then the losses along the direction that the
server made of the gradients, from which it takes the length of its step.
"""

import collections
from collections.abc import Callable
import functools
import math
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import checks
from tff_fair import client
from tff_fair import models
from tff_fair.aggregators import fair_descent
from tff_fair.aggregators import gathered
from tff_fair.algorithms import composition
from tff_fair.algorithms import divergence
from tff_fair.client import client_data
from tff_fair.tensors import client_table
from tff_fair.tensors import flat

ModelWeights = tff.learning.models.ModelWeights
_State = tff.learning.templates.LearningAlgorithmState

# Beyond it steps would soon be infinite as float32.
_MAX_LINE_SEARCH_SCALE = 100
# Whoever has a shorter gradient is where it wants to be.
_SHORTEST = 1e-6


def build_fed_mdfg(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int,
  client_optimizer: tff.learning.optimizers.Optimizer,
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  focal_gamma: float = 0.0,
  angle: float = math.pi / 180,
  line_search_scale: int = 1,
) -> composition.FairLearningProcess:
  """Builds FedMDFG.

  1. Client i sends the loss `l_i` of the model w on its training data, its
     gradient `g_i`, and whether l_i exceeds the mean of its losses so far (of
     those that did not exceed it themselves).
  2. The server leaves out gradients of length up to 1e-6 and scales the others
     to their mean length.
  3. `fair_descent.fair_direction` gives `d'`. Gradients of the last round whose
     clients are not here now count too; guidance is forced if the losses of
     some, but not of all clients exceed their mean.
  4. All clients send their losses at `w - a d'` for the steps a of
     `fair_descent.step_ladder`; `fair_descent.choose_step` takes one of them.
  5. `w <- w - a d'`.

  The model is in inference mode throughout: without dropout, gradient and
  losses are those of one function. With one client this is gradient descent
  with a line search. The paper's line search tries its steps one by one; here
  clients evaluate them all at once, so a round has two exchanges.

  Args:
    model_fn: Builds a fresh, uncompiled Keras model without batch normalisation
      (see `StatelessModel`). Its initial weights are those of the process: seed
      Keras before building.
    num_clients: Clients have ids 0..num_clients-1, and data of type
      `<client_id=int32*,train=D*,holdout=D*>`.
    client_optimizer: Only its learning rate is used: eta, from which the line
      search starts.
    local_epochs: 1; clients do not train.
    batch_size: Examples that go through the model at once; the gradient is that
      of all.
    seed: Unused, nothing is drawn.
    client_learning_rate_fn: `round (int32, from 0) -> float32`, replaces the
      optimiser's learning rate, or None.
    angle: The paper's theta, in [0, pi / 2] radians: guidance is active where
      the losses are further from equal.
    line_search_scale: The paper's s, in 0..100; steps from 2^s eta on.

  Returns:
    A `FairLearningProcess`; the local model of its `divergence` is `w - eta
    g_i`. The client table is `OrderedDict(expected_loss=float32[K],
    num_rounds=int32[K])`, and `state.aggregator` `OrderedDict(gradients=
    float32[K, d], present=int32[K])`, the scaled gradients of the last round.
    Metrics under `client_work`: `loss` and `accuracy` of w, the counts of
    `build_client_work`, and `loss` of each client; under `aggregator`:
    `step_length` (a, 0 if nobody has a gradient), `accepted` (1 if by the line
    search's own criterion), `phi` (radians), `active` and `num_absent` (clients
    of the last round that count).

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If a number is out of range, or the model has batch
      normalisation.
  """
  composition.check_arguments(**locals())
  checks.check_real('angle', angle, 0.0, math.pi / 2)
  checks.check_count(
    'line_search_scale', line_search_scale, 0, _MAX_LINE_SEARCH_SCALE
  )
  if local_epochs != 1:
    raise ValueError(
      'local_epochs must be 1 for FedMDFG, whose clients do not train, found'
      f' {local_epochs}.'
    )
  model = models.StatelessModel(model_fn)
  _check_model(model)
  learning_rate_fn = composition.learning_rate_at(
    client_optimizer, client_learning_rate_fn
  )

  def client_update(weights, row, examples, client_seed, learning_rate):
    del client_seed  # Nothing is drawn.
    gradient, metrics = client.mean_gradient(
      model, weights, examples['train'], batch_size, focal_gamma
    )
    new_row, exceeds = expected_loss(row, metrics['loss'])
    return client.ClientOutput(
      update=ModelWeights(
        [learning_rate * g for g in gradient],
        [tf.zeros_like(w) for w in weights.non_trainable],
      ),
      update_weight=collections.OrderedDict(
        client_id=examples['key'],
        loss=metrics['loss'],
        exceeds=tf.cast(exceeds, tf.float32),
        present=tf.constant(1.0),
      ),
      row=new_row,
      metrics=metrics,
      report=collections.OrderedDict(loss=metrics['loss']),
    )

  client_work = client.build_client_work(
    model,
    client_update,
    num_clients=num_clients,
    seed=seed,
    initial_row=collections.OrderedDict(
      expected_loss=np.float32(0), num_rounds=np.int32(0)
    ),
    learning_rate_fn=learning_rate_fn,
  )

  def plan(last, round_number, uploads):
    return _plan(
      last,
      uploads,
      rate=tf.cast(learning_rate_fn(round_number), tf.float64),
      angle=angle,
      line_search_scale=line_search_scale,
    )

  return _compose(
    model, client_work, num_clients, batch_size, focal_gamma, plan
  )


def expected_loss(
  row: Any, loss: Any
) -> tuple[collections.OrderedDict, tf.Tensor]:
  """A client's mean loss so far, which a higher loss does not change.

  Args:
    row: `OrderedDict(expected_loss=float32, num_rounds=int32)`.
    loss: float32.

  Returns:
    The new row, and whether the loss exceeds what was expected.
  """
  mean, number = row['expected_loss'], row['num_rounds']
  exceeds = (number > 0) & (loss > mean)
  count = tf.cast(number, tf.float32)
  new_mean = tf.where(exceeds, mean, (mean * count + loss) / (count + 1))
  return (
    collections.OrderedDict(expected_loss=new_mean, num_rounds=number + 1),
    exceeds,
  )


def _plan(
  last, uploads, *, rate, angle, line_search_scale
) -> collections.OrderedDict:
  """Steps 2 and 3: what clients try, and what is needed to choose."""
  uploads = gathered.by_client(uploads, last['present'].shape[0])
  weight = uploads['weight']
  present = weight['present'] > 0
  gradients = tf.math.divide_no_nan(tf.cast(uploads['value'], tf.float64), rate)
  counts = present & (tf.norm(gradients, axis=1) > _SHORTEST)
  gradients = _of_equal_length(tf.boolean_mask(gradients, counts))
  losses = tf.boolean_mask(tf.cast(weight['loss'], tf.float64), counts)

  absent = _absent(last, tf.boolean_mask(weight['client_id'], present))
  num_exceeding = tf.reduce_sum(weight['exceeds'])
  course = fair_descent.fair_direction(
    gradients,
    losses,
    absent,
    angle=angle,
    forced=(num_exceeding > 0)
    & (num_exceeding < tf.reduce_sum(weight['present'])),
  )
  num_absent = tf.shape(absent)[0]
  steps = fair_descent.step_ladder(
    rate, course['scale'], num_absent > 0, line_search_scale
  )
  return collections.OrderedDict(
    trial=collections.OrderedDict(
      direction=tf.cast(course['direction'], tf.float32),
      steps=tf.cast(steps, tf.float32),
    ),
    losses=losses,
    slopes=tf.linalg.matvec(gradients, course['direction']),
    counts=counts,
    phi=course['phi'],
    active=course['active'],
    num_absent=num_absent,
    last=_remembered(last, weight['client_id'], counts, gradients),
  )


def _of_equal_length(gradients) -> tf.Tensor:
  lengths = tf.norm(gradients, axis=1, keepdims=True)
  return gradients / lengths * tf.reduce_mean(lengths)


def _absent(last, present_ids) -> tf.Tensor:
  """The gradients of the last round whose clients are not here now."""
  number = tf.size(last['present'])
  here = tf.math.bincount(present_ids, minlength=number, maxlength=number) > 0
  missing = (last['present'] > 0) & ~here
  return tf.cast(tf.boolean_mask(last['gradients'], missing), tf.float64)


def _remembered(last, client_ids, counts, gradients) -> Any:
  """What the next round is to know; if nobody counts, what this one knew."""
  rows = collections.OrderedDict(
    gradients=tf.cast(gradients, tf.float32),
    present=tf.ones([tf.shape(gradients)[0]], tf.int32),
  )
  fresh = client_table.write_rows(
    tf.nest.map_structure(tf.zeros_like, last),
    tf.boolean_mask(client_ids, counts),
    rows,
  )
  anybody = tf.reduce_any(counts)
  return tf.nest.map_structure(
    lambda new, old: tf.where(anybody, new, old), fresh, last
  )


def _trial_losses(
  model, weights, trial, examples, batch_size, focal_gamma
) -> tf.Tensor:
  """Step 4: a client's loss after each step, inf where there is none."""
  direction = flat.unflatten(trial['direction'], weights.trainable)
  steps = trial['steps']
  number = tf.math.count_nonzero(steps, dtype=tf.int32)

  def loss_after(step):
    moved = [
      w - step * d for w, d in zip(weights.trainable, direction, strict=True)
    ]
    return client.mean_loss(
      model,
      ModelWeights(moved, weights.non_trainable),
      examples,
      batch_size,
      focal_gamma,
    )

  tried = tf.map_fn(
    loss_after,
    steps[:number],
    fn_output_signature=tf.TensorSpec([], tf.float32),
    # The batches of one model keep the cores busy.
    parallel_iterations=1,
  )
  rest = tf.fill([tf.size(steps) - number], tf.constant(np.inf))
  return tf.ensure_shape(tf.concat([tried, rest], axis=0), steps.shape)


def _finish(weights, planned, trials) -> collections.OrderedDict:
  """Step 5: the new weights, and what is measured."""
  order = tf.argsort(trials['client_id'])
  losses = tf.boolean_mask(
    tf.gather(trials['losses'], order), planned['counts']
  )
  trial = planned['trial']
  step, accepted = fair_descent.choose_step(
    planned['losses'],
    tf.cast(losses, tf.float64),
    tf.cast(trial['steps'], tf.float64),
    planned['slopes'],
    planned['active'],
  )
  step = tf.cast(step, tf.float32)
  direction = flat.unflatten(trial['direction'], weights.trainable)
  return collections.OrderedDict(
    weights=ModelWeights(
      [w - step * d for w, d in zip(weights.trainable, direction, strict=True)],
      weights.non_trainable,
    ),
    measurements=collections.OrderedDict(
      step_length=step,
      accepted=tf.cast(accepted, tf.int32),
      phi=planned['phi'],
      active=tf.cast(planned['active'], tf.int32),
      num_absent=planned['num_absent'],
    ),
  )


def _compose(model, client_work, num_clients, batch_size, focal_gamma, plan):
  """The process of two exchanges."""
  weights_type = model.weights_type
  work_state_type, _, data_type = client_work.next.type_signature.parameter
  gather_client = client_data.build_gather_client(
    data_type.member, model.num_classes, num_clients
  )

  @tff.tensorflow.computation
  def initial_weights():
    return tf.nest.map_structure(tf.constant, model.initial_weights)

  @tff.tensorflow.computation
  def nothing_remembered():
    size = sum(w.size for w in model.initial_weights.trainable)
    return collections.OrderedDict(
      gradients=client_table.zeros([num_clients, size]),
      present=tf.zeros([num_clients], tf.int32),
    )

  @tff.tensorflow.computation(
    client_work.next.type_signature.result.result.member
  )
  def upload(client_result):
    return collections.OrderedDict(
      value=flat.flatten(client_result.update.trainable),
      weight=client_result.update_weight,
    )

  upload_type = upload.type_signature.result
  gather_uploads = client_table.build_gather(upload_type)

  @tff.tensorflow.computation(
    nothing_remembered.type_signature.result,
    np.int32,
    client_table.gathered_type(upload_type),
  )
  @tf.function(autograph=False)
  def make_plan(last, round_number, uploads):
    return plan(last, round_number, uploads)

  plan_type = make_plan.type_signature.result

  @tff.tensorflow.computation(
    weights_type, plan_type.trial, gather_client.type_signature.result
  )
  @tf.function(autograph=False)
  def try_steps(weights, trial, examples):
    return collections.OrderedDict(
      client_id=examples['key'],
      losses=_trial_losses(
        model, weights, trial, examples['train'], batch_size, focal_gamma
      ),
    )

  trials_type = try_steps.type_signature.result
  gather_trials = client_table.build_gather(trials_type)

  @tff.tensorflow.computation(
    weights_type, plan_type, client_table.gathered_type(trials_type)
  )
  @tf.function(autograph=False)
  def finish(weights, planned, trials):
    return _finish(weights, planned, trials)

  @tff.federated_computation
  def init_fn():
    return tff.federated_zip(
      _State(
        tff.federated_eval(initial_weights, tff.SERVER),
        tff.federated_value((), tff.SERVER),
        client_work.initialize(),
        tff.federated_eval(nothing_remembered, tff.SERVER),
        tff.federated_value((), tff.SERVER),
      )
    )

  @tff.federated_computation(init_fn.type_signature.result, data_type)
  def next_fn(state, data):
    weights = tff.federated_broadcast(state.global_model_weights)
    probe = client_work.next(state.client_work, weights, data)
    planned = tff.federated_map(
      make_plan,
      (
        state.aggregator,
        state.client_work.round,
        gather_uploads(tff.federated_map(upload, probe.result)),
      ),
    )
    trials = tff.federated_map(
      try_steps,
      (
        weights,
        tff.federated_broadcast(planned.trial),
        tff.federated_map(gather_client, data),
      ),
    )
    finished = tff.federated_map(
      finish, (state.global_model_weights, planned, gather_trials(trials))
    )
    new_state = _State(
      finished.weights,
      state.distributor,
      probe.state,
      planned.last,
      state.finalizer,
    )
    nothing = tff.federated_value((), tff.SERVER)
    metrics = collections.OrderedDict(
      distributor=nothing,
      client_work=probe.measurements,
      aggregator=finished.measurements,
      finalizer=nothing,
    )
    return tff.learning.templates.LearningProcessOutput(
      tff.federated_zip(new_state), tff.federated_zip(metrics)
    )

  state_type = init_fn.type_signature.result.member

  @tff.tensorflow.computation(state_type)
  def get_model_weights(state):
    return state.global_model_weights

  @tff.tensorflow.computation(state_type, weights_type)
  def set_model_weights(state, weights):
    return _State(
      weights,
      state.distributor,
      state.client_work,
      state.aggregator,
      state.finalizer,
    )

  return composition.FairLearningProcess(
    tff.learning.templates.LearningProcess(
      init_fn, next_fn, get_model_weights, set_model_weights
    ),
    functools.partial(divergence.build_divergence, model, client_work),
  )


def _check_model(model) -> None:
  if model.has_batch_norm:
    raise ValueError(
      'model_fn must build a model without batch normalisation for FedMDFG,'
      ' whose clients do not train and so have no statistics, found one with'
      ' it.'
    )
