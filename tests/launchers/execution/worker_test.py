"""What a worker does with runs, in this process."""

import multiprocessing
import queue
import threading

import pytest

from tff_fair.launchers.comparison import plan
from tff_fair.launchers.comparison import schedule
from tff_fair.launchers.execution import outcomes
from tff_fair.launchers.execution import worker
from tff_fair.launchers.runs import run_files
from tff_fair.launchers.runs import training

pytestmark = [pytest.mark.full, pytest.mark.usefixtures('runtime_as_before')]


@pytest.fixture(name='signals', autouse=True)
def _signals(monkeypatch):
  # An event of processes would be another object after the test.
  signals = worker.Signals(
    multiprocessing.Value('q', 0), threading.Event(), queue.SimpleQueue()
  )
  monkeypatch.setattr(worker, '_signals', signals, raising=False)
  monkeypatch.setattr(worker, '_threads', 1)
  monkeypatch.setattr(worker, '_tasks', {})
  return signals


def _train(runs, measure=True):
  """The report of each run."""
  worker.train(runs, measure)
  reports = worker._signals.reports
  return [reports.get()[1] for _ in range(reports.qsize())]


def _kinds(runs, measure=True):
  return [report.kind for report in _train(runs, measure)]


def _runs(folder, method='fed_avg', rounds=2, seeds=(0,), **shared):
  planner = plan.Planner(
    shared={
      'task': 'digits',
      'model': 'mlp_cffl_mnist',
      'num_clients': 3,
      'data_fraction': 0.2,
      **shared,
    },
    rounds=rounds,
    tune=0,
    output_dir=folder,
  )
  return [planner.run(method, 0, seed) for seed in seeds]


def test_data_of_other_tasks_are_not_taken_for_those_of_a_run(
  monkeypatch, tmp_path
):
  monkeypatch.setattr(training, 'build_task', lambda found: [found['task']])
  (run,) = _runs(tmp_path)
  names = ('mnist', 'cifar10', 'mnist')
  built = [worker.build_task({**run.settings, 'task': n}) for n in names]
  assert built == [['mnist'], ['cifar10'], ['mnist']]
  assert built[0] is built[2]


def _times(folder):
  return {
    path: path.stat().st_mtime_ns
    for path in folder.rglob('*')
    if path.is_file() and path.name != '.lock'
  }


def test_runs_of_two_seeds_and_their_outcomes(tmp_path, signals):
  runs = _runs(tmp_path, seeds=(0, 1))
  reports = _train(runs)
  assert [report.kind for report in reports] == 2 * [worker.TRAINED]
  assert min(report.seconds for report in reports) > 0
  assert signals.rounds.value == 4
  first, second = (outcomes.read(run.output_dir) for run in runs)
  assert first.status == second.status == outcomes.FINISHED
  assert 0 < first.holdout_accuracy != second.holdout_accuracy < 1
  assert first.bytes_down == second.bytes_down > 0
  # Without the compilation, which the second run takes from the first.
  assert second.seconds['rounds'] < first.seconds['rounds']
  # The threads are those of this process, not of the run.
  assert 'client_threads' not in (runs[0].output_dir / 'flags.txt').read_text()
  before = _times(tmp_path)
  for measure in (True, False):
    assert _kinds(runs, measure) == 2 * [worker.TRAINED]
  assert _times(tmp_path) == before
  assert signals.rounds.value == 4


def test_a_diverged_run_is_an_outcome_and_not_run_again(tmp_path, signals):
  runs = _runs(tmp_path, rounds=4, client_learning_rate=1e30, max_update_norm=0)
  ((kind, sentence, _),) = _train(runs)
  assert kind == worker.DIVERGED and 'has diverged' in sentence
  outcome = outcomes.read(runs[0].output_dir)
  assert outcome == outcomes.Outcome(outcomes.DIVERGED, sentence)
  assert signals.rounds.value == 2  # Not the round that shows it.
  assert _kinds(runs) == [worker.TRAINED]
  assert signals.rounds.value == 2
  # Without outcomes it is a run that is not finished.
  ((kind, sentence, _),) = _train(runs, measure=False)
  assert kind == worker.DIVERGED and 'has diverged' in sentence


def test_clients_that_diverge_alone_are_an_outcome_too(tmp_path):
  # A single step, to weights that are finite, and outputs that are not.
  flags = {'client_learning_rate': 1e15, 'batch_size': 999, 'local_epochs': 1}
  runs = _runs(tmp_path, 'fed_sac', 1, (0, 1), max_update_norm=0, **flags)
  reports = _train(runs)
  assert [report.kind for report in reports] == 2 * [worker.DIVERGED]
  assert 'trained alone, is not finite' in reports[0].sentence
  outcome = outcomes.read(runs[0].output_dir)
  assert outcome == outcomes.Outcome(outcomes.DIVERGED, reports[0].sentence)


def test_what_the_task_does_not_allow(tmp_path):
  # Server validation, of which there is none.
  runs = _runs(tmp_path, 'cffl', holdout_fraction=0.0)
  ((kind, sentence, _),) = _train(runs)
  assert kind == worker.CANNOT
  assert sentence.startswith('--holdout_fraction must be above 0 for cffl')
  assert outcomes.read(runs[0].output_dir) is None


def test_a_directory_that_another_program_has(tmp_path):
  (run,) = _runs(tmp_path)
  with run_files.claim(run.output_dir):
    ((kind, sentence, _),) = _train([run])
  assert kind == worker.FAILED
  assert 'one launcher at a time' in sentence and '\n' not in sentence


def test_a_stopped_run_goes_on_from_where_it_was(tmp_path, signals):
  whole = _runs(tmp_path / 'whole', rounds=3)
  assert _kinds(whole) == [worker.TRAINED]
  runs = _runs(tmp_path / 'stopped', rounds=3, seeds=(0, 1))
  signals.rounds.value = 0

  class _After:
    """Set after the first round."""

    def is_set(self):
      return signals.rounds.value == 1

  worker._signals = signals._replace(stop=_After())
  ((kind, sentence, _),) = _train(runs)
  assert kind == worker.INTERRUPTED
  assert sentence.startswith('stopped after round 1 of 3')
  # Nothing else is begun.
  assert not runs[1].output_dir.exists()
  worker._signals = signals
  assert _kinds(runs[:1]) == [worker.TRAINED]
  for name in ('metrics.csv', 'clients.csv'):
    found, expected = (
      (r.output_dir / name).read_bytes() for r in (runs[0], whole[0])
    )
    assert found == expected
  found, expected = (outcomes.read(r.output_dir) for r in (runs[0], whole[0]))
  assert found.holdout_accuracy == expected.holdout_accuracy


def test_tasks_are_described_before_any_training(tmp_path):
  found = schedule.describe(_runs(tmp_path, seeds=(0, 1), client_fraction=0.7))
  assert found == {
    'num_clients': 3,
    'cohort_size': 2,
    'client_names': [],
    'notes': [],
    'positive_class': None,
    'has_holdout': True,
    'test_examples': found['test_examples'],
  }
  assert [len(sizes) for sizes in found['test_examples']] == [3, 3]
  assert min(map(min, found['test_examples'])) > 0
  assert found['test_examples'][0] != found['test_examples'][1]
  by_server = schedule.describe(
    _runs(tmp_path, split='server', validation_fraction=0.0)
  )
  (sizes,) = by_server['test_examples']
  assert len(set(sizes)) == 1 and len(sizes) == 3
  runs = _runs(tmp_path, holdout_fraction=0.0)
  assert not schedule.describe(runs)['has_holdout']
  found = schedule.describe(_runs(tmp_path, num_clients=10_000))
  assert found.kind == worker.FAILED
  assert found.sentence.startswith('10000 clients with at least 2 examples')
  assert not list(tmp_path.iterdir())
