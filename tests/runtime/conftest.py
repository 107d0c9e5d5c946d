"""What the tests of runtimes share."""

import pytest


@pytest.fixture(scope='module')
def contexts():
  """One context of each local runtime."""
  from tff_fair import runtime

  kinds = ('device', 'native')
  yield [runtime.create_execution_context(kind) for kind in kinds]
  runtime.set_execution_context('device', device='cpu')  # Ends the worker.
