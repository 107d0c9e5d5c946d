"""All claims, by paper."""

from collections.abc import Mapping

from tff_fair.launchers.claiming import cffl_claims
from tff_fair.launchers.claiming import corefed_claims
from tff_fair.launchers.claiming import definitions
from tff_fair.launchers.claiming import fedaboost_claims
from tff_fair.launchers.claiming import fedakd_claims
from tff_fair.launchers.claiming import fedquad_claims

# A claim's name is its paper and its number there: add new ones at the end.
# None stands for a claim that was withdrawn: the others keep their numbers.
_BY_PAPER = {
  'fedaboost': fedaboost_claims.CLAIMS,
  'corefed': corefed_claims.CLAIMS,
  'fedquad': fedquad_claims.CLAIMS,
  'fedakd': fedakd_claims.CLAIMS,
  'cffl': cffl_claims.CLAIMS,
}

PAPERS = tuple(_BY_PAPER)
"""The papers' methods, in the order of the pages."""

CLAIMS: Mapping[str, definitions.Claim] = {
  f'{paper}-{number}': claim
  for paper, claims in _BY_PAPER.items()
  for number, claim in enumerate(claims, 1)
  if claim is not None
}
"""Name, as `fedquad-1` -> claim."""


def paper_of(name: str) -> str:
  """The paper of a claim.

  Args:
    name: The claim's name.
  """
  return name.partition('-')[0]
