"""Files for TensorBoard: curves, flags, accuracies of the clients.

Events are written as records of protocol buffers, without `tf.summary`: each of
its operations loses some memory in TensorFlow 2.14 with Python 3.11
(tensorflow/tensorflow#62551).
"""

import os
import re
import socket
import time

from tensorboard.compat.proto import event_pb2
from tensorboard.compat.proto import summary_pb2
from tensorboard.plugins.histogram import summary_v2 as histogram_summary
from tensorboard.plugins.text import summary_v2 as text_summary
import tensorflow as tf

from tff_fair.launchers.runs import callbacks
from tff_fair.launchers.runs import distances
from tff_fair.launchers.runs import errors
from tff_fair.launchers.runs import evaluation

FOLDER = 'tensorboard'
# Columns that begin with one of these and `_` are in a group of that name.
_GROUPS = (
  'client',
  'global',
  'personal',
  'unseen',
  'fine_tuned',
  'train',
  'aggregator',
  'finalizer',
)
_GROUPED = re.compile(rf'({"|".join(_GROUPS)})_(.+)')


def tag(column: str) -> str:
  """Puts a column of metrics.csv, or `seconds`, into a group of TensorBoard.

  For example `client/accuracy_mean`.
  """
  if column in distances.COLUMNS:
    return f'distance/{column}'
  found = _GROUPED.fullmatch(column)
  return '/'.join(found.groups()) if found else f'round/{column}'


class TensorBoard(callbacks.Callback):
  """Writes a file of events for each start of a run that trains."""

  def __init__(self, flags_text: str):
    """Takes the content of the flags file."""
    self._flags_text = flags_text
    self._file = None

  def after_round(self, run, result):
    """Writes the row, and the clients' accuracies if they were evaluated."""
    with errors.as_os_errors():
      if self._file is None:
        self._file = self._open(run, result.number)
      columns = {**result.row, 'seconds': result.seconds}
      values = [
        summary_pb2.Summary.Value(tag=tag(name), simple_value=value)
        for name, value in columns.items()
      ]
      summary = summary_pb2.Summary(value=values)
      if result.scores is not None:
        known = evaluation.honest_accuracies(result.scores, run.is_scored)
        known = known[known == known]  # Without NaN.
        if known.size:
          summary.MergeFrom(
            histogram_summary.histogram_pb('client/accuracy', known)
          )
      self._write(self._file, step=result.number, summary=summary)
      self._file.flush()

  def _open(self, run, round_number) -> tf.io.TFRecordWriter:
    """Begins a file, with the flags of the rounds from this one on."""
    folder = run.directory.path / FOLDER
    folder.mkdir(exist_ok=True)
    parts = ('events.out.tfevents', int(time.time()), socket.gethostname())
    name = '.'.join(map(str, (*parts, os.getpid(), round_number)))
    file = tf.io.TFRecordWriter(str(folder / name))
    self._write(file, file_version='brain.Event:2')
    # TensorBoard forgets these rounds of an earlier start.
    start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
    self._write(file, step=round_number, session_log=start)
    flags = text_summary.text_pb('flags', f'```\n{self._flags_text}```')
    self._write(file, step=round_number, summary=flags)
    return file

  def _write(self, file, **event) -> None:
    message = event_pb2.Event(wall_time=time.time(), **event)
    file.write(message.SerializeToString())
