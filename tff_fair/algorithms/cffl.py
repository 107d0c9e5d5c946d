"""CFFL: every client gets the model that it earned.

Lyu, Xu, Wang and Yu, "Collaborative Fairness in Federated Learning" (Federated
Learning, Springer LNCS 12500, 2020), which calls clients participants. Each
keeps its own model; the server rates its uploads on a validation set, and
distributes to each as much of the aggregate as its reputation deserves. Where
the paper contradicts itself or is silent, the default is named in `build_cffl`
and an option gives the other reading.
"""

import collections
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair import checks
from tff_fair import client
from tff_fair import models
from tff_fair.aggregators import largest_values
from tff_fair.algorithms import arguments
from tff_fair.algorithms import client_updates
from tff_fair.algorithms import exchanges
from tff_fair.algorithms import processes
from tff_fair.algorithms import validation as validation_lib
from tff_fair.annotations import Limits, Symbol, Unless
from tff_fair.tensors import flat

ModelWeights = tff.learning.models.ModelWeights


def build_cffl(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int,
  client_optimizer: tff.learning.optimizers.Optimizer,
  validation: Annotated[tuple[Any, Any], Symbol('V')],
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  max_update_norm: float | None = arguments.MAX_UPDATE_NORM,
  focal_gamma: float = 0.0,
  scenario: Literal['size', 'class'] = 'size',
  amounts: Annotated[Sequence[int] | None, Symbol('a')] = None,
  upload_rate: Annotated[float, Limits(above=0, maximum=1), Symbol('θᵤ')] = 1.0,
  pretrain: bool = False,
  pretrain_epochs: Annotated[
    int, Limits(minimum=1), Unless(pretrain=False)
  ] = 5,
  pretrain_learning_rate: Annotated[
    float | None, Limits(above=0), Unless(pretrain=False)
  ] = None,
  punishment_factor: Annotated[
    float, Limits(above=0, maximum=700), Symbol('α')
  ] = 5.0,
  history_weight: Annotated[float, Limits(minimum=0, maximum=1)] = 0.5,
  clip_value: Annotated[float, Limits(above=0)] = 0.01,
  clip_mode: Literal['value', 'norm'] = 'value',
  threshold_absolute: Annotated[
    float | None, Limits(minimum=0, maximum=1)
  ] = None,
  agg_norm: Literal['paper', 'sum', 'max'] = 'paper',
  own_share: Literal['paper', 'aggregation'] = 'paper',
  normalize_before_mixing: bool = False,
  isolation: Literal['once', 'cascade'] = 'once',
  after_isolation: Literal['frozen', 'standalone'] = 'frozen',
  ties: Literal['index', 'preclip', 'keep'] = 'index',
  free_riders: client.FreeRiders | None = None,
) -> processes.PersonalizedLearningProcess:
  """Builds CFFL.

  A client j of the reputable set R has a model `w_j`, at first w^0:

  1. Local training of `w_j` gives the update `Dw_j`, which is clipped; it
     uploads `U_j`, the theta_u * d entries of largest magnitude (or all).
  2. The server (see `aggregators.ReputationMaskedFactory`) aggregates, rates
     the uploads on its validation set, isolates clients of very low reputation,
     and allocates `G_j`.
  3. `w_j <- w_j + Dw_j + G_j`.

  An isolated client keeps `w_j + Dw_j` of that round. A client with an upload
  that is not finite counts as one that uploads zeros with accuracy 0, drops its
  `Dw_j`, and keeps `w_j + G_j`.

  There is no `server_optimizer` and no `model_aggregator`: clients receive
  individual allocations of the aggregate, and no global model.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    validation: The server's validation set, `(x, y)`; its size is
      `--validation_fraction` or, with `--split=client`, `--holdout_fraction`.
      Arrays `float32[n, ...]` and `int32[n]`.
    scenario: What a contribution is: the number of examples (size) or of
      classes (class). It decides threshold and normalisation.
    amounts: The participants' contributions as the server knows them; None
      counts them. One a client, not negative and not all 0; they are counted in
      the client's training data.
    upload_rate: Share of its update that a participant uploads; at 1 the server
      keeps a shadow model of each participant. Below, it keeps one auxiliary
      model.
    pretrain: Participants train alone before their first round.
    pretrain_epochs: Number of epochs of that training. Nothing is clipped or
      uploaded.
    pretrain_learning_rate: Learning rate of that training; the default is the
      client optimiser's. It is the same in every round, by default that of the
      client's first round. The paper names none; its authors' code has 0.005.
    punishment_factor: Factor in the reputation sinh(α x); the larger, the more
      reputations differ. The paper calls it a_p.
    history_weight: Share of the previous reputation in the new one.
    clip_value: Bound of each entry of an update, or of its norm. See
      `clip_mode`.
    clip_mode: Entries are clipped (value), or the update is scaled (norm).
      'value' clips to [-clip_value, clip_value]; 'norm' scales to an L2 norm of
      at most clip_value (FedAKD's settings of CFFL: 5.0).
    threshold_absolute: Participants with a lower reputation are isolated; the
      default is a third (size) or a sixth (class) of the mean reputation.
      FedAKD has 0.05.
    agg_norm: Divisor of the aggregation weights: their sum, the largest one
      (max), or as printed (paper): the sum for size, the largest for class.
    own_share: Share of a participant's upload that is subtracted from its
      allocation: as printed (paper), or its share in the aggregate
      (aggregation). Printed is a_j / max a, although its share in the aggregate
      may be smaller.
    normalize_before_mixing: New reputations are normalised before the old ones
      are mixed in. The old ones always are; the paper does not do this.
    isolation: Isolation is one pass a round (once), or is repeated until no
      further participant falls below the threshold (cascade).
    after_isolation: An isolated participant does nothing (frozen) or trains
      alone (standalone). Its updates are clipped as before.
    ties: Among entries of equal magnitude, the first are uploaded (index),
      those that were larger before clipping (preclip), or all (keep). Clipping
      makes many equal ones. 'index' favours the first layers; with 'preclip'
      allocations go by index; 'keep' is as the uploads of the authors' code.
    free_riders: Participants that upload noise; needs `amounts`. They train
      nothing, add what they receive, and have no data to count.

  Returns:
    A `PersonalizedLearningProcess`. `get_client_model_weights` gives `w_j`;
    `get_model_weights` the auxiliary model `w_srv`, to which all aggregates are
    added (no client uses it). The client table is `OrderedDict(model,
    reputable, untrained)`, int32 flags; the server's own state is in
    `state.aggregator`. Metrics: those of the factory under `aggregator`, and
    under `client_work['clients']` `loss` and `floats_up`, the numbers a client
    sends (value and index of each sparse entry).

  Raises:
    ValueError: Also if the arguments do not fit together.
  """
  shared = arguments.check_arguments(build_cffl, locals())
  _check_amounts(amounts, num_clients)
  _check_free_riders(free_riders, num_clients, amounts)
  model = models.StatelessModel(model_fn)
  validation = validation_lib.check_validation(model, validation)
  rule = aggregators.ReputationMaskedFactory(
    model.initial_weights,
    validation_lib.accuracy_fn(model, validation),
    num_clients=num_clients,
    scenario=scenario,
    shadows=upload_rate == 1,
    punishment_factor=punishment_factor,
    history_weight=history_weight,
    threshold_absolute=threshold_absolute,
    agg_norm=agg_norm,
    own_share=own_share,
    normalize_before_mixing=normalize_before_mixing,
    isolation=isolation,
    ties=_plain(ties),
  )
  return build_with_rule(
    shared,
    model,
    rule,
    scenario=scenario,
    amounts=amounts,
    upload_rate=upload_rate,
    pretrain_epochs=pretrain_epochs if pretrain else 0,
    pretrain_learning_rate=pretrain_learning_rate,
    clip_value=clip_value,
    clip_mode=clip_mode,
    after_isolation=after_isolation,
    ties=ties,
    free_riders=free_riders,
  )


def build_with_rule(
  shared: arguments.SharedArguments,
  model: models.StatelessModel,
  rule: tff.aggregators.WeightedAggregationFactory,
  *,
  scenario: str,
  amounts: Sequence[int] | None,
  upload_rate: float,
  pretrain_epochs: int,
  pretrain_learning_rate: float | None,
  clip_value: float,
  clip_mode: str,
  after_isolation: str,
  ties: str,
  free_riders: client.FreeRiders | None = None,
) -> processes.PersonalizedLearningProcess:
  """Builds CFFL's participants around a rule of its server.

  Args:
    shared: The shared arguments.
    model: The client model.
    rule: Takes the weights `reputation.WEIGHT_TYPE`; its state has `allocation`
      and `reputable` like that of `aggregators.ReputationMaskedFactory`.
    scenario: As of `build_cffl`, like all others.
    amounts: Checked.
    upload_rate: Share of an update that is uploaded.
    pretrain_epochs: 0 for none.
    pretrain_learning_rate: None for the client optimiser's.
    clip_value: Bound of an update.
    clip_mode: What is bounded.
    after_isolation: What an isolated participant does.
    ties: Which entries of equal magnitude are uploaded.
    free_riders: Checked.

  Returns:
    As `build_cffl`.
  """
  plain_ties = _plain(ties)
  objective = client.classification_objective(shared.focal_gamma)
  train = shared.local_training(model, objective)
  train_alone = shared.local_training(
    model, objective, local_epochs=pretrain_epochs
  )
  size = sum(w.size for w in model.initial_weights.trainable)
  num_kept = largest_values.num_kept(upload_rate, size)

  def clip(update):
    return client_updates.clip_update(update, clip_value, clip_mode)

  def compress(clipped, unclipped):
    """U_j; for ties 'preclip' the order is that before clipping."""
    if num_kept == size:
      return clipped
    sparse = aggregators.keep_largest(
      flat.flatten(clipped),
      num_kept,
      ties=plain_ties,
      ranking=flat.flatten(unclipped) if ties == 'preclip' else None,
    )
    return flat.unflatten(sparse, clipped)

  def pretrained(row, examples, client_seed, learning_rate):
    """The model of a client that has never trained, trained alone."""
    if pretrain_learning_rate is not None:
      learning_rate = pretrain_learning_rate
    count = row['untrained'] * tf.size(examples['y'])
    result = train_alone(
      row['model'],
      _first(examples, count),
      tf.random.experimental.stateless_fold_in(
        client_seed, shared.local_epochs
      ),
      learning_rate=learning_rate,
    )
    return result.weights

  def client_update(weights, row, examples, client_seed, learning_rate):
    del weights  # Clients start from their own model.
    reputable = row['reputable'] > 0
    trains = reputable if after_isolation == 'frozen' else tf.constant(True)
    own = _first(
      examples['train'],
      tf.where(trains, tf.size(examples['train']['y']), 0),
    )
    start = row['model']
    if pretrain_epochs:
      start = pretrained(row, own, client_seed, learning_rate)
    result = train(start, own, client_seed, learning_rate=learning_rate)
    update = client_updates.model_update(start, result.weights).trainable
    clipped = clip(update)
    new_model = ModelWeights(
      tf.nest.map_structure(tf.subtract, start.trainable, clipped),
      result.weights.non_trainable,
    )
    return client.ClientOutput(
      update=ModelWeights(
        compress(clipped, update),
        # Includes pretraining: the server sees the client's own statistics.
        client_updates.model_update(row['model'], new_model).non_trainable,
      ),
      update_weight=collections.OrderedDict(
        client_id=examples['key'],
        amount=_amount(amounts, scenario, examples, model.num_classes),
        accepted=tf.constant(1.0),
      ),
      row=collections.OrderedDict(
        model=new_model,
        reputable=row['reputable'],
        untrained=tf.zeros_like(row['untrained']),
      ),
      metrics=result.metrics,
      report=collections.OrderedDict(
        loss=result.metrics['loss'],
        floats_up=tf.constant(size if num_kept == size else 2 * num_kept),
      ),
      active=trains & client.has_examples(examples),
    )

  if free_riders is not None:
    client_update = client.with_free_riders(
      client_update, free_riders, compress=lambda noise: compress(noise, noise)
    )
  client_work = shared.client_work(
    model,
    client_update,
    initial_row=collections.OrderedDict(
      model=model.initial_weights,
      reputable=np.int32(1),
      untrained=np.int32(1),
    ),
  )
  process = shared.compose(
    model, client_work, rule=rule, split_statistics=False
  )
  return processes.add_client_models(exchanges.add_download(process, _download))


def _plain(ties) -> Literal['index', 'keep']:
  """The same for rankings by the entries themselves."""
  return 'keep' if ties == 'keep' else 'index'


def _download(state) -> collections.OrderedDict:
  """Clients add their allocation, and receive whether they are reputable."""
  table, server = state.client_work['table'], state.aggregator
  trainable = tf.nest.map_structure(
    tf.subtract, table['model'].trainable, server['allocation']
  )
  return collections.OrderedDict(
    table,
    model=ModelWeights(trainable, table['model'].non_trainable),
    reputable=server['reputable'],
  )


def _first(examples, count) -> collections.OrderedDict:
  return collections.OrderedDict((k, v[:count]) for k, v in examples.items())


def _amount(amounts, scenario, examples, num_classes) -> tf.Tensor:
  """a_j, int32."""
  if amounts is not None:
    return tf.gather(tf.constant(amounts, tf.int32), examples['key'])
  labels = examples['train']['y']
  if scenario == 'size':
    return tf.size(labels)
  return client.count_classes(labels, num_classes)


def _check_amounts(amounts, num_clients) -> None:
  if amounts is None:
    return
  if not isinstance(amounts, Sequence | np.ndarray):
    raise TypeError(
      'amounts must be a sequence of integers, one for each client, found'
      f' {amounts!r}.'
    )
  if len(amounts) != num_clients:
    raise ValueError(
      f'amounts must have an entry for each of the {num_clients} clients,'
      f' found {len(amounts)}.'
    )
  for amount in amounts:
    checks.check_integer('An entry of amounts', amount, 0)
  if not any(amounts):
    raise ValueError(
      'amounts must have at least one positive entry, found only zeros.'
    )


def _check_free_riders(free_riders, num_clients, amounts) -> None:
  if free_riders is None:
    return
  if not isinstance(free_riders, client.FreeRiders):
    raise TypeError(
      'free_riders must be a tff_fair.client.FreeRiders, found'
      f' {type(free_riders).__name__}.'
    )
  for client_id in free_riders.client_ids:
    checks.check_integer(
      'The id of a free rider', client_id, 0, num_clients - 1
    )
  if amounts is None:
    raise ValueError(
      'amounts must be given where there are free riders, which have no data'
      ' to count, found None.'
    )
