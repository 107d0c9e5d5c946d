"""What a report says first: warnings of differences, and the answer."""

import dataclasses

import pytest

from tests.launchers import report_run
from tff_fair import tasks
from tff_fair.launchers.pages import report_answer
from tff_fair.launchers.pages import report_differences
from tff_fair.launchers.pages import report_runs
from tff_fair.launchers.pages import report_tables


def _read(*folders):
  runs = report_runs.read_runs([str(folder) for folder in folders])
  return runs, report_differences.compare(runs)


def _said(*folders):
  text = ' '.join(report_answer.sentences(*_read(*folders)))
  return text.replace('\u00a0', ' ')


def _is_marked(runs, comparison):
  groups = report_tables.fairness_groups(runs, comparison)
  rows = sum(groups.values(), [])
  return any(cell.best for row in rows for cell in row.cells)


class TestAnswer:
  def test_of_one_run(self, tmp_path):
    # Jain: 2.1^2 / (3 * 1.55).
    assert _said(report_run.write(tmp_path / 'x')) == (
      'On digits with 3 clients, after 3 rounds, FedAvg gives the clients a'
      ' mean accuracy of 0.7000. The worst client has 0.5000 (client 0), the'
      ' best 0.9000. Jain’s index, 1 if all clients have the same, is 0.9484.'
      ' One run says nothing about chance.'
    )

  def test_of_two_runs(self, tmp_path):
    boost = report_run.write(tmp_path / 'b', algorithm='fedaboost')
    # Jain: 1.8^2 / (3 * 1.34).
    average = report_run.write(
      tmp_path / 'a', (0.7, 0.2, 0.9), names=['Rå', 'Nord', 'Süd']
    )
    assert report_answer.sentences(*_read(boost, average)) == [
      'On digits with 3 clients, after 3 rounds, the mean accuracy of the'
      ' clients is higher with FeDABoost: 0.7000, against 0.6000 with FedAvg.',
      'The accuracy of the worst client is higher with FeDABoost: 0.5000'
      ' (client\u00a00), against 0.2000 (client\u00a01 Nord) with FedAvg.',
      'Jain’s index, 1 if all clients have the same, is higher with FeDABoost:'
      ' 0.9484, against 0.8060 with FedAvg.',
      'One run of each says nothing about chance.',
    ]

  def test_of_runs_with_equal_numbers(self, tmp_path):
    equal = [
      report_run.write(tmp_path / name, algorithm=name)
      for name in ('fed_avg', 'ditto')
    ]
    said = _said(*equal)
    assert 'the mean accuracy of the clients is 0.7000 in both runs.' in said
    assert 'worst client is 0.5000 in both runs (client 0).' in said
    assert 'higher' not in said
    low = [
      report_run.write(tmp_path / name, (0.5, 0.6, a), algorithm=name)
      for name, a in (('moon', 0.7), ('scaffold', 0.4))
    ]
    said = _said(*equal, low[0])
    assert (
      'highest with FedAvg and Ditto: 0.7000, against 0.6000 with MOON.' in said
    )
    assert 'against 0.5000 to 0.6000 with the others.' in _said(equal[0], *low)

  def test_of_more_than_ten_clients_has_the_worst_tenth(self, tmp_path):
    accuracy = [0.2, 0.4] + 9 * [1.0]
    run = report_run.write(tmp_path / 'x', accuracy, num_train=11 * [5])
    assert 'The worst 10 % (2 clients) have 0.3000 in the mean.' in _said(run)

  def test_of_repeats_is_a_range(self, tmp_path):
    folders = [
      report_run.write(tmp_path / str(seed), (0.5, 0.7, last), model_seed=seed)
      for seed, last in ((0, 0.9), (1, 0.6))
    ]
    runs, comparison = _read(*folders)
    assert not _is_marked(runs, comparison)
    assert comparison.warnings == [
      'These runs are repeats with other seeds: model_seed (0, 1). No best'
      ' value is marked.'
    ]
    # Jain: 1.8^2 / (3 * 1.1).
    assert _said(*folders) == (
      'On digits with 3 clients, after 3 rounds, in 2 runs with other seeds:'
      ' the mean accuracy of the clients is 0.6000 to 0.7000, the accuracy of'
      ' the worst client is 0.5000 and Jain’s index is 0.9484 to 0.9818.'
    )

  def test_of_an_unfinished_run_ranks_nothing(self, tmp_path):
    # Two thirds of the accuracies.
    going = report_run.write(
      tmp_path / 'x', algorithm='ditto', finished=False, rounds=2
    )
    done = report_run.write(tmp_path / 'y', (0.5, 0.5, 0.5))
    assert _said(going, done) == (
      'On digits with 3 clients, accuracies of the clients: Ditto, after round'
      ' 2 of 3, unfinished: mean 0.467, worst client 0.333 (client 0), Jain’s'
      ' index 0.948. FedAvg, after 3 rounds: mean 0.500, worst client 0.500,'
      ' Jain’s index 1.000.'
    )
    early = report_run.write(
      tmp_path / 'z', finished=False, rounds=1, eval_every=2
    )
    assert (
      'FedAvg has no scores yet; it is unfinished, after round 1 of 3.'
      in (_said(early))
    )

  def test_of_a_run_that_stopped_early(self, tmp_path):
    run = report_run.write(tmp_path / 'x', rounds=2)
    assert 'after 2 rounds (stopped early), FedAvg' in _said(run)

  @pytest.mark.parametrize(
    'accuracy,who',
    [
      ((0.5, 0.5, 0.9, 1), ' (clients 0 and 1)'),
      ((0.5, 0.5, 0.5, 1), ' (3 clients)'),
      ((0.5, 0.5, 0.5, 0.5), ''),
    ],
  )
  def test_names_up_to_two_worst_clients(self, tmp_path, accuracy, who):
    run = report_run.write(tmp_path / 'x', accuracy, num_train=4 * [5])
    assert f'The worst client has 0.5000{who}, the best' in _said(run)


# A flag with the values of two runs, and the warning, if there is one.
_UNLIKE = (
  'These runs differ in {}: their numbers do not tell which is better, and no'
  ' best value is marked.'
)
_DIFFERENCES = (
  # No best mark.
  ('data_seed', (0, 1), _UNLIKE),
  ('model_seed', (0, 1), _UNLIKE),
  ('client_seed', (0, 1), _UNLIKE),
  ('task', ('digits', 'mnist'), _UNLIKE),
  ('partition', ('dirichlet', 'equal'), _UNLIKE),
  ('split', ('client', 'server'), _UNLIKE),
  ('local_epochs', (1, 5), _UNLIKE),
  ('test_leak', (None, 'test_trains'), _UNLIKE),
  ('score_last', (None, 3), _UNLIKE),
  ('model', ('linear', 'mlp'), _UNLIKE),
  ('version', ('0.1.0', '0.2.0'), _UNLIKE),
  # Said, with best marks.
  ('batch_size', (16, 32), 'The runs differ in {}.'),
  ('client_learning_rate', (0.1, 0.2), 'The runs differ in {}.'),
  ('client_fraction', (0.5, 1.0), 'The runs differ in {}.'),
  ('server_optimizer', ('adam', 'yogi'), 'The runs differ in {}.'),
  # The subject of a comparison, or without effect on the numbers.
  ('boost_rate', (0.1, 0.2), None),
  ('runtime', ('device', 'native'), None),
  ('data_dir', ('a', 'b'), None),
  ('checkpoint_every', (1, 2), None),
)


def test_differences_and_best_marks(tmp_path):
  runs, _ = _read(
    report_run.write(tmp_path / 'x', algorithm='fedaboost'),
    report_run.write(tmp_path / 'y', (0.2, 0.7, 0.9)),
  )
  for name, values, warning in _DIFFERENCES:
    differing = [
      dataclasses.replace(run, version=value)
      if name == 'version'
      else dataclasses.replace(run, settings={**run.settings, name: str(value)})
      for run, value in zip(runs, values, strict=True)
    ]
    comparison = report_differences.compare(differing)
    shown = f'{name} ({", ".join(map(str, values))})'
    expected = [warning.format(shown)] if warning else []
    assert comparison.warnings == expected, name
    assert _is_marked(differing, comparison) == (warning is not _UNLIKE), name
    said = ' '.join(report_answer.sentences(differing, comparison))
    assert ('higher' in said) == (warning is not _UNLIKE), name


class TestDifferences:
  def test_a_method_in_turn_is_not_better_than_others(self, tmp_path):
    names = ('fed_avg', 'dssgd', 'round_robin_fed_avg')
    folders = [
      report_run.write(tmp_path / name, (0.5, 0.7, best), algorithm=name)
      for name, best in zip(names, (0.7, 0.8, 0.9), strict=True)
    ]
    runs, comparison = _read(*folders[:2])
    assert [str(difference) for difference in comparison.unlike] == [
      'updates in a row a round (one, one a client)'
    ]
    assert not _is_marked(runs, comparison)
    runs, comparison = _read(*folders[1:])
    assert not comparison.unlike
    assert _is_marked(runs, comparison)

  def test_rounds_are_those_that_are_done(self, tmp_path):
    folders = [
      report_run.write(tmp_path / 'x', algorithm='ditto', rounds=2),
      report_run.write(tmp_path / 'y'),
    ]
    runs, comparison = _read(*folders)
    assert not _is_marked(runs, comparison)
    assert 'rounds (2, 3)' in comparison.warnings[0]

  def test_what_a_run_does_not_know_is_no_difference(self, tmp_path):
    # An older version, and a method that does not read the flags.
    folders = [
      report_run.write(
        tmp_path / 'x', version='0.2.0', local_epochs=5, model='mlp_digits'
      ),
      report_run.write(tmp_path / 'y', algorithm='ditto'),
    ]
    _, comparison = _read(*folders)
    default = tasks.get_data_set('digits').default('model')
    assert [str(d) for d in comparison.unlike] == [
      f'model (mlp_digits, {default})'
    ]

  def test_many_are_counted(self, tmp_path):
    folders = [
      report_run.write(
        tmp_path / str(i),
        data_seed=i,
        model_seed=i,
        client_seed=i,
        local_epochs=i,
        test_fraction=i / 10,
        data_fraction=i / 10,
        min_samples=i,
      )
      for i in (1, 2)
    ]
    _, comparison = _read(*folders)
    assert (
      'local_epochs (1, 2), model_seed (1, 2), 2 more (see Settings):'
      in (comparison.warnings[0])
    )
