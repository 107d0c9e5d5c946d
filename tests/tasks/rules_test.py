"""The rules of options, and what `build_task` makes of them."""

import dataclasses
import functools
import subprocess
import sys

import tasks
from tasks import options
from tasks import registry
from tasks import rules
from tests.tasks import refusals
from tff_fair import models

_OPTIONS = {field.name for field in dataclasses.fields(tasks.TaskOptions)}


class TestTaskOptions:
  def test_refuses_other_values(self):
    rows = [
      ({'num_clients': 0}, ValueError, r'^num_clients must be at least 1'),
      ({'num_clients': '3'}, TypeError, r'^num_clients must be an integer'),
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
        r"^shift_method must be one of 'importance', 'pc1_sort', found 'sort'",
      ),
      (
        {'shift_weights': 'exact'},
        ValueError,
        r"^shift_weights must be one of 'density', 'ratio', found 'exact'\.$",
      ),
      ({'shift': 0}, ValueError, r'^shift must be positive, found 0\.0\.$'),
      ({'shift': '5'}, TypeError, r"^shift must be a real number, found '5'"),
      ({'pca_dim': 0}, ValueError, r'^pca_dim must be at least 1, found 0\.$'),
      ({'pca_dim': 2.5}, TypeError, r'^pca_dim must be an integer, found 2\.5'),
      ({'ehr_scale': 0.0}, ValueError, r'^ehr_scale must be positive, found 0'),
      ({'ehr_scale': 1.5}, ValueError, r'^ehr_scale must be at most 1\.0, fou'),
      ({'max_events': 0}, ValueError, r'^max_events must be at least 1, found'),
      ({'max_events': 9.0}, TypeError, r'^max_events must be an integer, foun'),
      (
        {'balance_cap': 'yes'},
        ValueError,
        r"^balance_cap must be one of False, True, found 'yes'\.$",
      ),
      (
        {'random_classes': 'yes'},
        ValueError,
        r"^random_classes must be one of False, True, found 'yes'\.$",
      ),
      ({'num_examples': 0}, ValueError, r'^num_examples must be at least 1'),
      ({'num_examples': 9.0}, TypeError, r'^num_examples must be an integer'),
      ({'free_riders': -1}, ValueError, r'^free_riders must be at least 0'),
      ({'free_riders': 10**5}, ValueError, r'^free_riders must be at most 100'),
      ({'free_riders': None}, TypeError, r'^free_riders must be an integer'),
      ({'data_fraction': 0}, ValueError, r'^data_fraction must be positive'),
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
        {'validation_fraction': 1.0},
        ValueError,
        r'^validation_fraction must be in \[0, 1\), found 1\.0\.$',
      ),
      ({'test_fraction': 1}, ValueError, r'^test_fraction must be in \[0, 1'),
      ({'holdout_fraction': 2}, ValueError, r'^holdout_fraction must be in'),
      ({'min_samples': -1}, ValueError, r'^min_samples must be at least 0'),
      ({'seed': -1}, ValueError, r'^seed must be at least 0, found -1\.$'),
      ({'seed': None}, TypeError, r'^seed must be an integer, found None'),
    ]
    refusals.check(options.TaskOptions, rows)

  def test_defaults_are_filled_in_where_they_have_an_effect(self):
    digits = tasks.get_data_set('digits')
    shift = {
      'partition': 'covariate_shift',
      'shift_sizes': 'equal',
      'shift_method': 'importance',
      'shift': 5.0,
      'pca_dim': 10,
      'shift_weights': 'density',
    }
    sort = {'shift_method': 'pc1_sort', 'shift': None, 'pca_dim': None}
    dirichlet = {
      'partition': 'dirichlet',
      'num_clients': 20,
      'dirichlet_alpha': 0.5,
      'dirichlet_remainder': 'use',
      'model': 'mlp_fedaboost',
      'split': 'client',
      'shift': None,
      'validation_fraction': None,
      'num_examples': None,
    }
    zipf = {'partition': 'zipf', 'dirichlet_alpha': None, 'shift_sizes': None}
    for chosen, expected in [
      ({}, dirichlet),
      ({'split': 'server'}, {'validation_fraction': 0.1}),
      # 0 is a choice.
      (
        {'split': 'server', 'validation_fraction': 0.0},
        {'validation_fraction': 0.0},
      ),
      ({'dirichlet_alpha': 0.0}, {'dirichlet_alpha': 0.0}),
      (
        {'seed': 7, 'num_clients': 3, 'model': 'cnn_femnist'},
        {'seed': 7, 'num_clients': 3, 'model': 'cnn_femnist'},
      ),
      ({'dirichlet_remainder': 'drop'}, {'dirichlet_remainder': 'drop'}),
      ({'partition': 'zipf'}, zipf),
      ({'partition': 'covariate_shift'}, shift),
      (
        {'partition': 'covariate_shift', 'shift': 2.0},
        {**shift, 'shift': 2.0},
      ),
      ({'partition': 'covariate_shift', 'shift_method': 'pc1_sort'}, sort),
    ]:
      filled = options.TaskOptions(**chosen).with_defaults(digits)
      assert expected.items() <= vars(filled).items(), chosen

  def test_changed_options_differ_from_their_defaults(self):
    assert options.TaskOptions(min_samples=2).changed() == ()
    chosen = options.TaskOptions(min_samples=3, balance_cap=True, shift=5.0)
    assert chosen.changed() == ('balance_cap', 'min_samples', 'shift')


_DIRICHLET = (
  'dirichlet_alpha',
  'dirichlet_remainder',
  'balance_cap',
  'min_samples',
)
_IMPORTANCE = ('shift', 'pca_dim', 'shift_weights')
_SHIFT = ('shift_sizes', 'shift_method', *_IMPORTANCE)


class TestUnusedOptions:
  def test_of_a_partition(self):
    used_by = {
      'dirichlet': _DIRICHLET,
      'class': ('random_classes', 'num_examples'),
      'covariate_shift': (*_SHIFT, 'num_examples'),
      **dict.fromkeys(('equal', 'power_law', 'zipf'), ('num_examples',)),
    }
    every = {name for names in used_by.values() for name in names}
    for partition, used in used_by.items():
      found = tasks.unused_options('digits', {'partition': partition})
      unused = {
        name
        for name, settings in found.items()
        if settings == {'partition': partition}
      }
      assert unused == every - set(used), partition

  def test_none_stands_for_the_default_partition(self):
    for name, partition in [('digits', 'dirichlet'), ('adult', 'power_law')]:
      expected = tasks.unused_options(name, {'partition': partition})
      assert tasks.unused_options(name, {}) == expected
      assert tasks.unused_options(name, {'partition': None}) == expected

  def test_of_a_shift_that_sorts(self):
    chosen = {'partition': 'covariate_shift', 'shift_method': 'pc1_sort'}
    found = tasks.unused_options('mnist', chosen)
    reason = {'shift_method': 'pc1_sort'}
    assert {n for n in found if found[n] == reason} == set(_IMPORTANCE)

  def test_of_a_split(self):
    found = tasks.unused_options('digits', {'split': 'client'})
    assert found['validation_fraction'] == {'split': 'client'}
    assert not {'holdout_fraction', 'test_fraction'} & set(found)
    for name in ('digits', 'adult', 'mnist', 'fmnist', 'cifar10', 'cifar100'):
      found = tasks.unused_options(name, {'split': 'server'})
      assert found['holdout_fraction'] == {'split': 'server'}
      assert 'validation_fraction' not in found
      expected = {'split': 'server', 'task': name}
      if name in ('digits', 'adult'):
        expected = None
      assert found.get('test_fraction') == expected, name

  def test_of_data_that_come_with_their_clients(self):
    for name, partition in [('femnist', 'writer'), ('ehr', 'state')]:
      for chosen in ({}, {'partition': partition}, {'partition': 'equal'}):
        found = tasks.unused_options(name, chosen)
        of_task = {n for n in found if found[n] == {'task': name}}
        assert of_task - {'ehr_scale', 'max_events'} == {
          *_DIRICHLET,
          *_SHIFT,
          *('random_classes', 'num_examples', 'data_fraction'),
        }

  def test_of_other_data_sets(self):
    for name in tasks.TASK_NAMES:
      found = tasks.unused_options(name, {})
      expected = None if name == 'ehr' else {'task': name}
      for option in ('ehr_scale', 'max_events'):
        assert found.get(option) == expected

  def test_names_are_those_of_options(self):
    own = {n for t in tasks.TASK_NAMES for n in tasks.get_data_set(t).options}
    assert {*rules.USED_WITH, *rules.DEFAULTS, *own} <= _OPTIONS


class TestRegistry:
  def test_names(self):
    assert list(tasks.TASK_NAMES) == sorted(tasks.TASK_NAMES)
    assert {'digits', 'mnist', 'femnist', 'adult', 'ehr'} <= {*tasks.TASK_NAMES}
    names = {*rules.POOL_PARTITIONS, 'state', 'writer'}
    assert names <= {*tasks.PARTITION_NAMES}

  def test_facts_fit_together(self):
    for name in tasks.TASK_NAMES:
      data_set = tasks.get_data_set(name)
      assert data_set.name == name
      assert data_set.partition in data_set.partitions
      assert data_set.model in data_set.models
      dealt = data_set.clients is None
      assert (data_set.num_clients is not None) == dealt
      assert (data_set.dirichlet_alpha is not None) == dealt

  def test_each_named_model_is_a_model_of_the_library(self):
    assert all(callable(getattr(models, name)) for name in tasks.MODEL_NAMES)

  def test_only_health_records_may_be_synthetic(self, tmp_path):
    for name in tasks.TASK_NAMES:
      assert tasks.is_synthetic(name, tmp_path) == (name == 'ehr')

  def test_importing_the_package_does_not_import_what_is_slow(self):
    slow = ('tensorflow', 'scipy', 'sklearn', 'pandas')
    code = (
      'import sys, tasks; '
      'assert set(tasks.__all__) <= set(dir(tasks)); '
      f'sys.exit(any(name in sys.modules for name in {slow}))'
    )
    subprocess.run([sys.executable, '-c', code], check=True)

  def test_wrong_choices_are_refused_before_data_are_looked_for(self, tmp_path):
    def refusal(setting, value):
      return (
        rf'^{setting} must not be set with {value}, which leaves it without '
        r'effect, found .*\.$'
      )

    rows = [
      (
        'minst',
        {},
        r"^The name of a task must be one of 'adult', .*, found 'minst'\.$",
      ),
      *(
        (
          name,
          {'partition': partition},
          rf"^The partition of the task '{name}' must be one of {choices}, "
          rf"found '{partition}'\.$",
        )
        for name, partition, choices in [
          ('mnist', 'iid', "'dirichlet', .*'covariate_shift'"),
          ('digits', 'writer', "'dirichlet', .*'covariate_shift'"),
          ('adult', 'covariate_shift', "'dirichlet', .*'class'"),
          ('femnist', 'dirichlet', "'writer'"),
          ('ehr', 'dirichlet', "'state'"),
        ]
      ),
      (
        'mnist',
        {'split': 'global'},
        r"^The split of the task 'mnist' must be one of 'client', 'server', "
        r"found 'global'\.$",
      ),
      *(
        (
          name,
          {'split': 'server'},
          rf"^The split of the task '{name}' must be one of 'client', found",
        )
        for name in ('femnist', 'ehr')
      ),
      *(
        (
          name,
          {'model': model},
          rf"^The model of the task '{name}' must be one of .*, found "
          rf"'{model}'\.$",
        )
        for name, model in [
          ('mnist', 'mlp'),
          ('mnist', 'gru_ehr'),
          ('femnist', 'gru_ehr'),
          ('ehr', 'mlp_cffl_adult'),
          ('adult', 'gru_ehr'),
          ('adult', 'cnn_femnist'),
          ('adult', 'cnn_cifar_gn'),
          ('adult', 'cnn_corefed'),
        ]
      ),
      (
        'mnist',
        {'shift': 2.0},
        r"^shift must not be set with partition='dirichlet', which leaves it "
        r'without effect, found 2\.0\.$',
      ),
      (
        'mnist',
        {'partition': 'equal', 'min_samples': 3},
        refusal('min_samples', "partition='equal'"),
      ),
      (
        'adult',
        {'dirichlet_alpha': 0.5},
        refusal('dirichlet_alpha', "partition='power_law'"),
      ),
      (
        'fmnist',
        {
          'partition': 'covariate_shift',
          'shift_method': 'pc1_sort',
          'shift': 1,
        },
        refusal('shift', "shift_method='pc1_sort'"),
      ),
      (
        'cifar10',
        {'validation_fraction': 0.0},
        refusal('validation_fraction', "split='client'"),
      ),
      (
        'cifar10',
        {'split': 'server', 'test_fraction': 0.5},
        refusal('test_fraction', "split='server' and task='cifar10'"),
      ),
      (
        'femnist',
        {'num_examples': 20},
        refusal('num_examples', "task='femnist'"),
      ),
      ('ehr', {'data_fraction': 0.5}, refusal('data_fraction', "task='ehr'")),
      ('mnist', {'ehr_scale': 0.1}, refusal('ehr_scale', "task='mnist'")),
      ('femnist', {'max_events': 9}, refusal('max_events', "task='femnist'")),
    ]
    for name, chosen, message in rows:
      build = functools.partial(registry.build_task, name, data_dir=tmp_path)
      refusals.check(build, [(chosen, ValueError, message)])
