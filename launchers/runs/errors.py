"""Errors of a run that its user can fix; each message is one sentence."""

from tff_fair import runtime
from tff_fair import tasks
from tff_fair.launchers.runs import user_callbacks


class RunError(RuntimeError):
  """The run cannot start or continue."""


class DivergedError(RunError):
  """The run trained nothing, or its results are no longer finite."""


USER_ERRORS = (
  RunError,
  user_callbacks.CallbackError,
  runtime.WorkerError,
  tasks.DataNotFoundError,
  tasks.DataDamagedError,
  tasks.DataDiffersError,
)
