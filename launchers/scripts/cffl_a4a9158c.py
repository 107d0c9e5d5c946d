"""CFFL as the public script of its authors computes it.

Read: github.com/XinyiYS/CollaborativeFairFederatedLearning at a4a9158c
(2020-08-28), `main.py`, `arguments.py`, `Federated_Learner.py`,
`Participant.py`, `Data_Prepper.py`, `models.py`; the state of 2024 has the same
Python files. Its README prints the numbers of the paper's tables. It has not
been run here.

`main.py` runs MNIST with uploads added without weights and entries drawn at
random ('sum' and 'random'), Adult with 'mean' and 'topk'.

Not the same: PyTorch's random numbers; the fixed initial weights; a participant
that earns no entry at all gets none, there it gets all; accuracies that are all
0 are equal shares, there not a number. There are no free riders.
"""

import collections
from collections.abc import Callable, Sequence
import dataclasses
from typing import Annotated, Any, Literal

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import models
from tff_fair.aggregators import factory
from tff_fair.aggregators import gathered
from tff_fair.aggregators import largest_values
from tff_fair.aggregators import reputation as reputation_lib
from tff_fair.algorithms import arguments
from tff_fair.algorithms import cffl
from tff_fair.algorithms import processes
from tff_fair.algorithms import validation as validation_lib
from tff_fair.annotations import Limits, Symbol, Unless
from tff_fair.tensors import client_table
from tff_fair.tensors import flat
from tff_fair.tensors import summable

_HISTORY_WEIGHT = 0.8
# The reputation threshold is this fraction of 1/|R|.
_THRESHOLD_SHARES = {'size': 1 / 3, 'class': 1 / 6}


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
  scenario: Literal['size', 'class'] = 'size',
  amounts: Annotated[Sequence[int] | None, Symbol('a')] = None,
  upload_rate: Annotated[float, Limits(above=0, maximum=1), Symbol('θᵤ')] = 1.0,
  pretrain: bool = False,
  pretrain_epochs: Annotated[
    int, Limits(minimum=1), Unless(pretrain=False)
  ] = 5,
  pretrain_learning_rate: Annotated[
    float, Limits(above=0), Unless(pretrain=False)
  ] = 0.005,
  punishment_factor: Annotated[
    float, Limits(above=0, maximum=350), Symbol('α')
  ] = 5.0,
  punishment_rounds: Annotated[int, Limits(minimum=1), Symbol('T')] = 30,
  clip_value: Annotated[float, Limits(above=0)] = 0.01,
  aggregate_mode: Literal['sum', 'mean'] = 'sum',
  download: Literal['random', 'topk'] = 'random',
) -> processes.PersonalizedLearningProcess:
  """Builds CFFL as the authors' script has it.

  Participants are those of `tff_fair.algorithms.build_cffl` with `ties='keep'`
  and `after_isolation='standalone'`; the server's rule is `ScriptRewards`.
  See `build_cffl` for arguments and errors that are not listed here.

  Args:
    validation: The server's validation set, `(x, y)`.
    scenario: What a contribution is: the number of examples (size) or of
      classes (class).
    amounts: The participants' contributions; None counts them.
    upload_rate: Share of its update that a participant uploads. At 1, without
      pretraining, the server rates the participant's own model.
    pretrain: Participants train alone before their first round.
    pretrain_epochs: Number of epochs of that training.
    pretrain_learning_rate: Learning rate of that training, in every round.
    punishment_factor: Factor in the reputation, in the first round.
    punishment_rounds: Rounds in which that factor doubles; those of the run.
    clip_value: Bound of each entry of an update.
    aggregate_mode: Uploads are added (sum), or weighted by contributions first
      (mean). It also says how much of its upload is taken off an allocation:
      all, or its contribution over the largest.
    download: Which entries a participant gets: the first of one random order of
      the round (random), or the largest, ties included (topk).

  Returns:
    As `tff_fair.algorithms.build_cffl`.
  """
  shared = arguments.check_arguments(build_cffl, locals())
  model = models.StatelessModel(model_fn)
  validation = validation_lib.check_validation(model, validation)
  rule = ScriptRewards(
    model.initial_weights,
    validation_lib.accuracy_fn(model, validation),
    num_clients=num_clients,
    seed=seed,
    scenario=scenario,
    rate_own_models=upload_rate == 1 and not pretrain,
    punishment_factor=punishment_factor,
    punishment_rounds=punishment_rounds,
    aggregate_mode=aggregate_mode,
    download=download,
  )
  return cffl.build_with_rule(
    shared,
    model,
    rule,
    scenario=scenario,
    amounts=amounts,
    upload_rate=upload_rate,
    pretrain_epochs=pretrain_epochs if pretrain else 0,
    pretrain_learning_rate=pretrain_learning_rate,
    clip_value=clip_value,
    clip_mode='value',
    after_isolation='standalone',
    ties='keep',
  )


@dataclasses.dataclass(eq=False, repr=False)
class ScriptRewards(factory.Factory):
  """The script's server.

  It has the types, the signs and the measurements of
  `aggregators.ReputationMaskedFactory`, and computes in their place:

  1. `vacc_j = V(w_srv + U_j)`, or of the participant's own model.
  2. `c_j = sinh(alpha (.8 c_j + .2 x_j))` with its share `x_j` of the
     accuracies and c_j at first 0, then normalised; `alpha` grows from
     `punishment_factor` in the first round to twice that.
  3. Isolation: below 1/3 ('size') or 1/6 ('class') of 1/|R|.
  4. `Dg = sum_R lam_j U_j` over those who remain, `lam_j = 1` ('sum'); with
     'mean' `a_j / sum a` for sizes and `a_j / max a` for classes, where sum and
     maximum are over all participants, isolated or not. `w_srv <- w_srv + Dg`.
  5. `num_j = floor(c_j / max c * a_j / max a * d)` entries of Dg, less `U_j`
     ('sum') or `a_j / max a U_j` ('mean').

  Args:
    initial_weights: w^0, `ModelWeights` like the values.
    validation_fn: From weights to the accuracy on the validation set.
    num_clients: P; ids are 0..P-1.
    seed: Of the random orders.
    scenario: See `build_cffl`, like the following.
    rate_own_models: Whether step 1 rates participants' own models.
    punishment_factor: alpha in the first round.
    punishment_rounds: Rounds in which it doubles.
    aggregate_mode: 'sum' or 'mean'.
    download: 'random' or 'topk'.
  """

  initial_weights: Any
  validation_fn: Callable[[Any], Any]
  _: dataclasses.KW_ONLY
  num_clients: Annotated[int, Limits(minimum=1)]
  seed: int = 0
  scenario: Literal['size', 'class'] = 'size'
  rate_own_models: bool = True
  punishment_factor: float = 5.0
  punishment_rounds: int = 30
  aggregate_mode: Literal['sum', 'mean'] = 'sum'
  download: Literal['random', 'topk'] = 'random'

  def _required_weight_type(self, value_type):
    return reputation_lib.WEIGHT_TYPE

  def _create(self, value_type, weight_type):
    return gathered.build_process(
      value_type, weight_type, self._initial_state, self._server_round
    )

  def _initial_state(self) -> collections.OrderedDict:
    weights = tf.nest.map_structure(tf.constant, self.initial_weights)
    reference = weights
    if self.rate_own_models:
      reference = client_table.build_table(weights, self.num_clients)
    return collections.OrderedDict(
      round=tf.constant(0),
      reputation=tf.zeros([self.num_clients], tf.float64),
      reputable=tf.ones([self.num_clients], tf.int32),
      allocation=self._no_allocation(),
      reference=reference,
    )

  def _no_allocation(self) -> Any:
    return tf.nest.map_structure(
      lambda w: tf.zeros([self.num_clients, *np.shape(w)]),
      gathered.trainable_part(self.initial_weights),
    )

  def _server_round(self, state, uploads) -> gathered.ServerOutput:
    uploads = gathered.by_client(uploads, self.num_clients)
    ids = uploads['weight']['client_id']
    active = tf.gather(state['reputable'], ids) > 0
    usable = active & (uploads['weight']['accepted'] > 0)
    usable &= summable.are_rows_summable(
      (uploads['value'], uploads['weight']['accepted'])
    )
    values = tf.nest.map_structure(
      lambda t: client_table.choose_rows(usable, t, tf.zeros_like(t)),
      uploads['value'],
    )
    amounts = tf.cast(uploads['weight']['amount'], tf.float64)

    scored = self._scored_models(state, ids, values)
    accuracies = self._accuracies(scored, usable)
    reputation, remaining, threshold = self._rate(
      state, ids, accuracies, active
    )
    size_share = gathered.divide_by_max(amounts)
    weights, own_shares = self._weights(amounts, size_share)
    kept = tf.cast(remaining, tf.float64)
    aggregate = gathered.weighted_sum(
      values, weights * kept, gathered.divide_by_sum(amounts * kept)
    )
    total = flat.flatten(gathered.trainable_part(aggregate))
    relative = gathered.divide_by_max(reputation) * size_share
    counts = tf.cast(tf.floor(relative * total.shape[0] + 1e-9), tf.int32)
    updates = flat.flatten_rows(gathered.trainable_part(values))
    rows = self._download(total, counts, state['round'])
    rows -= tf.cast(own_shares, tf.float32)[:, tf.newaxis] * updates
    rows = tf.where(remaining[:, tf.newaxis], rows, 0.0)
    allocations = flat.unflatten(rows, gathered.trainable_part(aggregate))

    new_state = collections.OrderedDict(
      round=state['round'] + 1,
      **client_table.write_rows(
        collections.OrderedDict(
          reputation=state['reputation'],
          reputable=state['reputable'],
          allocation=self._no_allocation(),
        ),
        ids,
        collections.OrderedDict(
          reputation=reputation,
          reputable=tf.cast(remaining, tf.int32),
          allocation=allocations,
        ),
      ),
      reference=self._new_reference(state, ids, scored, allocations, aggregate),
    )
    return gathered.ServerOutput(
      state=new_state,
      result=aggregate,
      measurements=collections.OrderedDict(
        num_isolated=tf.math.count_nonzero(active & ~remaining, dtype=tf.int32),
        num_reputable=tf.reduce_sum(new_state['reputable']),
        num_non_finite=tf.math.count_nonzero(active & ~usable, dtype=tf.int32),
        threshold=threshold,
        clients=collections.OrderedDict(
          client_id=ids,
          validation_accuracy=accuracies,
          reputation=reputation,
          num_allocated=counts,
          reputable=tf.cast(remaining, tf.int32),
        ),
      ),
    )

  def _scored_models(self, state, ids, values) -> Any:
    """The models of step 1; values have TFF's sign, old minus new."""
    reference = state['reference']
    if self.rate_own_models:
      reference = client_table.read_row(reference, ids)
    return tf.nest.map_structure(tf.subtract, reference, values)

  def _accuracies(self, scored, usable) -> tf.Tensor:
    accuracies = tf.map_fn(
      lambda weights: tf.cast(self.validation_fn(weights), tf.float64),
      scored,
      fn_output_signature=tf.float64,
      parallel_iterations=2,
    )
    known = usable & tf.math.is_finite(accuracies)
    return tf.where(known, accuracies, 0.0)

  def _rate(self, state, ids, accuracies, active):
    """Steps 2 and 3: normalised reputations, who remains, the threshold."""
    progress = tf.cast(state['round'], tf.float64) / self.punishment_rounds
    alpha = self.punishment_factor * (1 + tf.minimum(progress, 1.0))
    mask = tf.cast(active, tf.float64)
    equal, total = gathered.divide_by_sum(mask), tf.reduce_sum(accuracies)
    shares = tf.where(total > 0, gathered.divide_by_sum(accuracies), equal)
    history = tf.gather(state['reputation'], ids)
    mixed = _HISTORY_WEIGHT * history + (1 - _HISTORY_WEIGHT) * shares
    reputation = gathered.divide_by_sum(tf.sinh(alpha * mixed) * mask)
    remaining, reputation, threshold = reputation_lib.isolate(
      reputation, active, threshold_share=_THRESHOLD_SHARES[self.scenario]
    )
    return reputation, remaining, threshold

  def _weights(self, amounts, size_share) -> tuple[tf.Tensor, tf.Tensor]:
    """`lam_j`, and the share of its own upload that step 5 takes off."""
    if self.aggregate_mode == 'sum':
      return tf.ones_like(amounts), tf.ones_like(amounts)
    if self.scenario == 'class':
      return size_share, size_share
    return gathered.divide_by_sum(amounts), size_share

  def _download(self, total, counts, round_number) -> tf.Tensor:
    """The entries of Dg that each participant earned, `[m, d]`."""
    if self.download == 'topk':
      return largest_values.keep_largest_of_each(total, counts, ties='keep')
    words = tf.stack([tf.constant(self.seed % 2**31), round_number])
    order = 1 + tf.random.stateless_uniform([total.shape[0]], words)
    drawn = largest_values.keep_largest_of_each(order, counts) > 0
    return tf.where(drawn, total, 0.0)

  def _new_reference(self, state, ids, scored, allocations, aggregate) -> Any:
    """Participants' models after the download, or the new `w_srv`."""
    if not self.rate_own_models:
      return tf.nest.map_structure(tf.subtract, state['reference'], aggregate)
    trainable = tf.nest.map_structure(
      tf.subtract, scored.trainable, allocations
    )
    rewarded = tff.learning.models.ModelWeights(trainable, scored.non_trainable)
    return client_table.write_rows(state['reference'], ids, rewarded)
