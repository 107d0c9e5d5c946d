import collections

import pytest

from tff_fair.launchers.tables import published

_COUNTS = {
  'cffl_table1': 42,
  'cffl_table2': 36,  # Standalone's six for both columns of CFFL.
  'corefed_table1': 36,
  'corefed_table3': 6,
  'fedaboost_table1': 18,
  'fedaboost_text': 12,
  'fedakd_table1': 320,
  'fedakd_table2': 32,
  'fedakd_table3': 30,
  'fedakd_table4': 12,
  'fedakd_table5': 130,
  'fedquad_table1': 22,
  'fedquad_table2': 12,
  'fedquad_table3': 22,
  'fedquad_table4': 12,
  'fedquad_table5': 7,
}


def test_all_numbers_of_all_papers():
  numbers = published.read()
  assert collections.Counter(key[0] for key in numbers) == _COUNTS
  # Only FedAKD prints standard deviations, and prints all of them.
  for (table, *_), number in numbers.items():
    assert (number.sd == number.sd) == table.startswith('fedakd')
  for key, value in {
    ('cffl_table1', 'mnist_p10', 'dssgd_u0.1', 'cf'): -78.18,
    ('cffl_table2', 'mnist_p20', 'fed_avg', 'client_accuracy_max'): 96.26,
    ('corefed_table3', 'tradeoff_a', 'corefed', 'd_manhattan'): 52.88,
    ('fedquad_table3', 'cifar100_iid_c10', 'moon', 'global_accuracy'): 26.32,
    ('fedaboost_table1', 'cifar_40', 'ditto', 'global_loss'): 1.208,
  }.items():
    assert numbers[key].value == value
  key = ('fedakd_table1', 'fmnist_pow', 'fedakd', 'client_accuracy_max')
  assert numbers[key] == (97.45, 0.09)


_HEADER = 'table,cell,method,metric,value,sd\n'


def test_a_damaged_file_is_refused(tmp_path):
  path = tmp_path / 'x.csv'
  for text, message in (
    ('a,b\n1,2\n', 'must have the columns table, cell, .*, found a, b'),
    (f'{_HEADER}t,c,m,x,1,\nt,c,m,x,2,\n', 'once, found t, c, m, x again'),
    (f'{_HEADER}t,,m,x,1,\n', r'must name all of .*, found t, , m, x'),
    (f'{_HEADER}t,c,m,x,one,\n', "must hold finite numbers, found 'one' for t"),
    (f'{_HEADER}t,c,m,x,,\n', "must hold finite numbers, found '' for t"),
    (f'{_HEADER}t,c,m,x,1,inf\n', "must hold finite numbers, found 'inf' for"),
  ):
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
      published.read(path)
