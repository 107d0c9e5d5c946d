"""The callbacks of `--callbacks`: built by name, with errors that name them.

Nothing here imports TensorFlow.
"""

from collections.abc import Mapping, Sequence
import importlib
import os
import traceback
from typing import Any, NamedTuple

from tff_fair import plugins
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.runs import callbacks as callbacks_lib


class CallbackError(RuntimeError):
  """A callback of the user's has failed; the message is one sentence."""


class CallbackStop(NamedTuple):
  """A stop that a callback, as `--callbacks` names it, has asked for."""

  round: int
  callback: str

  def sentence(self, rounds: int) -> str:
    """Describes the stop of a run that was to have so many rounds."""
    return (
      f'stopped early after round {self.round} of {rounds}: {self.callback}'
      ' has asked for it'
    )


class UserCallback(callbacks_lib.Callback):
  """A callback of the user's, whose errors name it."""

  def __init__(self, name: str, callback: callbacks_lib.Callback):
    """Takes the callback and its name in `--callbacks`."""
    self._name = name
    self._callback = callback
    self._takes_part = self._wants_to_stop = False

  def on_start(self, run):
    """Calls the hook, unless the run is only shown again."""
    # A finished run that is shown again has nothing new to report.
    self._takes_part = not run.is_over
    self._call('on_start', run)

  def after_round(self, run, result):
    """Calls the hook, and stops the run in an evaluated round."""
    if self._call('after_round', run, result):
      self._wants_to_stop = True
    is_last = result.number == run.settings['rounds']
    if self._wants_to_stop and result.scores is not None and not is_last:
      return CallbackStop(result.number, self._name)
    return None

  def on_end(self, run, summary):
    """Calls the hook."""
    self._call('on_end', run, summary)

  def _call(self, hook, *arguments):
    if not self._takes_part:
      return None
    try:
      return getattr(self._callback, hook)(*arguments)
    except (Exception, SystemExit) as error:
      raise CallbackError(
        f'The callback {self._name!r} has failed in {hook}: {_reason(error)}.'
      ) from error


def end(
  callbacks: Sequence[callbacks_lib.Callback],
  run: Any,
  summary: Mapping[str, Any] | None,
) -> None:
  """Ends all callbacks, and then raises the first error.

  If the run has failed, which is a `summary` of None, its own error counts.
  After a callback of ours, the others end a run that has failed.
  """
  has_failed, failures = summary is None, []
  for callback in callbacks:
    try:
      callback.on_end(run, summary)
    except CallbackError as error:
      failures.append(error)
    except BaseException as error:  # A full disk, for example, or Ctrl-C.
      failures.insert(0, error)
      summary = None
  if failures and not has_failed:
    raise failures[0]


def load(settings: Mapping[str, Any]) -> list[UserCallback]:
  """Imports and builds the callbacks of `--callbacks`.

  Raises:
    SettingsError: If one cannot be imported or built, or is no callback.
  """
  plugins.load([])  # So that modules of the current folder are found.
  return [UserCallback(name, _build(name)) for name in _names(settings)]


def find_stop(
  summary: Mapping[str, Any], settings: Mapping[str, Any], done: int
) -> CallbackStop | None:
  """Finds the stop that a callback of this command has asked for earlier."""
  stop = summary.get('stopped_early')
  if not isinstance(stop, dict) or stop.get('round') != done:
    return None
  if stop.get('callback') not in _names(settings):
    return None
  return CallbackStop(done, stop['callback'])


def _names(settings) -> list[str]:
  texts = settings.get('callbacks') or []
  return [n.strip() for text in texts for n in text.split(',') if n.strip()]


def _build(name) -> callbacks_lib.Callback:
  module, _, attribute = name.rpartition('.')
  try:
    callback = getattr(importlib.import_module(module), attribute)()
    if not isinstance(callback, callbacks_lib.Callback):
      raise TypeError(f'{callback!r} is of another class')
  except (Exception, SystemExit) as error:
    raise settings_lib.SettingsError(
      f'--callbacks={name} must name a class that is built without arguments,'
      ' a subclass of tff_fair.launchers.runs.callbacks.Callback, as in an'
      f" import statement, for example 'my_module.MyCallback', found"
      f' {_reason(error)}.'
    ) from error
  return callback


def _reason(error) -> str:
  """The error, and the place in the user's code that raised it."""
  text = ' '.join(f'{type(error).__name__}: {error}'.split()).rstrip('.: ')
  for frame in traceback.extract_tb(error.__traceback__):
    if frame.filename not in (__file__, importlib.__file__) and (
      not frame.filename.startswith('<frozen')
    ):
      place = f'{os.path.basename(frame.filename)}, line {frame.lineno}'
      return f'{text} ({place})'
  return text
