"""Writes what the launchers know of our builders without importing them.

  python -m launchers.options.write_schema

Run it after a change of a builder's signature, or of its docstring.
"""

from collections.abc import Sequence
import dataclasses
import json
import sys

from tff_fair import algorithms
from tff_fair.algorithms import arguments
from tff_fair.launchers.options import builders
from tff_fair.launchers.options import methods
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.options.methods import entry


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
    _to_text(name, builders.read(builders.get(name)))
    for name in sorted(methods.METHODS)
  ]
  return '{\n' + ',\n'.join([_to_text('shared', _shared()), *found]) + '\n}\n'


def _shared() -> entry.Signature:
  """The flags of arguments that builders share, and whose name they have."""
  fields = dataclasses.fields(arguments.SharedArguments)
  types = {field.name: field.type for field in fields}
  builder = algorithms.build_fed_avg
  texts = builders.argument_texts(builder)
  found = []
  for name, parameter in builders.parameters(builder).items():
    flag = builders.flag_of(parameter.replace(annotation=types[name]), texts)
    if flag and name in train_flags.FLAGS and name != 'num_clients':
      found.append(dataclasses.replace(flag, argument=name))
  return entry.Signature(flags=found)


def _to_text(name, signature) -> str:
  parts = signature.to_json()
  flags = ',\n '.join(map(_json, parts.pop('flags')))
  return f'{_json(name)}: {_json(parts)[:-1]}, "flags": [\n {flags}\n]}}'


def _json(value) -> str:
  return json.dumps(value, ensure_ascii=False)


if __name__ == '__main__':
  main(sys.argv)
