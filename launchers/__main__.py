"""The command `tff-fair`, which starts one of the launchers."""

import ast
import importlib.util
import pathlib
import runpy
import sys

import tff_fair
from tff_fair import checks
from tff_fair.launchers import command_names

_COMMANDS = ('train', 'compare', 'reproduce', 'claims', 'report', 'predict')
_HELP = ('help', '-h', '--help')


def main() -> None:
  """Runs the launcher that the first argument names, with the other ones."""
  name = sys.argv[1] if len(sys.argv) > 1 else ''
  if name in _HELP:
    print(_usage())
  elif name == '--version':
    print(f'tff-fair {tff_fair.__version__}')
  elif name in _COMMANDS:
    del sys.argv[1]
    # As `python -m` does: a launcher prints the docstring of the main module.
    module = f'{__spec__.parent}.{name}'
    runpy.run_module(module, run_name='__main__', alter_sys=True)
  else:
    sys.exit(f'Error: {_complaint(name)}\n\n{_usage()}')


def _complaint(name: str) -> str:
  if not name:
    return 'a command is required.'
  guess = checks.did_you_mean(name, _COMMANDS)
  return f'the command must be one of those below, found {name!r}.{guess}'


def _usage() -> str:
  """The commands with a line each."""
  starts = {name: command_names.command(name) for name in _COMMANDS}
  width = max(map(len, starts.values()))
  lines = [
    f'  {start:{width}}  {_summary(module)}' for module, start in starts.items()
  ]
  return '\n'.join(['Commands, each with --help:', '', *lines])


def _summary(module: str) -> str:
  """The first line of a launcher's docstring, without importing it."""
  spec = importlib.util.find_spec(f'tff_fair.launchers.{module}')
  text = ast.get_docstring(ast.parse(pathlib.Path(spec.origin).read_text()))
  return text.partition('\n')[0]


if __name__ == '__main__':
  main()
