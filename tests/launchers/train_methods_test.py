"""Runs of several methods: what their files hold, and resumption."""

import json
import re

import numpy as np
import pytest

from tests.launchers import digits_run
from tff_fair.launchers.runs import distances

pytestmark = pytest.mark.full

_CFFL = {'preset': 'cffl_digits', 'num_examples': 200, 'num_clients': 4}
_COREFED = {'preset': 'corefed_digits', 'eval_every': 2, 'rounds': 3}


def _summary(run):
  return json.loads((run / 'summary.json').read_text())


def _assert_resumes(run, **values):
  """The last round is repeated from the checkpoint before it."""
  expected = digits_run.tables(run), digits_run.models(run)
  number = values['rounds']
  variables = digits_run.variables(run, number)
  (run / f'checkpoints/round_{number}.safetensors').unlink()
  assert f'resuming after round {number - 1}' in digits_run.main(run, **values)
  assert (digits_run.tables(run), digits_run.models(run)) == expected
  for name, value in digits_run.variables(run, number).items():
    np.testing.assert_array_equal(value, variables[name])


class TestServerTestData:
  """CFFL's experiments: one test set, at the server, for all clients."""

  def test_cffl_with_a_free_rider(self, tmp_path):
    # All that CFFL's state holds: own models, shadows, isolation.
    values = {**_CFFL, 'free_riders': 1, 'pretrain': True}
    values = {**values, 'rounds': 3, 'checkpoint_every': 1, 'export': 'all'}
    printed = digits_run.main(tmp_path, **values)
    assert re.search(r'\n    max +0\.\d{4}\n', printed)
    clients = digits_run.read(tmp_path, 'clients.csv')
    assert clients['client_id'].tolist() == [0, 1, 2, 3, 4]
    assert clients['num_test'].tolist() == [359] * 5
    assert clients['num_train'].iloc[4] == clients['num_classes'].iloc[4] == 0
    assert clients['num_train'].sum() == 200
    metrics = digits_run.read(tmp_path, 'metrics.csv')
    assert metrics['num_clients'].tolist() == [5, 5, 5]
    honest = clients['accuracy'][:4]
    last = metrics.iloc[-1]
    assert last['client_accuracy_max'] == honest.max()
    assert last['client_accuracy_mean'] == pytest.approx(honest.mean())
    assert honest.mean() != pytest.approx(clients['accuracy'].mean())
    reports = digits_run.read(tmp_path, 'reports.csv')
    assert {'reputation', 'num_allocated', 'loss'} <= set(reports)
    assert reports['client_id'].tolist() == [0, 1, 2, 3, 4] * 3
    after = reports[reports['round'] == 3]
    for name in ('reputation', 'reputable', 'validation_accuracy'):
      assert clients[name].tolist() == after[name].tolist()
    assert clients['reputation'].sum() == pytest.approx(1)
    plots = {'client_accuracy.png', 'reputation.png'}
    assert plots <= digits_run.plots(tmp_path)
    models = {'model.keras', *(f'models/client_{i}.keras' for i in range(5))}
    assert digits_run.models(tmp_path).keys() == models
    _assert_resumes(tmp_path, **values)

  def test_isolated_clients_are_counted_and_shown(self, tmp_path):
    # Only the best client keeps more than half of all reputation.
    printed = digits_run.main(tmp_path, **_CFFL, threshold_absolute=0.5)
    reports = digits_run.read(tmp_path, 'reports.csv')
    isolated = 4 - reports['reputable'][reports['round'] == 2].sum()
    assert isolated == 3
    assert f'  Clients that the server isolates: {isolated} in all' in printed

  @pytest.mark.parametrize('algorithm', ['standalone', 'dssgd', 'fed_avg'])
  def test_baselines(self, algorithm, tmp_path):
    digits_run.main(tmp_path, **_CFFL, algorithm=algorithm)
    clients = digits_run.read(tmp_path, 'clients.csv')
    assert clients['num_test'].tolist() == [359] * 4
    assert bool(digits_run.models(tmp_path)) == (algorithm != 'standalone')
    # The clients of FedAvg end up with one model, the others with their own.
    distinct = 1 if algorithm == 'fed_avg' else 4
    assert clients['loss'].nunique() == distinct
    metrics = digits_run.read(tmp_path, 'metrics.csv')
    assert metrics['num_clients'].tolist() == [4, 4]
    assert metrics['num_examples'].tolist() == [200, 200]
    # A round of clients in turn is a pass over all, in the order of their ids.
    reports = digits_run.read(tmp_path, 'reports.csv')
    for number, part in reports.groupby('round'):
      assert part['client_id'].tolist() == [0, 1, 2, 3]
      mean = np.average(part['loss'], weights=part['num_examples'])
      assert metrics['train_loss'][number - 1] == pytest.approx(mean)

  def test_the_passes_decay_the_learning_rate(self, tmp_path):
    # From the second pass on the rate is 0.
    values = {**_CFFL, 'algorithm': 'dssgd', 'learning_rate_decay': 0}
    digits_run.main(tmp_path, **values)
    scores = digits_run.read(tmp_path, 'client_scores.csv')
    first, second = (scores[scores['round'] == n] for n in (1, 2))
    # All end with what the last client of the first pass downloaded.
    assert set(second['loss']) == {first['loss'].iloc[-1]}


class TestDistances:
  """CoRe-Fed's experiments: how far the clients are apart."""

  @pytest.mark.parametrize('algorithm', ['corefed', 'ditto'])
  def test_are_in_the_rows_of_evaluations(self, algorithm, tmp_path):
    values = {**_COREFED, 'algorithm': algorithm, 'checkpoint_every': 1}
    digits_run.main(tmp_path, **values)
    metrics = digits_run.read(tmp_path, 'metrics.csv')
    for name in distances.COLUMNS:
      assert metrics[name].notna().tolist() == [False, True, True]
      assert (metrics[name][1:] > 0).all()
      assert _summary(tmp_path)['final'][name] == metrics[name].iloc[-1]
    assert (metrics['parameters_d_cosine'][1:] < np.pi / 2).all()
    clients = digits_run.read(tmp_path, 'clients.csv')
    away = (clients['accuracy'] - clients['accuracy'].mean()).abs().sum()
    found = metrics['accuracy_d_manhattan'].iloc[-1]
    assert found == pytest.approx(away)
    plots = {'parameters_distances.png', 'embedding_distances.png'}
    if algorithm == 'ditto':
      assert {'personal_f1', 'train_personal_loss'} <= set(metrics)
      plots.add('client_accuracy.png')
    assert plots <= digits_run.plots(tmp_path)
    # Old gradients of absent clients, and personal models.
    _assert_resumes(tmp_path, **values)

  def test_change_nothing_else(self, tmp_path):
    for name, values in (('with', {}), ('without', {'distances': False})):
      digits_run.main(tmp_path / name, **_COREFED, **values)
    plain = digits_run.read(tmp_path / 'without', 'metrics.csv')
    measured = digits_run.read(tmp_path / 'with', 'metrics.csv')
    assert not set(distances.COLUMNS) & set(plain)
    assert measured[plain.columns].equals(plain)
    first, second = (
      digits_run.tables(tmp_path / name) for name in ('with', 'without')
    )
    assert {name for name in first if first[name] != second[name]} == {
      'metrics.csv'
    }

  def test_are_undefined_if_no_model_moves(self, tmp_path):
    # From the second round on the rate is 0.
    values = {**_COREFED, 'learning_rate_decay': 0, 'algorithm': 'fed_avg'}
    digits_run.main(tmp_path, **values)
    metrics = digits_run.read(tmp_path, 'metrics.csv')
    assert metrics['parameters_d_cosine'].isna().all()
    final = _summary(tmp_path)['final']
    assert final['embedding_d_manhattan'] is None
    assert final['accuracy_d_manhattan'] > 0


def test_fed_rdn_starts_from_the_weights_of_the_others(tmp_path):
  # With a rate of 0 they do not change.
  values = {**_COREFED, 'client_learning_rate': 0, 'rounds': 1}
  runs = [tmp_path / algorithm for algorithm in ('fed_avg', 'fed_rdn')]
  for run in runs:
    digits_run.main(run, **values, algorithm=run.name)
  expected, found = (digits_run.variables(run, 1) for run in runs)
  for name, value in found.items():
    np.testing.assert_array_equal(value, expected[name])
  # Only the inputs of the model differ.
  losses = {
    digits_run.read(run, 'metrics.csv')['global_loss'].item() for run in runs
  }
  assert len(losses) == 2


def test_dropped_updates_are_shown(tmp_path):
  # Every update is longer than this.
  printed = digits_run.main(tmp_path, max_update_norm=1e-3)
  assert 'exceeds the norm bound: 6 in all rounds\n' in printed
  dropped = _summary(tmp_path)['dropped']
  assert dropped['num_clipped_clients'] == 6
  assert dropped['num_rejected_clients'] == 0
