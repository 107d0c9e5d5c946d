"""FedMDFG: a common direction of descent that also evens the clients' losses.

Pan, Wang, Li, Wang, Tang and Zhao, "FedMDFG: Federated Learning with
Multi-Gradient Descent and Fair Guidance" (AAAI 2023,
https://doi.org/10.1609/aaai.v37i8.26122). Clients do not train: they send the
gradient on all of their data, and then their losses along the direction that
the server has computed, by which it chooses the length of its step.
"""

import collections
from collections.abc import Callable
import math
from typing import Annotated, Any, TypeAlias

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client
from tff_fair import models
from tff_fair.aggregators import fair_descent
from tff_fair.aggregators import gathered
from tff_fair.algorithms import arguments
from tff_fair.algorithms import exchanges
from tff_fair.algorithms import processes
from tff_fair.annotations import Limits, Symbol
from tff_fair.tensors import client_table
from tff_fair.tensors import flat

ModelWeights: TypeAlias = tff.learning.models.ModelWeights

# Beyond it steps would soon be infinite as float32.
_MAX_LINE_SEARCH_SCALE = 100
# A client with a shorter gradient counts as converged.
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
  max_update_norm: float | None = arguments.MAX_UPDATE_NORM,
  focal_gamma: float = 0.0,
  angle: Annotated[
    float, Limits(minimum=0, maximum=math.pi / 2), Symbol('θ')
  ] = math.pi / 180,
  line_search_scale: Annotated[
    int, Limits(minimum=0, maximum=_MAX_LINE_SEARCH_SCALE), Symbol('s')
  ] = 1,
) -> processes.FairLearningProcess:
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
     If it accepts none, and clients have joined or left since the last round,
     it prefers steps up to eta.
  5. `w <- w - a d'`.

  The model is in inference mode throughout: without dropout, gradient and
  losses are those of one function. With one client this is gradient descent
  with a line search. The paper's line search tries its steps one by one; here
  clients evaluate them all at once, so a round has two exchanges.

  There is no `server_optimizer` and no `model_aggregator`: the line search
  decides the server's step, and the rule is the method.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    model_fn: Builds a model without batch normalisation.
    client_optimizer: Only its learning rate is used: eta, from which the line
      search starts.
    local_epochs: Must be 1, as clients do not train; an argument only so that
      one call fits all builders.
    batch_size: Examples that go through the model at once; the gradient is that
      of all.
    seed: Not used, as nothing is drawn; an argument for the same reason.
    focal_gamma: Of the losses and their gradients.
    angle: Guidance is active where the angle between the losses and equal
      losses exceeds this, in radians.
    line_search_scale: The line search starts at 2^s times the learning rate.
      CoRe-Fed compares with 5, 3 and 1.

  Returns:
    A `FairLearningProcess`; the local model of its `divergence` is `w - eta
    g_i`. The client table is `OrderedDict(expected_loss=float32[K],
    num_rounds=int32[K])`, and `state.aggregator` `OrderedDict(gradients=
    float32[K, d], present=int32[K], online=int32[K])`: the scaled gradients of
    the last round, which clients have one there, and which took part.
    Metrics under `client_work`: `loss` and `accuracy` of w, the counts of
    `build_client_work`, and `loss` of each client; under `aggregator`:
    `step_length` (a, 0 if no client has a gradient), `accepted` (1 if by the
    line search's own criterion), `phi` (radians), `active` and `num_absent`
    (clients of the last round that count).

  Raises:
    ValueError: Also if the model has batch normalisation.
  """
  shared = arguments.check_arguments(build_fed_mdfg, locals())
  if local_epochs != 1:
    raise ValueError(
      'local_epochs must be 1 for FedMDFG, whose clients do not train, found'
      f' {local_epochs}.'
    )
  model = models.StatelessModel(model_fn)
  _check_model(model)
  learning_rate_fn = shared.learning_rate_fn()
  size = sum(w.size for w in model.initial_weights.trainable)

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

  client_work = shared.client_work(
    model,
    client_update,
    initial_row=collections.OrderedDict(
      expected_loss=np.float32(0), num_rounds=np.int32(0)
    ),
    learning_rate_fn=learning_rate_fn,
  )

  def nothing_remembered():
    return collections.OrderedDict(
      gradients=client_table.zeros([num_clients, size]),
      present=tf.zeros([num_clients], tf.int32),
      online=tf.zeros([num_clients], tf.int32),
    )

  def plan(last, round_number, uploads):
    return _plan(
      last,
      uploads,
      rate=tf.cast(learning_rate_fn(round_number), tf.float64),
      angle=angle,
      line_search_scale=line_search_scale,
    )

  def try_steps(weights, trial, examples):
    losses = _trial_losses(
      model, weights, trial, examples['train'], batch_size, focal_gamma
    )
    return collections.OrderedDict(client_id=examples['key'], losses=losses)

  return exchanges.compose_two_exchanges(
    model,
    client_work,
    num_clients=num_clients,
    initial_memory=nothing_remembered,
    plan=plan,
    answer=try_steps,
    decide=_finish,
    description=shared.description,
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


def _plan(last, uploads, *, rate, angle, line_search_scale) -> exchanges.Plan:
  """Steps 2 and 3: what clients try, and what is needed to choose."""
  uploads = gathered.by_client(uploads, last['present'].shape[0])
  weight = uploads['weight']
  present = weight['present'] > 0
  updates = flat.flatten_rows(uploads['value'].trainable)
  gradients = tf.math.divide_no_nan(tf.cast(updates, tf.float64), rate)
  counts = present & (tf.norm(gradients, axis=1) > _SHORTEST)
  gradients = _of_equal_length(tf.boolean_mask(gradients, counts))
  losses = tf.boolean_mask(tf.cast(weight['loss'], tf.float64), counts)

  online = _online(last, tf.boolean_mask(weight['client_id'], present))
  absent = _absent(last, online)
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
  return exchanges.Plan(
    question=collections.OrderedDict(
      direction=tf.cast(course['direction'], tf.float32),
      steps=tf.cast(steps, tf.float32),
    ),
    notes=collections.OrderedDict(
      losses=losses,
      slopes=tf.linalg.matvec(gradients, course['direction']),
      longest=tf.where(_clients_changed(last, online), rate, math.inf),
      counts=counts,
      phi=course['phi'],
      active=course['active'],
      num_absent=num_absent,
    ),
    memory=_remembered(last, weight['client_id'], counts, gradients, online),
  )


def _of_equal_length(gradients) -> tf.Tensor:
  lengths = tf.norm(gradients, axis=1, keepdims=True)
  return gradients / lengths * tf.reduce_mean(lengths)


def _online(last, client_ids) -> tf.Tensor:
  """`int32[K]`: 1 for the clients that take part in this round."""
  number = tf.size(last['online'])
  return tf.math.bincount(client_ids, minlength=number, maxlength=number)


def _absent(last, online) -> tf.Tensor:
  """The gradients of the last round whose clients are not here now."""
  missing = (last['present'] > 0) & ~(online > 0)
  return tf.cast(tf.boolean_mask(last['gradients'], missing), tf.float64)


def _clients_changed(last, online) -> tf.Tensor:
  """Returns whether clients joined or left; False in the first round."""
  differ = tf.reduce_any(tf.not_equal(online, last['online']))
  return differ & tf.reduce_any(last['online'] > 0)


def _remembered(last, client_ids, counts, gradients, online) -> Any:
  """The memory of the next round; as it was, if no client counts."""
  rows = collections.OrderedDict(
    gradients=tf.cast(gradients, tf.float32),
    present=tf.ones([tf.shape(gradients)[0]], tf.int32),
  )
  empty = collections.OrderedDict(
    (name, tf.zeros_like(last[name])) for name in rows
  )
  fresh = client_table.write_rows(
    empty, tf.boolean_mask(client_ids, counts), rows
  )
  fresh['online'] = online
  any_counts = tf.reduce_any(counts)
  return tf.nest.map_structure(
    lambda new, old: tf.where(any_counts, new, old), fresh, last
  )


def _trial_losses(
  model, weights, trial, examples, batch_size, focal_gamma
) -> tf.Tensor:
  """Step 4: a client's loss after each step, inf where there is none."""
  steps = trial['steps']
  number = tf.math.count_nonzero(steps, dtype=tf.int32)

  def loss_after(step):
    moved = _moved(weights, trial['direction'], step)
    return client.mean_loss(model, moved, examples, batch_size, focal_gamma)

  tried = tf.map_fn(
    loss_after,
    steps[:number],
    fn_output_signature=tf.TensorSpec([], tf.float32),
    # The batches of one model keep the cores busy.
    parallel_iterations=1,
  )
  rest = tf.fill([tf.size(steps) - number], tf.constant(np.inf))
  return tf.ensure_shape(tf.concat([tried, rest], axis=0), steps.shape)


def _finish(weights, planned, trials) -> exchanges.Decision:
  """Step 5: the new weights, and what is measured."""
  notes, trial = planned.notes, planned.question
  order = tf.argsort(trials['client_id'])
  losses = tf.boolean_mask(tf.gather(trials['losses'], order), notes['counts'])
  step, accepted = fair_descent.choose_step(
    notes['losses'],
    tf.cast(losses, tf.float64),
    tf.cast(trial['steps'], tf.float64),
    notes['slopes'],
    notes['active'],
    # Steps went to the clients as float32.
    tf.cast(tf.cast(notes['longest'], tf.float32), tf.float64),
  )
  step = tf.cast(step, tf.float32)
  return exchanges.Decision(
    weights=_moved(weights, trial['direction'], step),
    measurements=collections.OrderedDict(
      step_length=step,
      accepted=tf.cast(accepted, tf.int32),
      phi=notes['phi'],
      active=tf.cast(notes['active'], tf.int32),
      num_absent=notes['num_absent'],
    ),
  )


def _moved(weights, direction, step) -> ModelWeights:
  """`w - a d'`."""
  direction = flat.unflatten(direction, weights.trainable)
  return ModelWeights(
    [w - step * d for w, d in zip(weights.trainable, direction, strict=True)],
    weights.non_trainable,
  )


def _check_model(model) -> None:
  if model.has_batch_norm:
    raise ValueError(
      'model_fn must build a model without batch normalisation for FedMDFG,'
      ' whose clients do not train and so have no statistics, found one with'
      ' it.'
    )
