"""What FeDABoost's paper claims of its three experiments."""

from tff_fair.launchers.claiming import definitions
from tff_fair.launchers.claiming.definitions import Claim

_FIGURES, _TABLE = 'fedaboost_text', 'fedaboost_table1'
_SCRIPT = definitions.Reading(
  "that of the authors' script: the cohort's size as the number of classes, a"
  ' constant gamma',
  {'fedaboost': 'fedaboost_script'},
)
# The paper does not say over which labels a client's F1 is a mean.
_MEDIANS = ('client_f1_median', 'client_f1_own_labels_median')
_VARIANCES = ('client_f1_variance', 'client_f1_own_labels_variance')
_BOTH = 'A client has two F1, over the labels that occur and over its own.'


def _claim(place, text, table, cell, baselines, metrics, above=True, note=''):
  return Claim(
    place=place,
    text=text,
    comparisons=definitions.versus(
      table, [cell], ['fedaboost'], baselines, metrics, above=above
    ),
    reading=_SCRIPT,
    note=note,
  )


def _on_cifar(share):
  cell = f'cifar_{share}'
  where = f'on CIFAR-10 with {share} % of the clients a round'
  for baseline, title in (('fed_avg', 'FedAvg'), ('ditto', 'Ditto')):
    yield _claim(
      'table 1',
      f"The global F1 is above {title}'s {where}.",
      _TABLE,
      cell,
      [baseline],
      ['global_f1'],
    )
    yield _claim(
      'table 1',
      f"The loss is below {title}'s {where}.",
      _TABLE,
      cell,
      [baseline],
      ['global_loss'],
      above=False,
    )


CLAIMS = (
  _claim(
    'experiment 1, text',
    "The global F1 is above FedAvg's on MNIST.",
    _FIGURES,
    'mnist',
    ['fed_avg'],
    ['global_f1'],
  ),
  _claim(
    'experiment 1, text',
    "The median of the clients' F1 is above FedAvg's on MNIST.",
    _FIGURES,
    'mnist',
    ['fed_avg'],
    _MEDIANS,
    note=_BOTH,
  ),
  _claim(
    'experiment 1, text',
    "The variance of the clients' F1 is below FedAvg's on MNIST.",
    _FIGURES,
    'mnist',
    ['fed_avg'],
    _VARIANCES,
    above=False,
    note=_BOTH,
  ),
  _claim(
    'experiment 1, ablation',
    'Boosting adds to the global F1 on MNIST.',
    _FIGURES,
    'mnist',
    ['fedaboost_without_boosting'],
    ['global_f1'],
    note='The paper has a curve and no number.',
  ),
  _claim(
    'experiment 2, text',
    "The median of the clients' F1 is above FedAvg's and Ditto's on FEMNIST.",
    _FIGURES,
    'femnist_2',
    ['fed_avg', 'ditto'],
    _MEDIANS,
    note=_BOTH,
  ),
  _claim(
    'experiment 2, text',
    "The variance of the clients' F1 is below FedAvg's and Ditto's on FEMNIST.",
    _FIGURES,
    'femnist_2',
    ['fed_avg', 'ditto'],
    _VARIANCES,
    above=False,
    note=_BOTH,
  ),
  *(claim for share in (20, 40, 60) for claim in _on_cifar(share)),
)
