"""Data sets divided over clients, with the models that learn them."""

from tasks.amounts import stated_amounts
from tasks.options import MODEL_NAMES
from tasks.options import PARTITION_NAMES
from tasks.options import SPLIT_NAMES
from tasks.options import TaskOptions
from tasks.registry import TASK_NAMES
from tasks.registry import build_task
from tasks.sources import DataDamagedError
from tasks.sources import DataNotFoundError
from tasks.task import ClientExamples
from tasks.task import Examples
from tasks.task import Task

__all__ = [
  'MODEL_NAMES',
  'PARTITION_NAMES',
  'SPLIT_NAMES',
  'TASK_NAMES',
  'ClientExamples',
  'DataDamagedError',
  'DataNotFoundError',
  'Examples',
  'Task',
  'TaskOptions',
  'build_task',
  'stated_amounts',
]
