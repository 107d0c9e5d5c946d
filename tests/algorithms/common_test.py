"""What every method promises, for the five papers' methods and FedAvg."""

import functools

import pytest

from tests.algorithms import contract
from tests.algorithms import linear_task
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_BUILDERS = {
  'fed_avg': algorithms.build_fed_avg,
  'fedaboost': algorithms.build_fedaboost,
  'cffl': functools.partial(
    algorithms.build_cffl, validation=contract.VALIDATION, upload_rate=0.5
  ),
  # With everything that clients can be sent.
  'corefed': contract.with_embedding(
    algorithms.build_corefed, alignment='client'
  ),
  'fedquad': contract.with_embedding(algorithms.build_fedquad),
  'fedakd': algorithms.build_fedakd,
}


@pytest.mark.parametrize('name', _BUILDERS)
def test_contract(name, tmp_path):
  contract.check(name, _BUILDERS[name], tmp_path)


@pytest.mark.full
def test_a_rebuilt_process_gives_the_same():
  """With minibatches and drawn quadruplets."""
  one, other = (
    contract.run(process, process.initialize())
    for process in (contract.build(_BUILDERS['fedquad']) for _ in range(2))
  )
  linear_task.assert_equal(one, other)
