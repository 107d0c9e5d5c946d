"""The measures of runs side by side, worked by hand."""

import math

import numpy as np

from tests.launchers import report_run
from tff_fair.launchers import frame
from tff_fair.launchers import summary


def _of(*folders, is_ranked=True):
  return summary.summarize_runs(frame.read_runs(folders), is_ranked)


def test_measures_of_the_honest_clients(tmp_path):
  # The free rider has the lowest accuracy.
  run = report_run.write(
    tmp_path / 'x', (0.5, 0.7, 0.9, 0.1), num_train=(9, 9, 9, 0)
  )
  found = _of(run)
  # (0.04 + 0 + 0.04) / 3, and 2.1^2 / (3 * 1.55).
  for column, shown in (
    ('client_accuracy_mean', '0.7000'),
    ('client_accuracy_min', '0.5000'),
    ('client_accuracy_max', '0.9000'),
    ('client_accuracy_worst10', '0.5000'),
    ('client_accuracy_variance', '0.0267'),
    ('client_accuracy_sd', '0.1633'),
    ('client_accuracy_jain', '0.9484'),
    ('client_f1_min', '0.2500'),
    ('global_accuracy', '1.0000'),
    ('cf', '–'),
    ('seconds_per_round', '0.25'),
  ):
    assert found.show('FedAvg', column) == shown, column
  window = found.estimates['FedAvg', 'client_f1_variance_window_mean']
  assert (window.mean, window.low, window.high) == (0.0123, 0.01, 0.0146)


def test_order_ties_and_directions(tmp_path):
  found = _of(
    report_run.write(tmp_path / 'a', (0.5, 0.50001, 0.6)),
    report_run.write(tmp_path / 'b', (0.5, 0.50004, 0.6), algorithm='ditto'),
    report_run.write(tmp_path / 'c', (0.3, 0.9, 0.9), algorithm='cffl'),
  )
  mean, variance = 'client_accuracy_mean', 'client_accuracy_variance'
  assert found.leaders(mean) == ('CFFL',)
  assert found.runner_up(mean) == 'FedAvg'
  # Numbers that look equal are; lower is better.
  assert found.leaders('client_accuracy_min') == ('FedAvg', 'Ditto')
  assert found.runner_up('client_accuracy_min') == 'CFFL'
  assert found.order(variance)[-1] == 'CFFL'
  # What is only told has no best.
  assert found.best('seconds_per_round') is None


def test_unlike_runs_have_no_order(tmp_path):
  found = _of(
    report_run.write(tmp_path / 'a'),
    report_run.write(tmp_path / 'b', (0.1, 0.2, 0.3), algorithm='ditto'),
    is_ranked=False,
  )
  assert found.order('client_accuracy_mean') == ()
  assert found.leaders('client_accuracy_mean') == ()
  assert found.show('Ditto', 'client_accuracy_mean') == '0.2000'


def test_clients_that_trained_alone_give_a_cf_coefficient_and_gains(tmp_path):
  alone, accuracy = (0.3, 0.4, 0.8, 0.9), (0.5, 0.7, 0.6, 0.1)
  num_train = (9, 9, 9, 0)  # The free rider would turn it negative.
  folders = [
    report_run.write(
      tmp_path / name,
      scores,
      num_train=num_train,
      num_test=num_test,
      algorithm=name,
    )
    for name, scores, num_test in (
      ('standalone', alone, None),
      ('cffl', accuracy, (10, 10, 100, 10)),
      ('fed_avg', (0.5,) * 4, None),
    )
  ]
  found = _of(*folders)
  expected = 100 * np.corrcoef(alone[:3], accuracy[:3])[0, 1]
  assert found.show('CFFL', 'cf') == f'{expected:.2f}'
  for name in ('Standalone', 'FedAvg'):
    assert math.isnan(found.estimates[name, 'cf'].mean)
  # Gains of .2, .3 and -.2, the last one of 100 examples.
  for column, shown in (
    ('better_off', '0.667'),
    ('gain_mean', '0.1000'),
    ('gain_sd', f'{math.sqrt(0.14 / 3):.4f}'),
    ('gain_min', '-0.2000'),
    ('harmed', '1'),
    ('harmed_share', '0.333'),
  ):
    assert found.show('CFFL', column) == shown, column
  assert found.show('FedAvg', 'harmed') == '–'
  unranked = _of(*folders, is_ranked=False)
  assert unranked.show('CFFL', 'cf') == '–'


def test_a_variance_that_is_rounding_is_0(tmp_path):
  found = _of(report_run.write(tmp_path / 'x', (0.1 + 0.2, 0.3, 0.3)))
  assert found.show('FedAvg', 'client_accuracy_variance') == '0'
  assert found.estimates['FedAvg', 'client_accuracy_sd'].mean == 0


def test_a_run_without_test_data_has_no_scores(tmp_path):
  found = _of(report_run.write(tmp_path / 'x', (math.nan, math.nan, math.nan)))
  for statistic in ('mean', 'min', 'max', 'worst10', 'jain', 'sd'):
    column = f'client_accuracy_{statistic}'
    assert found.estimates['FedAvg', column].reached == 0, column
    assert found.show('FedAvg', column) == '–'
