"""The papers' methods and their comparators, as TFF learning processes."""

from tff_fair.algorithms.composition import PersonalizedLearningProcess
from tff_fair.algorithms.ditto import build_ditto
from tff_fair.algorithms.fed_avg import build_fed_avg
from tff_fair.algorithms.fedaboost import build_fedaboost

__all__ = [
  'PersonalizedLearningProcess',
  'build_ditto',
  'build_fed_avg',
  'build_fedaboost',
]
