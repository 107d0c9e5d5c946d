"""Reports that follow runs in progress."""

import os
import shutil

from absl import flags
import pytest

from tests.launchers import report_run
from tff_fair.launchers import report
from tff_fair.launchers.pages import report_runs
from tff_fair.launchers.pages import report_watch

_FILES = ('flags.txt', 'metrics.csv', 'reports.csv', 'client_scores.csv')


class _EndedError(Exception):
  """There is no further step."""


class _Training:
  """Steps of a run that happen while the watch waits."""

  def __init__(self, folder, steps):
    self.folder = folder
    self.written = []  # What the watch wrote: (number of runs, watched).
    self.time = 1000.0
    self._steps = list(steps)

  def wait(self, seconds):
    assert seconds == 7
    if not self._steps:
      raise _EndedError
    step = self._steps.pop(0)
    if step is not None:
      step(self)

  def write(self, runs, watched):
    self.written.append((len(runs), watched))

  def watch(self, *others):
    return report_watch.Watch(
      [str(self.folder), *map(str, others)],
      self.write,
      7,
      wait=self.wait,
      now=lambda: self.time,
    )


def _round(source, time):
  """A step: the files of a run are as in `source`, written at a time."""

  def step(training):
    training.time = time
    for path in sorted(source.iterdir()):
      target = training.folder / path.name
      shutil.copy(path, target)
      os.utime(target, (time, time))

  return step


@pytest.fixture(name='rounds')
def _rounds(tmp_path):
  """A run after one, two and three of six rounds, and when it has finished."""
  options = dict(names=['a', 'b', 'c'])
  return [
    report_run.write(
      tmp_path / f'r{number}', rounds=number, finished=False, **options
    )
    for number in (1, 2)
  ] + [report_run.write(tmp_path / 'r3', rounds=3, **options)]


def test_a_page_is_written_after_each_round_until_the_end(rounds, tmp_path):
  folder = tmp_path / 'run'
  folder.mkdir()
  training = _Training(
    folder,
    [
      None,
      _round(rounds[0], 1000),
      None,
      _round(rounds[1], 1120),
      None,
      _round(rounds[2], 1240),
    ],
  )
  training.watch().follow()
  assert [number for number, _ in training.written] == [0, 1, 1, 1]
  *going, (_, last) = training.written
  assert last is None
  assert [watched.every for _, watched in going] == [7, 7, 7]
  assert [list(watched.lines) for _, watched in going] == [
    [f'{folder} waits for its first round.'],
    [
      'FedAvg: training, round 1 of 3; worst client 0.167 (client\u00a00 a),'
      ' mean 0.233.'
    ],
    [
      'FedAvg: training, round 2 of 3, about 2 min left; worst client 0.333'
      ' (client\u00a00 a), mean 0.467.'
    ],
  ]


def test_a_silent_run_is_said_to_be_silent(rounds, tmp_path):
  folder = tmp_path / 'run'
  folder.mkdir()

  def silence(training):
    training.time += 61

  training = _Training(folder, [_round(rounds[0], 1000), silence, silence])
  with pytest.raises(_EndedError):
    training.watch().follow()
  *_, before, (_, silent) = training.written
  assert 'training, round 1' in before[1].lines[0]
  assert silent.lines[0].startswith('FedAvg: no round since ')
  assert ', round 1 of 3; worst' in silent.lines[0]
  assert len(training.written) == 3  # Not once more in the same silence.


def test_a_file_in_the_midst_of_a_restart_is_read_again(rounds, tmp_path):
  folder = tmp_path / 'run'
  shutil.copytree(rounds[0], folder)
  text = (folder / 'client_scores.csv').read_text()

  def damage(training):
    training.time += 1
    (folder / 'client_scores.csv').write_text('round\n1\n')
    os.utime(folder / 'metrics.csv', 2 * (training.time,))

  def mend(training):
    del training
    (folder / 'client_scores.csv').write_text(text)

  training = _Training(folder, [damage, mend])
  with pytest.raises(_EndedError):
    training.watch().follow()
  assert len(training.written) >= 2
  training = _Training(folder, [damage, None])
  training.time = 2000.0
  with pytest.raises(report_runs.ReportError, match='must have the columns'):
    training.watch().follow()


def test_half_written_files_are_no_error(rounds, tmp_path):
  """Whatever a run has written of its first rounds, there is a page."""
  source = rounds[1]
  folder = tmp_path / 'run'
  for name in _FILES:
    content = (source / name).read_bytes()
    for length in sorted({0, 5, len(content) // 2, len(content) - 1}):
      shutil.rmtree(folder, ignore_errors=True)
      shutil.copytree(source, folder)
      if name == 'flags.txt':
        (folder / name).unlink()
      else:
        (folder / name).write_bytes(content[:length])
      runs, waiting = report_runs.read_started([str(folder)])
      assert len(runs) + len(waiting) == 1, (name, length)


def _main(*arguments):
  flag_values = flags.FlagValues()
  report.define_flags(flag_values)
  argv = flag_values(['report', *map(str, arguments)])
  report.main(argv, flag_values)


class TestPage:
  def test_reloads_itself_until_ctrl_c(self, tmp_path, monkeypatch, capsys):
    folder = tmp_path / '<b>run'
    folder.mkdir()
    page = folder / 'report.html'
    seen = []

    def interrupt(seconds):
      seen.append((seconds, page.read_text()))
      raise KeyboardInterrupt

    # The default of an argument is bound when the module is imported.
    defaults = {'wait': interrupt, 'now': lambda: 0}
    monkeypatch.setattr(report_watch.Watch.__init__, '__kwdefaults__', defaults)
    _main(folder, '--watch', '--every=9')
    ((seconds, during),) = seen
    assert seconds == 9
    assert '<meta http-equiv="refresh" content="9">' in during
    after = page.read_text()
    assert 'refresh' not in after
    for text in (during, after):
      assert 'No run has a round yet' in text
      assert '&lt;b&gt;run waits for its first round.' in text
    printed = capsys.readouterr().out.splitlines()
    assert printed == [
      f'report: {page} follows the runs until they have finished; Ctrl-C ends'
      ' this.',
      f'Interrupted: {page} shows the runs up to now.',
    ]

  def test_without_runs_is_refused(self, tmp_path):
    for arguments, expected in (
      ([tmp_path / 'x', '--watch'], 'found no such directory.'),
      ([tmp_path, '--every=3'], 'must be given with --watch'),
    ):
      with pytest.raises(SystemExit, match=expected):
        _main(*arguments)
    with pytest.raises(flags.IllegalFlagValueError):
      _main(tmp_path, '--watch', '--every=0')
