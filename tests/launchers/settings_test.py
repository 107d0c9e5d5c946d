from absl import flags
import pytest

from launchers import settings
from launchers import train_flags


def _resolve(*arguments):
  flag_values = train_flags.parse(list(arguments))
  return settings.resolve(flag_values, train_flags.FLAG_NAMES)


def test_defaults_leave_out_what_other_methods_read():
  found = _resolve()
  assert found['algorithm'] == 'fedaboost'
  assert found['boost_rate'] == 0.01
  assert 'uniform' not in found and 'proximal_weight' not in found
  assert 'preset' not in found


def test_preset_fills_and_single_flags_override():
  found = _resolve('--preset=fedaboost_mnist', '--rounds=7')
  assert found['rounds'] == 7
  assert found['num_clients'] == 264


def test_preset_for_another_method():
  found = _resolve('--preset=fedaboost_mnist', '--algorithm=ditto')
  assert found['algorithm'] == 'ditto'
  assert found['personal_weight_decay'] == 1e-3
  assert 'boost_rate' not in found


def test_what_overrides_a_preset_takes_its_dependants_along():
  found = _resolve('--preset=fedaboost_mnist', '--partition=equal')
  assert found['dirichlet_alpha'] is None
  found = _resolve('--preset=cffl_mnist_size_p5', '--partition=dirichlet')
  assert found['num_examples'] is None
  found = _resolve('--preset=fedaboost_mnist', '--algorithm=dssgd')
  assert found['client_fraction'] == 1
  found = _resolve('--preset=corefed_fmnist', '--algorithm=standalone')
  assert found['distances'] is False
  found = _resolve('--preset=corefed_ablation_corefed', '--variant=cofed')
  assert found['alignment'] == 'server'


def test_the_flags_of_this_process_are_left_alone():
  before = set(flags.FLAGS)
  _resolve('--rounds=3')
  assert set(flags.FLAGS) == before


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    (
      ['--algorithm=fedavg', '--boost_rate=0.1'],
      '--boost_rate must not be given with --algorithm=fedavg',
    ),
    (
      ['--preset=fedaboost_mnist', '--uniform'],
      '--uniform must not be given with --algorithm=fedaboost',
    ),
    (
      ['--runtime=native', '--device=cpu'],
      '--device must not be given with --runtime=native',
    ),
    (
      ['--runtime=native', '--client_threads=2'],
      '--client_threads must not be given with --runtime=native',
    ),
    (
      ['--noboosting', '--boost_rate=0.1'],
      '--boost_rate must not be given with --boosting=False',
    ),
    (
      ['--partition=equal', '--dirichlet_alpha=0.1'],
      '--dirichlet_alpha must not be given with --partition=equal',
    ),
    (
      ['--partition=class', '--dirichlet_alpha=0.1'],
      '--dirichlet_alpha must not be given with --partition=class',
    ),
    (
      ['--partition=dirichlet', '--num_examples=9'],
      '--num_examples must not be given with --partition=dirichlet',
    ),
    (
      ['--validation_fraction=0.1'],
      '--validation_fraction must not be given with --split=client',
    ),
    (
      ['--split=server', '--holdout_fraction=0.1'],
      '--holdout_fraction must not be given with --split=server',
    ),
    (
      ['--split=server', '--task=mnist', '--test_fraction=0.1'],
      '--test_fraction must not be given with --split=server --task=mnist, wh',
    ),
    (
      ['--algorithm=dssgd', '--client_fraction=0.5'],
      '--client_fraction must not be given with --algorithm=dssgd',
    ),
    (
      ['--partition=equal', '--balance_cap'],
      '--balance_cap must not be given with --partition=equal',
    ),
    (
      ['--task=femnist', '--partition=writer', '--min_samples=3'],
      '--min_samples must not be given with --partition=writer',
    ),
    (
      ['--algorithm=standalone', '--distances'],
      '--distances must not be given with --algorithm=standalone',
    ),
    (
      ['--preset=cffl_digits', '--distances'],
      '--distances must not be given with --algorithm=cffl',
    ),
    (
      ['--algorithm=dssgd', '--distances'],
      '--distances must not be given with --algorithm=dssgd',
    ),
    (
      ['--algorithm=corefed', '--variant=cofed', '--alignment=client'],
      '--alignment must not be given with --variant=cofed',
    ),
    (
      ['--algorithm=corefed', '--variant=cofed', '--beta=0.1'],
      '--beta must not be given with --variant=cofed',
    ),
    (
      ['--algorithm=corefed', '--variant=refed', '--nogradient_reuse'],
      '--gradient_reuse must not be given with --variant=refed',
    ),
    (
      ['--algorithm=corefed', '--variant=refed', '--temperature=1'],
      '--temperature must not be given with --variant=refed --alignment=server',
    ),
    (
      ['--algorithm=corefed', '--contrastive_weight=1'],
      '--contrastive_weight must not be given with --alignment=server',
    ),
    (
      ['--algorithm=fed_mdfg', '--local_epochs=2'],
      '--local_epochs must not be given with --algorithm=fed_mdfg',
    ),
    (
      ['--algorithm=fed_mgda', '--q=0.5'],
      '--q must not be given with --algorithm=fed_mgda',
    ),
    (
      ['--preset=cffl_digits', '--pretrain_epochs=3'],
      '--pretrain_epochs must not be given with --pretrain=False',
    ),
    (
      ['--preset=cffl_digits', '--free_rider_kind=zero'],
      '--free_rider_kind must not be given with --free_riders=0',
    ),
    (
      ['--preset=cffl_digits', '--algorithm=standalone', '--free_riders=1'],
      '--free_riders must not be given with --algorithm=standalone',
    ),
  ],
)
def test_flags_without_effect_are_refused(arguments, message):
  with pytest.raises(settings.SettingsError, match=message):
    _resolve(*arguments)


def test_what_a_method_cannot_do_without():
  message = '--algorithm=cffl must be given with --split=server, found --split='
  with pytest.raises(settings.SettingsError, match=message):
    _resolve('--algorithm=cffl')
  assert _resolve('--algorithm=cffl', '--split=server')['upload_rate'] == 1
  message = '--algorithm=fed_rdn must be given with --split=client, found --spl'
  with pytest.raises(settings.SettingsError, match=message):
    _resolve('--algorithm=fed_rdn', '--split=server')


@pytest.mark.parametrize('value', ['nan', 'inf'])
def test_numbers_must_be_finite(value):
  with pytest.raises(settings.SettingsError, match=f'finite, found {value}'):
    _resolve(f'--client_learning_rate={value}')


@pytest.mark.parametrize(
  'arguments',
  [
    ['--preset=fedaboost_mnist'],
    ['--preset=fedaboost_femnist_2', '--algorithm=ditto'],
    ['--preset=fedaboost_digits_without_boosting', '--compare_with=a'],
    ['--preset=cffl_freerider'],
    ['--preset=cffl_adult_size_p5', '--algorithm=dssgd', '--upload_rate=0.1'],
    ['--preset=corefed_fmnist', '--task=mnist', '--nogradient_reuse'],
    ['--preset=corefed_ablation_refed'],
    ['--preset=corefed_cifar', '--algorithm=fed_mdfg'],
  ],
)
def test_text_gives_the_same_settings_as_a_flagfile(arguments, tmp_path):
  found = _resolve(*arguments)
  path = tmp_path / 'flags.txt'
  path.write_text(settings.to_text(found, 'some preset'))
  assert _resolve(f'--flagfile={path}') == found


def test_same_run(tmp_path):
  text = settings.to_text(_resolve('--rounds=3'), None)
  assert not settings.check_same_run(tmp_path, text)
  (tmp_path / settings.FLAGS_FILE).write_text(text)
  assert settings.check_same_run(tmp_path, text)
  moved = settings.to_text(_resolve('--rounds=3', '--data_dir=x'), None)
  assert settings.check_same_run(tmp_path, moved)


def test_another_run_is_refused_with_the_differences(tmp_path):
  text = settings.to_text(_resolve('--rounds=3'), None)
  (tmp_path / settings.FLAGS_FILE).write_text(text)
  other = settings.to_text(_resolve('--rounds=4', '--num_clients=5'), None)
  with pytest.raises(
    settings.SettingsError,
    match='--num_clients is not set there and 5 here; --rounds is 3 there',
  ):
    settings.check_same_run(tmp_path, other)
