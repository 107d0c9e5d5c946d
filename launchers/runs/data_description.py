"""Describes the data of a run in a few words, without TensorFlow."""

from collections.abc import Mapping
import os
from typing import Any

from tff_fair import tasks
from tff_fair.tasks import ehr_synthetic


def describe(settings: Mapping[str, Any]) -> str:
  """Names the task or the file of a run, and says if records are synthetic.

  Args:
    settings: Flag name -> value, or its text in flags.txt.
  """
  if settings.get('data_file'):
    return os.path.basename(settings['data_file'])
  if not _is_synthetic(settings):
    return settings['task']
  scale = float(settings.get('ehr_scale') or ehr_synthetic.DEFAULT_SCALE)
  return f'synthetic records (ehr_scale {scale:g})'


def _is_synthetic(settings) -> bool:
  try:
    return tasks.is_synthetic(settings['task'], settings.get('data_dir'))
  except (ValueError, tasks.DataNotFoundError):
    # An unknown task, or half of the files: a run itself reports both errors.
    return False
