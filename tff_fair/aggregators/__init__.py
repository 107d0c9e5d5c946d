"""Aggregation rules as factories that compose into any TFF pipeline."""

from tff_fair.aggregators.clustered_mean import ClusteredMeanFactory
from tff_fair.aggregators.cosine_shapley import CosineShapleyFactory
from tff_fair.aggregators.entrywise_mean import EntrywiseMeanFactory
from tff_fair.aggregators.fair_averaging import FairAveragingFactory
from tff_fair.aggregators.gradient_reuse import GradientReuseFactory
from tff_fair.aggregators.group_gap import GroupGapFactory
from tff_fair.aggregators.largest_values import LargestValuesFactory
from tff_fair.aggregators.largest_values import keep_largest
from tff_fair.aggregators.loss_spread import LossSpreadFactory
from tff_fair.aggregators.mean_drift import MeanDriftFactory
from tff_fair.aggregators.min_norm import MinNormFactory
from tff_fair.aggregators.model_weights import ModelWeightsFactory
from tff_fair.aggregators.private_mean import private_mean_factory
from tff_fair.aggregators.q_fair import QFairFactory
from tff_fair.aggregators.reputation import ReputationMaskedFactory
from tff_fair.aggregators.robust import robust_factory
from tff_fair.aggregators.samme import SammeAlphaFactory
from tff_fair.aggregators.samme import samme_alpha
from tff_fair.aggregators.tilted_mean import TiltedMeanFactory
from tff_fair.aggregators.validated_rewards import ValidatedRewardFactory

__all__ = [
  'ClusteredMeanFactory',
  'CosineShapleyFactory',
  'EntrywiseMeanFactory',
  'FairAveragingFactory',
  'GradientReuseFactory',
  'GroupGapFactory',
  'LargestValuesFactory',
  'LossSpreadFactory',
  'MeanDriftFactory',
  'MinNormFactory',
  'ModelWeightsFactory',
  'QFairFactory',
  'ReputationMaskedFactory',
  'SammeAlphaFactory',
  'TiltedMeanFactory',
  'ValidatedRewardFactory',
  'keep_largest',
  'private_mean_factory',
  'robust_factory',
  'samme_alpha',
]
