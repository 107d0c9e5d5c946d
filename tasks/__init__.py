"""Data sets divided over clients, with the models that learn them."""

from tasks.options import PARTITION_NAMES
from tasks.registry import TASK_NAMES
from tasks.registry import build_task
from tasks.sources import DataDamagedError
from tasks.sources import DataNotFoundError
from tasks.task import ClientExamples
from tasks.task import Examples
from tasks.task import Task

__all__ = [
  'PARTITION_NAMES',
  'TASK_NAMES',
  'ClientExamples',
  'DataDamagedError',
  'DataNotFoundError',
  'Examples',
  'Task',
  'build_task',
]
