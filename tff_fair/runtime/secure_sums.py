"""Secure sums in a simulation, where they are ordinary sums.

TFF only marks which values must be summed securely. Hiding them is the task of
a protocol between machines. If clients and server are in one process, or in two
processes on one machine, there is nothing to hide. What remains of a secure sum
is its arithmetic on integers within bounds.
"""

import tensorflow_federated as tff

from tff_fair import internals


def replace_secure_sums(
  computation: tff.framework.ConcreteComputation,
) -> tff.framework.ConcreteComputation:
  """Replaces secure sums and selections by ordinary ones of the same result.

  As in `tff.backends.test`, TFF's contexts for tests, execution fails if a
  client's value is larger than the sum allows.
  """
  if not internals.has_secure_intrinsics(computation):
    return computation
  return tff.backends.test.replace_secure_intrinsics_with_bodies(computation)
