"""The version of the code that trained a run."""

import functools
import pathlib
import subprocess

import tff_fair

_ROOT = pathlib.Path(tff_fair.__file__).parents[1]


@functools.cache
def code_version() -> str:
  """The version of tff-fair, in a clone with the commit.

  Returns:
    For example '0.1.0' of an installation, '0.1.0+c4737ab' of a clone, and
    '0.1.0+c4737ab.changed' of a clone whose tracked files differ from the
    commit, when this was first asked.
  """
  commit = _commit()
  return f'{tff_fair.__version__}+{commit}' if commit else tff_fair.__version__


def _commit() -> str:
  if not (_ROOT / '.git').exists():
    return ''
  try:
    found = subprocess.run(
      ['git', 'describe', '--always', '--exclude=*', '--dirty=.changed'],
      cwd=_ROOT,
      capture_output=True,
      text=True,
      timeout=30,
      check=True,
    )
  except (OSError, subprocess.SubprocessError):  # No git, or no commit.
    return ''
  return found.stdout.strip()
