"""CFFL's server: reputations by validation accuracy, and models as rewards.

Lyu, Xu, Wang and Yu, "Collaborative Fairness in Federated Learning" (Federated
Learning, Springer LNCS 12500, 2020; CFFL). The pure functions take one float64
entry for each participant of a round; `active` marks those that are counted.
"""

import collections
from collections.abc import Callable
import dataclasses
from typing import Annotated, Any, Literal

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair.aggregators import factory
from tff_fair.aggregators import gathered
from tff_fair.aggregators import largest_values
from tff_fair.annotations import Limits
from tff_fair.tensors import client_table
from tff_fair.tensors import flat
from tff_fair.tensors import summable

Scenario = Literal['size', 'class']
AggNorm = Literal['paper', 'sum', 'max']
_Norm = Literal['sum', 'max']
OwnShare = Literal['paper', 'aggregation']
Isolation = Literal['once', 'cascade']
# The reputation threshold is this fraction of 1/|R|.
_THRESHOLD_SHARES = {'size': 1 / 3, 'class': 1 / 6}

WEIGHT_TYPE = tff.types.to_type(
  collections.OrderedDict(
    client_id=np.int32, amount=np.int32, accepted=np.float32
  )
)


def reputations(
  accuracies: Any,
  history: Any,
  rated: Any,
  active: Any,
  *,
  punishment_factor: float = 5.0,
  history_weight: float = 0.5,
  normalize_before_mixing: bool = False,
) -> tf.Tensor:
  """Reputations `c` from validation accuracies.

  With `x_j = vacc_j / sum vacc` (equal shares if all are 0):

      c^_j = sinh(a_p * x_j)
      c'_j = h * history_j + (1 - h) * c^_j, or c^_j if no client has a history
      c_j = c'_j / sum c'

  The history is normalised and c^ is not, as printed in the paper;
  `normalize_before_mixing` divides c^ by its sum first. A participant that
  joins later than others starts with an equal share as its history. All sums
  run over the active; the others have 0.
  """
  mask = tf.cast(active, tf.float64)
  accuracies = accuracies * mask
  total = tf.reduce_sum(accuracies)
  shares = tf.where(
    total > 0,
    tf.math.divide_no_nan(accuracies, total),
    gathered.divide_by_sum(mask),
  )
  fresh = tf.sinh(punishment_factor * shares)
  if normalize_before_mixing:
    fresh = gathered.divide_by_sum(fresh)
  history = tf.where(rated, history, gathered.divide_by_sum(mask))
  mixed = history_weight * history + (1 - history_weight) * fresh
  any_rated = tf.reduce_any(tf.logical_and(rated, active))
  return gathered.divide_by_sum(tf.where(any_rated, mixed, fresh) * mask)


def isolate(
  reputation: Any,
  active: Any,
  *,
  threshold_share: float | None = None,
  threshold_absolute: float | None = None,
  cascade: bool = False,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """Removes participants of very low reputation.

  `j` is removed if `c_j < c_th` with `c_th = threshold_share / |R|`, or the
  absolute threshold. The participant of highest reputation is never removed.
  `cascade` normalises and removes again until no participant is removed. The
  result is who remains, their normalised reputation, and the first threshold.
  """

  def threshold(active):
    if threshold_absolute is not None:
      return tf.constant(threshold_absolute, tf.float64)
    return tf.math.divide_no_nan(
      tf.constant(threshold_share, tf.float64),
      tf.math.count_nonzero(active, dtype=tf.float64),
    )

  def remove(active, reputation):
    too_low = reputation < threshold(active)
    too_low &= reputation < tf.reduce_max(reputation)
    remaining = active & ~too_low
    kept = gathered.divide_by_sum(tf.where(remaining, reputation, 0.0))
    return remaining, kept, tf.reduce_any(active & too_low)

  active = tf.convert_to_tensor(active)
  first_threshold = threshold(active)
  remaining, kept, removed = remove(active, reputation)
  if cascade:
    remaining, kept, _ = tf.while_loop(
      lambda remaining, kept, removed: removed,
      lambda remaining, kept, removed: remove(remaining, kept),
      (remaining, kept, removed),
    )
  return remaining, kept, first_threshold


def allocation_counts(
  reputation: Any, amounts: Any, active: Any, size: int
) -> tf.Tensor:
  """The number of entries of the aggregate that each participant earned.

  `num_j = floor((c_j / max c) * (a_j / max a) * size + 1e-9)`, within
  [0, size]; the maxima are over `active`.
  """
  share = _relative(reputation, active) * _relative(amounts, active)
  return tf.clip_by_value(
    tf.cast(tf.floor(share * size + 1e-9), tf.int32), 0, size
  )


def aggregation_weights(amounts: Any, active: Any, norm: _Norm) -> tf.Tensor:
  """`a_j / sum a` (norm 'sum') or `a_j / max a` ('max') over `active`."""
  if norm == 'max':
    return _relative(amounts, active)
  return gathered.divide_by_sum(tf.where(active, amounts, 0.0))


@dataclasses.dataclass(eq=False, repr=False)
class ReputationMaskedFactory(factory.Factory):
  """The server side of CFFL.

  Values are updates with TFF's sign, old weights minus new: the negative of the
  paper's upload `U_j`, so that the code subtracts where the paper adds. R are
  the reputable participants of the round, `a_j` their amounts.

  1. Aggregate: `Dg = sum_R lam_j U_j`, `lam_j = a_j / sum_R a` for sizes and
     `a_j / max_R a` for classes.
  2. Validation: `vacc_j = V(s_j + U_j)`, then `s_j <- s_j + U_j`: the server
     keeps a shadow model of each participant, the sum of its uploads. Sparse
     uploads do not add up to the participant's model; without shadows it is
     `V(w_srv + U_j)`, then `w_srv <- w_srv + Dg`, with one auxiliary model.
  3. `reputations`, `isolate`; isolated participants leave R permanently.
  4. `num_j` by `allocation_counts`; `Dg_j`, the `num_j` largest entries of Dg;
     allocation `G_j = Dg_j - (a_j / max_R a) U_j`, which the participant adds
     to its local model, which already contains its update.

  An upload that is not finite, too large (`summable.LARGEST`), or not accepted,
  is replaced by zeros and has accuracy 0; a non-finite accuracy is replaced by
  0. If only some participants are present, all sums and maxima run over these;
  the others keep their reputation.

  If values are `tff.learning.models.ModelWeights`, only the trainable part is
  masked and allocated. Batch-norm statistics are aggregated with weights
  `a_j / sum_R a`, and each shadow has its participant's statistics.

  The created process:

  * `initialize`: `OrderedDict(reputation=float64[P], rated=int32[P],
    reputable=int32[P], allocation=[P, ...], shadow=[P, ...] or auxiliary)`;
    `allocation` has the trainable part, zeros where nothing is allocated.
  * `next`: `<state@SERVER, {value}@CLIENTS, {weight}@CLIENTS> -> <state,
    result=value@SERVER, measurements@SERVER>` with the weight
    `<client_id=int32,amount=int32,accepted=float32>`. The result is the
    aggregate; the allocations are in the state.
  * measurements: `num_isolated` (in this round), `num_reputable` (afterwards),
    `num_non_finite` (uploads replaced by zeros: not finite, too large, or not
    accepted, such as those of clients without data), `threshold` (c_th), and
    `clients`, vectors with an entry for each participant, by ascending
    `client_id`: `validation_accuracy` (0 if not active), `reputation`,
    `num_allocated`, `reputable`.

  Args:
    initial_weights: w^0, a structure of float32 arrays like the values.
    validation_fn: Accuracy on the server's validation set, a pure function
      `weights -> float scalar` of TensorFlow, for weights like
      `initial_weights`.
    num_clients: P; ids are 0..P-1.
    scenario: What the amounts are: numbers of examples ('size') or of classes
      ('class'). It selects the paper's threshold and normalisation.
    shadows: Whether to keep a model of each participant (theta_u = 1).
    punishment_factor: a_p, positive and at most 700, where sinh overflows.
    history_weight: Weight of the reputation of the previous round.
    threshold_absolute: In [0, 1]; replaces the paper's threshold, 1/3 ('size')
      or 1/6 ('class') of 1/|R|.
    agg_norm: 'sum' or 'max' for the weights of step 1; 'paper' is 'sum' for
      sizes and 'max' for classes.
    own_share: What step 4 subtracts: 'paper', as above; 'aggregation', the
      participant's part of Dg, `lam_j U_j`.
    normalize_before_mixing: As in `reputations`.
    isolation: 'once' or 'cascade', as in `isolate`.
    ties: As in `largest_values.keep_largest`, for allocations.
  """

  initial_weights: Any
  validation_fn: Callable[[Any], Any]
  _: dataclasses.KW_ONLY
  num_clients: Annotated[int, Limits(minimum=1)]
  scenario: Scenario = 'size'
  shadows: bool = True
  punishment_factor: Annotated[float, Limits(above=0, maximum=700)] = 5.0
  history_weight: Annotated[float, Limits(minimum=0, maximum=1)] = 0.5
  threshold_absolute: Annotated[float | None, Limits(minimum=0, maximum=1)] = (
    None
  )
  agg_norm: AggNorm = 'paper'
  own_share: OwnShare = 'paper'
  normalize_before_mixing: bool = False
  isolation: Isolation = 'once'
  ties: largest_values.Ties = 'index'

  def _check_value_type(self, value_type) -> None:
    super()._check_value_type(value_type)
    weights = tff.types.to_type(
      tf.nest.map_structure(
        lambda w: tff.TensorType(np.asarray(w).dtype, np.shape(w)),
        self.initial_weights,
      )
    )
    if not weights.is_equivalent_to(value_type):
      raise TypeError(
        'ReputationMaskedFactory requires values like its initial_weights,'
        f' {weights}. Found type: {value_type!r}.'
      )

  def _required_weight_type(self, value_type):
    return WEIGHT_TYPE

  def _create(self, value_type, weight_type):
    return gathered.build_process(
      value_type, weight_type, self._initial_state, self._server_round
    )

  def _initial_state(self) -> collections.OrderedDict:
    weights = tf.nest.map_structure(tf.constant, self.initial_weights)
    all_reputable = tf.ones([self.num_clients], tf.int32)
    state = collections.OrderedDict(
      reputation=tf.ones([self.num_clients], tf.float64) / self.num_clients,
      rated=tf.zeros_like(all_reputable),
      reputable=all_reputable,
      allocation=self._no_allocation(),
    )
    if self.shadows:
      state['shadow'] = client_table.build_table(weights, self.num_clients)
    else:
      state['auxiliary'] = weights
    return state

  def _no_allocation(self) -> Any:
    return tf.nest.map_structure(
      lambda w: tf.zeros([self.num_clients, *np.shape(w)]),
      gathered.trainable_part(self.initial_weights),
    )

  def _server_round(self, state, uploads) -> gathered.ServerOutput:
    """The server's round, with a row for each participant that is present."""
    uploads = gathered.by_client(uploads, self.num_clients)
    ids = uploads['weight']['client_id']
    own = client_table.read_row(_per_client(state), ids)
    active = own['reputable'] > 0
    usable = active & (uploads['weight']['accepted'] > 0)
    usable &= summable.are_rows_summable(
      (uploads['value'], uploads['weight']['accepted'])
    )
    values = tf.nest.map_structure(
      lambda t: client_table.choose_rows(usable, t, tf.zeros_like(t)),
      uploads['value'],
    )
    amounts = tf.cast(uploads['weight']['amount'], tf.float64)

    norm = self.agg_norm
    if norm == 'paper':
      norm = 'sum' if self.scenario == 'size' else 'max'
    weights = aggregation_weights(amounts, active, norm)
    # Statistics are averaged: by weights that sum to 1.
    aggregate = gathered.weighted_sum(
      values, weights, aggregation_weights(amounts, active, 'sum')
    )
    accuracies, scored = self._validate(state, own, values)
    known = usable & tf.math.is_finite(accuracies)
    accuracies = tf.where(known, accuracies, 0.0)
    rated = own['rated'] > 0
    reputation = reputations(
      accuracies,
      own['reputation'],
      rated,
      active,
      punishment_factor=self.punishment_factor,
      history_weight=self.history_weight,
      normalize_before_mixing=self.normalize_before_mixing,
    )
    remaining, reputation, threshold = isolate(
      reputation,
      active,
      threshold_share=_THRESHOLD_SHARES[self.scenario],
      threshold_absolute=self.threshold_absolute,
      cascade=self.isolation == 'cascade',
    )
    updates = flat.flatten_rows(gathered.trainable_part(values))
    counts = allocation_counts(reputation, amounts, remaining, updates.shape[1])
    shares = weights
    if self.own_share == 'paper':
      shares = _relative(amounts, remaining)
    allocations = self._allocate(aggregate, updates, counts, shares, remaining)

    rows = collections.OrderedDict(
      reputation=reputation,
      rated=tf.cast(active | rated, tf.int32),
      reputable=tf.cast(remaining, tf.int32),
    )
    new_state = client_table.write_rows(_per_client(state, rows), ids, rows)
    new_state['allocation'] = client_table.write_rows(
      self._no_allocation(), ids, allocations
    )
    new_state.update(self._new_models(state, ids, scored, aggregate))
    isolated = tf.math.count_nonzero(active & ~remaining, dtype=tf.int32)
    return gathered.ServerOutput(
      state=new_state,
      result=aggregate,
      measurements=collections.OrderedDict(
        num_isolated=isolated,
        num_reputable=tf.reduce_sum(new_state['reputable']),
        num_non_finite=tf.math.count_nonzero(active & ~usable, dtype=tf.int32),
        threshold=threshold,
        clients=collections.OrderedDict(
          client_id=ids,
          validation_accuracy=accuracies,
          reputation=reputation,
          num_allocated=counts,
          reputable=rows['reputable'],
        ),
      ),
    )

  def _validate(self, state, own, values) -> tuple[tf.Tensor, Any]:
    """Step 2: accuracies, and the models that were scored."""
    reference = own['shadow'] if self.shadows else state['auxiliary']
    models = tf.nest.map_structure(tf.subtract, reference, values)
    accuracies = tf.map_fn(
      lambda weights: tf.cast(self.validation_fn(weights), tf.float64),
      models,
      fn_output_signature=tf.float64,
      # The batches of one model use all cores; more models need more memory.
      parallel_iterations=2,
    )
    return accuracies, models

  def _new_models(self, state, ids, scored, aggregate) -> dict[str, Any]:
    """The end of step 2: new shadows are the scored models; `w_srv` adds Dg."""
    if self.shadows:
      return {'shadow': client_table.write_rows(state['shadow'], ids, scored)}
    moved = tf.nest.map_structure(tf.subtract, state['auxiliary'], aggregate)
    return {'auxiliary': moved}

  def _allocate(self, aggregate, updates, counts, shares, remaining) -> Any:
    """Step 4: the allocations, zeros for participants that were removed."""
    total = flat.flatten(gathered.trainable_part(aggregate))
    shares = tf.cast(shares, tf.float32)
    kept = largest_values.keep_largest_of_each(total, counts, ties=self.ties)
    rows = tf.where(
      remaining[:, tf.newaxis],
      kept - shares[:, tf.newaxis] * updates,
      tf.zeros_like(updates),
    )
    return flat.unflatten(rows, gathered.trainable_part(aggregate))


def _per_client(state, names=None) -> collections.OrderedDict:
  """The entries of the state with a row for each participant."""
  names = names or ('reputation', 'rated', 'reputable', 'shadow')
  return collections.OrderedDict(
    (name, state[name]) for name in names if name in state
  )


def _relative(values, active) -> tf.Tensor:
  """`values` divided by their maximum over `active`, 0 for the others."""
  return gathered.divide_by_max(tf.where(active, values, 0.0))
