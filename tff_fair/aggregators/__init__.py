"""Aggregation rules as factories that compose into any TFF pipeline."""

from tff_fair.aggregators.model_weights import ModelWeightsFactory
from tff_fair.aggregators.samme import SammeAlphaFactory
from tff_fair.aggregators.samme import samme_alpha

__all__ = ['ModelWeightsFactory', 'SammeAlphaFactory', 'samme_alpha']
