"""Imports point one way, also those inside functions."""

import ast
import pathlib

_ROOT = pathlib.Path(__file__).resolve().parents[1]
# A module may import those of its own name and what stands on lines below. A
# name stands for all that begins with it.
_LAYERS = """
launchers.__main__
launchers.claims launchers.compare launchers.predict launchers.report
launchers.reproduce launchers.train launchers.write_docs
launchers.__init__
launchers.claiming
launchers.results
launchers.pages
launchers.tables
launchers.plots
launchers.comparison
launchers.differences launchers.options.write_docs launchers.summary
launchers.execution launchers.frame launchers.measures launchers.new_examples
launchers.show
launchers.runs
launchers.cli
launchers.options
launchers.command_names launchers.interrupts
launchers.statistics
launchers.scripts
tasks
plugins
algorithms
aggregators client
metrics
losses models own_data
runtime
checkpoints fairness group_fairness internals privacy splits summary tensors
annotations
checks files stopped streams
__init__
"""
_LAYER_OF = {
  name: number
  for number, line in enumerate(_LAYERS.split('\n'))
  for name in line.split()
}
# (from, to) -> why this import may point upwards.
_EXCEPTIONS = {
  ('plugins', 'tasks'): 'the registries that it fills',
  ('plugins', 'launchers.options'): 'the registries that it fills',
}


def _modules():
  """Yields each module of ours, without `tff_fair`, and its file."""
  for folder in ('tff_fair', 'tasks', 'launchers'):
    # `rglob` does not follow the links in `tff_fair`.
    for path in (_ROOT / folder).rglob('*.py'):
      parts = path.relative_to(_ROOT).with_suffix('').parts
      yield '.'.join(parts).removeprefix('tff_fair.'), path


def _imported(path):
  """Yields the modules of ours that a file imports, without `tff_fair`."""
  for node in ast.walk(ast.parse(path.read_text())):
    names = []
    if isinstance(node, ast.ImportFrom):
      names = [f'{node.module}.{alias.name}' for alias in node.names]
    elif isinstance(node, ast.Import):
      names = [alias.name for alias in node.names]
    for name in names:
      if name.startswith('tff_fair.'):
        yield name.removeprefix('tff_fair.')


def _layer(module):
  parts = module.split('.')
  names = ('.'.join(parts[:end]) for end in range(len(parts), 0, -1))
  found = next((name for name in names if name in _LAYER_OF), None)
  assert found, f'{module} must have a line in _LAYERS'
  return found


def test_imports_point_down():
  upwards = {}
  for module, path in _modules():
    source = _layer(module)
    for name in _imported(path):
      target = _layer(name)
      if source != target and _LAYER_OF[source] >= _LAYER_OF[target]:
        upwards.setdefault((source, target), f'{module} imports {name}')
  found = {
    pair: text for pair, text in upwards.items() if pair not in _EXCEPTIONS
  }
  assert not found
  assert upwards.keys() == _EXCEPTIONS.keys()
