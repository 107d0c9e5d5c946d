import math

import pytest

from launchers.options import methods
from launchers.options import presets
from launchers.options import settings
from launchers.options import train_flags
import tasks

# What all methods read, and some have otherwise than the setting they share.
_OWN_ALSO = (
  'model',
  'client_optimizer',
  'client_learning_rate',
  'client_weight_decay',
)


@pytest.mark.parametrize('name', presets.PRESETS)
def test_presets_name_flags_methods_and_tasks_that_exist(name):
  preset = presets.PRESETS[name]
  assert preset.shared['algorithm'] in methods.METHOD_FLAGS
  assert preset.shared['task'] in tasks.TASK_NAMES
  assert set(preset.shared) <= set(train_flags.FLAG_NAMES)
  for method, own in preset.methods.items():
    assert set(own) <= {*methods.METHOD_FLAGS[method], *_OWN_ALSO}


def test_preset_follows_the_method():
  preset = presets.PRESETS['fedaboost_mnist']
  assert preset.flag_values(None)['boost_rate'] == 0.01
  assert 'boost_rate' not in preset.flag_values('fed_avg')
  assert preset.flag_values('ditto')['proximal_weight'] == 0.1
  assert preset.flag_values('fed_avg')['num_clients'] == 264


def test_ablation_differs_by_boosting_alone():
  full = presets.PRESETS['fedaboost_mnist'].flag_values(None)
  ablation = presets.PRESETS['fedaboost_mnist_without_boosting']
  values = ablation.flag_values(None)
  assert values['boosting'] is False
  for name in ('boost_rate', 'error_threshold'):
    del full[name]
  assert values == {**full, 'boosting': False}
  assert 'boosting' not in ablation.flag_values('fed_avg')


@pytest.mark.parametrize(('fraction', 'rounds'), [(20, 70), (40, 45), (60, 30)])
def test_published_cifar_settings(fraction, rounds):
  values = presets.PRESETS[f'fedaboost_cifar_{fraction}'].flag_values(None)
  assert values['client_fraction'] == fraction / 100
  assert values['rounds'] == rounds
  assert (values['boost_rate'], values['error_threshold']) == (0.002, 0.4)


def _resolve(preset, algorithm=None):
  arguments = [f'--preset={preset}']
  if algorithm:
    arguments.append(f'--algorithm={algorithm}')
  flag_values = train_flags.parse(arguments)
  return settings.resolve(flag_values, train_flags.FLAG_NAMES)


@pytest.mark.parametrize('name', presets.PRESETS)
def test_presets_resolve(name):
  found = _resolve(name)
  for key, value in presets.PRESETS[name].flag_values(None).items():
    assert found[key] == value


_CFFL = [name for name in presets.PRESETS if name.startswith('cffl')]
_COREFED = [name for name in presets.PRESETS if name.startswith('corefed')]


@pytest.mark.parametrize('name', _CFFL)
def test_baselines_of_cffl_differ_by_the_method_alone(name):
  shared = dict(presets.PRESETS[name].shared)
  del shared['algorithm']
  for algorithm in ('standalone', 'round_robin_fed_avg', 'dssgd', 'fed_avg'):
    found = _resolve(name, algorithm)
    assert {key: found[key] for key in shared} == shared


@pytest.mark.parametrize(
  ('name', 'task', 'clients', 'examples', 'epochs', 'rate', 'rounds'),
  [
    ('cffl_mnist_size_p5', 'mnist', 5, 3000, 2, 0.15, 30),
    ('cffl_mnist_size_p10', 'mnist', 10, 6000, 2, 0.25, 30),
    ('cffl_mnist_size_p20', 'mnist', 20, 12000, 2, 0.25, 30),
    ('cffl_mnist_class_p5', 'mnist', 5, 3000, 1, 0.15, 50),
    ('cffl_mnist_class_p10', 'mnist', 10, 6000, 1, 0.15, 50),
    ('cffl_mnist_class_p20', 'mnist', 20, 12000, 1, 0.15, 50),
    ('cffl_adult_size_p5', 'adult', 5, 4000, 2, 0.03, 30),
    ('cffl_adult_size_p10', 'adult', 10, 8000, 2, 0.03, 30),
    ('cffl_adult_size_p20', 'adult', 20, 12000, 2, 0.03, 30),
    ('cffl_freerider', 'mnist', 5, 3000, 2, 0.15, 30),
  ],
)
def test_published_cffl_settings(
  name, task, clients, examples, epochs, rate, rounds
):
  found = _resolve(name)
  scenario, partition = 'size', 'power_law'
  if 'class' in name:
    scenario = partition = 'class'
  expected = {
    'algorithm': 'cffl',
    'task': task,
    'model': f'mlp_cffl_{task}',
    'split': 'server',
    'partition': partition,
    'scenario': scenario,
    'num_clients': clients,
    'num_examples': examples,
    'local_epochs': epochs,
    'batch_size': 16,
    'client_optimizer': 'sgd',
    'client_learning_rate': rate,
    'learning_rate_decay': 0.977,
    'clip_value': 0.01,
    'punishment_factor': 5.0,
    'history_weight': 0.5,
    'upload_rate': 1.0,
    'pretrain': False,
    'rounds': rounds,
    'free_riders': int(name == 'cffl_freerider'),
  }
  assert {key: found[key] for key in expected} == expected


@pytest.mark.parametrize('name', _COREFED)
@pytest.mark.parametrize(
  'algorithm',
  ['fed_avg', 'ditto', 'q_fed_avg', 'fed_mgda', 'fed_mdfg', 'fed_rdn'],
)
def test_baselines_of_corefed_differ_by_the_method_alone(name, algorithm):
  preset = presets.PRESETS[name]
  own = {'algorithm', *preset.methods.get(algorithm, {})}
  found = _resolve(name, algorithm)
  assert {k: found[k] for k in preset.shared if k not in own} == {
    k: v for k, v in preset.shared.items() if k not in own
  }


@pytest.mark.parametrize(
  ('algorithm', 'expected'),
  [
    (
      'ditto',
      {
        'proximal_weight': 0.1,
        'personal_optimizer': 'sgd',
        'personal_learning_rate': 0.1,
        'personal_weight_decay': 0.0,
      },
    ),
    ('q_fed_avg', {'q': 0.1}),
    ('fed_mgda', {'deviation': 0.1}),
    ('fed_mdfg', {'angle': math.radians(1), 'line_search_scale': 5}),
  ],
)
def test_baselines_of_corefed_have_the_paper_s_values(algorithm, expected):
  found = _resolve('corefed_fmnist', algorithm)
  assert {key: found[key] for key in expected} == pytest.approx(expected)


def test_fed_rdn_normalises_once():
  assert _resolve('corefed_cifar', 'fed_rdn')['model'] == 'cnn_corefed_plain'


@pytest.mark.parametrize(
  ('name', 'others'),
  [
    ('corefed_fmnist', {}),
    (
      'corefed_cifar',
      {'task': 'cifar10', 'model': 'cnn_corefed', 'test_fraction': 1 / 6},
    ),
    (
      'corefed_fmnist_full_01',
      {
        'num_clients': 10,
        'client_fraction': 1.0,
        'batch_size': 200,
        'dirichlet_alpha': 0.1,
      },
    ),
    (
      'corefed_fmnist_full_05',
      {'num_clients': 10, 'client_fraction': 1.0, 'batch_size': 200},
    ),
    ('corefed_tradeoff_a', {'sharpness': 0.5, 'gamma': 2.0}),
    ('corefed_tradeoff_b', {}),
    ('corefed_ablation_corefed', {'alignment': 'client'}),
    ('corefed_ablation_cofed', {'variant': 'cofed'}),
    ('corefed_ablation_refed', {'variant': 'refed', 'alignment': 'client'}),
  ],
)
def test_published_corefed_settings(name, others):
  found = _resolve(name)
  expected = {
    'algorithm': 'corefed',
    'task': 'fmnist',
    'model': 'mlp_corefed',
    'num_clients': 100,
    'client_fraction': 0.2,
    'partition': 'dirichlet',
    'dirichlet_alpha': 0.5,
    'balance_cap': True,
    'min_samples': 10,
    'split': 'client',
    'test_fraction': 1 / 7,
    'holdout_fraction': 0.0,
    'client_optimizer': 'sgd',
    'client_learning_rate': 0.1,
    'learning_rate_decay': 0.999,
    'local_epochs': 1,
    'batch_size': 50,
    'rounds': 1000,
    'eval_every': 10,
    'distances': True,
    'variant': 'corefed',
    'alignment': 'server',
    'gamma': 0.5,
    'sharpness': 2.0,
    'beta': 0.5,
    'temperature': 0.07,
    **others,
  }
  assert {key: found[key] for key in expected} == expected


_FEDQUAD = [name for name in presets.PRESETS if name.startswith('fedquad')]
_OF_FEDQUAD = (
  'fed_avg',
  'fedquad',
  'moon',
  'supcon_fl',
  'triplet_fl',
  'quadruplet_fl',
  'fed_prox',
)


def test_the_settings_of_fedquad_are_all_there():
  settings_of_tables = [
    f'fedquad_{data}_{setting}'
    for data in ('cifar10', 'cifar100')
    for setting in (
      'iid_c10',
      'a03_c10',
      'a05_c10',
      'a05_c50',
      'a05_c200',
      'centralised',
    )
  ]
  ablation = [
    f'fedquad_ablation_{values}'
    for values in (
      'b05_m1_m1',
      'b05_m1_m05',
      'b1_m1_m05',
      'b05_m2_m05',
      'b05_m5_m05',
    )
  ]
  assert sorted(_FEDQUAD) == sorted(
    ['fedquad_digits', *settings_of_tables, *ablation]
  )


@pytest.mark.parametrize('algorithm', _OF_FEDQUAD)
@pytest.mark.parametrize('name', _FEDQUAD)
def test_baselines_of_fedquad_differ_by_the_method_alone(name, algorithm):
  shared = dict(presets.PRESETS[name].shared)
  del shared['algorithm']
  found = _resolve(name, algorithm)
  assert {key: found[key] for key in shared} == shared


@pytest.mark.parametrize('algorithm', _OF_FEDQUAD)
@pytest.mark.parametrize('task', ['cifar10', 'cifar100'])
@pytest.mark.parametrize(
  ('setting', 'clients', 'alpha'),
  [
    ('iid_c10', 10, None),
    ('a03_c10', 10, 0.3),
    ('a05_c10', 10, 0.5),
    ('a05_c50', 50, 0.5),
    ('a05_c200', 200, 0.5),
    ('centralised', 1, None),
  ],
)
def test_published_fedquad_settings(task, setting, clients, alpha, algorithm):
  found = _resolve(f'fedquad_{task}_{setting}', algorithm)
  expected = {
    'algorithm': algorithm,
    'task': task,
    'model': 'cnn_fedquad',
    'num_clients': clients,
    'client_fraction': 1.0,
    'partition': 'equal' if alpha is None else 'dirichlet',
    'dirichlet_alpha': alpha,
    'balance_cap': False,
    'data_fraction': 1.0,
    'num_examples': None,
    # The clients get the whole train file, the test file scores.
    'split': 'server',
    'validation_fraction': 0.0,
    'client_optimizer': 'adam',
    'client_learning_rate': 1e-3,
    'client_weight_decay': 1e-5,
    'learning_rate_decay': 1.0,
    'local_epochs': 5,
    'batch_size': 128,
    'rounds': 20,
    **_OF_METHOD.get(algorithm, {}),
  }
  if algorithm == 'moon':
    expected['contrastive_weight'] = {'cifar10': 5.0, 'cifar100': 1.0}[task]
  assert {key: found[key] for key in expected} == expected


_METRIC = {'metric_weight': 0.5, 'use_ce': True}
_OF_METHOD = {
  'fedquad': {
    'quadruplet_weight': 0.5,
    'margin_1': 1.0,
    'margin_2': 0.5,
    'squared': False,
    'use_ce': True,
    'resample': 'epoch',
  },
  'moon': {'temperature': 0.5},
  'supcon_fl': {'temperature': 0.07, **_METRIC},
  'triplet_fl': {'margin': 1.0, 'resample': 'epoch', **_METRIC},
  'quadruplet_fl': {
    'margin_1': 1.0,
    'margin_2': 0.5,
    'resample': 'epoch',
    **_METRIC,
  },
  'fed_prox': {'proximal_weight': 0.01},
}


@pytest.mark.parametrize(
  ('name', 'weight', 'margins'),
  [
    ('b05_m1_m1', 0.5, (1.0, 1.0)),
    ('b05_m1_m05', 0.5, (1.0, 0.5)),
    ('b1_m1_m05', 1.0, (1.0, 0.5)),
    ('b05_m2_m05', 0.5, (2.0, 0.5)),
    ('b05_m5_m05', 0.5, (5.0, 0.5)),
  ],
)
def test_the_ablation_of_fedquad_is_of_iid_clients(name, weight, margins):
  found = _resolve(f'fedquad_ablation_{name}')
  assert found.pop('quadruplet_weight') == weight
  assert (found.pop('margin_1'), found.pop('margin_2')) == margins
  expected = {**_resolve('fedquad_cifar10_iid_c10'), 'rounds': 5}
  assert found == {key: expected[key] for key in found}


@pytest.mark.parametrize('name', _FEDQUAD)
def test_all_checkpoints_of_fedquad_stay_for_pictures(name):
  found = _resolve(name)
  every, rounds = found['checkpoint_every'], found['rounds']
  assert rounds % every == 0 and every % found['eval_every'] == 0
  assert found['checkpoints_to_keep'] >= rounds // every
