"""The type of presets."""

from collections.abc import Mapping
import dataclasses
from typing import Any


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
