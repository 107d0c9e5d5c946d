"""The methods that the launchers know: an entry each.

`tff_fair.plugins` adds methods from outside. What the signatures of our
builders say is in `schema.json`, so that flags are known without TensorFlow;
`python -m launchers.options.write_schema` writes it.
"""

from collections.abc import Sequence
import json
import pathlib

from tff_fair.launchers.options.methods import baselines
from tff_fair.launchers.options.methods import entry
from tff_fair.launchers.options.methods import papers
from tff_fair.launchers.options.methods import scripts

SCHEMA = pathlib.Path(__file__).with_name('schema.json')
"""The file with the signatures of our builders."""

_SIGNATURES = json.loads(SCHEMA.read_text('utf-8'))


def _with_signatures(found: Sequence[entry.Method]) -> dict[str, entry.Method]:
  """Name -> entry; of a new builder, the schema is still to be written."""
  return {
    method.name: method.with_signature(
      entry.Signature.from_json(_SIGNATURES.get(method.name, {}))
    )
    for method in found
  }


SHARED = {
  flag.name: flag
  for flag in entry.Signature.from_json(_SIGNATURES['shared']).flags
}
"""Flags of arguments that most builders have."""
PAPERS = _with_signatures(papers.METHODS)
BASELINES = _with_signatures(baselines.METHODS)
SCRIPTS = _with_signatures(scripts.METHODS)
METHODS = {**PAPERS, **BASELINES, **SCRIPTS}

ONE_MODEL, OWN_MODELS, IN_TURN = KINDS = (
  'one model for all',
  'a model for each client',
  'clients take turns',
)
"""The kinds of methods that comparisons rank apart, by what they train."""


def title(name: str) -> str:
  """A method's name in papers; the name itself if there is no such method."""
  return METHODS[name].title if name in METHODS else name


def kind(name: str) -> str:
  """Returns which of `KINDS` a method is; one model for all if unknown."""
  if takes_turns(name):
    return IN_TURN
  return OWN_MODELS if has_own_models(name) else ONE_MODEL


def has_own_models(name: str | None) -> bool:
  """Returns whether each client has a model; False if the method is unknown."""
  return name in METHODS and 'personal' in METHODS[name].groups


def takes_turns(name: str) -> bool:
  """Returns whether a method's clients take turns; False if it is unknown."""
  return name in METHODS and METHODS[name].takes_turns
