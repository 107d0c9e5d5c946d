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
      r"^partition must be one of 'dirichlet', 'equal', 'power_law', 'class', "
      r"'writer', found 'iid'\.$",
    ),
    (
      {'balance_cap': 'yes'},
      ValueError,
      r"^balance_cap must be one of False, True, found 'yes'\.$",
    ),
    ({'num_examples': 0}, ValueError, r'^num_examples must be at least 1'),
    ({'num_examples': 9.0}, TypeError, r'^num_examples must be an integer'),
    (
      {'split': 'global'},
      ValueError,
      r"^split must be one of 'client', 'server', found 'global'\.$",
    ),
    (
      {'model': 'mlp'},
      ValueError,
      r"^model must be one of 'mlp_fedaboost', .* found 'mlp'\.$",
    ),
    ({'free_riders': -1}, ValueError, r'^free_riders must be at least 0'),
    ({'free_riders': None}, TypeError, r'^free_riders must be an integer'),
    (
      {'data_fraction': 0},
      ValueError,
      r'^data_fraction must be positive, found 0\.0\.$',
    ),
    (
      {'data_fraction': -0.5},
      ValueError,
      r'^data_fraction must be positive, found -0\.5\.$',
    ),
    (
      {'data_fraction': 1.5},
      ValueError,
      r'^data_fraction must be at most 1\.0, found 1\.5\.$',
    ),
    (
      {'data_fraction': float('nan')},
      ValueError,
      r'^data_fraction must be finite, found nan\.$',
    ),
    (
      {'data_fraction': None},
      TypeError,
      r'^data_fraction must be a real number, found None\.$',
    ),
    (
      {'split': 'server', 'validation_fraction': -0.1},
      ValueError,
      r'^validation_fraction must be in \[0, 1\), found -0\.1\.$',
    ),
    (
      {'split': 'server', 'validation_fraction': 1.0},
      ValueError,
      r'^validation_fraction must be in \[0, 1\), found 1\.0\.$',
    ),
    (
      {'split': 'server', 'validation_fraction': '10%'},
      TypeError,
      r"^validation_fraction must be a real number, found '10%'\.$",
    ),
    (
      {'validation_fraction': 0.0},
      ValueError,
      r'^validation_fraction is only used by .* with the split .client.\.$',
    ),
    (
      {'validation_fraction': 0.1},
      ValueError,
      r"^validation_fraction is only used by the split 'server', found "
      r"validation_fraction=0\.1 with the split 'client'\.$",
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
  'model': 'mlp_fedaboost',
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


@pytest.mark.parametrize(
  ('changes', 'expected'),
  [
    ({}, None),
    ({'split': 'server'}, 0.1),
    ({'split': 'server', 'validation_fraction': 0.0}, 0.0),
    ({'split': 'server', 'validation_fraction': 0.3}, 0.3),
  ],
)
def test_with_defaults_fills_the_validation_fraction_where_used(
  changes, expected
):
  filled = options.TaskOptions(**changes).with_defaults(**_DEFAULTS)
  assert filled.validation_fraction == expected


def test_with_defaults_keeps_a_chosen_model():
  assert options.TaskOptions().with_defaults(**_DEFAULTS).model == (
    'mlp_fedaboost'
  )
  chosen = options.TaskOptions(model='cnn_femnist')
  assert chosen.with_defaults(**_DEFAULTS).model == 'cnn_femnist'


def test_with_defaults_refuses_the_partition_by_writer():
  with pytest.raises(
    ValueError,
    match=(
      r"^The partition of a task without writers must be one of 'dirichlet', "
      r"'equal', 'power_law', 'class', found 'writer'\.$"
    ),
  ):
    options.TaskOptions(partition='writer').with_defaults(**_DEFAULTS)


@pytest.mark.parametrize('partition', [None, 'dirichlet'])
def test_refuses_a_number_of_examples_that_the_partition_ignores(partition):
  chosen = options.TaskOptions(partition=partition, num_examples=90)
  with pytest.raises(
    ValueError,
    match=(
      r"^num_examples is not used by the partition 'dirichlet', found "
      r'num_examples=90 with it\.$'
    ),
  ):
    chosen.with_defaults(**_DEFAULTS)


def test_alpha_zero_is_not_taken_for_unset():
  filled = options.TaskOptions(dirichlet_alpha=0.0).with_defaults(**_DEFAULTS)
  assert filled.dirichlet_alpha == 0.0


@pytest.mark.parametrize(
  ('name', 'value'), [('dirichlet_alpha', 0.5), ('balance_cap', True)]
)
def test_refuses_a_choice_that_the_partition_ignores(name, value):
  chosen = options.TaskOptions(partition='equal', **{name: value})
  with pytest.raises(
    ValueError,
    match=(
      rf"^{name} is only used by the partition 'dirichlet', found "
      rf"{name}={value} with the partition 'equal'\.$"
    ),
  ):
    chosen.with_defaults(**_DEFAULTS)
