"""Flags of absl whose values are files or folders: `~` is the user's home.

Shells leave it as it is after the `=` of a flag.
"""

import os
from typing import Any

from absl import flags

# Flags that `define` defines belong to the module that calls it.
flags.disclaim_key_flags()


class _Parser(flags.ArgumentParser):
  """Replaces the home folder in a path."""

  def parse(self, argument: str) -> str:
    """Returns the path."""
    return expand(argument)


def expand(path: str) -> str:
  """Replaces `~` and `~user` at the start of a path by the home folder.

  Raises:
    ValueError: If there is no such user.
  """
  found = os.path.expanduser(path)
  if found.startswith('~'):
    raise ValueError(
      'a path must begin with ~ only for a home folder, found'
      f' {path!r}, of no user; ./{path} is a folder of that name'
    )
  return found


def define(
  name: str, default: str | None, help: str, flag_values: flags.FlagValues
) -> None:
  """Defines a flag that is a path."""
  flags.DEFINE(
    _Parser(),
    name,
    default,
    help,
    flag_values,
    flags.ArgumentSerializer(),
  )


def define_multi(
  name: str, default: Any, help: str, flag_values: flags.FlagValues
) -> None:
  """Defines a flag that may be repeated, whose value is a list of paths."""
  flags.DEFINE_multi(
    _Parser(),
    flags.ArgumentSerializer(),
    name,
    default,
    help,
    flag_values,
  )
