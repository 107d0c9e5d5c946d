"""The claims of FedQuad's paper about its accuracy and its loss."""

from tff_fair.launchers.claiming import definitions
from tff_fair.launchers.claiming.definitions import Claim
from tff_fair.launchers.claiming.definitions import Side

_BASELINES = {
  'fed_avg': 'FedAvg',
  'quadruplet_fl': 'QuadrupletFL',
  'triplet_fl': 'TripletFL',
  'supcon_fl': 'SupConFL',
  'moon': 'MOON',
}
_METRIC_LOSSES = ('supcon_fl', 'triplet_fl', 'quadruplet_fl')
# The paper links to its code, which we have not seen. It does not say whether
# its baselines minimise cross-entropy; its numbers suggest that they do not.
_WITHOUT_CE = definitions.Reading(
  'that the losses of its metric-learning baselines have no cross-entropy',
  {name: f'{name}_without_ce' for name in _METRIC_LOSSES},
)
_SPLITS = {
  'iid': 'IID',
  'a03': 'Dirichlet(0.3)',
  'a05': 'Dirichlet(0.5)',
}
_METRIC = 'global_accuracy'
_CONSISTENTLY = 'The text says so ("consistently").'
_ABLATION = 'fedquad_table5'


def _against(table, cells, baselines, text, note='') -> Claim:
  return Claim(
    place=table.removeprefix('fedquad_').replace('table', 'table '),
    text=text,
    comparisons=definitions.versus(
      table, cells, ['fedquad'], baselines, [_METRIC]
    ),
    reading=_WITHOUT_CE if {*baselines} & {*_METRIC_LOSSES} else None,
    note=note,
  )


def _all_but(method) -> tuple[str, ...]:
  return tuple(name for name in ('fedquad', *_BASELINES) if name != method)


def _triplets_below(number, data, title):
  """Quadruplets against triplets, centralised and federated."""
  table = f'fedquad_table{number}'
  yield Claim(
    place=f'table {number}',
    text=f'Quadruplets are better than triplets, centralised, on {title}.',
    comparisons=definitions.versus(
      table, [f'{data}_centralised'], ['quadruplet'], ['triplet'], [_METRIC]
    ),
  )
  yield Claim(
    place=f'table {number}',
    text=f'QuadrupletFL is better than TripletFL in every split of {title}.',
    comparisons=definitions.versus(
      table,
      [f'{data}_{split}_c10' for split in _SPLITS],
      ['quadruplet_fl'],
      ['triplet_fl'],
      [_METRIC],
    ),
    reading=_WITHOUT_CE,
    note='The paper calls it "our version of QuadrupletFL"; ours is that of'
    ' Chen et al.',
  )


def _above_centralised(number, data, title) -> Claim:
  return Claim(
    place=f'table {number}',
    text=f'IID, the accuracy is above that of centralised metric losses on'
    f' {title}.',
    comparisons=tuple(
      definitions.Comparison(
        Side(f'fedquad_table{number}', f'{data}_iid_c10', 'fedquad', _METRIC),
        Side(f'fedquad_table{number}', f'{data}_centralised', other, _METRIC),
      )
      for other in ('supcon', 'triplet', 'quadruplet')
    ),
    note='A reading of the table; no sentence says so.',
  )


def _many_clients(number, data, title):
  table = f'fedquad_table{number}'
  few, many = (f'{data}_a05_c{clients}' for clients in (10, 200))
  yield Claim(
    place=f'table {number}',
    text=f'With 200 clients MOON is below all other methods on {title}.',
    comparisons=definitions.versus(
      table, [many], ['moon'], _all_but('moon'), [_METRIC], above=False
    ),
    reading=_WITHOUT_CE,
  )
  yield Claim(
    place=f'table {number}',
    text=f'All methods are worse with 200 clients than with 10 on {title}.',
    comparisons=tuple(
      definitions.Comparison(
        Side(table, many, method, _METRIC),
        Side(table, few, method, _METRIC),
        above=False,
      )
      for method in ('fedquad', *_BASELINES)
    ),
    reading=_WITHOUT_CE,
    note='The text says so of "many existing methods".',
  )


def _loss(text, comparisons) -> Claim:
  return Claim(place='table 5', text=text, comparisons=comparisons)


def _cell(beta, margin_1, margin_2, method='fedquad') -> Side:
  cell = f'cifar10_beta{beta}_m{margin_1}_m{margin_2}'
  return Side(_ABLATION, cell, method, _METRIC)


def _alone(*values) -> Side:
  return _cell(*values, method='fedquad_without_ce')


CLAIMS = (
  *(
    _against(
      'fedquad_table1',
      [f'cifar10_{split}_c10'],
      [baseline],
      f'The accuracy is above that of {title} on CIFAR-10, {words}.',
    )
    for split, words in _SPLITS.items()
    for baseline, title in _BASELINES.items()
  ),
  *(
    _against(
      'fedquad_table3',
      [f'cifar100_{split}_c10'],
      tuple(_BASELINES),
      f'The accuracy is above that of every baseline on CIFAR-100, {words}.',
      _CONSISTENTLY,
    )
    for split, words in _SPLITS.items()
  ),
  *(
    _against(
      f'fedquad_table{number}',
      [f'{data}_a05_c200'],
      baselines,
      f'With 200 clients the accuracy is above that of {words} on {title}.',
      _CONSISTENTLY,
    )
    for number, data, title in (
      (2, 'cifar10', 'CIFAR-10'),
      (4, 'cifar100', 'CIFAR-100'),
    )
    for baselines, words in (
      (('fed_avg',), 'FedAvg'),
      (tuple(_BASELINES)[1:], 'the other baselines'),
    )
  ),
  _loss(
    'Cross-entropy adds to the quadruplet loss.',
    definitions.order([_cell(0.5, 1.0, 1.0), _alone(0.5, 1.0, 1.0)])
    + definitions.order([_cell(0.5, 1.0, 0.5), _alone(0.5, 1.0, 0.5)]),
  ),
  _loss(
    'A weight beta of .5 is better than 1.',
    definitions.order([_cell(0.5, 1.0, 0.5), _cell(1.0, 1.0, 0.5)]),
  ),
  _loss(
    'Without cross-entropy, a larger margin m1 is worse: 1, 2, 5.',
    definitions.order([_alone(0.5, m1, 0.5) for m1 in (1.0, 2.0, 5.0)]),
  ),
  _loss(
    'A margin m2 of .5 is better than 1, with cross-entropy and without.',
    definitions.order([_cell(0.5, 1.0, 0.5), _cell(0.5, 1.0, 1.0)])
    + definitions.order([_alone(0.5, 1.0, 0.5), _alone(0.5, 1.0, 1.0)]),
  ),
  *_triplets_below(1, 'cifar10', 'CIFAR-10'),
  *_triplets_below(3, 'cifar100', 'CIFAR-100'),
  _above_centralised(1, 'cifar10', 'CIFAR-10'),
  _above_centralised(3, 'cifar100', 'CIFAR-100'),
  *_many_clients(2, 'cifar10', 'CIFAR-10'),
  *_many_clients(4, 'cifar100', 'CIFAR-100'),
)
