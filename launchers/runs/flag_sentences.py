"""Messages about arguments, reworded with the flags that set them."""

from collections.abc import Mapping
import dataclasses
import re
from typing import Any

from tff_fair import tasks
from tff_fair.launchers.options import builders
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import run_flags

# Argument of a task or of its partition -> flag.
_OF_TASK = {
  **{field.name: field.name for field in dataclasses.fields(tasks.TaskOptions)},
  'seed': 'data_seed',
  'remainder': 'dirichlet_remainder',
}


def of_task(sentence: str) -> str:
  """Rewords a message of `tasks.build_task` for a user of flags."""
  return with_flags(sentence, _OF_TASK)


def of_builder(sentence: str, settings: Mapping[str, Any]) -> str:
  """Rewords a message of a method's builder for a user of flags."""
  method = methods.METHODS[settings['algorithm']]
  flags = {name: name for name in settings}
  for argument in run_flags.builder_arguments(method):
    found = builders.flags_of(method, argument)
    if len(found) == 1:
      flags[argument] = found[0].name
  return with_flags(sentence, flags)


def with_flags(sentence: str, flags: Mapping[str, str]) -> str:
  """Replaces arguments by flags in a sentence.

  It may begin with the name of an argument, and have other names that are no
  words of English, as they have an underscore.
  """
  # The longest first: one name may begin with another.
  names = sorted(map(re.escape, flags), key=len, reverse=True)
  first = '|'.join(names)
  inside = '|'.join(name for name in names if '_' in name)
  pattern = rf"^({first})(?=[ =])|(?<![-\w'\"./])({inside})(?![\w(/])"
  return re.sub(pattern, lambda match: f'--{flags[match[0]]}', sentence)
