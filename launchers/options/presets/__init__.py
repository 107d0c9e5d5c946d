"""The papers' experiments as flag values, a file for each paper.

A preset holds the flags that all methods of an experiment share, and those of
single methods, which are used only for the method that runs. So
`--preset=fedaboost_mnist --algorithm=fed_avg` is FedAvg in FeDABoost's setting.

A file has `parts`, name -> flags, with those of single methods under `methods`
and remarks under `notes`; and `presets`, name -> source and parts. A flag of a
later part goes before that of an earlier one.
"""

from collections.abc import Mapping
import dataclasses
import json
import pathlib
from typing import Any

# In the order of the pages.
_PAPERS = ('fedaboost', 'cffl', 'corefed', 'fedquad', 'fedakd')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Preset:
  """One experiment.

  Attributes:
    source: Where the values are from.
    shared: Flag values for all methods, including the default `algorithm`.
    methods: Method -> flag values for this method only.
  """

  source: str
  shared: Mapping[str, Any]
  methods: Mapping[str, Mapping[str, Any]]

  def flag_values(self, algorithm: str | None) -> dict[str, Any]:
    """The values for `algorithm`, or for the preset's own method if None."""
    algorithm = algorithm or self.shared['algorithm']
    return {**self.shared, **self.methods.get(algorithm, {})}


def _read(paper: str) -> dict[str, Preset]:
  path = pathlib.Path(__file__).with_name(f'{paper}.json')
  content = json.loads(path.read_text('utf-8'))
  parts = content['parts']
  return {
    name: _join(source, [parts[part] for part in names.split()])
    for name, (source, names) in content['presets'].items()
  }


def _join(source: str, parts: list[dict[str, Any]]) -> Preset:
  shared: dict[str, Any] = {}
  methods: dict[str, dict[str, Any]] = {}
  for part in parts:
    shared.update(part)
    for method, own in part.get('methods', {}).items():
      methods.setdefault(method, {}).update(own)
  for name in ('methods', 'notes'):
    shared.pop(name, None)
  return Preset(source=source, shared=shared, methods=methods)


PRESETS: dict[str, Preset] = {
  name: preset for paper in _PAPERS for name, preset in _read(paper).items()
}
