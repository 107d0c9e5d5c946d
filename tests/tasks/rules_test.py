"""The rules of options, and what `build_task` makes of them."""

import dataclasses
import subprocess
import sys

from tests import refusals
from tff_fair import models
from tff_fair import tasks
from tff_fair.tasks import options
from tff_fair.tasks import rules

_OF_ONES_OWN = ('arrays', 'image_folder', 'table')
# The options of some data sets only.
_OWN = {n for t in tasks.TASK_NAMES for n in tasks.get_data_set(t).options}


class TestTaskOptions:
  def test_refuses_other_values(self):
    refusals.check_values(
      options.TaskOptions,
      {
        'num_clients': [0, '3', 2.0],
        'data_fraction': [0, -0.5, 1.5, float('nan'), None],
        'num_examples': [0, 9.0],
        'dirichlet_remainder': ['keep'],
        'balance_cap': ['yes', None],
        'min_samples': [-1, 1.5],
        'random_classes': ['yes'],
        'shift_sizes': ['even'],
        'shift_method': ['sort'],
        'shift_weights': ['exact'],
        'shift_pool': ['own', None],
        'shift': [0, '5', 1e300],
        'pca_dim': [0, 2.5],
        'validation_fraction': [-0.1, 1.0, '10%'],
        'holdout_fraction': [2],
        'test_fraction': [1],
        'test_leak': ['none', True],
        'unseen_fraction': [-0.1, 1],
        'ehr_scale': [0.0, 1.5],
        'max_events': [0, 9.0],
        'missing_values': ['keep', 0],
        'drop_sensitive': ['yes', None],
        'free_riders': [-1, 10**5, None],
        'seed': [-1, None],
      },
    )

  def test_defaults_are_filled_in_where_they_have_an_effect(self):
    digits = tasks.get_data_set('digits')
    none = dict.fromkeys(('shift', 'validation_fraction', 'num_examples'))
    shift = {'shift': 5.0, 'pca_dim': 10, 'shift_weights': 'density'}
    dirichlet = {
      'partition': 'dirichlet',
      'num_clients': 20,
      'dirichlet_alpha': 0.5,
      'dirichlet_remainder': 'use',
      'model': 'mlp_fedaboost',
      'split': 'client',
    }
    for chosen, expected in [
      ({}, {**dirichlet, **none}),
      ({'split': 'server'}, {'validation_fraction': 0.1}),
      # 0 is a choice.
      ({'split': 'server', 'validation_fraction': 0.0}, {}),
      ({'dirichlet_alpha': 0.1, 'seed': 7, 'num_clients': 3}, {}),
      ({'partition': 'zipf'}, {'dirichlet_alpha': None, 'shift_sizes': None}),
      ({'partition': 'covariate_shift'}, {**shift, 'shift_sizes': 'equal'}),
      ({'partition': 'covariate_shift', 'shift': 2.0}, {'pca_dim': 10}),
      (
        {'partition': 'covariate_shift', 'shift_method': 'pc1_sort'},
        dict.fromkeys(shift),
      ),
    ]:
      unused = digits.unused_options(chosen)
      filled = options.TaskOptions(**chosen).with_defaults(digits, unused)
      assert {**chosen, **expected}.items() <= vars(filled).items(), chosen

  def test_changed_options_differ_from_their_defaults(self):
    assert options.TaskOptions(min_samples=2).changed() == ()
    chosen = options.TaskOptions(min_samples=3, balance_cap=True, shift=5.0)
    assert chosen.changed() == ('balance_cap', 'min_samples', 'shift')


_DIRICHLET = (
  'dirichlet_alpha',
  'dirichlet_remainder',
  'balance_cap',
  'min_samples',
  'small_clients',
)
_IMPORTANCE = ('shift', 'pca_dim', 'shift_weights', 'shift_pool')
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
      reason = {'partition': partition}
      found = tasks.unused_options('digits', reason)
      assert {n for n in found if found[n] == reason} == every - set(used)
    chosen = {'partition': 'covariate_shift', 'shift_method': 'pc1_sort'}
    found = tasks.unused_options('mnist', chosen)
    reason = {'shift_method': 'pc1_sort'}
    assert {n for n in found if found[n] == reason} == set(_IMPORTANCE)

  def test_none_stands_for_the_default_partition(self):
    for name, partition in [('digits', 'dirichlet'), ('adult', 'power_law')]:
      expected = tasks.unused_options(name, {'partition': partition})
      assert tasks.unused_options(name, {}) == expected
      assert tasks.unused_options(name, {'partition': None}) == expected

  def test_of_a_split(self):
    found = tasks.unused_options('digits', {'split': 'client'})
    assert found['validation_fraction'] == {'split': 'client'}
    assert not {'holdout_fraction', 'test_fraction'} & set(found)
    for name in ('digits', 'adult', 'mnist', 'cifar100'):
      found = tasks.unused_options(name, {'split': 'server'})
      assert found['holdout_fraction'] == {'split': 'server'}
      assert 'validation_fraction' not in found
      expected = {'split': 'server', 'task': name}
      if name in ('digits', 'adult'):  # Without a test file.
        expected = None
      assert found.get('test_fraction') == expected, name

  def test_of_data_that_come_with_their_clients(self):
    for name, partition in [('femnist', 'writer'), ('ehr', 'state')]:
      for chosen in ({}, {'partition': partition}, {'partition': 'equal'}):
        found = tasks.unused_options(name, chosen)
        of_task = {n for n in found if found[n] == {'task': name}}
        assert of_task - _OWN == {
          *_DIRICHLET,
          *_SHIFT,
          *('random_classes', 'num_examples', 'data_fraction'),
        }

  def test_of_other_data_sets(self):
    assert {'ehr_scale', 'data_file', 'client_column'} <= _OWN
    for name in tasks.TASK_NAMES:
      found = tasks.unused_options(name, {})
      foreign = _OWN - {*tasks.get_data_set(name).options}
      assert {n for n in _OWN if found.get(n) == {'task': name}} == foreign

  def test_names_are_those_of_options(self):
    known = {field.name for field in dataclasses.fields(tasks.TaskOptions)}
    assert {*rules.USED_WITH, *rules.DEFAULTS, *_OWN} <= known


class TestRegistry:
  def test_facts_fit_together(self):
    assert {'digits', 'mnist', 'femnist', 'adult', 'ehr'} <= {*tasks.TASK_NAMES}
    names = {*rules.POOL_PARTITIONS, 'state', 'writer'}
    assert names <= {*tasks.PARTITION_NAMES}
    for name in tasks.TASK_NAMES:
      data_set = tasks.get_data_set(name)
      assert data_set.name == name
      assert data_set.partition in data_set.partitions
      assert data_set.model in data_set.models
      dealt = data_set.clients is None
      # Nobody but the user knows into how many parts to deal own data.
      has_number = dealt and name not in _OF_ONES_OWN
      assert (data_set.num_clients is not None) == has_number
      assert (data_set.dirichlet_alpha is not None) == dealt
    assert all(callable(getattr(models, name)) for name in tasks.MODEL_NAMES)

  def test_importing_the_package_does_not_import_what_is_slow(self):
    slow = ('tensorflow', 'scipy', 'sklearn', 'pandas')
    code = (
      'import sys, tasks; '
      'assert set(tasks.__all__) <= set(dir(tasks)); '
      f'sys.exit(any(name in sys.modules for name in {slow}))'
    )
    subprocess.run([sys.executable, '-c', code], check=True)

  def test_choices_are_refused_before_data_are_looked_for(self, tmp_path):
    sort = {'partition': 'covariate_shift', 'shift_method': 'pc1_sort'}
    choice = r"^The {} of .* '{}' must .*, found '{}'"
    for name, option, value, others, reason in [
      ('adult', 'partition', 'covariate_shift', {}, None),
      ('femnist', 'partition', 'dirichlet', {}, None),
      ('mnist', 'split', 'global', {}, None),
      ('ehr', 'split', 'server', {}, None),
      ('mnist', 'model', 'gru_ehr', {}, None),
      ('adult', 'model', 'cnn_femnist', {}, None),
      # What has no effect.
      ('mnist', 'shift', 2.0, {}, "partition='dirichlet'"),
      ('fmnist', 'shift_pool', 'shared', sort, "shift_method='pc1_sort'"),
      ('cifar10', 'validation_fraction', 0.0, {}, "split='client'"),
      ('cifar10', 'test_fraction', 0.5, {'split': 'server'}, "task='cifar10'"),
      ('digits', 'label_column', 'x', {}, "task='digits'"),
    ]:
      message = choice.format(option, name, value)
      if reason:
        message = rf'^{option} must not be set with .*{reason}.*found {value!r}'
      refusals.check(
        tasks.build_task,
        [({option: value, **others}, ValueError, message)],
        name=name,
        data_dir=tmp_path,
      )
    for name, found in [('minst', 'Did you mean mnist'), ('x', "found 'x'")]:
      refusals.check(tasks.build_task, [({'name': name}, ValueError, found)])
