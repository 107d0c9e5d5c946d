from tff_fair.launchers.tables import published


def test_all_numbers_of_all_papers():
  numbers = published.read()
  assert len(numbers) == 749
  # Only FedAKD prints standard deviations, and prints all of them.
  for (table, *_), number in numbers.items():
    assert number.value == number.value
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


def test_a_row_has_the_number_of_its_own_table_cell_method_and_metric():
  def number(*row):
    found = published.read().get(published.key(*row))
    return found and found.value

  assert number('cffl_table1', 'mnist_p10', 'dssgd_u0.1', 'cf') == -78.18
  # At other rates, without cross-entropy, in a variant of a cell.
  of_authors = 'dssgd_u0.1_authors_rate'
  assert number('cffl_table1', 'mnist_p10', of_authors, 'cf') == -78.18
  assert number('cffl_table1', 'mnist_p5', of_authors, 'cf') != -78.18
  assert number('cffl_table1', 'mnist_p10', 'dssgd_u1_authors_rate', 'cf') != (
    -78.18
  )
  supcon = 'fedquad_table1', 'cifar10_a03_c10', 'supcon_fl', 'global_accuracy'
  without = *supcon[:2], 'supcon_fl_without_ce', supcon[3]
  assert number(*without) == number(*supcon) is not None
  assert number(supcon[0], 'cifar10_a03_c10_capped', *supcon[2:]) is None
  protocol = 'fedakd_own_protocol', 'client_accuracy_max'
  for cell in ('fmnist_ics5', 'fmnist_ics5_shared'):
    found = number('fedakd_protocols', cell, *protocol)
    assert found == number(
      'fedakd_table1', 'fmnist_ics5', 'fedakd', protocol[1]
    )
    assert found is not None
  # Of parameters, in radians and in degrees, and of no other space.
  for metric, value in (
    ('parameters_d_manhattan', 52.88),
    ('embedding_d_manhattan', None),
  ):
    assert number('corefed_table3', 'tradeoff_a', 'corefed', metric) == value
  # Ours has no number: FedAvg with equal weights, free choices of ours.
  uniform = 'fed_avg_uniform', 'global_f1'
  assert number('fedaboost_table1', 'cifar_40', *uniform) is None
