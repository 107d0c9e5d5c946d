import math

import numpy as np
import pandas as pd
import pytest

from tests.launchers import fake_run
from tff_fair.launchers.tables import table_metrics

METRICS = table_metrics.METRICS
_RIDER = [1, 2, 3, 0]


def _pair(tmp_path, run, alone, **of_run):
  return (
    fake_run.write(tmp_path / 'run', run, **of_run),
    fake_run.write(tmp_path / 'alone', alone),
  )


def test_cf_is_of_the_final_accuracies(tmp_path):
  runs = _pair(tmp_path, [0.2, 0.7, 0.6], [0.1, 0.5, 0.3])
  expected = 100 * np.corrcoef([0.2, 0.7, 0.6], [0.1, 0.5, 0.3])[0, 1]
  assert METRICS['cf'].compute(*runs) == pytest.approx(expected)
  equal = fake_run.write(tmp_path / 'equal', [0.5, 0.5, 0.5])
  assert math.isnan(METRICS['cf'].compute(equal, runs[1]))


def test_cf_leaves_out_free_riders_and_not_the_isolated(tmp_path):
  runs = _pair(
    tmp_path,
    [0.2, 0.4, 0.6, 0.9],
    [0.1, 0.2, 0.3],
    num_train=[1, 2, 3, 0],
    isolated={0: 1, 3: 1},
  )
  assert METRICS['cf'].compute(*runs) == pytest.approx(100)


def test_shares_above_and_below_standalone(tmp_path):
  runs = _pair(tmp_path, [0.2, 0.2, 0.4, 0.1], [0.1, 0.2, 0.3, 0.3])
  assert METRICS['above_standalone'].compute(*runs) == 0.5  # A tie is not.
  assert METRICS['below_standalone'].compute(*runs) == 0.25


def test_the_best_participant_s_accuracy_alone(tmp_path):
  """Not the best accuracy alone, and not that of a free rider."""
  runs = _pair(
    tmp_path,
    [0.2, 0.6, 0.5, 0.9],
    [0.1, 0.3, 0.4, 0.1],
    num_train=[1, 2, 3, 0],
  )
  assert METRICS['standalone_accuracy_of_best'].compute(*runs) == 0.3


def test_mean_of_the_clients_losses(tmp_path):
  run = fake_run.write(tmp_path / 'run', [0.2, 0.6, 0.5, 0.9], num_train=_RIDER)
  path = run / 'clients.csv'
  clients = pd.read_csv(path)
  clients['loss'] = [1.0, 2.0, np.nan, 9.0]
  clients.to_csv(path, index=False)
  # Without the client that has no test examples, and the free rider.
  assert METRICS['client_loss_mean'].compute(run) == 1.5


@pytest.mark.parametrize(
  ('own', 'others', 'expected'),
  [
    # The lower last one, .6, is reached in rounds 2 and 6.
    ([0.65, 0.7, 0.8], [0.2, 0.5, 0.6], 4),
    # .5: in rounds 4 and 2.
    ([0.3, 0.5, 0.7], [0.6, 0.4, 0.5], -2),
    ([0.3, 0.5, 0.7], [0.3, 0.5, 0.7], 0),
    ([0.3, 0.5, np.nan], [0.3, 0.5, 0.7], np.nan),
  ],
)
def test_rounds_ahead_to_the_lower_last_f1(tmp_path, own, others, expected):
  runs = []
  for name, curve in (('own', own), ('others', others)):
    run = fake_run.write(tmp_path / name, [0.1])
    frame = pd.DataFrame({'round': [2, 4, 6], 'global_f1': curve})
    frame.to_csv(run / 'metrics.csv', index=False)
    runs.append(run)
  found = METRICS['rounds_ahead_of_fed_avg'].compute(*runs)
  np.testing.assert_equal(found, expected)


def test_free_rider(tmp_path):
  run, without = _pair(
    tmp_path,
    [0.2, 0.4, 0.05],
    [0.3, 0.4],
    num_train=[10, 20, 0],
    isolated={0: 1, 2: 2},
  )
  assert METRICS['isolation_round'].compute(run) == 2
  assert METRICS['free_rider_accuracy'].compute(run) == 0.05
  assert METRICS['client_accuracy_mean'].compute(run) == pytest.approx(0.3)
  for name, value in (('without', 0.35), ('change', -0.05)):
    found = METRICS[f'client_accuracy_mean_{name}'].compute(run, without)
    assert found == pytest.approx(value)
  # One that stays has no round of isolation.
  stays = fake_run.write(tmp_path / 'stays', [0.2, 0.1], num_train=[10, 0])
  assert math.isnan(METRICS['isolation_round'].compute(stays))


def test_scores_and_distances_are_those_of_the_last_evaluation(tmp_path):
  run = fake_run.write(tmp_path / 'x', [0.2, 0.4])
  assert METRICS['client_accuracy_max'].compute(run) == 0.4
  assert math.isnan(METRICS['global_f1'].compute(run))
  final = fake_run.final_distances()
  assert len(final) == 6
  for name, value in final.items():
    assert METRICS[name].compute(run) == value
  degrees = METRICS['parameters_d_cosine_degrees'].compute(run)
  assert degrees == pytest.approx(180 / math.pi * final['parameters_d_cosine'])
  cosine = METRICS['embedding_d_cosine']
  assert cosine.heading(percent=True) == (
    'D_cosine between mean embeddings (radians)'
  )


def test_units_and_digits():
  share, coefficient = METRICS['client_accuracy_max'], METRICS['cf']
  assert share.in_unit(0.5, percent=True) == 50
  assert share.in_unit(0.5, percent=False) == 0.5
  assert coefficient.in_unit(0.5, percent=True) == 0.5
  assert share.heading(percent=True).endswith('(per cent)')
  assert share.heading(percent=False).endswith('(fraction)')
  assert coefficient.heading(percent=True) == coefficient.title
  # Fractions are shown as exactly as per cent.
  assert share.shown_digits(percent=True) == 2
  assert share.shown_digits(percent=False) == 4
  assert coefficient.shown_digits(percent=False) == 2
