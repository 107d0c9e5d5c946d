"""Runs of FedAvg on a few digits, seen by callbacks."""

import json
import re
import shutil
import sys

import pytest

from tests.launchers import digits_run
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.runs import callbacks
from tff_fair.launchers.runs import training
from tff_fair.launchers.runs import user_callbacks

pytestmark = pytest.mark.usefixtures('runtime_as_before')

_FLAGS = (
  '--algorithm=fed_avg',
  '--task=digits',
  '--model=mlp_cffl_mnist',
  '--num_clients=3',
  '--data_fraction=0.2',
  '--device=cpu',
  '--rounds=5',
  '--eval_every=2',
  '--checkpoint_every=3',
)
_compiled = []


def _settings(*flags):
  flag_values = train_flags.parse([*_FLAGS, *flags])
  return settings_lib.resolve(flag_values, train_flags.FLAG_NAMES)


def _start(folder, *flags, callback=None):
  """A run with a callback of the user's, before it trains."""
  folder.mkdir(exist_ok=True)
  settings = _settings('--callbacks=mine.Own', *flags)
  own = []
  if callback:
    own = [user_callbacks.UserCallback('mine.Own', callback)]
  else:
    settings['callbacks'] = []
  run = training.Run(
    settings,
    folder,
    settings_lib.to_text(settings, None),
    like=_compiled[0] if _compiled else None,
    callbacks=own,
  )
  _compiled[:] = [run]
  return run


class _Recorder(callbacks.Callback):
  """Notes what it is called with, and may act in a round."""

  def __init__(self, act=lambda result: None):
    self.rounds, self.started, self.ended = [], [], []
    self._act = act

  def on_start(self, run):
    self.started.append(run.start)

  def after_round(self, run, result):
    self.rounds.append(result)
    # Its row is there, its checkpoint is not.
    rows = digits_run.read(run.directory.path, 'metrics.csv')
    assert rows['round'].max() == result.number == run.done
    assert rows['train_loss'].iloc[-1] == pytest.approx(
      float(result.row['train_loss'])
    )
    assert not _saved(run.directory.path, result.number)
    assert run.state is result.state
    return self._act(result)

  def on_end(self, run, summary):
    self.ended.append(summary)

  @property
  def numbers(self):
    return [result.number for result in self.rounds]


def _saved(folder, number):
  return (folder / f'checkpoints/round_{number}.safetensors').exists()


def _interrupt_after(number):
  def on_round(row):
    on_round.count += 1
    if on_round.count == number:
      raise KeyboardInterrupt

  on_round.count = 0
  return on_round


@pytest.fixture(scope='module', name='whole')
def _whole(tmp_path_factory):
  """An uninterrupted run, and what its callback saw."""
  folder = tmp_path_factory.mktemp('whole') / 'run'
  recorder = _Recorder()
  run = _start(folder, callback=recorder)
  run.train()
  return folder, recorder, run.finish(), run


def test_hooks_of_a_run(whole):
  folder, recorder, summary, run = whole
  assert recorder.started == [0]
  assert recorder.numbers == [1, 2, 3, 4, 5]
  assert recorder.ended == [summary]
  there = json.loads((folder / 'summary.json').read_text())
  assert there['final'] == summary['final']
  # Every other round, and the last.
  scored = [r.scores is not None for r in recorder.rounds]
  assert scored == [False, True, False, True, True]
  for before, after in zip(recorder.rounds, recorder.rounds[1:], strict=False):
    assert after.before is before.state
    assert after.before is not after.state
  frame = digits_run.read(folder, 'reports.csv')
  for result in recorder.rounds:
    rows = frame[frame['round'] == result.number]
    assert rows['client_id'].tolist() == sorted(result.reports['client_id'])
  weights = run.process.get_model_weights(recorder.rounds[0].state)
  assert weights.trainable[0].shape == (64, 128)
  assert [n for n in range(6) if _saved(folder, n)] == [3, 5]


@pytest.mark.full
def test_a_resumed_run_reports_each_round_once(whole, tmp_path):
  first, second, third = _Recorder(), _Recorder(), _Recorder()
  folder = tmp_path / 'run'
  run = _start(folder, callback=first)
  with pytest.raises(training.RunError, match='^stopped after round 2 of 5; r'):
    run.train(_interrupt_after(2))
  assert first.ended == [None]
  run = _start(folder, callback=second)
  run.train()
  run.finish()
  assert (first.numbers, second.numbers) == ([1, 2], [3, 4, 5])
  assert second.started == [2]
  assert digits_run.tables(folder) == digits_run.tables(whole[0])
  # As after `kill -9`: the rounds since the last checkpoint come again.
  for name in ('checkpoints/round_5.safetensors', 'summary.json'):
    (folder / name).unlink()
  run = _start(folder, callback=third)
  run.train()
  run.finish()
  assert third.numbers == [4, 5]
  assert digits_run.tables(folder) == digits_run.tables(whole[0])


def test_a_finished_run_has_nothing_to_report(whole, tmp_path):
  folder = tmp_path / 'run'
  shutil.copytree(whole[0], folder)
  before = json.loads((folder / 'summary.json').read_text())
  assert before['cpu_seconds'] > 0 and before['processor']
  recorder = _Recorder()
  run = _start(folder, callback=recorder)
  run.train()
  run.finish()
  assert not (recorder.started or recorder.rounds or recorder.ended)
  assert json.loads((folder / 'summary.json').read_text()) == before
  # A summary of an earlier version.
  for name in ('cpu_seconds', 'processor'):
    del before[name]
  (folder / 'summary.json').write_text(json.dumps(before))
  found = _start(folder).finish()
  assert (found['cpu_seconds'], found['processor']) == (None, None)


@pytest.mark.full
def test_a_callback_stops_the_run_at_the_next_evaluation(whole, tmp_path):
  folder, recorder = tmp_path / 'run', _Recorder(lambda r: r.number == 1)
  run = _start(folder, callback=recorder)
  run.train()
  summary = run.finish()
  assert recorder.numbers == [1, 2] and _saved(folder, 2)
  assert summary['stopped_early'] == {'round': 2, 'callback': 'mine.Own'}
  assert summary['rounds'] == 2
  assert run.stop.sentence(5) == (
    'stopped early after round 2 of 5: mine.Own has asked for it'
  )
  # The same command trains nothing; without the callback the run goes on.
  again = _Recorder()
  run = _start(folder, callback=again)
  run.train()
  assert run.finish()['stopped_early'] == summary['stopped_early']
  assert not again.rounds
  run = _start(folder)
  run.train()
  assert 'stopped_early' not in run.finish()
  assert digits_run.tables(folder) == digits_run.tables(whole[0])
  # A stop in the last round is the end.
  last = _start(
    tmp_path / 'last', '--rounds=1', callback=_Recorder(lambda r: True)
  )
  last.train()
  assert last.stop is None


@pytest.mark.full
def test_an_error_of_a_callback_ends_the_run_in_one_sentence(whole, tmp_path):
  def fail(result):
    if result.number == 2:
      raise KeyError('x')

  folder, recorder = tmp_path / 'run', _Recorder(fail)
  with pytest.raises(training.RunError) as error:
    _start(folder, callback=recorder).train()
  assert str(error.value).startswith(
    "The callback 'mine.Own' has failed in after_round: KeyError: 'x'"
    ' (callbacks_test.py, line '
  )
  assert 'The run has stopped after round 2 of 5; run' in str(error.value)
  assert _saved(folder, 2) and recorder.ended == [None]

  class FailsAtTheEnd(_Recorder):
    def on_end(self, run, summary):
      super().on_end(run, summary)
      raise SystemExit('gone')

  recorder = FailsAtTheEnd()
  run = _start(folder, callback=recorder)
  run.train()
  assert recorder.numbers == [3, 4, 5]
  with pytest.raises(training.USER_ERRORS, match="'mine.Own' has failed in on"):
    run.finish()
  assert len(recorder.ended) == 1 and recorder.ended[0]['rounds'] == 5
  assert digits_run.tables(folder) == digits_run.tables(whole[0])
  assert (folder / 'summary.json').exists()


_MODULE = """
import pathlib
from tff_fair.launchers.runs import callbacks

class Good(callbacks.Callback):
  pass

class Needs(callbacks.Callback):
  def __init__(self, argument):
    pass

function = print
"""


def test_what_callbacks_are_refused(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  # As in an installed program: the current folder is not on the path.
  monkeypatch.setattr(sys, 'path', [path for path in sys.path if path])
  (tmp_path / 'callbacks_of_mine.py').write_text(_MODULE)
  mine = 'callbacks_of_mine'
  for name, message in (
    ('no_such_module.A', "found ModuleNotFoundError: No module named 'no_such"),
    (f'{mine}.Missing', "found AttributeError: .*no attribute 'Missing'"),
    ('Good', "as in an import statement, for example 'my_module"),
    (f'{mine}.function', 'TypeError: None is of another class'),
    (f'{mine}.pathlib', "TypeError: 'module' object is not callable"),
    (f'{mine}.Needs', 'class that is built without arguments, .* TypeError'),
  ):
    with pytest.raises(settings_lib.SettingsError) as error:
      user_callbacks.load({'callbacks': [name]})
    assert str(error.value).startswith(f'--callbacks={name} must '), name
    assert str(error.value).count('\n') == 0
    assert re.search(message, str(error.value)), error.value
  found = user_callbacks.load({'callbacks': [f'{mine}.Good, {mine}.Good', '']})
  assert len(found) == 2


def test_all_callbacks_end_whatever_one_of_them_raises():
  class Fails(_Recorder):
    def __init__(self, error):
      super().__init__()
      self._error = error

    def on_end(self, run, summary):
      super().on_end(run, summary)
      raise self._error

  theirs, full_disk = user_callbacks.CallbackError('x'), OSError('full')
  for summary, errors, seen, raised in (
    ({}, [theirs], [{}, {}], theirs),
    # Those after one of ours end a run that has failed.
    ({}, [theirs, full_disk], [{}, {}, None], full_disk),
    (None, [theirs, full_disk], [None] * 3, None),
  ):
    members = [*map(Fails, errors), _Recorder()]
    try:
      user_callbacks.end(members, None, summary)
      found = None
    except (RuntimeError, OSError) as error:
      found = error
    assert found is raised
    assert [member.ended for member in members] == [[value] for value in seen]
