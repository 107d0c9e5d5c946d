"""What CoRe-Fed's paper claims of accuracy, distances and its parts."""

from tff_fair.launchers.claiming import definitions
from tff_fair.launchers.claiming.definitions import Claim

_TABLE, _TRADE_OFF = 'corefed_table1', 'corefed_table3'
_ABLATION = 'corefed_ablation'
_SCRIPT = definitions.Reading(
  "that of the authors' script: the first client's embedding as the global one,"
  ' embeddings by the global model, no reuse',
  {'corefed': 'corefed_script'},
)
_BASELINES = {
  'q_fed_avg': 'q-FedAvg',
  'ditto': 'Ditto',
  'fed_mgda': 'FedMGDA+',
  'fed_mdfg': 'FedMDFG',
  'fed_rdn': 'FedRDN',
}
_DATA = {'fmnist': 'Fashion-MNIST', 'cifar10': 'CIFAR-10'}
_DISTANCES = {'d_cosine': 'angle', 'd_manhattan': 'L1 distance'}
_SPACES = (
  'The paper does not name the space: between parameters and between'
  ' embeddings.'
)
_NO_DATA = 'The paper does not name the data.'


def _in_both_spaces(distance):
  return [f'{space}_{distance}' for space in ('parameters', 'embedding')]


def _accuracies():
  for cell, data in _DATA.items():
    for baseline, title in _BASELINES.items():
      yield Claim(
        place='table 1',
        text=f"The clients' mean accuracy is above {title}'s on {data}.",
        comparisons=definitions.versus(
          _TABLE, [cell], ['corefed'], [baseline], ['client_accuracy_mean']
        ),
        reading=_SCRIPT,
      )


def _distances():
  for cell, data in _DATA.items():
    for distance, title in _DISTANCES.items():
      yield Claim(
        place='table 1',
        text=f"The clients' {title} to the global model is the smallest on"
        f' {data}.',
        comparisons=definitions.versus(
          _TABLE,
          [cell],
          ['corefed'],
          tuple(_BASELINES),
          _in_both_spaces(distance),
          above=False,
        ),
        reading=_SCRIPT,
        note=_SPACES,
      )


def _parts():
  for half, added in (
    ('refed', 'Reuse and contribution weights add to alignment'),
    ('cofed', 'Alignment adds to reuse and contribution weights'),
  ):
    yield Claim(
      place='ablation, figure',
      text=f'{added} in accuracy.',
      comparisons=definitions.versus(
        _ABLATION, ['fmnist'], ['corefed'], [half], ['client_accuracy_mean']
      ),
      note=_NO_DATA,
    )
    yield Claim(
      place='ablation, figure',
      text=f'{added}: both distances are smaller.',
      comparisons=definitions.versus(
        _ABLATION,
        ['fmnist'],
        ['corefed'],
        [half],
        [name for d in _DISTANCES for name in _in_both_spaces(d)],
        above=False,
      ),
      note=f'{_NO_DATA} {_SPACES}',
    )


def _trade_off(metrics, above):
  return tuple(
    definitions.Comparison(
      definitions.Side(_TRADE_OFF, 'tradeoff_b', 'corefed', metric),
      definitions.Side(_TRADE_OFF, 'tradeoff_a', 'corefed', metric),
      above,
    )
    for metric in metrics
  )


CLAIMS = (
  *_accuracies(),
  *_distances(),
  *_parts(),
  Claim(
    place='table 3',
    text='k = 2 and gamma = .5 are more accurate than .5 and 2.',
    comparisons=_trade_off(['client_accuracy_mean'], True),
    note=_NO_DATA,
  ),
  *(
    Claim(
      place='table 3',
      text=f'k = 2 and gamma = .5 have the smaller {title} than .5 and 2.',
      comparisons=_trade_off(_in_both_spaces(distance), False),
      note=f'{_NO_DATA} {_SPACES}',
    )
    for distance, title in _DISTANCES.items()
  ),
)
