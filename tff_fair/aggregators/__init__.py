"""Aggregation rules as factories that compose into any TFF pipeline."""

from tff_fair.aggregators.gradient_reuse import GradientReuseFactory
from tff_fair.aggregators.largest_values import LargestValuesFactory
from tff_fair.aggregators.largest_values import keep_largest
from tff_fair.aggregators.min_norm import MinNormFactory
from tff_fair.aggregators.model_weights import ModelWeightsFactory
from tff_fair.aggregators.q_fair import QFairFactory
from tff_fair.aggregators.reputation import ReputationMaskedFactory
from tff_fair.aggregators.samme import SammeAlphaFactory
from tff_fair.aggregators.samme import samme_alpha

__all__ = [
  'GradientReuseFactory',
  'LargestValuesFactory',
  'MinNormFactory',
  'ModelWeightsFactory',
  'QFairFactory',
  'ReputationMaskedFactory',
  'SammeAlphaFactory',
  'keep_largest',
  'samme_alpha',
]
