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
      r"^partition must be one of 'dirichlet', 'equal', 'power_law', 'zipf', "
      r"'class', 'covariate_shift', 'writer', 'state', found 'iid'\.$",
    ),
    (
      {'dirichlet_remainder': 'keep'},
      ValueError,
      r"^dirichlet_remainder must be one of 'use', 'drop', found 'keep'\.$",
    ),
    (
      {'shift_sizes': 'even'},
      ValueError,
      r"^shift_sizes must be one of 'equal', 'zipf', found 'even'\.$",
    ),
    (
      {'shift_method': 'sort'},
      ValueError,
      r"^shift_method must be one of 'importance', 'pc1_sort', found 'sort'\.$",
    ),
    (
      {'shift_weights': 'exact'},
      ValueError,
      r"^shift_weights must be one of 'density', 'ratio', found 'exact'\.$",
    ),
    ({'shift': 0}, ValueError, r'^shift must be positive, found 0\.0\.$'),
    ({'shift': '5'}, TypeError, r"^shift must be a real number, found '5'\.$"),
    ({'pca_dim': 0}, ValueError, r'^pca_dim must be at least 1, found 0\.$'),
    ({'pca_dim': 2.5}, TypeError, r'^pca_dim must be an integer, found 2\.5'),
    ({'ehr_scale': 0.0}, ValueError, r'^ehr_scale must be positive, found 0'),
    ({'ehr_scale': 1.5}, ValueError, r'^ehr_scale must be at most 1\.0, found'),
    ({'max_events': 0}, ValueError, r'^max_events must be at least 1, found 0'),
    (
      {'max_events': 9.0},
      TypeError,
      r'^max_events must be an integer, found 9\.0\.$',
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


def _of_partitions(filled):
  names = (
    'dirichlet_alpha',
    'dirichlet_remainder',
    'shift_sizes',
    'shift_method',
    'shift',
    'pca_dim',
    'shift_weights',
  )
  return {
    name: getattr(filled, name)
    for name in names
    if getattr(filled, name) is not None
  }


@pytest.mark.parametrize(
  ('changes', 'expected'),
  [
    ({}, {'dirichlet_alpha': 0.5, 'dirichlet_remainder': 'use'}),
    (
      {'dirichlet_remainder': 'drop'},
      {'dirichlet_alpha': 0.5, 'dirichlet_remainder': 'drop'},
    ),
    ({'partition': 'zipf'}, {}),
    (
      {'partition': 'covariate_shift'},
      {
        'shift_sizes': 'equal',
        'shift_method': 'importance',
        'shift': 5.0,
        'pca_dim': 10,
        'shift_weights': 'density',
      },
    ),
    (
      {
        'partition': 'covariate_shift',
        'shift_sizes': 'zipf',
        'shift': 2,
        'pca_dim': 3,
        'shift_weights': 'ratio',
      },
      {
        'shift_sizes': 'zipf',
        'shift_method': 'importance',
        'shift': 2,
        'pca_dim': 3,
        'shift_weights': 'ratio',
      },
    ),
    (
      {'partition': 'covariate_shift', 'shift_method': 'pc1_sort'},
      {
        'shift_sizes': 'equal',
        'shift_method': 'pc1_sort',
        'shift': 5.0,
        'pca_dim': 10,
        'shift_weights': 'density',
      },
    ),
  ],
)
def test_with_defaults_fills_the_options_of_the_partition_alone(
  changes, expected
):
  filled = options.TaskOptions(**changes).with_defaults(**_DEFAULTS)
  assert _of_partitions(filled) == expected


@pytest.mark.parametrize('partition', ['writer', 'state'])
def test_with_defaults_refuses_the_partitions_that_data_bring(partition):
  with pytest.raises(
    ValueError,
    match=(
      r"^The partition of a task without writers must be one of 'dirichlet', "
      r"'equal', 'power_law', 'zipf', 'class', 'covariate_shift', found "
      rf"'{partition}'\.$"
    ),
  ):
    options.TaskOptions(partition=partition).with_defaults(**_DEFAULTS)


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
  ('name', 'value', 'user'),
  [
    ('dirichlet_alpha', 0.5, 'dirichlet'),
    ('dirichlet_remainder', 'use', 'dirichlet'),
    ('balance_cap', True, 'dirichlet'),
    ('shift_sizes', 'equal', 'covariate_shift'),
    ('shift_method', 'pc1_sort', 'covariate_shift'),
    ('shift', 5.0, 'covariate_shift'),
    ('pca_dim', 10, 'covariate_shift'),
    ('shift_weights', 'ratio', 'covariate_shift'),
  ],
)
def test_refuses_a_choice_that_the_partition_ignores(name, value, user):
  chosen = options.TaskOptions(partition='equal', **{name: value})
  with pytest.raises(
    ValueError,
    match=(
      rf"^{name} is only used by the partition '{user}', found "
      rf"{name}={value} with the partition 'equal'\.$"
    ),
  ):
    chosen.with_defaults(**_DEFAULTS)


@pytest.mark.parametrize(
  ('name', 'value'),
  [('shift', 5.0), ('pca_dim', 10), ('shift_weights', 'ratio')],
)
def test_refuses_a_choice_that_the_method_of_the_shift_ignores(name, value):
  chosen = options.TaskOptions(
    partition='covariate_shift', shift_method='pc1_sort', **{name: value}
  )
  with pytest.raises(
    ValueError,
    match=(
      rf"^{name} is only used by the shift_method 'importance', found "
      rf"{name}={value} with 'pc1_sort'\.$"
    ),
  ):
    chosen.with_defaults(**_DEFAULTS)
