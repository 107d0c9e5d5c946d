import json
import math

import numpy as np
import pandas as pd
import pytest

from tests.launchers import fake_run
from tff_fair.launchers.tables import table_metrics

METRICS = table_metrics.METRICS
_RIDER = [1, 2, 3, 0]


def _compute(name, *directories):
  return METRICS[name].compute(directories, percent=False)


def _pair(tmp_path, run, alone, **of_run):
  return (
    fake_run.write(tmp_path / 'run', run, **of_run),
    fake_run.write(tmp_path / 'alone', alone),
  )


def test_cf_is_of_the_final_accuracies(tmp_path):
  runs = _pair(tmp_path, [0.2, 0.7, 0.6], [0.1, 0.5, 0.3])
  expected = 100 * np.corrcoef([0.2, 0.7, 0.6], [0.1, 0.5, 0.3])[0, 1]
  assert _compute('cf', *runs) == pytest.approx(expected)
  equal = fake_run.write(tmp_path / 'equal', [0.5, 0.5, 0.5])
  assert math.isnan(_compute('cf', equal, runs[1]))


def test_the_spread_of_cf_is_over_the_last_three_evaluations(tmp_path):
  runs = _pair(tmp_path, [0.2, 0.7, 0.6], [0.1, 0.5, 0.3])
  # Orders 1 2 3, 3 2 1 and, twice, that of the clients alone: 1 3 2.
  evaluations = {1: [1, 2, 3], 2: [3, 2, 1], 3: [1, 3, 2], 4: [1, 3, 2]}
  rows = [
    {'round': number, 'client_id': i, 'accuracy': a / 4, 'f1': 0, 'loss': 1}
    for number, row in evaluations.items()
    for i, a in enumerate(row)
  ]
  alone = fake_run.write(tmp_path / 'order', [0.1, 0.3, 0.2])
  scores = runs[0] / 'client_scores.csv'
  pd.DataFrame(rows).to_csv(scores, index=False)
  # CF -50, 100 and 100.
  found = _compute('cf_spread', runs[0], alone)
  assert found == pytest.approx(np.std([-50, 100, 100]))
  short = fake_run.write(tmp_path / 'short', [0.2, 0.7, 0.6], rounds=2)
  assert math.isnan(_compute('cf_spread', short, alone))


def test_cf_leaves_out_free_riders_and_not_the_isolated(tmp_path):
  runs = _pair(
    tmp_path,
    [0.2, 0.4, 0.6, 0.9],
    [0.1, 0.2, 0.3],
    num_train=[1, 2, 3, 0],
    isolated={0: 1, 3: 1},
  )
  assert _compute('cf', *runs) == pytest.approx(100)


def test_shares_above_and_below_standalone(tmp_path):
  runs = _pair(tmp_path, [0.2, 0.2, 0.4, 0.1], [0.1, 0.2, 0.3, 0.3])
  assert _compute('above_standalone', *runs) == 0.5  # A tie is not.
  assert _compute('below_standalone', *runs) == 0.25


def test_the_best_participant_s_accuracy_alone(tmp_path):
  """Not the best accuracy alone, and not that of a free rider."""
  runs = _pair(
    tmp_path,
    [0.2, 0.6, 0.5, 0.9],
    [0.1, 0.3, 0.4, 0.1],
    num_train=[1, 2, 3, 0],
  )
  assert _compute('standalone_accuracy_of_best', *runs) == 0.3


def test_the_accuracy_of_the_participant_with_most_examples(tmp_path):
  run = fake_run.write(tmp_path / 'x', [0.2, 0.6, 0.5, 0.9], num_train=_RIDER)
  assert _compute('accuracy_of_largest', run) == 0.5


def test_mean_of_the_clients_losses(tmp_path):
  run = fake_run.write(tmp_path / 'run', [0.2, 0.6, 0.5, 0.9], num_train=_RIDER)
  path = run / 'clients.csv'
  clients = pd.read_csv(path)
  clients['loss'] = [1.0, 2.0, np.nan, 9.0]
  clients.to_csv(path, index=False)
  # Without the client that has no test examples, and the free rider.
  assert _compute('client_loss_mean', run) == 1.5


@pytest.mark.parametrize(
  ('own', 'others', 'expected'),
  [
    # The lower last one, .6, is reached in rounds 2 and 6.
    ([0.65, 0.7, 0.8], [0.2, 0.5, 0.6], 4),
    # .5: in rounds 4 and 2.
    ([0.3, 0.5, 0.7], [0.6, 0.4, 0.5], -2),
    ([0.3, 0.5, 0.7], [0.3, 0.5, 0.7], 0),
  ],
)
def test_rounds_ahead_to_the_lower_last_f1(tmp_path, own, others, expected):
  runs = []
  for name, curve in (('own', own), ('others', others)):
    run = fake_run.write(tmp_path / name, [0.1])
    f1 = {1: np.nan, **dict(zip([2, 4, 6], curve, strict=True))}
    frame = pd.DataFrame({'round': f1.keys(), 'global_f1': f1.values()})
    frame.to_csv(run / 'metrics.csv', index=False)
    runs.append(run)
  found = _compute('rounds_ahead_of_fed_avg', *runs)
  np.testing.assert_equal(found, expected)


def test_free_rider(tmp_path):
  run, without = _pair(
    tmp_path,
    [0.2, 0.4, 0.05],
    [0.3, 0.4],
    num_train=[10, 20, 0],
    isolated={0: 1, 2: 2},
  )
  assert _compute('isolation_round', run) == 2
  assert _compute('free_rider_accuracy', run) == 0.05
  assert _compute('client_accuracy_mean', run) == pytest.approx(0.3)
  for name, value in (('without', 0.35), ('change', -0.05)):
    found = _compute(f'client_accuracy_mean_{name}', run, without)
    assert found == pytest.approx(value)
  # One that stays has no round of isolation.
  stays = fake_run.write(tmp_path / 'stays', [0.2, 0.1], num_train=[10, 0])
  assert math.isnan(_compute('isolation_round', stays))


def test_scores_and_distances_are_those_of_the_last_evaluation(tmp_path):
  run = fake_run.write(tmp_path / 'x', [0.2, 0.4])
  assert _compute('client_accuracy_max', run) == 0.4
  assert math.isnan(_compute('global_f1', run))
  final = fake_run.final_distances()
  assert len(final) == 6
  for name, value in final.items():
    assert _compute(name, run) == value
  degrees = _compute('parameters_d_cosine_degrees', run)
  assert degrees == pytest.approx(180 / math.pi * final['parameters_d_cosine'])
  cosine = METRICS['embedding_d_cosine']
  assert cosine.heading(percent=True) == (
    'D_cosine between mean embeddings (radians)'
  )


def test_a_variance_of_f1_is_the_mean_of_the_last_evaluations(tmp_path):
  run = fake_run.write(tmp_path / 'x', [0.2, 0.4])
  path = run / 'summary.json'
  content = json.loads(path.read_text())
  content['client_f1_variance_window'] = {'mean': 0.25}
  content['final']['client_f1_variance'] = 0.5
  path.write_text(json.dumps(content))
  found = METRICS['client_f1_variance'].compute([run], percent=True)
  assert found == 0.25  # No share, so never in per cent.


def test_units_and_digits(tmp_path):
  share, coefficient = METRICS['client_accuracy_max'], METRICS['cf']
  run = fake_run.write(tmp_path / 'x', [0.2, 0.5])
  assert share.compute([run], percent=True) == 50
  assert share.compute([run], percent=False) == 0.5
  assert share.heading(percent=True).endswith('(per cent)')
  assert share.heading(percent=False).endswith('(fraction)')
  assert coefficient.heading(percent=True) == coefficient.title
  # Fractions are shown as exactly as per cent.
  assert share.shown_digits(percent=True) == 2
  assert share.shown_digits(percent=False) == 4
  assert coefficient.shown_digits(percent=False) == 2
