"""The tables' definitions name things that exist."""

import re

import pytest

from tests.launchers import tiny_table
from tff_fair import tasks
from tff_fair.launchers import write_docs
from tff_fair.launchers.options import presets
from tff_fair.launchers.results import recording
from tff_fair.launchers.results import records
from tff_fair.launchers.tables import definitions
from tff_fair.launchers.tables import published
from tff_fair.launchers.tables import table_metrics
from tff_fair.launchers.tables import table_plots

_COMPARED_WITH_ALONE = ('client_accuracy', 'scatter')
# The numbers of each table that have one of the paper beside them.
_ROWS_OF_THE_PAPERS = {
  'fedaboost_text': 31,
  'fedaboost_table1': 24,
  'fedaboost_why': 120,
  'cffl_table1': 72,
  'cffl_table2': 60,
  'cffl_classes': 0,
  'cffl_freerider': 0,
  'corefed_table1': 112,
  'cffl_why': 226,
  'corefed_table3': 8,
  'corefed_ablation': 0,
  'corefed_why': 0,
  'fedquad_table1': 31,
  'fedquad_table2': 18,
  'fedquad_table3': 31,
  'fedquad_table4': 18,
  'fedquad_table5': 7,
  'fedquad_why': 0,
  'fedakd_table1': 616,
  'fedakd_protocols': 319,
  'fedakd_table2': 41,
  'fedakd_table3': 39,
  'fedakd_table4': 12,
  'fedakd_table5': 190,
  'fedakd_why': 32,
}


# Table, cell and methods | settings of their runs, as the papers say. What is
# recorded need not stand here.
_SETTINGS = """
fedaboost_text femnist_2 fedaboost,fedaboost_without_boosting,fedaboost_cohort_classes | client_optimizer=adamw client_learning_rate=0.0002 client_weight_decay=1e-06
fedaboost_text femnist_2 fed_avg,fed_avg_uniform,ditto,fedaboost_sgd | client_optimizer=sgd client_learning_rate=0.001 client_weight_decay=0.0005
corefed_table1 fmnist ditto | proximal_weight=0.1 batch_size=50
cffl_why mnist_p20 dssgd_u0.1_own_start | start=own client_learning_rate=0.01 clip_value=0.001
cffl_why mnist_p20 fed_avg_own_start | start=own client_learning_rate=0.02
cffl_why script_mnist_p20 cffl_script_u0.1 | model=mlp_cffl_mnist_padded client_learning_rate=0.25 rounds=30 aggregate_mode=sum download=random
cffl_why script_adult_p20_16000 cffl_script_u0.1,cffl_script_u1 | num_examples=16000 client_learning_rate=0.03 rounds=50 punishment_rounds=50 aggregate_mode=mean download=topk
corefed_table1 fmnist ditto_1 | proximal_weight=1.0 batch_size=50
corefed_table1 fmnist q_fed_avg | q=0.1
corefed_table1 fmnist q_fed_avg_1 | q=1.0
corefed_table1 fmnist fed_mgda | deviation=0.1
corefed_table1 fmnist fed_mgda_1 | deviation=1.0
corefed_table1 fmnist fed_mdfg | line_search_scale=5
corefed_table1 fmnist fed_mdfg_s3 | line_search_scale=3
corefed_table1 fmnist fed_mdfg_s1 | line_search_scale=1
corefed_table3 tradeoff_a corefed | fairness_exponent=2.0 sharpness=0.5 batch_size=200
corefed_table3 tradeoff_b corefed | fairness_exponent=0.5 sharpness=2.0 batch_size=200
fedquad_table1 cifar10_a03_c10 supcon_fl,triplet_fl,quadruplet_fl | use_ce=True num_clients=10
fedquad_table1 cifar10_a03_c10 supcon_fl_without_ce,triplet_fl_without_ce | use_ce=False num_clients=10
fedquad_table1 cifar10_centralised supervised | algorithm=fed_avg num_clients=1
fedquad_table1 cifar10_centralised supcon,triplet,quadruplet | use_ce=False num_clients=1
fedquad_table5 cifar10_beta0.5_m1.0_m1.0 fedquad | use_ce=True quadruplet_weight=0.5 margin_1=1.0 margin_2=1.0 rounds=5 num_clients=10 partition=equal
fedquad_table5 cifar10_beta0.5_m1.0_m1.0 fedquad_without_ce | use_ce=False quadruplet_weight=0.5 margin_1=1.0 margin_2=1.0
fedquad_table5 cifar10_beta0.5_m1.0_m0.5 fedquad | use_ce=True quadruplet_weight=0.5 margin_1=1.0 margin_2=0.5
fedquad_table5 cifar10_beta0.5_m1.0_m0.5 fedquad_without_ce | use_ce=False quadruplet_weight=0.5 margin_1=1.0 margin_2=0.5
fedquad_table5 cifar10_beta1.0_m1.0_m0.5 fedquad | use_ce=True quadruplet_weight=1.0 margin_1=1.0 margin_2=0.5
fedquad_table5 cifar10_beta0.5_m2.0_m0.5 fedquad_without_ce | use_ce=False quadruplet_weight=0.5 margin_1=2.0 margin_2=0.5
fedquad_table5 cifar10_beta0.5_m5.0_m0.5 fedquad_without_ce | use_ce=False quadruplet_weight=0.5 margin_1=5.0 margin_2=0.5
fedakd_table2 ehr fedakd,fed_avg | rounds=80
fedakd_table3 ehr_equal_time fedakd | rounds=40
fedakd_table3 ehr_equal_time fed_avg | rounds=80
fedakd_table3 ehr_equal_time cgsv,cgsv_script | rounds=61
fedakd_table4 ehr fedakd_all_data | variant=all_data
fedakd_table4 ehr fedakd_single_dist | variant=single_dist
fedakd_table4 ehr fedakd_correct_agg | variant=correct_agg
"""  # noqa: E501


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
    printed = table.published_as or (name,)
    own = {key[2] for key in numbers if key[0] in printed}
    assert set(table.printed_as) <= set(table.methods) - own, name
    assert set(table.printed_as.values()) <= own, name
    for reference in table.references.values():
      assert reference.preset is None or reference.preset in presets.PRESETS
  replaced = {*definitions.STAND_INS, *definitions.STAND_INS.values()}
  assert replaced <= set(tasks.TASK_NAMES)


def test_recorded_runs_are_of_the_settings_that_their_tables_plan():
  """Otherwise a number would stand on the page under what it is not of."""
  frame = records.read(write_docs.ROOT / 'results')
  frame = frame[frame['source'] == records.RUN]
  keys = ['table', 'cell', 'method', 'data', 'scale', 'rounds']
  checked = 0
  for key, rows in frame.groupby(keys):
    name, cell, method, data, scale, rounds = key
    table = definitions.TABLES[name]
    planner = tiny_table.planner(
      table.restricted_to([method]),
      rounds=None if 'rounds' in table.methods[method] else int(rounds),
      scale=scale,
      dataset=data,
    )
    planned = {
      row.metric: recording.settings_hash(row.runs[0])
      for row in planner.rows([cell])
    }
    differ = rows['settings'] != rows['metric'].map(planned)
    assert not differ.any(), (*key, *rows['metric'][differ].unique())
    checked += len(rows)
  assert checked > 1000


@pytest.mark.full
def test_rows_resolve_and_their_presets_have_the_data_of_the_paper():
  for name, table in definitions.TABLES.items():
    for row in tiny_table.planner(table).rows(table.cells):
      for run in row.runs[0]:
        assert run.settings['task'] == table.cells[row.cell].data, name


def test_every_published_number_has_its_rows_and_no_others():
  numbers, found = published.read(), {}
  for name, table in definitions.TABLES.items():
    keys = [
      published.key(name, cell, method, metric)
      for cell in table.cells
      for method in table.methods_of(cell)
      for metric in table.metrics
    ]
    found[name] = [key for key in keys if key in numbers]
  assert set(numbers) == {key for keys in found.values() for key in keys}
  # More than the paper prints where several of our rows are held against one.
  assert {
    name: len(keys) for name, keys in found.items()
  } == _ROWS_OF_THE_PAPERS


def test_settings_of_the_papers():
  for line in _SETTINGS.strip().splitlines():
    place, _, flags = line.partition(' | ')
    name, cell, methods = place.split()
    planner = tiny_table.planner(definitions.TABLES[name])
    for method in methods.split(','):
      settings = planner.run(cell, method, 0).settings
      found = [f'{n}={settings[n]}' for n in re.findall(r'(\w+)=', flags)]
      assert found == flags.split(), place
  # Flags by data are also those of a reference.
  planner = tiny_table.planner(definitions.TABLES['cffl_why'])
  for cell, rate in (('mnist_p20', 0.01), ('adult_p20_16000', 0.005)):
    alone = planner.run(cell, 'cffl_u0.1', 0, 'standalone')
    assert alone.settings['client_learning_rate'] == rate
  # What table 3's coefficient compares with trains as long as in table 2.
  planner = tiny_table.planner(definitions.TABLES['fedakd_table3'])
  alone = planner.run('ehr_equal_time', 'fedakd', 0, 'standalone')
  assert alone.settings['rounds'] == 80
  ablation = definitions.TABLES['fedquad_table5']
  assert ablation.methods_of('cifar10_beta1.0_m1.0_m0.5') == ('fedquad',)


@pytest.mark.parametrize(
  ('first', 'second', 'cell', 'methods'),
  [
    ('corefed_table1', 'corefed_ablation', 'fmnist', 'fed_avg'),
    ('fedquad_table1', 'fedquad_table2', 'cifar10_a05_c10', 'fedquad moon'),
    ('fedquad_table1', 'fedquad_table2', 'cifar10_a05_c10_capped', 'fedquad'),
    ('cffl_table1', 'cffl_table2', 'mnist_p5', 'cffl_u0.1 fed_avg dssgd_u0.1'),
    ('fedakd_table2', 'fedakd_table4', 'ehr', 'fedakd'),
  ],
)
def test_tables_share_runs(first, second, cell, methods):
  planners = [
    tiny_table.planner(definitions.TABLES[name]) for name in (first, second)
  ]
  for method in methods.split():
    one, other = (p.run(cell, method, 0).output_dir for p in planners)
    assert one == other, method


def test_a_table_of_some_methods_keeps_its_order_and_the_original():
  original = definitions.TABLES['fedquad_table1']
  assert original.restricted_to(original.methods) == original
  before = dict(original.cells)
  table = original.restricted_to(['supcon_fl_without_ce', 'supcon'])
  assert table.methods_of('cifar10_iid_c10') == ('supcon_fl_without_ce',)
  assert table.methods_of('cifar10_centralised') == ('supcon',)
  assert not any(table.figures.values())
  table = original.restricted_to(['moon', 'fedquad', 'fed_avg'])
  assert table.methods_of('cifar10_a05_c10') == ('fed_avg', 'fedquad', 'moon')
  assert table.figures == {'embeddings': ('fed_avg', 'fedquad', 'moon')}
  assert original.cells == before


_LEFT_OUT = {
  'num_clients': 400,
  'data_fraction': 0.6,
  'min_samples': 64,
  'small_clients': 'leave_out',
}
_VARIANTS = {
  '_sorted': {'shift_method': 'pc1_sort'},
  '_sorted_descending': {'shift_method': 'pc1_sort_descending'},
  '_min64': {'min_samples': 64, 'data_fraction': 0.6},
  '_capped': {'balance_cap': True, 'min_samples': 10},
  '_momentum_09': {'model': 'cnn_fedquad_momentum_09'},
  '_shared': {'shift_pool': 'shared'},
  '_left_out': _LEFT_OUT,
  '_test_validates': {'test_leak': 'test_validates'},
  'all_together': {
    **_LEFT_OUT,
    'test_leak': 'test_validates',
    'holdout_fraction': 0.0,
  },
}


# Their cells are ours, not the paper's.
_OURS = ('cffl_why', 'fedakd_why')


def test_variants_of_cells_differ_by_what_they_are_called():
  for name in definitions.TABLES.keys() - _OURS:
    table = definitions.TABLES[name]
    for cell, found in table.cells.items():
      ending = next(filter(cell.endswith, _VARIANTS), '')
      assert found.flags == _VARIANTS.get(ending, {}), (name, cell)
      plain = cell.removesuffix(ending) or 'mnist'
      # Of BCS there are the slices alone.
      base = found if plain.endswith('_bcs') else table.cells[plain]
      assert found.preset == base.preset
      # What may explain a lead is tried with the methods that it concerns.
      if name != 'fedaboost_why':
        assert found.methods == base.methods
      # Only what may be the paper's is held against its numbers of the default.
      own = ('_shared', '_sorted', '_sorted_descending', 'all_together')
      papers = plain if ending in own else None
      assert found.published_as == papers, (name, cell)
