"""Methods that compute as code which the papers' authors published.

An entry is one method of one state of a public repository, as far as it
computes something else than our method or baseline; `launchers/scripts` has
the modules. No group has them, and `--methods=all` leaves them out.
"""

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

_FEDABOOST_MODULE = 'tff_fair.launchers.scripts.fedaboost_8c54575c'
_FEDABOOST = (
  entry.Method(
    name='fedaboost_cohort_script',
    title='FeDABoost, C = cohort',
    summary='FeDABoost without boosting, and with the number of clients in the'
    ' round for that of classes, as in an older state of its public code',
    rule='SammeAlphaFactory',
    builder='tff_fair.launchers.scripts.fedaboost_10bd01a1:build_fedaboost',
  ),
  entry.Method(
    name='fedaboost_script',
    title='FeDABoost, script',
    summary='FeDABoost as its public code computes it: 1 - macro-F1 as the'
    ' error, the softmax of clipped coefficients as weights, gradients of a'
    ' bounded norm',
    builder=f'{_FEDABOOST_MODULE}:build_fedaboost',
  ),
  entry.Method(
    name='fed_avg_fedaboost_script',
    title="FedAvg, FeDABoost's script",
    summary="FedAvg as FeDABoost's public code computes it: gradients of a"
    ' bounded norm, and local training that ends when the loss hardly falls',
    builder=f'{_FEDABOOST_MODULE}:build_fed_avg',
  ),
  entry.Method(
    name='ditto_fedaboost_script',
    title="Ditto, FeDABoost's script",
    summary="Ditto as FeDABoost's public code computes it: personal models are"
    ' pulled towards what the client has just trained',
    flags=(
      flag_types.Choice(
        'personal_optimizer',
        'adam',
        'Optimiser of the personal models.',
        argument='personal_optimizer',
        choices=('sgd', 'adam', 'adamw'),
      ),
      flag_types.Real(
        'personal_learning_rate',
        0.001,
        'Its learning rate.',
        argument='personal_optimizer',
        minimum=0,
      ),
      flag_types.Real(
        'personal_weight_decay',
        0.0001,
        'Its weight decay.',
        argument='personal_optimizer',
        minimum=0,
      ),
    ),
    builder=f'{_FEDABOOST_MODULE}:build_ditto',
  ),
)

_COREFED = (
  entry.Method(
    name='corefed_script',
    title='CoRe-Fed, script',
    summary='FedAvg with weights that are nearly equal, by the cosine of a'
    " client's embedding with the first client's",
    rule='GradientReuseFactory',
    builder='tff_fair.launchers.scripts.corefed_c6a8c8cf:build_corefed',
  ),
  entry.Method(
    name='ditto_corefed_script',
    title="Ditto, CoRe-Fed's script",
    summary='no personal model: two steps on each minibatch, the second with'
    ' the pull; the server moves towards one client after the other',
    rule='InTurnFactory',
    builder='tff_fair.launchers.scripts.ditto_7b6e0b7f:build_ditto',
  ),
)

_CFFL = (
  entry.Method(
    name='cffl_script',
    title='CFFL, script',
    summary='CFFL as the public code of its authors computes it',
    rule='ScriptRewards',
    builder='tff_fair.launchers.scripts.cffl_a4a9158c:build_cffl',
    ignores=entry.NO_GLOBAL_MODEL,
  ),
)

_FEDAKD_MODULE = 'tff_fair.launchers.scripts.fedakd_6bd41ca1'
_FEDAKD = (
  entry.Method(
    name='cffl_fedakd_script',
    title="CFFL, FedAKD's script",
    summary='all clients train one model, and keep what they trained plus their'
    ' uploads and the aggregate; nothing is masked',
    rule='UnmaskedRewardFactory',
    ignores=entry.NO_GLOBAL_MODEL,
    builder=f'{_FEDAKD_MODULE}:build_cffl',
  ),
  entry.Method(
    name='cgsv_fedakd_script',
    title="CGSV, FedAKD's script",
    summary='all clients train one model; what they contribute is the cosine'
    ' with the mean update, and the reward that share of its largest entries',
    rule='MeanRewardFactory',
    ignores=entry.NO_GLOBAL_MODEL,
    builder=f'{_FEDAKD_MODULE}:build_cgsv',
  ),
  entry.Method(
    name='fed_ave_fedakd_script',
    title="FedAVE, FedAKD's script",
    summary='all clients train one model; reputations are means of validation'
    ' accuracies, and uploads and rewards the largest entries',
    rule='AccuracyRewardFactory',
    ignores=entry.NO_GLOBAL_MODEL,
    builder=f'{_FEDAKD_MODULE}:build_fed_ave',
  ),
  entry.Method(
    name='fed_sac_fedakd_script',
    title="FedSAC, FedAKD's script",
    summary='FedAvg with equal weights, but for one round in which clients that'
    ' contribute less train the most important neurons alone',
    rule='EntrywiseMeanFactory',
    builder=f'{_FEDAKD_MODULE}:build_fed_sac',
  ),
)

METHODS: tuple[entry.Method, ...] = (
  *_FEDABOOST,
  *_CFFL,
  *_COREFED,
  *_FEDAKD,
)
