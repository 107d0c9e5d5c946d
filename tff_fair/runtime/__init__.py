"""Where TFF computations run."""

from tff_fair.runtime.execution import RUNTIME_KINDS
from tff_fair.runtime.execution import set_execution_context

__all__ = ['RUNTIME_KINDS', 'set_execution_context']
