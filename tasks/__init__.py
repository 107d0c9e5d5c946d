"""Data sets divided over clients, with the models that learn them."""

from tff_fair.splits import TEST_LEAKS
from tff_fair.tasks.amounts import stated_amounts
from tff_fair.tasks.options import TaskOptions
from tff_fair.tasks.registry import PARTITION_NAMES
from tff_fair.tasks.registry import TASK_NAMES
from tff_fair.tasks.registry import build_task
from tff_fair.tasks.registry import check_task
from tff_fair.tasks.registry import get_data_set
from tff_fair.tasks.registry import is_synthetic
from tff_fair.tasks.registry import unused_options
from tff_fair.tasks.rules import MODEL_NAMES
from tff_fair.tasks.rules import SPLIT_NAMES
from tff_fair.tasks.rules import DataSet
from tff_fair.tasks.sources import DataDamagedError
from tff_fair.tasks.sources import DataDiffersError
from tff_fair.tasks.sources import DataNotFoundError
from tff_fair.tasks.sources import check_data_dir
from tff_fair.tasks.sources import fingerprint
from tff_fair.tasks.task import ClientExamples
from tff_fair.tasks.task import Examples
from tff_fair.tasks.task import Task

__all__ = [
  'MODEL_NAMES',
  'PARTITION_NAMES',
  'SPLIT_NAMES',
  'TASK_NAMES',
  'TEST_LEAKS',
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
  'check_task',
  'fingerprint',
  'get_data_set',
  'is_synthetic',
  'stated_amounts',
  'unused_options',
]
