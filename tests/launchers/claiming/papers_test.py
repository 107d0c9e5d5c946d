"""The claims name what exists, and the papers say them."""

import collections

import pytest

from tff_fair.launchers.claiming import claims_table
from tff_fair.launchers.claiming import definitions
from tff_fair.launchers.claiming import papers

# Claims of a text that the paper's own tables contradict in some numbers:
# algorithms' register FQ-4, AK-9 and CF-8.
_CONTRADICTED = {
  ('fedquad', 'CIFAR-100, IID'): (4, 5),
  ('fedquad', 'With 200 clients the accuracy is above that of FedAvg on'): (
    0,
    1,
  ),
  ('fedquad', 'other baselines on CIFAR-10'): (3, 4),
  ('fedakd', 'one test set the best accuracy is the highest on CIFAR'): (
    29,
    30,
  ),
  (
    'cffl',
    'In most comparisons pretraining gives the higher CF coefficient on M',
  ): (1, 6),
  (
    'cffl',
    'In most comparisons pretraining gives the higher CF coefficient on A',
  ): (4, 6),
  ('cffl', 'With pretraining, too, the best participant'): (2, 3),
}


def _comparisons():
  return [c for claim in papers.CLAIMS.values() for c in claim.comparisons]


def test_there_are_enough_of_every_paper():
  counts = collections.Counter(map(papers.paper_of, papers.CLAIMS))
  assert set(counts) == {'fedaboost', 'corefed', 'fedquad', 'fedakd', 'cffl'}
  assert sum(counts.values()) >= 45
  assert min(counts.values()) >= 9


def test_every_claim_names_what_exists_and_says_something_else():
  sides = [s for c in _comparisons() for s in definitions.sides_of(c)]
  assert [side for side in sides if not definitions.exists(side)] == []
  for name, claim in papers.CLAIMS.items():
    assert claim.comparisons and claim.place, name
    assert claim.text[-1] == '.' and claim.text[0].isalnum(), name
    # What is compared with itself, or twice, would be a slip.
    assert len(set(claim.comparisons)) == len(claim.comparisons), name
    assert all(c.left != c.right for c in claim.comparisons), name
  texts = [(papers.paper_of(k), c.text) for k, c in papers.CLAIMS.items()]
  assert len(set(texts)) == len(texts)


def test_the_papers_numbers_are_held_against_a_margin():
  # FedAKD, table 5a, DIR 1: 87.57 against 87.33, 53.32 against 52.14.
  def supported(cell, margin, above=True):
    comparisons = definitions.versus(
      'fedakd_table5', [cell], ['fedakd'], ['fed_sac'],
      ['client_accuracy_max'], above=above, margin=margin,
    )  # fmt: skip
    claim = definitions.Claim(place='', text='', comparisons=comparisons)
    return claims_table.published_support(claim)

  assert supported('fmnist_dir1', 0.23) == (1, 1)
  assert supported('fmnist_dir1', 0.25) == (0, 1)
  assert supported('cifar10_dir1', -1.19, above=False) == (1, 1)
  assert supported('cifar10_dir1', -1.17, above=False) == (0, 1)


def test_a_name_that_does_not_exist_is_noticed():
  side = definitions.Side('fedquad_table1', 'cifar10_iid_c10', 'moon', 'cf')
  assert not definitions.exists(side)
  assert definitions.exists(side._replace(metric='global_accuracy'))
  # Only in the centralised cell.
  other = side._replace(metric='global_accuracy', method='supervised')
  assert not definitions.exists(other)
  assert not definitions.exists(other._replace(table='nothing'))


def test_the_papers_own_numbers_support_the_claims():
  contradicted = {}
  for name, claim in papers.CLAIMS.items():
    support, printed = claims_table.published_support(claim)
    if support < printed:
      contradicted[papers.paper_of(name), claim.text] = (support, printed)
  found = {
    key: next((v for (p, t), v in contradicted.items() if _is(key, p, t)), None)
    for key in _CONTRADICTED
  }
  assert found == _CONTRADICTED
  assert len(contradicted) == len(_CONTRADICTED)


def _is(key, paper, text):
  return key[0] == paper and key[1] in text


def test_every_reading_changes_something_and_loses_nothing():
  read = [claim for claim in papers.CLAIMS.values() if claim.reading]
  for claim in read:
    under = definitions.under(claim.reading, claim.comparisons)
    assert set(under) != set(claim.comparisons), claim.text
    # Only the table of the scripts' protocols has fewer methods and cells.
    assert claim.reading.table or len(under) == len(claim.comparisons)
  tried = [definitions.under(c.reading, c.comparisons) for c in read]
  tables = {c.left.table for comparisons in tried for c in comparisons}
  expected = {'fedaboost_text', 'corefed_table1', 'fedquad_table1'}
  assert expected | {'fedakd_protocols'} <= tables


def test_another_reading_replaces_methods():
  reading = definitions.Reading('', {'supcon_fl': 'supcon_fl_without_ce'})
  table, cell = 'fedquad_table1', 'cifar10_iid_c10'
  comparisons = definitions.versus(
    table, [cell], ['fedquad'], ['fed_avg', 'supcon_fl'], ['global_accuracy']
  )
  rights = [c.right.method for c in definitions.under(reading, comparisons)]
  assert rights == ['fed_avg', 'supcon_fl_without_ce']


def test_another_reading_leaves_out_what_it_does_not_have():
  reading = definitions.Reading('', {'fedquad': 'none'})
  comparisons = definitions.level(
    'fedquad_table1', ['cifar10_iid_c10'], ['fedquad'], 'global_accuracy', 1.0
  )
  assert definitions.under(reading, comparisons) == ()
  # Table 2 has other cells than table 1.
  reading = definitions.Reading('', {}, table='fedquad_table2')
  assert definitions.under(reading, comparisons) == ()


@pytest.mark.parametrize('above', [True, False])
def test_an_order_is_a_chain(above):
  sides = [
    definitions.Side('fedquad_table1', 'cifar10_iid_c10', m, 'global_accuracy')
    for m in ('fedquad', 'moon', 'fed_avg')
  ]
  assert definitions.order(sides, above=above) == (
    definitions.Comparison(sides[0], sides[1], above),
    definitions.Comparison(sides[1], sides[2], above),
  )
