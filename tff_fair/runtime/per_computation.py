"""What a runtime makes of a computation once, however often it runs."""

from collections.abc import Callable
from typing import Any
import weakref

import tensorflow_federated as tff


class PerComputation:
  """Makes something of each computation at its first call.

  What was made goes when the computation does.
  """

  def __init__(self, make: Callable[[tff.framework.ConcreteComputation], Any]):
    """Makes nothing yet.

    Args:
      make: What to make of a computation; it must not keep the computation.
    """
    self._make = make
    # Not by equality: hashing a computation serialises all of it.
    self._made: dict[int, Any] = {}

  def __call__(self, computation: tff.framework.ConcreteComputation) -> Any:
    """Returns what was made of the computation."""
    key = id(computation)
    if key not in self._made:
      self._made[key] = self._make(computation)
      weakref.finalize(computation, self._made.pop, key, None)
    return self._made[key]

  def __len__(self) -> int:
    """The number of computations, still in use, that something was made of."""
    return len(self._made)
