"""The commands that start the launchers, as the user has to type them."""

import re
import sys

# A command in a docstring, and the name of the launcher's module.
_IN_TEXT = re.compile(r'python -m launchers\.([a-z_]+)')


def command(module: str) -> str:
  """Returns the command of a launcher, in the form that started this program.

  `python -m launchers.train` in a clone, if that is how the user starts
  programs there, otherwise `tff-fair train`.
  """
  spec = getattr(sys.modules['__main__'], '__spec__', None)
  if spec and spec.name.partition('.')[0] == 'launchers':
    return f'python -m launchers.{module}'
  return f'tff-fair {module.replace("_", "-")}'


def in_text(text: str) -> str:
  """Replaces each `python -m launchers.NAME` in a text by `command(NAME)`."""
  return _IN_TEXT.sub(lambda match: command(match[1]), text)
