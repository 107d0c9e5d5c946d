"""What FedAKD's paper claims of fairness and accuracy."""

from tff_fair.launchers.claiming import definitions
from tff_fair.launchers.claiming.definitions import Claim
from tff_fair.launchers.claiming.definitions import Side

PROTOCOLS = 'fedakd_protocols'
_SHIFT, _ONE_TEST_SET = 'fedakd_table1', 'fedakd_table5'
_RECORDS, _EQUAL_TIME = 'fedakd_table2', 'fedakd_table3'
_ABLATION = 'fedakd_table4'
_SCRIPT = definitions.Reading(
  "that of the authors' scripts: each method under its own protocol",
  {'cgsv': 'cgsv_own_protocol', 'fedakd': 'fedakd_own_protocol'},
  table=PROTOCOLS,
)
_MAIN = ('fed_avg', 'cffl', 'cgsv')
_FAIR = (*_MAIN, 'fed_ave', 'fed_sac')
_PERSONAL = ('pfed_ck', 'fed_dc', 'fed_as', 'fed_mpr')
_ACCURACIES = ('client_accuracy_max', 'client_accuracy_mean')
_DATA = {'fmnist': 'Fashion-MNIST', 'cifar10': 'CIFAR-10'}
_SHIFTS = {
  'pow': 'POW',
  'bcs': 'BCS',
  'ics2': 'ICS 2',
  'ics5': 'ICS 5',
  'ics10': 'ICS 10',
}
_SKEWS = ('pow', 'cla', 'dir1', 'dir2', 'dir3')
_NOT_PUBLIC = 'The records are not public.'


def _above(place, text, cells, baselines, metrics, table, note='') -> Claim:
  return Claim(
    place=place,
    text=text,
    comparisons=definitions.versus(
      table, cells, ['fedakd'], baselines, metrics
    ),
    reading=_SCRIPT if table == _SHIFT else None,
    note=note,
  )


def _of_columns():
  for data, data_title in _DATA.items():
    for shift, shift_title in _SHIFTS.items():
      cells, where = [f'{data}_{shift}'], f'on {data_title}, {shift_title}'
      yield _above(
        'table 1',
        f"The CF coefficient is above FedAvg's, CFFL's and CGSV's {where}.",
        cells,
        _MAIN,
        ['cf'],
        _SHIFT,
      )
      yield _above(
        'table 1',
        'The best and the mean accuracy of the clients are above those of'
        f' Standalone, FedAvg, CFFL and CGSV {where}.',
        cells,
        ('standalone', *_MAIN),
        _ACCURACIES,
        _SHIFT,
      )


def _of_other_baselines():
  others = ('fed_ave', 'fed_sac', *_PERSONAL)
  for data, title in _DATA.items():
    cells = [f'{data}_{shift}' for shift in _SHIFTS]
    for metrics, words in (
      (['cf'], 'CF coefficient is above that'),
      (_ACCURACIES, 'best and the mean accuracy are above those'),
    ):
      yield _above(
        'table 1',
        f'The {words} of FedAVE, FedSAC, pFedCK, FedDC, FedAS and FedMPR on'
        f' {title}, in all columns.',
        cells,
        others,
        metrics,
        _SHIFT,
      )


def _of_one_test_set():
  for data, title in _DATA.items():
    cells = [f'{data}_{skew}' for skew in _SKEWS]
    yield _above(
      'table 5',
      f'With one test set the CF coefficient is the highest on {title}, in all'
      ' columns.',
      cells,
      _FAIR,
      ['cf'],
      _ONE_TEST_SET,
    )
    yield _above(
      'table 5',
      f'With one test set the best accuracy is the highest on {title}, in all'
      ' columns.',
      cells,
      ('standalone', *_FAIR),
      ['client_accuracy_max'],
      _ONE_TEST_SET,
      'The text says so ("best everywhere").',
    )


def _of_records():
  every = (*_FAIR, *_PERSONAL)
  for place, cell, baselines, table, when in (
    ('table 2', 'ehr', ('standalone', *every), _RECORDS, ''),
    ('table 3', 'ehr_equal_time', every, _EQUAL_TIME, ', in equal time'),
  ):
    yield _above(
      place,
      f'The CF coefficient is the highest on health records{when}.',
      [cell],
      every,
      ['cf'],
      table,
      _NOT_PUBLIC,
    )
    yield _above(
      place,
      'The best and the mean accuracy are the highest on health'
      f' records{when}.',
      [cell],
      baselines,
      _ACCURACIES,
      table,
      _NOT_PUBLIC,
    )


def _of_parts():
  parts = ('', '_correct_agg', '_all_data', '_single_dist')
  for metric, title in (
    ('cf', 'CF coefficient'),
    ('client_accuracy_mean', 'mean accuracy'),
    ('client_accuracy_max', 'best accuracy'),
  ):
    yield Claim(
      place='table 4',
      text=f'Each part adds to the {title}: all of them, correct_agg, all_data,'
      ' single_dist, in this order.',
      comparisons=definitions.order(
        [Side(_ABLATION, 'ehr', f'fedakd{part}', metric) for part in parts]
      ),
      note=_NOT_PUBLIC,
    )


CLAIMS = (
  *_of_columns(),
  *_of_other_baselines(),
  *_of_one_test_set(),
  *_of_records(),
  *_of_parts(),
)
