"""What the papers' authors published as code, as methods to compare with.

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
    title='FeDABoost, C = cohort, constant gamma',
    summary='FeDABoost without boosting, and with the number of clients in the'
    ' round for that of classes, as in an older state of its public code',
    rule='SammeAlphaFactory',
    builder='tff_fair.launchers.scripts.fedaboost_10bd01a1:build_fedaboost',
  ),
  entry.Method(
    name='fedaboost_script',
    title='FeDABoost (script)',
    summary='FeDABoost as its public code computes it: 1 - macro-F1 as the'
    ' error, the softmax of clipped coefficients as weights, gradients of a'
    ' bounded norm',
    builder=f'{_FEDABOOST_MODULE}:build_fedaboost',
  ),
  entry.Method(
    name='fed_avg_fedaboost_script',
    title="FedAvg (FeDABoost's script)",
    summary="FedAvg as FeDABoost's public code computes it: gradients of a"
    ' bounded norm, and local training that ends when the loss hardly falls',
    builder=f'{_FEDABOOST_MODULE}:build_fed_avg',
  ),
  entry.Method(
    name='ditto_fedaboost_script',
    title="Ditto (FeDABoost's script)",
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

METHODS: tuple[entry.Method, ...] = (*_FEDABOOST,)
