import pytest

from launchers import methods
from launchers import presets
from launchers import train
import tasks


@pytest.mark.parametrize('name', presets.PRESETS)
def test_presets_name_flags_methods_and_tasks_that_exist(name):
  preset = presets.PRESETS[name]
  assert preset.shared['algorithm'] in methods.METHOD_FLAGS
  assert preset.shared['task'] in tasks.TASK_NAMES
  assert set(preset.shared) <= set(train.FLAG_NAMES)
  for method, own in preset.methods.items():
    assert set(own) <= set(methods.METHOD_FLAGS[method])


def test_preset_follows_the_method():
  preset = presets.PRESETS['fedaboost_mnist']
  assert preset.flag_values(None)['boost_rate'] == 0.01
  assert 'boost_rate' not in preset.flag_values('fedavg')
  assert preset.flag_values('ditto')['proximal_weight'] == 0.1
  assert preset.flag_values('fedavg')['num_clients'] == 264


def test_ablation_differs_by_boosting_alone():
  full = presets.PRESETS['fedaboost_mnist'].flag_values(None)
  ablation = presets.PRESETS['fedaboost_mnist_without_boosting']
  values = ablation.flag_values(None)
  assert values['boosting'] is False
  for name in ('boost_rate', 'error_threshold'):
    del full[name]
  assert values == {**full, 'boosting': False}
  assert 'boosting' not in ablation.flag_values('fedavg')


@pytest.mark.parametrize(('fraction', 'rounds'), [(20, 70), (40, 45), (60, 30)])
def test_published_cifar_settings(fraction, rounds):
  values = presets.PRESETS[f'fedaboost_cifar_{fraction}'].flag_values(None)
  assert values['client_fraction'] == fraction / 100
  assert values['rounds'] == rounds
  assert (values['boost_rate'], values['error_threshold']) == (0.002, 0.4)
