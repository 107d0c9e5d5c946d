"""FedAKD: clients and server teach each other by distillation, in two phases.

Federated Asynchronous Knowledge Distillation, of "Towards Collaborative
Fairness in Federated Learning Under Imbalanced Covariate Shift". Each client
keeps its own model; only examples that this model classifies correctly teach
the global one, so that clients with good data have more influence, and no
client's model is overwritten. Where the paper contradicts itself, its
appendix or its public code, the default is named in `build_fedakd` and an
option gives the other reading.
"""

import collections
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import client
from tff_fair import models
from tff_fair.algorithms import arguments
from tff_fair.algorithms import client_updates
from tff_fair.algorithms import exchanges
from tff_fair.algorithms import processes
from tff_fair.annotations import Limits, Symbol, Unless

# More examples than a client has.
_FULL_BATCH = 2**30


def build_fedakd(
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
  down_weight: Annotated[
    float, Limits(minimum=0), Symbol('α'), Unless(variant='single_dist')
  ] = 1.0,
  up_weight: Annotated[float, Limits(minimum=0), Symbol('β')] = 1.0,
  distillation_temperature: Annotated[
    float, Limits(above=0), Symbol('T'), Unless(down_weight=0.0, up_weight=0.0)
  ] = 1.0,
  variant: Literal['full', 'all_data', 'single_dist', 'correct_agg'] = 'full',
  order: Literal['down_up', 'up_down'] = 'down_up',
  granularity: Literal['epochs', 'single_step'] = 'epochs',
  evaluate: Annotated[
    Literal['local', 'global'], Unless(variant='single_dist')
  ] = 'local',
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None,
  robust: bool = False,
) -> processes.FairLearningProcess | processes.PersonalizedLearningProcess:
  """Builds FedAKD.

  Client k has a model `w_k`, at first w^0, and receives the global model `w_g`:

  1. Down (equation 2): `w_k` is trained on all of its examples D_k, on
     `CE(w_k) + alpha KD(w_k; w_g)`, the teacher `w_g` fixed.
  2. Select (equation 4): `I_k`, the examples that `w_k` classifies correctly.
  3. Up (equation 5): `w_gk`, at first `w_g`, is trained on I_k, on
     `CE(w_gk) + beta KD(w_gk; w_k)`, the teacher `w_k` fixed. If I_k is empty,
     `w_gk = w_g`.
  4. Server: `w_g <- sum_k |D_k| w_gk / sum_k |D_k|`; `w_k` stays on the client.

  KD is `losses.distillation_loss`. Teachers, and the model that selects, run in
  inference mode; a phase ends before the next one begins. The batch-norm
  statistics of `w_k` are its own. With `variant='all_data'` and `up_weight=0`
  the global model is FedAvg's bit for bit.

  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    client_optimizer: Starts with a fresh state in each phase.
    local_epochs: E, passes over the examples of a phase.
    down_weight: Factor on the distillation from the global into the client's
      model.
    up_weight: Factor on the distillation from the client's into the global
      model.
    distillation_temperature: Temperature of the softmax in the distillation
      loss.
    variant: The whole method (full), or one of the ablation (all_data,
      single_dist, correct_agg). 'all_data': `I_k = D_k`; 'single_dist': step 1
      is `w_k <- w_g`, and there are no models but the global one;
      'correct_agg': the server weighs by |I_k|, and if all I_k are empty, `w_g`
      stays.
    order: Which model is taught first in a round: as in Algorithm 1 (down_up),
      or as in the public code (up_down). There it is up, server, then down with
      the new `w_g`, which needs a second exchange. A client's first round there
      has `I_k = D_k`.
    granularity: A phase is the local epochs, or one step on all examples
      (single_step). The update lines are printed as a single step.
    evaluate: A client is scored by its own model (local) or by the global one.
      The public code takes the global one. Not with 'single_dist', where it is
      always `w_g`.

  Returns:
    With `evaluate='local'` a `PersonalizedLearningProcess`, else a
    `FairLearningProcess`; `get_model_weights` gives `w_g`. The client table is
    `OrderedDict(model, distilled)`, int32: whether the client has had a down
    phase. Metrics under `client_work`: `loss` and `accuracy` of the down phase
    (not with 'single_dist'), `up_loss` and `correct_share`, |I_k| / |D_k|; of
    each client also `num_correct`, |I_k|. With 'up_down' those of the down
    phase are under `second_exchange`.

  Raises:
    ValueError: Also if the arguments do not fit together.
  """
  shared = arguments.check_arguments(build_fedakd, locals())
  if variant == 'single_dist' and order != 'down_up':
    raise ValueError(
      "order must be 'down_up' for the variant 'single_dist', which has no"
      f' down phase, found {order!r}.'
    )
  model = models.StatelessModel(model_fn)
  loop = {}
  if granularity == 'single_step':
    loop = dict(local_epochs=1, batch_size=_FULL_BATCH)

  def build_training(weight):
    objective = client.distillation_objective(
      weight, temperature=distillation_temperature, focal_gamma=focal_gamma
    )
    return shared.local_training(model, objective, **loop)

  train_down = build_training(down_weight)
  train_up = build_training(up_weight)

  def down(weights, row, examples, client_seed, learning_rate):
    """Step 1."""
    x = examples['train']['x']
    teacher = ()
    if down_weight:
      teacher = client.logits_of_examples(model, weights, x)
    return train_down(
      row['model'],
      examples['train'],
      # FedAvg's seed is that of the up phase, whose model is the global one.
      tf.random.experimental.stateless_fold_in(client_seed, local_epochs),
      context=teacher,
      learning_rate=learning_rate,
    )

  def up(weights, own, everything, examples, client_seed, learning_rate):
    """Steps 2 and 3."""
    train = examples['train']
    logits = client.logits_of_examples(model, own, train['x'])
    right = tf.equal(
      tf.argmax(logits, axis=-1, output_type=tf.int32), train['y']
    )
    chosen = right | everything
    result = train_up(
      weights,
      collections.OrderedDict(
        (name, tf.boolean_mask(value, chosen)) for name, value in train.items()
      ),
      client_seed,
      context=tf.boolean_mask(logits, chosen) if up_weight else (),
      learning_rate=learning_rate,
    )
    return result, tf.math.count_nonzero(chosen, dtype=tf.int32)

  def sent(weights, row, result, num_correct, examples, metrics):
    """The client's upload, and its report of both phases."""
    num_examples = tf.cast(tf.size(examples['train']['y']), tf.float32)
    correct = tf.cast(num_correct, tf.float32)
    measured = collections.OrderedDict(
      metrics,
      up_loss=result.metrics['loss'],
      correct_share=tf.math.divide_no_nan(correct, num_examples),
    )
    return client.ClientOutput(
      update=client_updates.model_update(weights, result.weights),
      update_weight=correct if variant == 'correct_agg' else num_examples,
      row=row,
      metrics=measured,
      report=collections.OrderedDict(measured, num_correct=num_correct),
    )

  def distilled(result):
    return collections.OrderedDict(
      model=result.weights, distilled=tf.constant(1)
    )

  def down_then_up(weights, row, examples, client_seed, learning_rate):
    first = down(weights, row, examples, client_seed, learning_rate)
    everything = tf.constant(variant == 'all_data')
    result, num_correct = up(
      weights, first.weights, everything, examples, client_seed, learning_rate
    )
    return sent(
      weights, distilled(first), result, num_correct, examples, first.metrics
    )

  def only_up(weights, row, examples, client_seed, learning_rate):
    """The round without its down phase."""
    own, everything = weights, tf.constant(False)
    if variant != 'single_dist':
      own = row['model']
      everything = (row['distilled'] < 1) | (variant == 'all_data')
    result, num_correct = up(
      weights, own, everything, examples, client_seed, learning_rate
    )
    nothing = collections.OrderedDict()
    return sent(weights, row, result, num_correct, examples, nothing)

  def only_down(weights, row, examples, client_seed, learning_rate):
    """The second exchange of the order 'up_down'."""
    result = down(weights, row, examples, client_seed, learning_rate)
    return client.ClientOutput(
      update=tf.nest.map_structure(tf.zeros_like, weights),
      update_weight=tf.constant(1.0),
      row=distilled(result),
      metrics=result.metrics,
      report=collections.OrderedDict(result.metrics),
    )

  initial_row: Any = collections.OrderedDict(
    model=model.initial_weights, distilled=np.int32(0)
  )
  if variant == 'single_dist':
    initial_row = ()
  whole = order == 'down_up' and variant != 'single_dist'
  client_work = shared.client_work(
    model, down_then_up if whole else only_up, initial_row=initial_row
  )
  process = shared.compose(model, client_work)
  if order == 'up_down':
    process = exchanges.add_exchange(
      process,
      shared.client_work(model, only_down, initial_row=initial_row),
    )
  if evaluate == 'global' or variant == 'single_dist':
    return process
  return processes.add_client_models(process)
