"""Clients by reference: their data are loaded where they are needed."""

from collections.abc import Callable, Hashable
import dataclasses
from typing import Any

import tensorflow_federated as tff
import tree


@dataclasses.dataclass(frozen=True)
class ClientReference:
  """Stands for a client's value in the argument of a computation.

  A list of clients, as `process.next` takes it, may hold references in place of
  data. The runtime loads a client's value where the client runs: `cluster` on a
  worker, which receives only the reference, the others in this process.

  Attributes:
    load: `client id -> value`, what the list would hold without a reference: a
      `tf.data.Dataset`, or a structure of them. The same value each time. It
      must be possible to pickle it; it is sent to each worker once, so pass the
      same object for all clients.
    client_id: What `load` is called with.
    num_examples: The work that the client is, in any unit that all clients of a
      round share; the number of its training examples is a good one.
  """

  load: Callable[[Any], Any]
  client_id: Hashable
  num_examples: int = 1

  def __call__(self) -> Any:
    """Loads the value."""
    return self.load(self.client_id)


def load_all(argument: Any) -> Any:
  """An argument with the value of each client in place of its reference.

  Args:
    argument: Anything that a computation takes.

  Returns:
    The argument without references.
  """

  def load(part):
    if isinstance(part, ClientReference):
      return part()
    if isinstance(part, tff.structure.Struct):  # Unknown to `tree`.
      return tff.structure.Struct(
        (name, load_all(value))
        for name, value in tff.structure.iter_elements(part)
      )
    return None

  return tree.traverse(load, argument)
