"""Where TFF computations run."""

from tff_fair.runtime.execution import RUNTIME_KINDS
from tff_fair.runtime.execution import create_execution_context
from tff_fair.runtime.execution import set_execution_context

__all__ = [
  'RUNTIME_KINDS',
  'create_execution_context',
  'set_execution_context',
]
