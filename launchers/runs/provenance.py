"""The code and the machine that trained a run."""

import functools
import pathlib
import platform
import subprocess

import tff_fair

_ROOT = pathlib.Path(tff_fair.__file__).parents[1]
_CPUINFO = pathlib.Path('/proc/cpuinfo')


@functools.cache
def code_version() -> str:
  """Returns the version of tff-fair, in a clone with the commit.

  For example '0.1.0' of an installation, '0.1.0+c4737ab' of a clone, and
  '0.1.0+c4737ab.changed' of a clone whose tracked files differ from the commit,
  when this was first asked.
  """
  commit = _commit()
  return f'{tff_fair.__version__}+{commit}' if commit else tff_fair.__version__


def processor_name() -> str:
  """Returns the model of the processor, as the operating system calls it."""
  try:
    lines = _CPUINFO.read_text().splitlines()
  except (OSError, ValueError):  # Not Linux.
    lines = []
  for line in lines:
    name, _, value = line.partition(':')
    if name.strip() == 'model name':
      return value.strip()
  return platform.processor() or platform.machine()


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
