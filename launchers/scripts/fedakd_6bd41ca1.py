"""Tianrun-Yu/FedAKD at 6bd41ca1: CFFL, CGSV, FedAVE and FedSAC.

The state that has the folder METHOD, later deleted, with a script for each
baseline. What these scripts compute differently from the baselines' own papers
is here as it was read there; the rest is `tff_fair`'s. In all four, clients
train one common model.

FedDC's script is `build_fed_dc` with `drifts='present'` and
`grad_correction=False`. What a script trains and scores on is a matter of
flags, see the table `fedakd_protocols`; its partition is
`--shift_method=pc1_sort`.

Not the same here:

- PyTorch's initial weights, its epsilon of batch normalisation and of Adam.
- CFFL's script validates on the first tenth of each client's examples, which
  also trains; here the validation set does not train.
- FedSAC's script packs the kernel of each filter with its bias, and unpacks all
  kernels of a layer before its biases, so that entries change places in every
  aggregation; and the mask of a layer's last filter decides whether the whole
  layer trains. Neither is reproduced.
"""

import collections
from collections.abc import Callable, Sequence
import dataclasses
import functools
from typing import Annotated, Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators
from tff_fair import client
from tff_fair import models
from tff_fair.aggregators import cosine_shapley
from tff_fair.aggregators import factory
from tff_fair.aggregators import gathered
from tff_fair.aggregators import largest_values
from tff_fair.aggregators import sparse_rewards
from tff_fair.aggregators import validated_rewards
from tff_fair.algorithms import arguments
from tff_fair.algorithms import client_updates
from tff_fair.algorithms import exchanges
from tff_fair.algorithms import processes
from tff_fair.algorithms import validation as validation_lib
from tff_fair.algorithms.baselines import fed_sac
from tff_fair.algorithms.baselines import sparse_reward_clients
from tff_fair.annotations import Limits, Symbol
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
  upload_rate: Annotated[float, Limits(above=0, maximum=1), Symbol('θᵤ')] = 0.5,
  clip_value: Annotated[float, Limits(above=0)] = 5.0,
  reputation_threshold: Annotated[float, Limits(minimum=0, maximum=1)] = 0.05,
  punishment_factor: Annotated[
    float, Limits(above=0, maximum=350), Symbol('α')
  ] = 1.0,
) -> processes.PersonalizedLearningProcess:
  """Builds CFFL as the script computes it.

  1. Clients train the common model w with the initial batch-norm statistics.
     `g_i` are the largest entries, ties included, of the clipped update; w
     moves by the mean u of the `g_i`, by numbers of examples.
  2. `r_i` is half the last one and half the share of `sinh(alpha x_i)`, with
     the share `x_i` of the validation accuracies of `w + u + g_i`. A client
     below the threshold trains no more, and keeps its model.
  3. `m_i` is the client's trained model plus `g_i`, plus u less
     `n_i / max n g_i`. Nothing is masked.

  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    num_clients: N.
    validation: The server's validation set, `(x, y)`. Arrays `float32[n, ...]`
      and `int32[n]`.
    upload_rate: Share of an update that is uploaded.
    clip_value: Bound of an update's norm.
    reputation_threshold: A client with less is isolated.
    punishment_factor: Factor in the reputation.

  Returns:
    A `PersonalizedLearningProcess`. The client table is `OrderedDict(model,
    upload, active)`, `active` 0 for isolated clients.
  """
  shared = arguments.check_arguments(build_cffl, locals())
  model = models.StatelessModel(model_fn)
  validation = validation_lib.check_validation(model, validation)
  initial = model.initial_weights
  train = shared.local_training(
    model, client.classification_objective(focal_gamma)
  )

  def client_update(weights, row, examples, client_seed, learning_rate):
    statistics = tf.nest.map_structure(tf.constant, initial.non_trainable)
    start = ModelWeights(weights.trainable, statistics)
    result = train(
      start, examples['train'], client_seed, learning_rate=learning_rate
    )
    trained = result.weights
    update = tf.nest.map_structure(
      tf.subtract, trained.trainable, start.trainable
    )
    vector = flat.flatten(
      client_updates.clip_update(update, clip_value, 'norm')
    )
    number = largest_values.num_kept(upload_rate, vector.shape[0])
    upload = flat.unflatten(
      largest_values.keep_largest(vector, number, ties='keep'), update
    )
    kept = ModelWeights(
      tf.nest.map_structure(tf.add, trained.trainable, upload),
      trained.non_trainable,
    )
    kept = tf.nest.map_structure(
      lambda new, old: tf.where(row['active'] > 0, new, old), kept, row['model']
    )
    output = client_updates.trained_output(
      start,
      result,
      collections.OrderedDict(model=kept, upload=upload, active=row['active']),
      examples,
      False,
    )
    return output._replace(
      update=ModelWeights(
        tf.nest.map_structure(tf.negative, upload),
        tf.nest.map_structure(tf.zeros_like, trained.non_trainable),
      ),
      update_weight=collections.OrderedDict(
        client_id=examples['key'],
        num_examples=client_updates.example_weight(examples),
        received=start,
      ),
    )

  def download(state):
    table, server = state.client_work['table'], state.aggregator

    def add(own, upload, aggregate):
      share = tf.cast(server['share'], tf.float32)
      share = tf.reshape(share, [-1, *[1] * (len(own.shape) - 1)])
      return tf.where(share > 0, own + aggregate - share * upload, own)

    rewarded = tf.nest.map_structure(
      add, table['model'].trainable, table['upload'], server['aggregate']
    )
    return collections.OrderedDict(
      table,
      model=ModelWeights(rewarded, table['model'].non_trainable),
      active=tf.cast(server['reputation'] > 0, tf.float32),
    )

  client_work = shared.client_work(
    model,
    client_update,
    initial_row=collections.OrderedDict(
      model=initial,
      upload=tf.nest.map_structure(np.zeros_like, initial.trainable),
      active=np.float32(1),
    ),
  )
  process = shared.compose(
    model,
    client_work,
    rule=UnmaskedRewardFactory(
      validation_lib.accuracy_fn(model, validation),
      num_clients=num_clients,
      reputation_threshold=reputation_threshold,
      punishment_factor=punishment_factor,
    ),
    split_statistics=False,
  )
  return processes.add_client_models(exchanges.add_download(process, download))


def build_cgsv(
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
  history_weight: Annotated[
    float, Limits(minimum=0, maximum=1), Symbol('α')
  ] = 0.95,
  altruism: Annotated[float, Limits(above=0), Symbol('b')] = 1.0,
) -> processes.PersonalizedLearningProcess:
  """Builds CGSV as the script computes it.

  1. Clients train the common model w, which moves by the plain mean u of their
     updates `D_i`, as they are.
  2. `phi_i = max(cos(D_i, u), 0)`; reputations, at first 1 / N, and shares
     `q_i` as of `aggregators.CosineShapleyFactory`.
  3. `m_i` is the client's trained model plus the `floor(q_i * d)` largest
     entries of u, over all variables.

  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    num_clients: N.
    history_weight: Share of the previous reputation in the new one.
    altruism: The larger, the more of the aggregate every client gets.

  Returns:
    As `algorithms.build_cgsv`.
  """
  shared = arguments.check_arguments(build_cgsv, locals())
  rule = MeanRewardFactory(
    num_clients, history_weight=history_weight, altruism=altruism
  )
  return sparse_reward_clients.compose_process(
    shared, models.StatelessModel(model_fn), rule, keeps_model=False
  )


def build_fed_ave(
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
  history_weight: Annotated[
    float, Limits(minimum=0, maximum=1), Symbol('α')
  ] = 0.9,
  altruism: Annotated[float, Limits(above=0), Symbol('b')] = 1.0,
  upload_fraction: Annotated[float, Limits(above=0, maximum=1)] = 0.5,
  download_base: Annotated[float, Limits(minimum=0, maximum=1)] = 0.3,
) -> processes.PersonalizedLearningProcess:
  """Builds FedAVE as the script computes it.

  1. Clients train the common model w, and upload the largest entries of their
     updates; w moves by the mean u, by numbers of examples.
  2. Reputations are means of the clients' validation accuracies, and shares
     those of `download_fractions`.
  3. `m_i` is the client's trained model plus the `floor(f_i * d)` largest
     entries of u, over all variables, already in the first round.

  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    num_clients: N.
    validation: The server's validation set, `(x, y)`; its size is
      `--validation_fraction` or, with `--split=client`, `--holdout_fraction`.
      Arrays `float32[n, ...]` and `int32[n]`.
    history_weight: Share of the previous reputation in the new one.
    altruism: The larger, the more of the aggregate every client gets.
    upload_fraction: Share of an update that is uploaded.
    download_base: Least share of the aggregate that a client gets.

  Returns:
    As `algorithms.build_fed_ave`.
  """
  shared = arguments.check_arguments(build_fed_ave, locals())
  model = models.StatelessModel(model_fn)
  validation = validation_lib.check_validation(model, validation)
  rule = AccuracyRewardFactory(
    validation_lib.accuracy_fn(model, validation),
    num_clients=num_clients,
    history_weight=history_weight,
    altruism=altruism,
    upload_fraction=upload_fraction,
    download_base=download_base,
  )
  return sparse_reward_clients.compose_process(
    shared,
    model,
    rule,
    keeps_model=False,
    extra_weight=lambda received, examples: {'received': received},
  )


def build_fed_sac(
  model_fn: Callable[[], tf.keras.Model],
  *,
  num_clients: int,
  client_optimizer: tff.learning.optimizers.Optimizer,
  validation: Annotated[tuple[Any, Any], Symbol('V')],
  contributions: Annotated[Sequence[float], Symbol('c')],
  local_epochs: int = 1,
  batch_size: int = 32,
  seed: int = 0,
  client_learning_rate_fn: Callable[[Any], Any] | None = None,
  max_update_norm: float | None = arguments.MAX_UPDATE_NORM,
  focal_gamma: float = 0.0,
  contribution_sharpness: Annotated[
    float, Limits(minimum=0), Symbol('β')
  ] = 2.0,
  mid_round: Annotated[int, Limits(minimum=0)] = 15,
  server_optimizer: tff.learning.optimizers.Optimizer | None = None,
) -> processes.FairLearningProcess:
  """Builds FedSAC as the script computes it.

  All clients train all of w, except in round `mid_round`. There client i trains
  only the `clip(floor(r_i), 1, H)` most important of the H neurons, uploads
  zeros for the others, and the server takes the plain mean; every client is
  scored by w. Importances and `r_i` are those of `algorithms.build_fed_sac`.
  See `build_fed_avg` for arguments and errors that are not listed here.

  Args:
    validation: The server's validation set, `(x, y)`; its size is
      `--validation_fraction` or, with `--split=client`, `--holdout_fraction`.
      Arrays `float32[n, ...]` and `int32[n]`, of which the first 1,000 examples
      are used.
    contributions: Accuracy of each client when it trains alone. One number in
      [0, 1] a client.
    contribution_sharpness: The larger, the smaller the submodels of clients
      that contribute less.
    mid_round: The round, counted from 0, of submodels.

  Returns:
    A `FairLearningProcess`. The client table is `OrderedDict(mask)`,
    `float32[H]`. Metrics are FedAvg's, and each client's `num_neurons`.
  """
  shared = arguments.check_arguments(build_fed_sac, locals())
  fed_sac.check_contributions(contributions, num_clients)
  model = models.StatelessModel(model_fn)
  neurons = models.Neurons(model)
  loss_fn = fed_sac.validation_loss(model, validation)
  budgets = fed_sac.allocation_budgets(contributions, contribution_sharpness)
  train_masked = fed_sac.build_masked_training(
    neurons,
    shared.local_training(model, client.classification_objective(focal_gamma)),
  )

  def client_update(weights, row, examples, client_seed, learning_rate):
    _, output = train_masked(
      weights, weights, row, examples, client_seed, learning_rate
    )
    return output

  def download(state):
    def masks():
      weights = state.global_model_weights
      importance = fed_sac.importances(neurons, loss_fn, weights)
      return most_important(importance, budgets)

    found = tf.cond(
      tf.equal(state.client_work['round'], mid_round),
      masks,
      lambda: tf.ones_like(state.client_work['table']['mask']),
    )
    return collections.OrderedDict(
      mask=tf.ensure_shape(found, [len(budgets), neurons.number])
    )

  client_work = shared.client_work(
    model,
    client_update,
    initial_row=collections.OrderedDict(
      mask=np.ones(neurons.number, np.float32)
    ),
  )
  process = shared.compose(
    model,
    client_work,
    rule=aggregators.EntrywiseMeanFactory(),
    split_statistics=False,
  )
  return exchanges.add_download(process, download, at_start=True)


def most_important(importance: Any, budgets: Any) -> tf.Tensor:
  """The masks of FedSAC's script.

  Args:
    importance: I, `float64[H]`.
    budgets: r, `float64[N]`.

  Returns:
    `float32[N, H]`, ones for the `clip(floor(r), 1, H)` most important neurons.
  """
  order = tf.argsort(importance, direction='DESCENDING', stable=True)
  lengths = np.clip(np.floor(budgets * (1 + fed_sac.ROUNDING)), 1, None)
  return fed_sac.masks_of_first(order, tf.cast(lengths, tf.int32))


def download_fractions(
  reputation: Any, download_base: float, altruism: float
) -> tf.Tensor:
  """`f_i = clip(base + (1 - base) tanh(b r_i), 0, 1)`, of FedAVE's script."""
  earned = (1 - download_base) * tf.tanh(altruism * reputation)
  return tf.clip_by_value(download_base + earned, 0.0, 1.0)


@dataclasses.dataclass(eq=False, repr=False)
class MeanRewardFactory(factory.Factory):
  """The server of CGSV's script.

  The aggregate is the plain mean of the updates of clients with examples; see
  `build_cgsv`. The created process, its weight and its measurements are those
  of `aggregators.CosineShapleyFactory`.

  Args:
    num_clients: N.
    history_weight: alpha, in [0, 1].
    altruism: b, positive.
  """

  num_clients: Annotated[int, Limits(minimum=1)]
  _: dataclasses.KW_ONLY
  history_weight: Annotated[float, Limits(minimum=0, maximum=1)] = 0.95
  altruism: Annotated[float, Limits(above=0)] = 1.0

  def _required_weight_type(self, value_type):
    return cosine_shapley.WEIGHT_TYPE

  def _create(self, value_type, weight_type):
    return sparse_rewards.build_process(
      value_type,
      weight_type,
      num_clients=self.num_clients,
      initial_reputation=1 / self.num_clients,
      rate=self._rate,
    )

  def _rate(self, updates, uploads, reputation) -> sparse_rewards.RatedRound:
    present = tf.cast(uploads['weight']['num_examples'] > 0, tf.float64)
    factors = tf.cast(gathered.divide_by_sum(present), tf.float32)
    aggregate = tf.tensordot(factors, updates, axes=1)
    contribution = tf.maximum(
      cosine_shapley.contributions(updates, aggregate), 0.0
    )
    return sparse_rewards.RatedRound(
      aggregate=aggregate,
      reputation=cosine_shapley.reputations(
        reputation, contribution, self.history_weight
      ),
      share_fn=functools.partial(
        cosine_shapley.reward_shares, altruism=self.altruism
      ),
      measurements=collections.OrderedDict(contribution=contribution),
    )


@dataclasses.dataclass(eq=False, repr=False)
class UnmaskedRewardFactory(factory.Factory):
  """The server of CFFL's script, see `build_cffl`.

  The created process is that of `sparse_rewards.build_process`, whose shares
  are here `n_i / max n` of the clients that are not isolated. The weight is
  `<client_id=int32, num_examples=float32, received=<like the value>>`. The
  measurements of clients also have `validation_accuracy`.

  Args:
    validation_fn: As of `AccuracyRewardFactory`.
    num_clients: N.
    reputation_threshold: In [0, 1].
    punishment_factor: alpha, positive.
  """

  validation_fn: Callable[[Any], Any]
  _: dataclasses.KW_ONLY
  num_clients: Annotated[int, Limits(minimum=1)]
  reputation_threshold: Annotated[float, Limits(minimum=0, maximum=1)] = 0.05
  punishment_factor: Annotated[float, Limits(above=0)] = 1.0

  def _required_weight_type(self, value_type):
    return _weight_with_received(value_type)

  def _create(self, value_type, weight_type):
    return sparse_rewards.build_process(
      value_type,
      weight_type,
      num_clients=self.num_clients,
      initial_reputation=1 / self.num_clients,
      rate=self._rate,
    )

  def _rate(self, updates, uploads, reputation) -> sparse_rewards.RatedRound:
    weight = uploads['weight']
    active = reputation > 0
    sizes = tf.where(active, weight['num_examples'], 0.0)
    aggregate = tf.tensordot(gathered.divide_by_sum(sizes), updates, axes=1)
    accuracies = validated_rewards.accuracies(
      self.validation_fn,
      {
        'value': uploads['value'],
        'weight': {
          'num_examples': sizes,
          'received': _moved(weight['received'], aggregate),
        },
      },
    )
    fresh = tf.sinh(self.punishment_factor * gathered.divide_by_sum(accuracies))
    mixed = reputation + gathered.divide_by_sum(fresh)
    mixed = gathered.divide_by_sum(mixed)
    rated = tf.where(tf.reduce_sum(accuracies) > 0, mixed, reputation)
    isolated = rated < self.reputation_threshold
    share = tf.cast(gathered.divide_by_max(sizes), tf.float64)
    return sparse_rewards.RatedRound(
      aggregate=aggregate,
      reputation=tf.where(isolated, tf.zeros_like(rated), rated),
      share_fn=lambda _: share,
      measurements=collections.OrderedDict(validation_accuracy=accuracies),
    )


def _weight_with_received(value_type) -> collections.OrderedDict:
  """The weight of servers that validate what clients trained."""
  return collections.OrderedDict(
    client_id=np.int32, num_examples=np.float32, received=value_type
  )


def _moved(weights: Any, vector: Any) -> Any:
  """Rows of weights, each with a vector added to its trainable part."""
  trainable = gathered.trainable_part(weights)
  one = tf.nest.map_structure(lambda t: tf.zeros(t.shape[1:]), trainable)
  moved = tf.nest.map_structure(tf.add, trainable, flat.unflatten(vector, one))
  return gathered.with_trainable_part(weights, moved)


@dataclasses.dataclass(eq=False, repr=False)
class AccuracyRewardFactory(factory.Factory):
  """The server of FedAVE's script, see `build_fed_ave`.

  The created process is that of `sparse_rewards.build_process`. The weight is
  `<client_id=int32, num_examples=float32, received=<like the value>>`. The
  measurements of clients also have `validation_accuracy`.

  Args:
    validation_fn: Accuracy on the server's validation set, a pure function
      `weights -> float scalar` of TensorFlow, for weights like the values.
    num_clients: N.
    history_weight: alpha, in [0, 1].
    altruism: b, positive.
    upload_fraction: In (0, 1].
    download_base: In [0, 1].
  """

  validation_fn: Callable[[Any], Any]
  _: dataclasses.KW_ONLY
  num_clients: Annotated[int, Limits(minimum=1)]
  history_weight: Annotated[float, Limits(minimum=0, maximum=1)] = 0.9
  altruism: Annotated[float, Limits(above=0)] = 1.0
  upload_fraction: Annotated[float, Limits(above=0, maximum=1)] = 0.5
  download_base: Annotated[float, Limits(minimum=0, maximum=1)] = 0.3

  def _required_weight_type(self, value_type):
    return _weight_with_received(value_type)

  def _create(self, value_type, weight_type):
    return sparse_rewards.build_process(
      value_type,
      weight_type,
      num_clients=self.num_clients,
      initial_reputation=1 / self.num_clients,
      rate=self._rate,
    )

  def _rate(self, updates, uploads, reputation) -> sparse_rewards.RatedRound:
    accuracies = validated_rewards.accuracies(self.validation_fn, uploads)
    number = largest_values.num_kept(self.upload_fraction, updates.shape[1])
    sparse = tf.map_fn(
      lambda update: largest_values.keep_largest(update, number), updates
    )
    mixed = self.history_weight * reputation
    return sparse_rewards.RatedRound(
      aggregate=validated_rewards.mean_by_examples(uploads, sparse),
      reputation=mixed + (1 - self.history_weight) * accuracies,
      share_fn=functools.partial(
        download_fractions,
        download_base=tf.constant(self.download_base, tf.float64),
        altruism=self.altruism,
      ),
      measurements=collections.OrderedDict(validation_accuracy=accuracies),
    )
