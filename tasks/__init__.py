"""Data sets divided over clients, with the models that learn them."""

from tasks.amounts import stated_amounts
from tasks.options import TaskOptions
from tasks.registry import PARTITION_NAMES
from tasks.registry import TASK_NAMES
from tasks.registry import build_task
from tasks.registry import get_data_set
from tasks.registry import is_synthetic
from tasks.registry import unused_options
from tasks.rules import MODEL_NAMES
from tasks.rules import SPLIT_NAMES
from tasks.rules import DataSet
from tasks.sources import DataDamagedError
from tasks.sources import DataDiffersError
from tasks.sources import DataNotFoundError
from tasks.sources import check_data_dir
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
  'DataDiffersError',
  'DataNotFoundError',
  'DataSet',
  'Examples',
  'Task',
  'TaskOptions',
  'build_task',
  'check_data_dir',
  'get_data_set',
  'is_synthetic',
  'stated_amounts',
  'unused_options',
]
