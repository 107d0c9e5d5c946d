"""The papers' methods and their baselines, as TFF learning processes."""

from tff_fair.algorithms.attacks import with_attackers
from tff_fair.algorithms.baselines.afl import build_afl
from tff_fair.algorithms.baselines.cgsv import build_cgsv
from tff_fair.algorithms.baselines.ditto import build_ditto
from tff_fair.algorithms.baselines.fair_fed import build_fair_fed
from tff_fair.algorithms.baselines.fed_as import build_fed_as
from tff_fair.algorithms.baselines.fed_ave import build_fed_ave
from tff_fair.algorithms.baselines.fed_avg import build_fed_avg
from tff_fair.algorithms.baselines.fed_dc import build_fed_dc
from tff_fair.algorithms.baselines.fed_fv import build_fed_fv
from tff_fair.algorithms.baselines.fed_mdfg import build_fed_mdfg
from tff_fair.algorithms.baselines.fed_mgda import build_fed_mgda
from tff_fair.algorithms.baselines.fed_mpr import build_fed_mpr
from tff_fair.algorithms.baselines.fed_prox import build_fed_prox
from tff_fair.algorithms.baselines.fed_rdn import build_channel_statistics
from tff_fair.algorithms.baselines.fed_rdn import build_fed_rdn
from tff_fair.algorithms.baselines.fed_rdn import normalize_for_client
from tff_fair.algorithms.baselines.fed_rep import build_fed_rep
from tff_fair.algorithms.baselines.fed_sac import build_fed_sac
from tff_fair.algorithms.baselines.gifair_fl import build_gifair_fl
from tff_fair.algorithms.baselines.metric_learning import build_quadruplet_fl
from tff_fair.algorithms.baselines.metric_learning import build_supcon_fl
from tff_fair.algorithms.baselines.metric_learning import build_triplet_fl
from tff_fair.algorithms.baselines.moon import build_moon
from tff_fair.algorithms.baselines.pfed_ck import build_pfed_ck
from tff_fair.algorithms.baselines.prop_fair import build_prop_fair
from tff_fair.algorithms.baselines.q_fed_avg import build_q_fed_avg
from tff_fair.algorithms.baselines.round_robin import build_dssgd
from tff_fair.algorithms.baselines.round_robin import build_round_robin_fed_avg
from tff_fair.algorithms.baselines.scaffold import build_scaffold
from tff_fair.algorithms.baselines.standalone import build_standalone
from tff_fair.algorithms.baselines.term import build_term
from tff_fair.algorithms.cffl import build_cffl
from tff_fair.algorithms.class_centroids import build_class_centroids
from tff_fair.algorithms.corefed import build_corefed
from tff_fair.algorithms.fedaboost import build_fedaboost
from tff_fair.algorithms.fedakd import build_fedakd
from tff_fair.algorithms.fedquad import build_fedquad
from tff_fair.algorithms.processes import FairLearningProcess
from tff_fair.algorithms.processes import PersonalizedLearningProcess
from tff_fair.algorithms.train_metrics import with_train_metrics

__all__ = [
  'FairLearningProcess',
  'PersonalizedLearningProcess',
  'build_afl',
  'build_cffl',
  'build_cgsv',
  'build_channel_statistics',
  'build_class_centroids',
  'build_corefed',
  'build_ditto',
  'build_dssgd',
  'build_fair_fed',
  'build_fed_as',
  'build_fed_ave',
  'build_fed_avg',
  'build_fed_dc',
  'build_fed_fv',
  'build_fed_mdfg',
  'build_fed_mgda',
  'build_fed_mpr',
  'build_fed_prox',
  'build_fed_rdn',
  'build_fed_rep',
  'build_fed_sac',
  'build_fedaboost',
  'build_fedakd',
  'build_fedquad',
  'build_gifair_fl',
  'build_moon',
  'build_pfed_ck',
  'build_prop_fair',
  'build_q_fed_avg',
  'build_quadruplet_fl',
  'build_round_robin_fed_avg',
  'build_scaffold',
  'build_standalone',
  'build_supcon_fl',
  'build_term',
  'build_triplet_fl',
  'normalize_for_client',
  'with_attackers',
  'with_train_metrics',
]
