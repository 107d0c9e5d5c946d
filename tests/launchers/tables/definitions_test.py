"""The tables' definitions name things that exist."""

import functools

import pytest

from tests.launchers import tiny_table
from tff_fair import tasks
from tff_fair.launchers.options import presets
from tff_fair.launchers.options import settings as settings_lib
from tff_fair.launchers.options import train_flags
from tff_fair.launchers.runs import planned_run
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import published
from tff_fair.launchers.tables import table_metrics
from tff_fair.launchers.tables import table_plots
from tff_fair.launchers.tables import table_runs

_COMPARED_WITH_ALONE = ('client_accuracy', 'scatter')


@functools.cache
def _rows(name):
  table = definitions.TABLES[name]
  # Resolves the flags of every run.
  return tiny_table.planner(table).rows(table.cells)


def _runs(name, cell):
  """The runs of a cell by their method."""
  return {row.method: row.runs[0][0] for row in _rows(name) if row.cell == cell}


def test_names_exist():
  numbers = published.read()
  for name, table in definitions.TABLES.items():
    for cell in table.cells.values():
      assert cell.preset in presets.PRESETS, name
      assert cell.data in tasks.TASK_NAMES, name
      assert cell.methods is None or set(cell.methods) <= set(table.methods)
    for metric in table.metrics:
      needed = table_metrics.METRICS[metric].references
      assert set(needed) <= set(table.references), name
    for figure, methods in table.figures.items():
      assert figure in table_plots.FIGURES, name
      assert methods and set(methods) <= set(table.methods), name
      if figure in _COMPARED_WITH_ALONE:
        assert 'standalone' in table.references, name
    # Under another name only if the paper has no such name.
    own = {key[2] for key in numbers if key[0] == (table.published_as or name)}
    assert set(table.printed_as) <= set(table.methods) - own, name
    assert set(table.printed_as.values()) <= own, name
    for reference in table.references.values():
      assert reference.preset is None or reference.preset in presets.PRESETS
  replaced = {*definitions.STAND_INS, *definitions.STAND_INS.values()}
  assert replaced <= set(tasks.TASK_NAMES)


@pytest.mark.full
def test_rows_resolve_and_their_presets_have_the_data_of_the_paper():
  for name, table in definitions.TABLES.items():
    for row in _rows(name):
      for run in row.runs[0]:
        assert run.settings['task'] == table.cells[row.cell].data, name


def test_every_published_number_has_its_row():
  numbers = published.read()
  parameters = ['parameters_d_cosine', 'parameters_d_manhattan']
  degrees = ['parameters_d_cosine_degrees']
  for name, metrics, count, ours in (
    ('cffl_table1', ['cf'], 42, 0),
    # Standalone's are those of the participant that is best in CFFL.
    ('cffl_table2', ['client_accuracy_max'], 24, 24),
    ('cffl_table2', ['standalone_accuracy_of_best'], 12, 30),
    # FedAvg, also with equal weights, is not in the paper's table.
    ('corefed_table1', ['client_accuracy_mean'], 12, 4),
    ('corefed_table1', parameters, 24, 8),
    ('corefed_table1', degrees, 12, 4),
    ('corefed_table3', ['client_accuracy_mean'], 2, 0),
    ('corefed_table3', parameters, 4, 0),
    # Six methods in five variants of cells, and in four.
    ('fedquad_table1', ['global_accuracy'], 22, 30),
    ('fedquad_table2', ['global_accuracy'], 12, 24),
    ('fedquad_table3', ['global_accuracy'], 22, 30),
    ('fedquad_table4', ['global_accuracy'], 12, 24),
    ('fedquad_table5', ['global_accuracy'], 7, 0),
  ):
    called = {
      metric: table_metrics.METRICS[metric].published or metric
      for metric in metrics
    }
    printed = {
      key for key in numbers if key[0] == name and key[3] in called.values()
    }
    printed_as = definitions.TABLES[name].printed_as
    rows = {
      (
        name,
        row.cell,
        printed_as.get(row.method, row.method),
        called[row.metric],
      )
      for row in _rows(name)
      if row.metric in called
    }
    assert printed <= rows, name
    assert (len(printed), len(rows - printed)) == (count, ours), name
  for name in ('cffl_classes', 'cffl_freerider', 'corefed_ablation'):
    assert name not in {key[0] for key in numbers}
  # The paper's distances are those of parameters.
  for name, metric in table_metrics.METRICS.items():
    if 'd_cosine' in name or 'd_manhattan' in name:
      of_parameters = name.startswith('parameters_')
      assert (metric.published is not None) == of_parameters, name


def test_the_free_rider_is_compared_with_the_same_run_without():
  (row,) = (
    row
    for row in _rows('cffl_freerider')
    if row.metric == 'client_accuracy_mean_change'
  )
  with_rider, without = (dict(run.settings) for run in row.runs[0])
  assert with_rider.pop('free_riders') == 1
  assert without.pop('free_riders') == 0
  for settings in (with_rider, without):
    del settings['output_dir']
  assert with_rider == without


def test_tables_share_runs():
  (shared,) = (
    row.runs[0][0].output_dir
    for row in _rows('corefed_ablation')
    if (row.method, row.metric) == ('fed_avg', 'client_accuracy_mean')
  )
  comparison = table_runs.distinct(_rows('corefed_table1'))
  assert shared in {run.output_dir for run in comparison}
  for pair in (('1', '2'), ('3', '4')):
    first, second = (
      {
        run.output_dir
        for run in table_runs.distinct(_rows(f'fedquad_table{number}'))
      }
      for number in pair
    )
    # Nine methods in three cells and in their five variants, and four
    # centralised runs; Dirichlet(0.5) and its two variants are in both.
    assert (len(first & second), len(first)) == (3 * 9, 8 * 9 + 4)
  first, second = (
    {run.output_dir for run in table_runs.distinct(_rows(f'cffl_table{n}'))}
    for n in (1, 2)
  )
  alone = _runs('cffl_table2', 'mnist_p5')['standalone_authors_rate']
  assert alone.output_dir in second - first
  # Standalone at the authors' rate, in six cells.
  assert len(second - first) == 6


def test_cffl_s_baselines_at_the_rates_of_its_authors():
  for cell, alone, averaged, clip in (
    ('mnist_p10', 0.01, 0.02, 0.001),
    ('adult_p10', 0.005, 0.03, 0.001),
  ):
    runs = {**_runs('cffl_table1', cell), **_runs('cffl_table2', cell)}
    found = {
      name: run.settings['client_learning_rate'] for name, run in runs.items()
    }
    assert found['standalone_authors_rate'] == alone
    assert found['fed_avg_authors_rate'] == averaged
    for upload_rate in ('u0.1', 'u1'):
      name = f'dssgd_{upload_rate}_authors_rate'
      assert found[name] == alone
      assert runs[name].settings['clip_value'] == clip
      assert runs[f'dssgd_{upload_rate}'].settings['clip_value'] == 0.01
    # Others keep the rate that the paper gives for CFFL.
    usual = {'mnist_p10': 0.25, 'adult_p10': 0.03}[cell]
    others = {found[n] for n in found if not n.endswith('_authors_rate')}
    assert others == {usual}
    pretrained = runs['cffl_pretrain_u0.1_authors_rate'].settings
    assert pretrained['client_learning_rate'] == usual
    assert pretrained['pretrain_learning_rate'] == 0.005


def test_fedaboost_2_alone_trains_by_adamw():
  found = {
    name: tuple(
      run.settings[f'client_{flag}']
      for flag in ('optimizer', 'learning_rate', 'weight_decay')
    )
    for name, run in _runs('fedaboost_text', 'femnist_2').items()
  }
  sgd, adamw = ('sgd', 1e-3, 5e-4), ('adamw', 2e-4, 1e-6)
  assert found.pop('fedaboost') == adamw
  assert found.pop('fedaboost_without_boosting') == adamw
  assert found.pop('fedaboost_cohort_classes') == adamw
  assert found == dict.fromkeys(
    ('fed_avg', 'fed_avg_uniform', 'ditto', 'fedaboost_sgd'), sgd
  )


def test_clients_of_at_least_64():
  runs = _runs('fedaboost_text', 'mnist_min64')
  assert set(runs) == set(_runs('fedaboost_text', 'mnist'))
  for run in runs.values():
    assert run.settings['min_samples'] == 64
    assert run.settings['data_fraction'] == 0.6


def test_the_ablation_is_that_of_the_presets():
  runs = _runs('corefed_ablation', 'fmnist')
  assert runs.pop('fed_avg').settings['algorithm'] == 'fed_avg'
  for method, run in runs.items():
    preset = f'--preset=corefed_ablation_{method}'
    expected = settings_lib.resolve(
      train_flags.parse([preset]), train_flags.FLAG_NAMES
    )
    assert {**run.settings, 'output_dir': None} == expected, method


def test_the_ablation_of_fedquad_runs_what_the_paper_prints():
  both = ['fedquad', 'fedquad_without_ce']
  for cell, methods, values in (
    ('cifar10_beta0.5_m1.0_m1.0', both, (0.5, 1, 1)),
    ('cifar10_beta0.5_m1.0_m0.5', both, (0.5, 1, 0.5)),
    ('cifar10_beta1.0_m1.0_m0.5', both[:1], (1, 1, 0.5)),
    ('cifar10_beta0.5_m2.0_m0.5', both[1:], (0.5, 2, 0.5)),
    ('cifar10_beta0.5_m5.0_m0.5', both[1:], (0.5, 5, 0.5)),
  ):
    runs = _runs('fedquad_table5', cell)
    assert list(runs) == methods, cell
    for method, run in runs.items():
      settings = run.settings
      assert settings['algorithm'] == 'fedquad'
      assert settings['use_ce'] == (method == 'fedquad')
      names = ('quadruplet_weight', 'margin_1', 'margin_2')
      assert tuple(settings[name] for name in names) == values, cell
      assert (settings['rounds'], settings['num_clients']) == (5, 10)
      assert settings['partition'] == 'equal'


def test_a_table_of_some_methods_keeps_its_order_and_the_original():
  original = definitions.TABLES['fedquad_table1']
  assert original.restricted_to(original.methods) == original
  before = dict(original.cells)
  table = original.restricted_to(['moon', 'supcon'])
  assert table.methods_of('cifar10_iid_c10') == ('moon',)
  assert table.methods_of('cifar10_centralised') == ('supcon',)
  assert not any(table.figures.values())
  table = original.restricted_to(['moon', 'fedquad', 'fed_avg'])
  assert table.methods_of('cifar10_a05_c10') == ('fed_avg', 'fedquad', 'moon')
  assert table.figures == {'embeddings': ('fed_avg', 'fedquad')}
  assert original.cells == before


def test_equal_time_is_equal_time():
  runs = {row.method: row.runs[0] for row in _rows('fedakd_table3')}
  rounds = {
    method: own.settings['rounds'] for method, (own, *_) in runs.items()
  }
  assert rounds['fedakd'] == 40
  assert rounds['fed_avg'] == 80
  assert rounds['cgsv'] == rounds['cgsv_script'] == 61
  # What the coefficient compares with trains as long as in table 2.
  cf = [row for row in _rows('fedakd_table3') if row.metric == 'cf']
  assert {row.runs[0][1].settings['rounds'] for row in cf} == {80}


def test_shared_draws_differ_from_the_default_in_the_pool_alone():
  for name in ('fedakd_table1', 'fedakd_protocols'):
    table = definitions.TABLES[name]
    twins = [cell for cell in table.cells if cell.endswith('_shared')]
    assert twins, name
    for twin in twins:
      cell = twin.removesuffix('_shared')
      default, shared = _runs(name, cell), _runs(name, twin)
      assert list(default) == list(shared)
      for method, run in default.items():
        differing = {
          option
          for option, value in shared[method].settings.items()
          if value != run.settings[option]
        }
        assert differing == {'shift_pool', 'output_dir'}, (twin, method)
        assert run.settings['shift_pool'] == 'split'
      key = published.key(name, twin, 'fed_avg', 'cf')
      assert key == published.key(name, cell, 'fed_avg', 'cf')


def test_protocols_of_fedakds_scripts():
  table = definitions.TABLES['fedakd_protocols']
  assert table.references['standalone'].flags == table.methods['standalone']
  protocols = {
    'standalone': (20, None),
    'fed_avg': (20, None),
    'cgsv_own_protocol': (20, 'train_tests'),
    'fedakd_own_protocol': (30, 'test_trains'),
    'cgsv_fed_avg_protocol': (20, None),
    'fedakd_fed_avg_protocol': (20, None),
    'fedakd_local_fed_avg_protocol': (20, None),
    'fed_avg_fedakd_protocol': (30, 'test_trains'),
  }
  assert list(table.methods) == list(protocols)
  preset = table.cells['cifar10_pow'].preset
  for method, (rounds, leak) in protocols.items():
    found = planned_run.resolve({'preset': preset, **table.methods[method]})
    expected = {
      'rounds': rounds,
      'test_leak': leak,
      'score_last': 3,
      'holdout_fraction': 0.0,
      'test_fraction': 0.2,
      'client_optimizer': 'adam',
      'client_learning_rate': 3e-4 if method == 'standalone' else 5e-3,
    }
    assert expected.items() <= found.items(), method
    if found['algorithm'] == 'fedakd':
      local = method == 'fedakd_local_fed_avg_protocol'
      assert found['evaluate'] == ('local' if local else 'global')
      assert found['order'] == 'up_down'


def test_all_values_of_corefeds_table_2_run_by_name():
  runs = _runs('corefed_table1', 'fmnist')
  for flag, values in (
    ('proximal_weight', {'ditto': 0.1, 'ditto_1': 1}),
    ('q', {'q_fed_avg': 0.1, 'q_fed_avg_1': 1}),
    ('deviation', {'fed_mgda': 0.1, 'fed_mgda_1': 1}),
    (
      'line_search_scale',
      {'fed_mdfg': 5, 'fed_mdfg_s3': 3, 'fed_mdfg_s1': 1},
    ),
  ):
    first, *others = values
    for method, value in values.items():
      assert runs[method].settings[flag] == value, method
    for method in others:
      # Nothing but this value.
      found, expected = dict(runs[method].settings), dict(runs[first].settings)
      for settings in (found, expected):
        del settings[flag], settings['output_dir']
      assert found == expected, method


def test_corefeds_table_3_is_not_in_the_setting_of_table_1():
  a, b = (
    _runs('corefed_table3', f'tradeoff_{row}')['corefed'].settings
    for row in 'ab'
  )
  names = ('fairness_exponent', 'sharpness')
  assert tuple(a[name] for name in names) == (2, 0.5)
  assert tuple(b[name] for name in names) == (0.5, 2)
  assert a['batch_size'] == b['batch_size'] == 200
  assert (
    _runs('corefed_table1', 'fmnist')['corefed'].settings['batch_size'] == 50
  )


def test_fedquads_variants_differ_from_their_cells_by_what_they_are_called():
  for cell, changes in (
    (
      'cifar10_a03_c10_capped',
      {'balance_cap': (False, True), 'min_samples': (2, 10)},
    ),
    (
      'cifar10_iid_c10_momentum_09',
      {'model': ('cnn_fedquad', 'cnn_fedquad_momentum_09')},
    ),
  ):
    plain = cell.removesuffix('_capped').removesuffix('_momentum_09')
    for method in ('fed_avg', 'fedquad'):
      base, found = (
        _runs('fedquad_table1', name)[method].settings for name in (plain, cell)
      )
      differing = {
        name: (base[name], value)
        for name, value in found.items()
        if base[name] != value and name != 'output_dir'
      }
      assert differing == changes, cell
