"""A mean of clipped updates with Gaussian noise, for differential privacy.

McMahan, Ramage, Talwar and Zhang, "Learning Differentially Private Recurrent
Language Models" (ICLR 2018, https://arxiv.org/abs/1710.06963), and Andrew,
Thakkar, McMahan and Ramaswamy, "Differentially Private Learning with Adaptive
Clipping" (NeurIPS 2021, https://arxiv.org/abs/1905.03871).
"""

import collections
from collections.abc import Callable
import dataclasses
from typing import Annotated, Any, NamedTuple

import dp_accounting
import tensorflow as tf
import tensorflow_federated as tff
import tensorflow_privacy as tfp

from tff_fair import privacy
from tff_fair.aggregators import factory
from tff_fair.annotations import Limits

# As TFF's `gaussian_adaptive`.
_INITIAL_CLIP = 0.1
_TARGET_QUANTILE = 0.5
_CLIP_LEARNING_RATE = 0.2
# Apart from the seeds of clients, whose first number is a round.
_STREAM = 2**31 - 1


def private_mean_factory(
  noise_multiplier: float,
  clients_per_round: int,
  clip: float | None = None,
  seed: int = 0,
) -> tff.aggregators.WeightedAggregationFactory:
  """Makes TFF's private mean, whose noise has a seed.

  The result is `(sum_i u_i min(1, C / |u_i|) + z C N(0, I)) / m` over the m
  clients of a round. All clients count the same: weights are ignored, since
  weights of clients would change the sensitivity, and their sum is private.
  The divisor is m also where clients send zeros, as dropped ones do.

  This is `tff.aggregators.DifferentiallyPrivateFactory`, with the queries of
  its `gaussian_fixed`, or of its `gaussian_adaptive` and the parameters there:
  C starts at 0.1 and follows the median of the norms, by up to 10 % a round.
  The noise is then that of `privacy.split_noise`, so that z is the multiplier
  of the whole round. Instead of TFF's noise, of which no two runs have the
  same, it is a function of the seed and the round: a resumed run has the noise
  that it would have had. Who knows the seed can subtract the noise, so for
  others it must be secret.

  The created process:

  * `initialize`: TFF's state, with the seed and the round in it.
  * `next`: the weights may be of any type.
  * measurements: `clipping_norm`, the C of this round.

  Args:
    noise_multiplier: z, above 0.
    clients_per_round: m.
    clip: C, above 0; None is adaptive.
    seed: Seed of the noise, `0 <= seed < 2^62`.

  Returns:
    A weighted factory for structures of float32 tensors.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If a number is out of range, or `noise_multiplier` too large for
      adaptive clipping.
  """
  return _PrivateMean(noise_multiplier, clients_per_round, clip, seed)


@dataclasses.dataclass(eq=False, repr=False)
class _PrivateMean(factory.Factory):
  """See `private_mean_factory`."""

  noise_multiplier: Annotated[float, Limits(above=0)]
  clients_per_round: Annotated[int, Limits(minimum=1)]
  clip: Annotated[float | None, Limits(above=0)] = None
  seed: Annotated[int, Limits(minimum=0, maximum=2**62 - 1)] = 0

  def __post_init__(self) -> None:
    super().__post_init__()
    self._query = self._build_query()

  def _build_query(self) -> '_SeededNoise':
    number = float(self.clients_per_round)
    if self.clip is not None:
      factor = self.noise_multiplier
      query = tfp.GaussianSumQuery(self.clip, stddev=0.0)
    else:
      factor, count_deviation = privacy.split_noise(
        self.noise_multiplier, self.clients_per_round
      )
      query = tfp.QuantileAdaptiveClipSumQuery(
        initial_l2_norm_clip=_INITIAL_CLIP,
        noise_multiplier=0.0,
        target_unclipped_quantile=_TARGET_QUANTILE,
        learning_rate=_CLIP_LEARNING_RATE,
        clipped_count_stddev=0.0,
        expected_num_records=number,
      )

    def deviations(sums, clip):
      """Of the noise of each tensor: of the updates' sum, then of the count."""
      if self.clip is not None:
        return [factor * clip for _ in sums]
      return [*(factor * clip for _ in sums[:-1]), count_deviation]

    return _SeededNoise(
      tfp.NormalizedQuery(query, denominator=number),
      deviations,
      self.noise_multiplier,
      self.seed,
    )

  def _create(self, value_type, weight_type):
    private = tff.aggregators.DifferentiallyPrivateFactory(self._query)
    process = private.create(value_type)
    state_type = process.initialize.type_signature.result.member

    @tff.tensorflow.computation(state_type)
    def measure(state):
      return collections.OrderedDict(
        clipping_norm=_clipping_norm(state.query_state.query)
      )

    def next_fn(state, value, weight):
      del weight  # Unused.
      # Of the round, so before it.
      measurements = tff.federated_map(measure, state)
      output = process.next(state, value)
      return output.state, output.result, measurements

    return factory.build_process(
      process.initialize, next_fn, value_type, weight_type
    )


class _NoiseState(NamedTuple):
  """State of the query within, and of the noise: int32[2] and int32."""

  query: Any
  seed: Any
  round: Any


class _SeededNoise(tfp.SumAggregationDPQuery):
  """A query that adds no noise, with noise of a seed on its sums."""

  def __init__(
    self,
    query: tfp.SumAggregationDPQuery,
    deviations: Callable[[Any, Any], Any],
    noise_multiplier: float,
    seed: int,
  ) -> None:
    """From the sums and the clipping norm follow the noise's `deviations`."""
    self._query = query
    self._deviations = deviations
    self._noise_multiplier = noise_multiplier
    self._seed = [seed & 0x7FFFFFFF, seed >> 31]

  def initial_global_state(self):
    state = self._query.initial_global_state()
    return _NoiseState(state, tf.constant(self._seed, tf.int32), tf.constant(0))

  def derive_sample_params(self, global_state):
    return self._query.derive_sample_params(global_state.query)

  def preprocess_record(self, params, record):
    return self._query.preprocess_record(params, record)

  def initial_sample_state(self, template):
    return self._query.initial_sample_state(template)

  def get_noised_result(self, sample_state, global_state):
    """The result, the new state, and the round's event."""
    sums = tf.nest.flatten(sample_state)
    deviations = self._deviations(sums, _clipping_norm(global_state.query))
    fold_in = tf.random.experimental.stateless_fold_in
    seed = fold_in(fold_in(global_state.seed, _STREAM), global_state.round)
    noised = [
      value
      + deviation * tf.random.stateless_normal(value.shape, fold_in(seed, i))
      for i, (value, deviation) in enumerate(zip(sums, deviations, strict=True))
    ]
    result, state, _ = self._query.get_noised_result(
      tf.nest.pack_sequence_as(sample_state, noised), global_state.query
    )
    event = dp_accounting.GaussianDpEvent(tf.constant(self._noise_multiplier))
    state = _NoiseState(state, global_state.seed, global_state.round + 1)
    return result, state, event

  def derive_metrics(self, global_state):
    return self._query.derive_metrics(global_state.query)


def _clipping_norm(state) -> tf.Tensor:
  """Of the state of a normalised query, with fixed or adaptive clipping."""
  clipped = state.numerator_state
  return getattr(clipped, 'sum_state', clipped).l2_norm_clip
