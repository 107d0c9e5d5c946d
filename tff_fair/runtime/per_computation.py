"""A per-computation cache for the runtimes."""

from collections.abc import Callable
from typing import Any
import weakref

import tensorflow_federated as tff


class PerComputation:
  """Computes a value from each computation, once, and caches it.

  The cached value is dropped when the computation is garbage collected.
  """

  def __init__(
    self, make: Callable[[tff.framework.ConcreteComputation], Any]
  ) -> None:
    """Starts with an empty cache."""
    self._make = make
    # Keyed by id: hashing a computation would serialise all of it.
    self._made: dict[int, Any] = {}

  def __call__(self, computation: tff.framework.ConcreteComputation) -> Any:
    """Returns the value of the computation."""
    key = id(computation)
    if key not in self._made:
      self._made[key] = self._make(computation)
      weakref.finalize(computation, self._made.pop, key, None)
    return self._made[key]

  def __len__(self) -> int:
    """The number of cached values."""
    return len(self._made)
