import pytest

from tasks import options


@pytest.mark.parametrize(
  ('changes', 'error', 'message'),
  [
    ({'num_clients': 0}, ValueError, r'^num_clients must be at least 1'),
    ({'num_clients': '3'}, TypeError, r'^num_clients must be an integer'),
    (
      {'partition': 'iid'},
      ValueError,
      r"^partition must be one of 'dirichlet', 'equal', 'writer', found "
      r"'iid'\.$",
    ),
    ({'test_fraction': 1}, ValueError, r'^test_fraction must be in \[0, 1'),
    ({'holdout_fraction': 2}, ValueError, r'^holdout_fraction must be in'),
    ({'min_samples': -1}, ValueError, r'^min_samples must be at least 0'),
    ({'seed': -1}, ValueError, r'^seed must be at least 0, found -1\.$'),
    ({'seed': None}, TypeError, r'^seed must be an integer, found None'),
  ],
)
def test_refuses(changes, error, message):
  with pytest.raises(error, match=message):
    options.TaskOptions(**changes)


_DEFAULTS = {
  'partition': 'dirichlet',
  'num_clients': 20,
  'dirichlet_alpha': 0.5,
}


@pytest.mark.parametrize(
  ('changes', 'expected'),
  [
    ({}, ('dirichlet', 20, 0.5)),
    ({'num_clients': 3}, ('dirichlet', 3, 0.5)),
    ({'dirichlet_alpha': 2.0}, ('dirichlet', 20, 2.0)),
    ({'partition': 'equal'}, ('equal', 20, None)),
  ],
)
def test_with_defaults_fills_only_what_is_open(changes, expected):
  filled = options.TaskOptions(seed=7, **changes).with_defaults(**_DEFAULTS)
  assert (
    filled.partition,
    filled.num_clients,
    filled.dirichlet_alpha,
  ) == expected
  assert filled.seed == 7


def test_alpha_zero_is_not_taken_for_unset():
  filled = options.TaskOptions(dirichlet_alpha=0.0).with_defaults(**_DEFAULTS)
  assert filled.dirichlet_alpha == 0.0


def test_refuses_an_alpha_that_the_partition_ignores():
  chosen = options.TaskOptions(partition='equal', dirichlet_alpha=0.5)
  with pytest.raises(
    ValueError,
    match=(
      r"^dirichlet_alpha is only used by the partition 'dirichlet', found "
      r"dirichlet_alpha=0\.5 with the partition 'equal'\.$"
    ),
  ):
    chosen.with_defaults(**_DEFAULTS)
