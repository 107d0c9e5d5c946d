"""The papers' methods and their comparators, as TFF learning processes."""

from tff_fair.algorithms.cffl import build_cffl
from tff_fair.algorithms.composition import FairLearningProcess
from tff_fair.algorithms.composition import PersonalizedLearningProcess
from tff_fair.algorithms.corefed import build_corefed
from tff_fair.algorithms.ditto import build_ditto
from tff_fair.algorithms.fed_avg import build_fed_avg
from tff_fair.algorithms.fedaboost import build_fedaboost
from tff_fair.algorithms.round_robin import build_dssgd
from tff_fair.algorithms.round_robin import build_round_robin_fed_avg
from tff_fair.algorithms.standalone import build_standalone

__all__ = [
  'FairLearningProcess',
  'PersonalizedLearningProcess',
  'build_cffl',
  'build_corefed',
  'build_ditto',
  'build_dssgd',
  'build_fed_avg',
  'build_fedaboost',
  'build_round_robin_fed_avg',
  'build_standalone',
]
