"""The methods that the papers compare with, and others for their questions."""

import math

from tff_fair.launchers.options import flag_types
from tff_fair.launchers.options.methods import entry

_NO_METRIC_LOSS = ({'metric_weight': 0.0},)

METHODS = (
  entry.Method(
    name='afl',
    title='AFL',
    summary='for the worst mixture of the clients: their weights rise with'
    ' their losses',
    sends='the loss of the received model',
    groups=('fair',),
    tuned={'mixture_rate': (0.01, 0.001, 0.1)},
  ),
  entry.Method(
    name='cgsv',
    title='CGSV',
    summary='contribution is the cosine with the aggregate; the reward is that'
    ' share of its largest entries',
    rule='CosineShapleyFactory',
    compared_with=('FedAKD',),
    ignores=entry.NO_GLOBAL_MODEL,
    groups=('fair', 'personal'),
    tuned={'update_length': (0.5, 1.0, 2.0), 'altruism': (1.0, 2.0)},
  ),
  entry.Method(
    name='ditto',
    title='Ditto',
    summary='FedAvg, and a personal model for each client',
    sends='',
    compared_with=('FeDABoost', 'CoRe-Fed'),
    flags=(
      flag_types.Choice(
        'personal_optimizer',
        'sgd',
        'Optimiser of the personal models.',
        argument='personal_optimizer',
        choices=('sgd', 'adam', 'adamw'),
      ),
      flag_types.Real(
        'personal_learning_rate',
        None,
        'Learning rate of the personal models; by default that of the clients.',
        argument='personal_optimizer',
        follows='client_learning_rate',
        minimum=0,
      ),
      flag_types.Real(
        'personal_weight_decay',
        0.0,
        'Weight decay of the personal models.',
        argument='personal_optimizer',
        minimum=0,
      ),
    ),
    groups=('fair', 'personal'),
    tuned={
      'personal_learning_rate': (0.01, 0.05, 0.2),
      'proximal_weight': (0.1, 1.0),
    },
  ),
  entry.Method(
    name='dssgd',
    title='DSSGD',
    summary='in turn, only the largest values of an update',
    rule='LargestValuesFactory',
    compared_with=('CFFL',),
    ignores={
      **entry.NO_GLOBAL_MODEL,
      'client_fraction': {},
    },
    takes_turns=True,
    groups=('personal',),
    tuned={'clip_value': (0.01, 0.1, 1.0), 'upload_rate': (1.0, 0.1)},
  ),
  entry.Method(
    name='fair_fed',
    title='FairFed',
    summary='clients count less, the further their gap between two groups of'
    ' people is from that of all',
    rule='GroupGapFactory',
    groups=('fair',),
    tuned={'fairness_budget': (1.0, 0.3, 0.1)},
  ),
  entry.Method(
    name='fed_as',
    title='FedAS',
    summary='the shared feature extractor is aligned to each client before use',
    sends='the trace of their Fisher information',
    compared_with=('FedAKD',),
    groups=('personal',),
    tuned={'alignment_learning_rate': (0.01, 0.1, 0.001)},
  ),
  entry.Method(
    name='fed_ave',
    title='FedAVE',
    summary='as CGSV, but by validation accuracy and by how typical the losses'
    ' of a client are',
    rule='ValidatedRewardFactory',
    compared_with=('FedAKD',),
    ignores=entry.NO_GLOBAL_MODEL,
    groups=('fair', 'personal'),
    tuned={'update_length': (0.5, 1.0, 2.0), 'altruism': (1.0, 2.0)},
  ),
  entry.Method(
    name='fed_avg',
    title='FedAvg',
    summary='mean by number of examples',
    sends='',
    compared_with=('all',),
  ),
  entry.Method(
    name='fed_dc',
    title='FedDC',
    summary='clients learn how far they drift, and correct for it',
    rule='MeanDriftFactory',
    compared_with=('FedAKD',),
    tuned={'drift_weight': (1.0, 0.1, 0.01)},
  ),
  entry.Method(
    name='fed_fv',
    title='FedFV',
    summary='updates are freed of conflicts with each other and with those of'
    ' absent clients',
    rule='FairAveragingFactory',
    groups=('fair',),
    tuned={'keep_share': (0.1, 0.2, 0.5)},
  ),
  entry.Method(
    name='fed_mdfg',
    title='FedMDFG',
    summary='as FedMGDA+, with guidance towards equal losses and a line search'
    ' at the clients',
    rule='its own two exchanges a round',
    compared_with=('CoRe-Fed',),
    # Clients send gradients of the received model and do not train.
    ignores={
      'local_epochs': {},
      'client_optimizer': {},
      'client_weight_decay': {},
    },
    groups=('fair',),
    tuned={'angle': (math.pi / 180, math.pi / 18, math.pi / 4)},
  ),
  entry.Method(
    name='fed_mgda',
    title='FedMGDA+',
    summary='a common direction of descent for all clients',
    rule='MinNormFactory',
    compared_with=('CoRe-Fed',),
    groups=('fair',),
    tuned={'deviation': (1.0, 0.5, 0.1)},
  ),
  entry.Method(
    name='fed_mpr',
    title='FedMPR',
    summary='clients prune their smallest weights',
    sends='',
    compared_with=('FedAKD',),
    tuned={'prune_fraction': (0.1, 0.3, 0.5)},
  ),
  entry.Method(
    name='fed_prox',
    title='FedProx',
    summary='clients stay near the received model',
    sends='',
    compared_with=('FedAKD',),
    tuned={'proximal_weight': (0.01, 0.1, 1.0)},
  ),
  entry.Method(
    name='fed_rdn',
    title='FedRDN',
    summary='images normalised by the statistics of a randomly drawn client',
    sends='the mean and the standard deviation of their images',
    compared_with=('CoRe-Fed',),
    # Test data are normalised by the statistics of the client that has them.
    required={'split': 'client'},
    without_flag=('epsilon',),
  ),
  entry.Method(
    name='fed_rep',
    title='FedRep',
    summary='a shared body below a head for each client, trained one after the'
    ' other',
    groups=('personal',),
    tuned={'head_epochs': (10, 5, 1)},
  ),
  entry.Method(
    name='fed_sac',
    title='FedSAC',
    summary='clients that contribute less train a submodel of less important'
    ' neurons',
    rule='EntrywiseMeanFactory',
    compared_with=('FedAKD',),
    ignores=entry.NO_GLOBAL_MODEL,
    groups=('fair', 'personal'),
    tuned={'contribution_sharpness': (2.0, 0.5, 5.0)},
  ),
  entry.Method(
    name='gifair_fl',
    title='GIFAIR-FL',
    summary="the spread of the clients' losses is penalised: weights by their"
    ' ranks',
    rule='LossSpreadFactory',
    groups=('fair',),
    tuned={'spread_share': (0.1, 0.5, 0.9)},
  ),
  entry.Method(
    name='moon',
    title='MOON',
    summary='embeddings near those of the received model, away from those of'
    " the client's last model",
    sends='',
    compared_with=('FedQuad',),
    tuned={'contrastive_weight': (5.0, 1.0, 0.1), 'temperature': (0.5, 0.1)},
  ),
  entry.Method(
    name='pfed_ck',
    title='pFedCK',
    summary='a personal and a shared model teach each other; the shared models'
    ' are averaged within clusters',
    rule='ClusteredMeanFactory',
    compared_with=('FedAKD',),
    ignores=entry.NO_GLOBAL_MODEL,
    groups=('personal',),
    tuned={'knowledge_weight': (1.0, 0.3, 0.1), 'num_clusters': (3, 2)},
  ),
  entry.Method(
    name='prop_fair',
    title='PropFair',
    summary='clients pull more, the nearer their losses are to a bound',
    sends='',
    groups=('fair',),
    tuned={'loss_bound': (2.0, 3.0, 5.0)},
  ),
  entry.Method(
    name='q_fed_avg',
    title='q-FedAvg',
    summary='clients with high losses count for more',
    rule='QFairFactory',
    compared_with=('CoRe-Fed',),
    groups=('fair',),
    tuned={'q': (0.1, 1.0, 5.0)},
  ),
  entry.Method(
    name='quadruplet_fl',
    title='QuadrupletFL',
    summary='the original quadruplet loss',
    sends='',
    compared_with=('FedQuad',),
    flags=(
      flag_types.Real(
        'margin_1',
        1.0,
        'Margin of the first hinge.',
        symbol='m₁',
        argument='margins',
        minimum=0,
        unless=_NO_METRIC_LOSS,
      ),
      flag_types.Real(
        'margin_2',
        0.5,
        'Margin of the second hinge.',
        symbol='m₂',
        argument='margins',
        minimum=0,
        # Two classes leave no second negative.
        unless=({'task': 'adult'}, *_NO_METRIC_LOSS),
      ),
    ),
    tuned={'metric_weight': (0.5, 0.1, 0.9), 'margin_1': (1.0, 0.5)},
  ),
  entry.Method(
    name='round_robin_fed_avg',
    title='FedAvg, in turn',
    summary='clients upload and download in turn',
    rule='tff.aggregators.SumFactory',
    compared_with=('CFFL',),
    ignores={
      **entry.NO_GLOBAL_MODEL,
      'client_fraction': {},
    },
    takes_turns=True,
    groups=('personal',),
  ),
  entry.Method(
    name='scaffold',
    title='SCAFFOLD',
    summary='control variates correct the drift of clients',
    sends='the change of their control variates',
    compared_with=('FedAKD',),
    tuned={'server_learning_rate': (1.0, 0.5)},
  ),
  entry.Method(
    name='standalone',
    title='Standalone',
    summary='every client trains alone',
    rule='none',
    compared_with=('CFFL', 'FedAKD'),
    ignores={
      **entry.NO_GLOBAL_MODEL,
      # Nothing is sent.
      'max_update_norm': {},
    },
    groups=('personal',),
  ),
  entry.Method(
    name='supcon_fl',
    title='SupConFL',
    summary='supervised contrastive loss',
    sends='',
    compared_with=('FedQuad',),
    tuned={'metric_weight': (0.5, 0.1, 0.9), 'temperature': (0.07, 0.2)},
  ),
  entry.Method(
    name='term',
    title='TERM',
    summary='weights of clients grow exponentially with their losses',
    rule='TiltedMeanFactory',
    groups=('fair',),
    tuned={'tilt': (0.1, 1.0, 5.0)},
  ),
  entry.Method(
    name='triplet_fl',
    title='TripletFL',
    summary='triplet loss',
    sends='',
    compared_with=('FedQuad',),
    tuned={'metric_weight': (0.5, 0.1, 0.9), 'margin': (1.0, 0.5)},
  ),
)
