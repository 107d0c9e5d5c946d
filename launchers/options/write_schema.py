"""Writes what the launchers know of our builders without importing them.

  python -m launchers.options.write_schema

Run it after a change of a builder's signature, or of its docstring.
"""

from collections.abc import Sequence
import json
import sys

from tff_fair import algorithms
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import signatures


def main(argv: Sequence[str]) -> None:
  """Writes the schema.

  Args:
    argv: The program's name, and nothing else.
  """
  if len(argv) > 1:
    sys.exit(f'Error: there must be no arguments, found {argv[1]!r}.')
  methods.SCHEMA.write_text(to_text())


def to_text() -> str:
  """The schema as it should be: JSON with a line for each flag."""
  found = [
    _method_text(name, signatures.read(getattr(algorithms, f'build_{name}')))
    for name in sorted(methods.METHODS)
  ]
  return '{\n' + ',\n'.join(found) + '\n}\n'


def _method_text(name, signature) -> str:
  parts = signature.to_json()
  flags = ',\n '.join(map(_json, parts.pop('flags')))
  return f'{_json(name)}: {_json(parts)[:-1]}, "flags": [\n {flags}\n]}}'


def _json(value) -> str:
  return json.dumps(value, ensure_ascii=False)


if __name__ == '__main__':
  main(sys.argv)
