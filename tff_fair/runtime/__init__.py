"""Runtimes that execute TFF computations."""

from tff_fair.runtime.client_reference import ClientReference
from tff_fair.runtime.execution import RUNTIME_KINDS
from tff_fair.runtime.execution import create_execution_context
from tff_fair.runtime.execution import set_execution_context
from tff_fair.runtime.program_context import create_federated_context
from tff_fair.runtime.worker_error import WorkerError

__all__ = [
  'RUNTIME_KINDS',
  'ClientReference',
  'WorkerError',
  'create_execution_context',
  'create_federated_context',
  'set_execution_context',
]
