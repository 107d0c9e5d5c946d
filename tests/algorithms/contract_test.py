"""What every method promises, see `contract`."""

import functools

import pytest

from tests.algorithms import contract
from tff_fair import algorithms

pytestmark = pytest.mark.usefixtures('default_runtime')

_FAST = ('fed_avg', 'fedaboost')
# TripletFL, QuadrupletFL and SupConFL differ from FedQuad by their loss.
_BUILDERS = {
  'fed_avg': algorithms.build_fed_avg,
  'fedaboost': algorithms.build_fedaboost,
  'cffl': functools.partial(
    algorithms.build_cffl, validation=contract.VALIDATION, upload_rate=0.5
  ),
  # With all that it can send.
  'corefed': contract.with_embedding(
    algorithms.build_corefed, alignment='client'
  ),
  'fedquad': contract.with_embedding(algorithms.build_fedquad),
  'fedakd': algorithms.build_fedakd,
  'ditto': algorithms.build_ditto,
  'q_fed_avg': algorithms.build_q_fed_avg,
  'afl': algorithms.build_afl,
  'term': algorithms.build_term,
  'fed_fv': algorithms.build_fed_fv,
  'gifair_fl': functools.partial(
    algorithms.build_gifair_fl, groups=(0, 1, 0, 2)
  ),
  'fair_fed': contract.build_fair_fed,
  'prop_fair': algorithms.build_prop_fair,
  'fed_mgda': algorithms.build_fed_mgda,
  'fed_mdfg': contract.build_fed_mdfg,
  'fed_prox': algorithms.build_fed_prox,
  'fed_rdn': contract.build_fed_rdn,
  'moon': contract.with_embedding(algorithms.build_moon),
  'scaffold': algorithms.build_scaffold,
  'cgsv': algorithms.build_cgsv,
  'fed_ave': functools.partial(
    algorithms.build_fed_ave, validation=contract.VALIDATION
  ),
  'fed_sac': contract.with_embedding(
    algorithms.build_fed_sac,
    validation=contract.VALIDATION,
    contributions=(0.2, 0.4, 0.9, 0.5),
    importance_every=2,
  ),
  'pfed_ck': contract.with_embedding(algorithms.build_pfed_ck),
  'fed_dc': algorithms.build_fed_dc,
  'fed_as': contract.with_embedding(algorithms.build_fed_as),
  'fed_rep': contract.with_embedding(algorithms.build_fed_rep, head_epochs=2),
  'fed_mpr': algorithms.build_fed_mpr,
  'standalone': algorithms.build_standalone,
  'round_robin_fed_avg': functools.partial(
    algorithms.build_round_robin_fed_avg, total_examples=sum(contract.SIZES)
  ),
  'dssgd': functools.partial(algorithms.build_dssgd, upload_rate=0.5),
}


@pytest.mark.parametrize(
  'name',
  [
    pytest.param(name, marks=() if name in _FAST else pytest.mark.full)
    for name in _BUILDERS
  ],
)
def test_contract(name, tmp_path):
  contract.check(name, _BUILDERS[name], tmp_path)
