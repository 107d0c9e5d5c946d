"""What the data of a run are, in a few words, without TensorFlow."""

from collections.abc import Mapping
from typing import Any

from tasks import ehr_files
from tasks import ehr_synthetic
from tasks import sources


def describe(settings: Mapping[str, Any]) -> str:
  """The task of a run, and whether its records are synthetic.

  Args:
    settings: Flag name -> value, or its text in flags.txt.
  """
  if settings['task'] != 'ehr' or not _is_synthetic(settings):
    return settings['task']
  scale = float(settings.get('ehr_scale') or ehr_synthetic.DEFAULT_SCALE)
  return f'synthetic records (ehr_scale {scale:g})'


def _is_synthetic(settings) -> bool:
  try:
    return ehr_files.is_synthetic(settings.get('data_dir'))
  except sources.DataNotFoundError:
    # Of a finished run: a run that needs the files reports this itself.
    return False
