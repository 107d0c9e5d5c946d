"""Whether clients of a run are attackers. Nothing here imports TensorFlow."""

from collections.abc import Mapping
from typing import Any


def is_attacked(settings: Mapping[str, Any]) -> bool:
  """Returns whether some clients of a run are attackers.

  Args:
    settings: Flag name -> value, or its text.
  """
  return settings.get('attack') not in (None, 'none')
