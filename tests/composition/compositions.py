"""The factories and builders of TFF that compose with ours, and why not.

The table as data: `matrix_test` runs it, `write_matrix` prints it.
"""

import collections
from collections.abc import Callable, Mapping
import dataclasses
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import aggregators

NUM_CLIENTS = 3
# The clients of the two rounds.
COHORTS = ((0, 1, 2), (0, 2))

# Head -> the name in `tff.aggregators` of the factory around ours,
WRAPPERS = {
  'clip': 'clipping_factory',
  'zero': 'zeroing_factory',
  'measure': 'add_measurements',
}
# of the factory that replaces the sums inside ours,
SUMS = {
  'DP': 'DifferentiallyPrivateFactory',
  'secure': 'SecureSumFactory',
  'compress': 'EncodedSumFactory',
}
# and in `tff.learning.algorithms` of the builder that takes ours as
# `model_aggregator`.
BUILDERS = {
  'FedAvg': 'build_weighted_fed_avg',
  'FedProx': 'build_weighted_fed_prox',
  'MimeLite': 'build_weighted_mime_lite',
}
COLUMNS = (*WRAPPERS, *SUMS, *BUILDERS)

# Why a pair does not compose, or a remark on one that does.
SINGLE = (
  'The server compares single updates. There is no sum inside that could be'
  ' made private, secure or smaller.'
)
CLIENT_ID = (
  "The weight holds the client's id and more about it; the clients of TFF's"
  ' builders send a number. Use [a client work that sends'
  ' it](#a-rule-that-knows-who-sent-what).'
)
LOSS = (
  "The weight holds the client's loss; the clients of TFF's builders send a"
  ' number.'
)
MASK = (
  "The weight is a mask, as large as the update; the clients of TFF's builders"
  ' send a number.'
)
STATISTICS = (
  "Values are trainable and non-trainable weights; the clients of TFF's"
  ' builders send the trainable ones only.'
)
DIRECTIONS = (
  'Only the directions of updates count, so clipping changes nothing.'
)
COUNTS = (
  'Updates and weights are summed securely; the metrics of the rule, how many'
  ' clients count and their total weight, are plain sums of numbers.'
)
GROUPS = (
  'Updates and weights are summed securely; the counts of groups of people that'
  ' are compared with each other are not, nor are the metrics of the rule.'
)
LOSSES = (
  'Updates and weights are summed securely; the losses that are compared with'
  ' each other are not, nor are the metrics of the rule.'
)
REASONS = (SINGLE, CLIENT_ID, LOSS, MASK, STATISTICS)
REMARKS = (DIRECTIONS, COUNTS, LOSSES, GROUPS)


class Sums(NamedTuple):
  """Factories of TFF that replace sums of updates, weights and ones."""

  value: tff.aggregators.UnweightedAggregationFactory | None = None
  weight: tff.aggregators.UnweightedAggregationFactory | None = None
  count: tff.aggregators.UnweightedAggregationFactory | None = None

  @property
  def mean(self) -> tff.aggregators.MeanFactory:
    """The weighted mean made of them."""
    return tff.aggregators.MeanFactory(self.value, self.weight)


@dataclasses.dataclass(frozen=True, eq=False)
class Row:
  """A factory of ours, what it aggregates, and notes by column."""

  factory: type[tff.aggregators.WeightedAggregationFactory]
  build: Callable[[Sums], tff.aggregators.WeightedAggregationFactory]
  weight: Callable[[int, Any], Any]  # Of a client's id and value.
  value: Callable[[tuple[Any, Any]], Any] = lambda pair: pair
  reasons: Mapping[str, str] = dataclasses.field(default_factory=dict)
  remarks: Mapping[str, str] = dataclasses.field(default_factory=dict)


def _number(client_id, _):
  return np.float32(1 + client_id)


def _struct(**parts):
  """A weight of numbers and the client's id."""

  def weight(client_id, value):
    entries = {
      name: part(client_id, value) if callable(part) else part
      for name, part in parts.items()
    }
    return collections.OrderedDict(client_id=np.int32(client_id), **entries)

  return weight


def _mask(client_id, value):
  """Every client has some entries, and none has all."""
  return tf.nest.map_structure(
    lambda v: np.float32(np.arange(v.size) % NUM_CLIENTS != client_id).reshape(
      v.shape
    ),
    value,
  )


def _score(weights):
  """In place of an accuracy; differs for updates of different size."""
  return tf.sigmoid(tf.reduce_sum(weights[0]))


INITIAL = (np.zeros([2, 2], np.float32), np.zeros([2], np.float32))
_SINGLE = dict.fromkeys(SUMS, SINGLE)
_BY_CLIENT = _SINGLE | dict.fromkeys(BUILDERS, CLIENT_ID)

ROWS = (
  Row(
    aggregators.SammeAlphaFactory,
    lambda sums: aggregators.SammeAlphaFactory(sums.mean),
    _number,
    remarks={'secure': COUNTS},
  ),
  Row(
    aggregators.ReputationMaskedFactory,
    lambda sums: aggregators.ReputationMaskedFactory(
      INITIAL, _score, num_clients=NUM_CLIENTS
    ),
    _struct(amount=np.int32(5), accepted=np.float32(1)),
    reasons=_BY_CLIENT,
  ),
  Row(
    aggregators.GradientReuseFactory,
    lambda sums: aggregators.GradientReuseFactory(NUM_CLIENTS),
    _struct(accepted=np.float32(1), embedding=lambda i, _: np.float32([1, i])),
    reasons=_BY_CLIENT,
  ),
  Row(
    aggregators.FairAveragingFactory,
    lambda sums: aggregators.FairAveragingFactory(NUM_CLIENTS),
    _struct(accepted=np.float32(1), loss=lambda i, _: np.float32(2 + i)),
    reasons=_BY_CLIENT,
  ),
  Row(
    aggregators.LargestValuesFactory,
    lambda sums: aggregators.LargestValuesFactory(0.5, sums.mean),
    _number,
    remarks={'secure': COUNTS},
  ),
  Row(
    aggregators.QFairFactory,
    lambda sums: aggregators.QFairFactory(0.5, sums.mean),
    lambda i, _: collections.OrderedDict(
      loss=np.float32(2 + i), learning_rate=np.float32(1)
    ),
    reasons=dict.fromkeys(BUILDERS, LOSS),
    remarks={'secure': COUNTS},
  ),
  Row(
    aggregators.TiltedMeanFactory,
    lambda sums: aggregators.TiltedMeanFactory(0.5, sums.mean),
    lambda i, _: collections.OrderedDict(
      loss=np.float32(2 + i), num_examples=np.float32(1)
    ),
    reasons=dict.fromkeys(BUILDERS, LOSS),
    remarks={'secure': LOSSES},
  ),
  Row(
    aggregators.LossSpreadFactory,
    lambda sums: aggregators.LossSpreadFactory(0.5, sums.mean),
    lambda i, _: collections.OrderedDict(
      group=np.int32(i), loss=np.float32(2 + i), num_examples=np.float32(1)
    ),
    reasons=dict.fromkeys(BUILDERS, LOSS),
    remarks={'secure': LOSSES},
  ),
  Row(
    aggregators.GroupGapFactory,
    lambda sums: aggregators.GroupGapFactory(
      NUM_CLIENTS, inner_agg_factory=sums.mean
    ),
    _struct(
      num_examples=np.float32(5),
      num_correct=np.float32(3),
      members=np.float32([2, 1]),
      selected=np.float32([1, 1]),
    ),
    reasons=dict.fromkeys(BUILDERS, CLIENT_ID),
    remarks={'secure': GROUPS},
  ),
  Row(
    aggregators.MinNormFactory,
    lambda sums: aggregators.MinNormFactory(),
    _number,
    reasons=_SINGLE,
    remarks={'clip': DIRECTIONS},
  ),
  Row(
    aggregators.CosineShapleyFactory,
    lambda sums: aggregators.CosineShapleyFactory(NUM_CLIENTS),
    _struct(num_examples=np.float32(5)),
    reasons=_BY_CLIENT,
    remarks={'clip': DIRECTIONS},
  ),
  Row(
    aggregators.ValidatedRewardFactory,
    lambda sums: aggregators.ValidatedRewardFactory(
      _score, lambda weights: weights[1], num_clients=NUM_CLIENTS
    ),
    _struct(
      num_examples=np.float32(5),
      received=lambda _, value: value,
      losses=lambda i, _: np.float32([1 + i, 2]),
      num_losses=np.int32(2),
    ),
    reasons=_BY_CLIENT,
  ),
  Row(
    aggregators.EntrywiseMeanFactory,
    lambda sums: aggregators.EntrywiseMeanFactory(sums.value, sums.weight),
    _mask,
    reasons=dict.fromkeys(BUILDERS, MASK),
    remarks={'secure': COUNTS},
  ),
  Row(
    aggregators.ClusteredMeanFactory,
    lambda sums: aggregators.ClusteredMeanFactory(NUM_CLIENTS, num_clusters=2),
    _struct(num_examples=np.float32(5), change=lambda _, value: value),
    reasons=_BY_CLIENT,
  ),
  Row(
    aggregators.MeanDriftFactory,
    lambda sums: aggregators.MeanDriftFactory(
      NUM_CLIENTS, sums.value, sums.count
    ),
    _number,
    remarks={'secure': COUNTS},
  ),
  Row(
    aggregators.ModelWeightsFactory,
    lambda sums: aggregators.ModelWeightsFactory(sums.mean, sums.mean),
    _number,
    value=lambda pair: tff.learning.models.ModelWeights([*pair], [2 * pair[1]]),
    reasons=dict.fromkeys(BUILDERS, STATISTICS),
  ),
)


# A sum, a table by client, both with a state, and a structure of two rules:
# these run on the runtime `native`, too.
ON_NATIVE = (
  aggregators.SammeAlphaFactory,
  aggregators.ReputationMaskedFactory,
  aggregators.MeanDriftFactory,
  aggregators.ModelWeightsFactory,
)


def composed(column: str) -> list[Row]:
  """The rows that compose with a column."""
  return [row for row in ROWS if column not in row.reasons]
