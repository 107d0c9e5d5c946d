"""Files for TensorBoard: curves, flags, accuracies of the clients.

Events are written as records of protocol buffers, without `tf.summary`: each of
its operations loses some memory in TensorFlow 2.14 with Python 3.11
(tensorflow/tensorflow#62551).
"""

from collections.abc import Mapping, Sequence
import os
import pathlib
import re
import socket
import time
from typing import Any

import numpy as np
from tensorboard.compat.proto import event_pb2
from tensorboard.compat.proto import summary_pb2
from tensorboard.plugins.histogram import summary_v2 as histogram_summary
from tensorboard.plugins.hparams import api as hparams_api
from tensorboard.plugins.text import summary_v2 as text_summary
import tensorflow as tf

from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.runs import distances
from tff_fair.launchers.runs import file_errors

FOLDER = 'tensorboard'
# Columns that begin with one of these and `_` are in a group of that name.
_GROUPS = ('client', 'global', 'personal', 'train', 'aggregator', 'finalizer')
_GROUPED = re.compile(rf'({"|".join(_GROUPS)})_(.+)')
# TensorBoard's table of hyper-parameters shows five at first.
_FIRST = (
  'algorithm',
  'task',
  'num_clients',
  'local_epochs',
  'client_learning_rate',
)
# The results in that table: column of metrics.csv -> heading.
_RESULTS = {
  'client_accuracy_mean': 'mean client accuracy',
  'client_accuracy_worst10': 'accuracy of the worst 10 %',
  'client_accuracy_min': 'accuracy of the worst client',
  'global_accuracy': 'global accuracy',
}


def tag(column: str) -> str:
  """The name in TensorBoard of a column of metrics.csv.

  Args:
    column: The name of the column, or `seconds`.

  Returns:
    The name with its group, for example `client/accuracy_mean`.
  """
  if column in distances.COLUMNS:
    return f'distance/{column}'
  found = _GROUPED.fullmatch(column)
  return '/'.join(found.groups()) if found else f'round/{column}'


class TensorBoardFiles:
  """Writes a file of events for each start of a run that trains."""

  def __init__(
    self, run: pathlib.Path, settings: Mapping[str, Any], flags_text: str
  ):
    """Writes nothing yet: a run that was complete at its start trains nothing.

    Args:
      run: The run's directory.
      settings: The flag values of the run.
      flags_text: The content of the flags file.
    """
    self._folder = run / FOLDER
    self._settings = settings
    self._flags_text = flags_text
    self._file = None

  def write_round(
    self,
    round_number: int,
    metrics: Mapping[str, float],
    accuracies: Sequence[float] = (),
  ) -> None:
    """Writes a round.

    Args:
      round_number: The round.
      metrics: Column -> value; of metrics.csv, and `seconds`.
      accuracies: The accuracy of each client, if they have just been evaluated;
        NaN is left out.

    Raises:
      OSError: If the file cannot be written.
    """
    with file_errors.as_os_errors():
      if self._file is None:
        self._file = self._open(round_number)
      values = [
        summary_pb2.Summary.Value(tag=tag(name), simple_value=value)
        for name, value in metrics.items()
      ]
      summary = summary_pb2.Summary(value=values)
      known = np.asarray(accuracies, float)
      known = known[~np.isnan(known)]
      if known.size:
        summary.MergeFrom(
          histogram_summary.histogram_pb('client/accuracy', known)
        )
      self._write(self._file, step=round_number, summary=summary)
      self._file.flush()

  def _open(self, round_number) -> tf.io.TFRecordWriter:
    """Begins a file, with the flags of the rounds from this one on."""
    self._folder.mkdir(exist_ok=True)
    parts = ('events.out.tfevents', int(time.time()), socket.gethostname())
    name = '.'.join(map(str, (*parts, os.getpid(), round_number)))
    file = tf.io.TFRecordWriter(str(self._folder / name))
    self._write(file, file_version='brain.Event:2')
    # TensorBoard forgets these rounds of an earlier start.
    start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
    self._write(file, step=round_number, session_log=start)
    self._write(file, step=round_number, summary=self._flags())
    return file

  def _flags(self) -> summary_pb2.Summary:
    """The flags as a text and as hyper-parameters."""
    relevant = settings_lib.relevant(self._flags_text)
    names = [name for name in _FIRST if name in relevant]
    names.extend(name for name in relevant if name not in _FIRST)
    hyper = {name: self._settings[name] for name in names}
    summary = text_summary.text_pb('flags', f'```\n{self._flags_text}```')
    summary.MergeFrom(
      hparams_api.hparams_config_pb(
        hparams=[hparams_api.HParam(name) for name in hyper],
        metrics=[
          hparams_api.Metric(tag(name), display_name=title)
          for name, title in _RESULTS.items()
        ],
      )
    )
    summary.MergeFrom(hparams_api.hparams_pb(hyper))
    return summary

  def _write(self, file, **event) -> None:
    message = event_pb2.Event(wall_time=time.time(), **event)
    file.write(message.SerializeToString())
