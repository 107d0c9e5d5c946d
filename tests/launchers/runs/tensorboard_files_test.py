"""What TensorBoard reads of a run, by its own reader."""

import types

import numpy as np
import pytest
from tensorboard.backend.event_processing import plugin_event_accumulator
from tensorboard.util import tensor_util
import tensorflow as tf

from tff_fair import metrics
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.runs import callbacks
from tff_fair.launchers.runs import tensorboard_files


def _write(folder, rounds, *flags, accuracies=(0.5, np.nan, 0.01)):
  """A start of a run that trains these rounds, with an evaluation in each."""
  flag_values = train_flags.parse(['--algorithm=fed_avg', *flags])
  settings = settings_lib.resolve(flag_values, train_flags.FLAG_NAMES)
  text = settings_lib.to_text(settings, None)
  run = types.SimpleNamespace(
    settings=settings,
    directory=types.SimpleNamespace(path=folder),
    is_scored=[True] * 3,
  )
  scores = metrics.ClientScores(
    None, np.array(accuracies), None, None, None, None, {}
  )
  callback = tensorboard_files.TensorBoard(text)
  for number in rounds:
    row = {'train_loss': np.float32(number), 'num_clients': np.int64(3)}
    scored = {'global': scores} if len(accuracies) else None
    callback.after_round(
      run,
      callbacks.RoundResult(number, row, None, scored, *[None] * 3, 0.25),
    )


def _read(run):
  found = plugin_event_accumulator.EventAccumulator(str(run / 'tensorboard'))
  return found.Reload()


def _steps(found, tag):
  return [event.step for event in found.Tensors(tag)]


def _content(found, tag):
  (first, *_) = found.Tensors(tag)
  return tensor_util.make_ndarray(first.tensor_proto)


def test_curves_histogram_and_flags(tmp_path):
  _write(tmp_path, [1, 2], '--rounds=7', '--robust', '--stop_after=3')
  found = _read(tmp_path)
  assert _steps(found, 'train/loss') == [1, 2]
  assert float(_content(found, 'round/num_clients')) == 3
  assert float(_content(found, 'round/seconds')) == 0.25
  buckets = _content(found, 'client/accuracy')
  # Without the client that has no score.
  assert buckets[:, 2].sum() == 2
  assert (buckets[0, 0], buckets[-1, 1]) == (0.01, 0.5)
  (text,) = _content(found, 'flags').reshape(-1)
  assert text.startswith(b'```\n# Preset: none.\n--algorithm=fed_avg\n')
  assert b'\n--stop_after=3\n' in text and text.endswith(b'\n```')


def test_a_resumed_run_has_each_round_once(tmp_path):
  _write(tmp_path, [1, 2, 3])
  _write(tmp_path, [3, 4])
  _write(tmp_path, [])  # It was complete: it leaves no file.
  assert len(list((tmp_path / 'tensorboard').iterdir())) == 2
  found = _read(tmp_path)
  for tag in ('train/loss', 'client/accuracy'):
    assert _steps(found, tag) == [1, 2, 3, 4]
  assert _steps(found, 'flags') == [1, 3]


@pytest.mark.parametrize('accuracies', [(), (np.nan,) * 3])
def test_without_scores_there_is_no_histogram(accuracies, tmp_path):
  _write(tmp_path, [1, 2], accuracies=accuracies)
  found = _read(tmp_path)
  assert _steps(found, 'train/loss') == [1, 2]
  assert 'client/accuracy' not in found.Tags()['tensors']


def test_a_full_disk_is_an_os_error(tmp_path, monkeypatch):
  writer = tf.io.TFRecordWriter
  monkeypatch.setattr(tf.io, 'TFRecordWriter', lambda path: writer('/dev/full'))
  with pytest.raises(OSError, match='No space left on device'):
    _write(tmp_path, [1])
